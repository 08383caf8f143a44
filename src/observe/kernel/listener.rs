//! Installing the filter, and receiving and answering its notifications.
//!
//! In: filters, answers. Out: notifications.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::time::Duration;
use tasting_agent::protocol::{BoardAnswer, RegionAnswer};

/// One call that waits for an answer.
#[derive(Clone, Copy, Debug)]
pub struct Notification {
    pub id: u64,
    /// The thread that makes the call.
    pub thread: u32,
    pub architecture: u32,
    pub number: i64,
    /// Where the program is that makes the call.
    pub instruction: u64,
    pub arguments: [u64; 6],
}

/// The receiving end of a filter.
#[derive(Debug)]
pub struct Listener(OwnedFd);

/// What `Listener::wait` saw.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ready {
    /// A notification can be received.
    pub call: bool,
    /// No task is left that has the filter.
    pub nobody_left: bool,
    /// The other descriptor was closed at its far end.
    pub told_to_stop: bool,
}

/// Puts the filter on the calling thread, which all that it starts inherits. Without CAP_SYS_ADMIN
/// that needs `no_new_privs`, which is therefore set only where it has to be: it takes set-user-id
/// programs their power.
pub fn install(program: &[libc::sock_filter]) -> io::Result<Listener> {
    let listening = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER | libc::SECCOMP_FILTER_FLAG_SPEC_ALLOW;
    let attempt = |flags| {
        set_filter(program, flags).or_else(|error| match error.raw_os_error() {
            Some(libc::EACCES) => give_up_privileges().and_then(|()| set_filter(program, flags)),
            _ => Err(error),
        })
    };
    // Kernels before 5.19 know no killable waiting: a signal that meets a waiting call restarts it.
    let result =
        attempt(listening | libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV).or_else(|error| {
            if error.raw_os_error() == Some(libc::EINVAL) { attempt(listening) } else { Err(error) }
        });
    let listener = Listener(result?);
    listener.wake_on_the_same_processor();
    Ok(listener)
}

fn set_filter(program: &[libc::sock_filter], flags: libc::c_ulong) -> io::Result<OwnedFd> {
    let length =
        u16::try_from(program.len()).map_err(|_| io::Error::from_raw_os_error(libc::E2BIG))?;
    let program = libc::sock_fprog { len: length, filter: program.as_ptr().cast_mut() };
    // SAFETY: the program lives through the call, which only reads it.
    let result =
        unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, flags, &program) };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: a success returns a new descriptor, which belongs to nobody else.
    Ok(unsafe { OwnedFd::from_raw_fd(result as libc::c_int) })
}

fn give_up_privileges() -> io::Result<()> {
    // SAFETY: this prctl takes no pointers.
    match unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

impl Listener {
    /// Who waits for an answer sleeps anyway: the kernel may run us at once in its place (6.6 and
    /// newer).
    fn wake_on_the_same_processor(&self) {
        const SYNC_WAKE_UP: libc::c_ulong = 1;
        // SAFETY: the argument is a number. A kernel that does not know the call refuses it, which
        // is fine.
        unsafe {
            libc::ioctl(self.0.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_SET_FLAGS as _, SYNC_WAKE_UP)
        };
    }

    /// Waits for a notification, the end of all tasks, or the far end of `stop` being closed.
    pub fn wait(&self, stop: Option<BorrowedFd>, limit: Option<Duration>) -> Ready {
        let other = stop.map_or(-1, |stop| stop.as_raw_fd());
        let mut polled = [
            libc::pollfd { fd: self.0.as_raw_fd(), events: libc::POLLIN, revents: 0 },
            libc::pollfd { fd: other, events: 0, revents: 0 },
        ];
        let limit = limit.map_or(-1, |limit| i32::try_from(limit.as_millis()).unwrap_or(i32::MAX));
        // SAFETY: the two structs live through the call.
        if unsafe { libc::poll(polled.as_mut_ptr(), 2, limit) } <= 0 {
            return Ready::default();
        }
        Ready {
            call: polled[0].revents & libc::POLLIN != 0,
            nobody_left: polled[0].revents & libc::POLLHUP != 0,
            told_to_stop: polled[1].revents != 0,
        }
    }

    /// The next notification; `None` if the caller died meanwhile.
    pub fn receive(&self) -> Option<Notification> {
        // SAFETY: the struct is plain data, which the kernel demands to be zeroed; it lives through
        // the call. The kernel's own may be larger only if it says so by another ioctl number.
        let notification = unsafe {
            let mut notification: libc::seccomp_notif = std::mem::zeroed();
            let result = libc::ioctl(
                self.0.as_raw_fd(),
                libc::SECCOMP_IOCTL_NOTIF_RECV as _,
                &raw mut notification,
            );
            (result == 0).then_some(notification)?
        };
        Some(Notification {
            id: notification.id,
            thread: notification.pid,
            architecture: notification.data.arch,
            number: i64::from(notification.data.nr),
            instruction: notification.data.instruction_pointer,
            arguments: notification.data.args,
        })
    }

    /// Whether the call still waits: if so, what was read of its process by number was read of the
    /// right one.
    pub fn still_waits(&self, call: &Notification) -> bool {
        let id = call.id;
        // SAFETY: the number lives through the call, which only reads it.
        unsafe {
            libc::ioctl(self.0.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_ID_VALID as _, &raw const id)
                == 0
        }
    }

    /// Lets the call happen as if there were no filter.
    pub fn let_go(&self, call: &Notification) {
        self.answer(call.id, 0, 0, libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32);
    }

    /// Answers an agent with two files and a mark (`request` in the agent's `region.rs`).
    pub fn give(
        &self,
        call: &Notification,
        region: BorrowedFd,
        code: BorrowedFd,
        mark: bool,
    ) -> io::Result<()> {
        let answer = RegionAnswer {
            region: self.add(call, region)?,
            code: self.add(call, code)?,
            is_alone: mark,
        };
        let _ = self.answer(call.id, answer.pack(), 0, 0);
        Ok(())
    }

    /// Answers an agent with the board, and with what else there is (`request` in the agent's
    /// `lead.rs`). `rest` has no descriptors. Says whether the agent has got all of it.
    pub fn give_board(
        &self,
        call: &Notification,
        board: BorrowedFd,
        [patched, region, code]: [Option<BorrowedFd>; 3],
        rest: BoardAnswer,
    ) -> io::Result<bool> {
        let add = |file: Option<BorrowedFd>| file.and_then(|file| self.add(call, file).ok());
        let (board, patched) = (self.add(call, board)?, add(patched));
        let answer = BoardAnswer { board, patched, region: add(region), code: add(code), ..rest };
        let packed = answer.pack().ok_or(io::ErrorKind::InvalidData)?;
        let _ = self.answer(call.id, packed, 0, 0);
        Ok(answer.region.is_some() == region.is_some() && answer.code.is_some() == code.is_some())
    }

    /// Answers a call that opens something with a file of ours.
    pub fn give_one(&self, call: &Notification, file: BorrowedFd) -> io::Result<()> {
        self.give_and_answer(call, file, true)
    }

    /// Answers a call that opens something with a file as the caller wants it.
    pub fn give_file(
        &self,
        call: &Notification,
        file: &File,
        is_closed_on_exec: bool,
    ) -> io::Result<()> {
        self.give_and_answer(call, file.as_fd(), is_closed_on_exec)
    }

    /// Gives a file and answers with its number, at once where the kernel can (5.14 and newer).
    fn give_and_answer(
        &self,
        call: &Notification,
        file: BorrowedFd,
        is_closed_on_exec: bool,
    ) -> io::Result<()> {
        match self.install(call, file, libc::SECCOMP_ADDFD_FLAG_SEND as u32, 0, is_closed_on_exec) {
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
                let number = self.install(call, file, 0, 0, is_closed_on_exec)?;
                self.answer(call.id, number, 0, 0);
                Ok(())
            }
            given => given.map(|_| ()),
        }
    }

    /// Answers a call that is not made with a value. Says whether the caller was still there.
    pub fn answer_with(&self, call: &Notification, value: i64) -> bool {
        self.answer(call.id, value, 0, 0)
    }

    /// Lets the caller believe that the call was made.
    pub fn succeed(&self, call: &Notification) {
        self.answer(call.id, 0, 0, 0);
    }

    /// Gives a file to the caller (Linux 5.9): its number there.
    fn add(&self, call: &Notification, file: BorrowedFd) -> io::Result<i64> {
        self.install(call, file, 0, 0, true)
    }

    /// Puts a file in the place of one that the caller has.
    pub fn replace(
        &self,
        call: &Notification,
        file: BorrowedFd,
        number: i32,
        is_closed_on_exec: bool,
    ) -> io::Result<()> {
        let flags = libc::SECCOMP_ADDFD_FLAG_SETFD as u32;
        self.install(call, file, flags, number as u32, is_closed_on_exec).map(|_| ())
    }

    fn install(
        &self,
        call: &Notification,
        file: BorrowedFd,
        flags: u32,
        place: u32,
        is_closed_on_exec: bool,
    ) -> io::Result<i64> {
        let added = libc::seccomp_notif_addfd {
            id: call.id,
            flags,
            srcfd: file.as_raw_fd() as u32,
            newfd: place,
            newfd_flags: if is_closed_on_exec { libc::O_CLOEXEC as u32 } else { 0 },
        };
        // SAFETY: the struct lives through the call, which only reads it.
        match unsafe {
            libc::ioctl(self.0.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_ADDFD as _, &raw const added)
        } {
            number @ 0.. => Ok(number.into()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Makes the call fail.
    pub fn fail(&self, call: &Notification, errno: i32) {
        self.answer(call.id, 0, -errno, 0);
    }

    /// An answer that comes too late, for a call whose process was killed or interrupted, has no
    /// effect: `false`.
    fn answer(&self, id: u64, val: i64, error: i32, flags: u32) -> bool {
        let answer = libc::seccomp_notif_resp { id, val, error, flags };
        // SAFETY: the struct lives through the call.
        unsafe {
            libc::ioctl(self.0.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_SEND as _, &raw const answer)
                == 0
        }
    }

    /// Leaves a process behind that does nothing but answer, until no task with the filter is left.
    /// Without it, every filtered call of a process that outlives the test would fail (ENOSYS). It
    /// holds none of our descriptors, is in a session of its own, and is nobody's child.
    pub fn leave_behind(&self) -> io::Result<()> {
        // SAFETY: after fork, the child makes only async-signal-safe calls and never returns from
        // here.
        let child = unsafe { libc::fork() };
        match child {
            -1 => return Err(io::Error::last_os_error()),
            0 => self.keep_answering(),
            _ => {}
        }
        // SAFETY: waits for the child just made, which ends at once; no status is asked for.
        while unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) } < 0
            && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted
        {}
        Ok(())
    }

    /// The left-behind process: a grandchild, so that the process that inherits orphans reaps it.
    fn keep_answering(&self) -> ! {
        let listener = self.0.as_raw_fd();
        // SAFETY: only async-signal-safe calls: of the other threads of this process nothing is
        // left but their memory, and their locks may be held for ever.
        unsafe {
            if libc::fork() != 0 {
                libc::_exit(0);
            }
            libc::setsid();
            libc::chdir(c"/".as_ptr());
            if listener > 0 {
                libc::syscall(libc::SYS_close_range, 0, listener - 1, 0);
            }
            libc::syscall(libc::SYS_close_range, listener + 1, u32::MAX, 0);
            for signal in 1..=libc::SIGSYS {
                libc::signal(signal, libc::SIG_DFL);
            }
        }
        loop {
            let ready = self.wait(None, None);
            if ready.call {
                if let Some(call) = self.receive() {
                    self.let_go(&call);
                }
            } else if ready.nobody_left {
                // SAFETY: ends this process without running anything of the process it was forked
                // from.
                unsafe { libc::_exit(0) };
            }
        }
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
