//! Extended attributes of files: access control lists, capabilities, and what programs keep there
//! for themselves.
//!
//! In: paths. Out: hashes over names and values.

use crate::model::{Hash, Hasher};
use rustix::fs::{lgetxattr, llistxattr};
use rustix::io::Errno;
use std::path::Path;

/// Labels of security modules follow the place of a file, not what a program has done to it.
const LABELS: &[u8] = b"security.";
/// This one gives power to a program.
const CAPABILITY: &[u8] = b"security.capability";

/// As much as the kernel allows of all names, and of one value.
const LONGEST: usize = 64 * 1024;
const FEW: usize = 1024;

/// The attributes of what is at a path, which is not followed if it is a link.
pub fn of(path: &Path) -> Hash {
    let mut hasher = Hasher::new("extended attributes");
    match names(path) {
        Ok(names) => {
            for name in names {
                hasher.bytes(&name).bytes(&value(path, &name));
            }
        }
        Err(error) => _ = hasher.number(error.raw_os_error() as u64),
    }
    hasher.finish()
}

/// Whether there are any.
pub fn has_any(path: &Path) -> bool {
    names(path).is_ok_and(|names| !names.is_empty())
}

/// The names that count, sorted. A file system that has no such attributes has none.
fn names(path: &Path) -> Result<Vec<Vec<u8>>, Errno> {
    // Most files have none, or few.
    let mut buffer = vec![0; FEW];
    let length = match llistxattr(path, &mut buffer[..]) {
        Err(Errno::OPNOTSUPP) => 0,
        Err(Errno::RANGE) => {
            buffer.resize(LONGEST, 0);
            llistxattr(path, &mut buffer[..])?
        }
        length => length?,
    };
    let all = buffer[..length].split(|&byte| byte == 0).filter(|name| !name.is_empty());
    let mut names: Vec<Vec<u8>> = all
        .filter(|name| !name.starts_with(LABELS) || *name == CAPABILITY)
        .map(<[u8]>::to_vec)
        .collect();
    names.sort_unstable();
    Ok(names)
}

fn value(path: &Path, name: &[u8]) -> Vec<u8> {
    let mut buffer = vec![0; LONGEST];
    let length = lgetxattr(path, name, &mut buffer[..]).unwrap_or(0);
    buffer.truncate(length);
    buffer
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{XattrFlags, setxattr};

    #[test]
    fn values_count() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let none = of(file.path());
        assert!(!has_any(file.path()));
        let set = |value: &[u8]| setxattr(file.path(), "user.test", value, XattrFlags::empty());
        if set(b"1").is_err() {
            return; // The file system has none.
        }
        let one = of(file.path());
        set(b"2").unwrap();
        assert!(has_any(file.path()) && none != one && one != of(file.path()));
    }
}
