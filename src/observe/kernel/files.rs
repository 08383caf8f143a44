//! Questions to the kernel about files and descriptors.
//!
//! In: paths, descriptors. Out: answers.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Whether a file carries capabilities, which running it gives away like a set-user-id bit.
pub fn has_capabilities(path: &Path) -> bool {
    let Ok(path) = std::ffi::CString::new(path.as_os_str().as_bytes()) else { return false };
    // SAFETY: both strings live through the call; a length of 0 asks for the size only.
    unsafe {
        libc::getxattr(path.as_ptr(), c"security.capability".as_ptr(), std::ptr::null_mut(), 0) > 0
    }
}

/// A duplicate of one of our own descriptors, to look at; `None` if the number is not open.
pub fn duplicate(descriptor: i32) -> Option<File> {
    // SAFETY: F_DUPFD_CLOEXEC takes no pointers; a number that is not open gives an error.
    let copy = unsafe { libc::fcntl(descriptor, libc::F_DUPFD_CLOEXEC, 3) };
    // SAFETY: the copy was just made and belongs to nobody else.
    (copy >= 0).then(|| unsafe { File::from_raw_fd(copy) })
}

/// Whether a pipe is at its end: nothing is in it, and nobody is left who could write to it.
pub fn is_at_its_end(pipe: &impl AsRawFd) -> bool {
    let mut polled = [libc::pollfd { fd: pipe.as_raw_fd(), events: libc::POLLIN, revents: 0 }];
    // SAFETY: the list lives during the call, and its length is given.
    let ready = unsafe { libc::poll(polled.as_mut_ptr(), 1, 0) };
    ready == 1 && polled[0].revents & (libc::POLLIN | libc::POLLHUP) == libc::POLLHUP
}

/// The flags of one of our own descriptors: its access mode, and whether it is closed on exec.
pub fn descriptor_flags(descriptor: i32) -> Option<(i32, bool)> {
    // SAFETY: neither call takes pointers; a number that is not open gives an error.
    let (mode, own) =
        unsafe { (libc::fcntl(descriptor, libc::F_GETFL), libc::fcntl(descriptor, libc::F_GETFD)) };
    (mode >= 0 && own >= 0).then_some((mode, own & libc::FD_CLOEXEC != 0))
}

/// Whether there is a POSIX message queue of this name, without the `/` in front of it.
pub fn has_message_queue(name: &[u8]) -> bool {
    let Ok(name) = std::ffi::CString::new(name) else { return false };
    // SAFETY: the name is a valid C string for the length of the call.
    let queue = unsafe {
        libc::syscall(libc::SYS_mq_open, name.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC, 0, 0)
    };
    if queue < 0 {
        return io::Error::last_os_error().raw_os_error() != Some(libc::ENOENT);
    }
    // SAFETY: the descriptor was just made and belongs to nobody else.
    drop(unsafe { OwnedFd::from_raw_fd(queue as i32) });
    true
}

/// Linux has given it this number for ever, on both architectures.
const F_SETSIG: i32 = 10;

/// Whether anybody has a file open for writing, or mapped into memory that is written back to it;
/// `None` where the kernel does not tell. Only who reads alone gets a read lease, which is given
/// back at once.
pub fn is_open_for_writing(file: &File) -> Option<bool> {
    let number = file.as_raw_fd();
    // SAFETY: none of the calls takes a pointer. Who opens the file for writing meanwhile waits for
    // the moment that we have the lease, and we are told by a signal that is ignored unless
    // somebody wants it.
    unsafe {
        libc::fcntl(number, F_SETSIG, libc::SIGURG);
        if libc::fcntl(number, libc::F_SETLEASE, libc::F_RDLCK) == 0 {
            libc::fcntl(number, libc::F_SETLEASE, libc::F_UNLCK);
            return Some(false);
        }
    }
    (io::Error::last_os_error().raw_os_error() == Some(libc::EAGAIN)).then_some(true)
}
