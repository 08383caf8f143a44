//! Arguments in the memory of the process that makes a call: paths, addresses, structures.
//!
//! In: a thread and addresses in its memory. Out: bytes. An address that is not mapped is not an
//! error here: the call will fail for the process too.

use super::kernel;
use std::io;

/// As long as the kernel lets a path be.
const LONGEST_PATH: usize = 4096;
const PAGE: u64 = 4096;
/// Most paths are shorter.
const FIRST_READ: usize = 256;

/// A string that ends with a NUL; `None` if the call will find none either.
pub fn string(thread: u32, address: u64) -> io::Result<Option<Vec<u8>>> {
    let mut text = Vec::new();
    let mut at = address;
    while address != 0 && text.len() < LONGEST_PATH {
        let mut chunk = [0; FIRST_READ];
        // Never across the end of a page: the next one may not be there.
        let length = chunk.len().min((PAGE - at % PAGE) as usize);
        let count = match kernel::read_memory(thread, at, &mut chunk[..length]) {
            Ok(count) => count,
            Err(error) if is_fault(&error) => return Ok(None),
            Err(error) => return Err(error),
        };
        if let Some(end) = chunk[..count].iter().position(|&byte| byte == 0) {
            text.extend_from_slice(&chunk[..end]);
            return Ok(Some(text));
        }
        text.extend_from_slice(&chunk[..count]);
        at += count as u64;
    }
    Ok(None)
}

/// As many bytes as are there, up to `length`.
pub fn bytes(thread: u32, address: u64, length: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; length];
    match kernel::read_memory(thread, address, &mut bytes) {
        Ok(count) => bytes.truncate(count),
        Err(error) if is_fault(&error) => bytes.clear(),
        Err(error) => return Err(error),
    }
    Ok(bytes)
}

/// A number of 8 bytes; 0 if there is none.
pub fn number(thread: u32, address: u64) -> io::Result<u64> {
    Ok(number_in(&bytes(thread, address, 8)?, 0))
}

/// A number of 8 bytes within bytes; 0 if they are too few.
pub fn number_in(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..at + 8).and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_ne_bytes)
}

/// The address is wrong, or the process is gone.
fn is_fault(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EFAULT | libc::ESRCH | libc::EIO))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_end_where_they_end() {
        let long = vec![b'x'; 3000];
        let text = [&long[..], b"\0rest"].concat();
        let own = std::process::id();
        assert_eq!(string(own, text.as_ptr() as u64).unwrap(), Some(long));
        assert_eq!(string(own, 0).unwrap(), None);
        assert_eq!(string(own, 16).unwrap(), None);
        assert_eq!(bytes(own, text.as_ptr() as u64 + 2999, 3).unwrap(), b"x\0r");
    }
}
