//! Processes in the background: commands in a session of their own, and a process that is left
//! behind to forward output.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Lets a command start in a session of its own, with nothing of ours open but its standard
/// streams.
pub fn detach(command: &mut Command) {
    // SAFETY: only async-signal-safe calls that take no pointers.
    unsafe {
        command.pre_exec(|| {
            libc::setsid();
            let all = libc::syscall(
                libc::SYS_close_range,
                3,
                libc::c_uint::MAX,
                libc::CLOSE_RANGE_CLOEXEC,
            );
            if all != 0 {
                // Before Linux 5.11, or where a container does not know the call.
                for number in 3..1024 {
                    libc::fcntl(number, libc::F_SETFD, libc::FD_CLOEXEC);
                }
            }
            Ok(())
        });
    }
}

/// Leaves a process behind that passes on what comes from each descriptor to the number beside it,
/// until all are at their end. It is in a session of its own, is nobody's child, and holds nothing
/// else. A process that waits for the end of our own output waits for it, as for the process that
/// still prints.
pub fn pass_on_behind(pairs: &[(OwnedFd, i32)]) {
    // SAFETY: after fork, the child makes only async-signal-safe calls and never returns from here:
    // of the other threads of this process nothing is left but their memory, and their locks may be
    // held for ever. The parent waits for the child just made, which ends at once.
    unsafe {
        match libc::fork() {
            -1 => {}
            0 => {
                if libc::fork() == 0 {
                    libc::setsid();
                    keep_passing_on(pairs);
                }
                libc::_exit(0);
            }
            child => {
                while libc::waitpid(child, std::ptr::null_mut(), 0) < 0
                    && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted
                {
                }
            }
        }
    }
}

/// # Safety
/// To be called in a process that is there for nothing else. Makes only async-signal-safe calls.
unsafe fn keep_passing_on(pairs: &[(OwnedFd, i32)]) {
    const MOST: usize = 2;
    let pairs = &pairs[..pairs.len().min(MOST)];
    let mut polled = [libc::pollfd { fd: -1, events: libc::POLLIN, revents: 0 }; MOST];
    for (polled, (from, _)) in polled.iter_mut().zip(pairs) {
        polled.fd = from.as_raw_fd();
    }
    let mut buffer = [0u8; 4096];
    // SAFETY: the array and the buffer live through the calls; the descriptors are ours.
    unsafe {
        for signal in 1..=64 {
            libc::signal(signal, libc::SIG_DFL);
        }
        for number in 0..1024 {
            let needed = pairs.iter().any(|(from, to)| number == from.as_raw_fd() || number == *to);
            if !needed {
                libc::close(number);
            }
        }
        while polled.iter().any(|polled| polled.fd >= 0) {
            if libc::poll(polled.as_mut_ptr(), MOST as libc::nfds_t, -1) < 0 {
                continue;
            }
            for (polled, (_, to)) in polled.iter_mut().zip(pairs) {
                if polled.revents == 0 {
                    continue;
                }
                let count = libc::read(polled.fd, buffer.as_mut_ptr().cast(), buffer.len());
                if count <= 0 || libc::write(*to, buffer.as_ptr().cast(), count as usize) != count {
                    libc::close(polled.fd);
                    polled.fd = -1;
                }
            }
        }
    }
}
