//! The system calls of the watcher: installing the filter, receiving and answering notifications, reading
//! another process's memory. With `process/sys.rs` the only unsafe code of the crate, and by the same rule:
//! each call is wrapped so that the rest of the crate cannot misuse it.
//!
//! In: filters, descriptors, process ids, addresses in other processes. Out: notifications, bytes.

#![expect(unsafe_code, reason = "seccomp, its ioctls, process_vm_readv, prctl and fork have no safe wrapper in std")]

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
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

/// Puts the filter on the calling thread, which all that it starts inherits. Without CAP_SYS_ADMIN that needs
/// `no_new_privs`, which is therefore set only where it has to be: it takes set-user-id programs their power.
pub fn install(program: &[libc::sock_filter]) -> io::Result<Listener> {
    let listening = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER | libc::SECCOMP_FILTER_FLAG_SPEC_ALLOW;
    let attempt = |flags| {
        set_filter(program, flags).or_else(|error| match error.raw_os_error() {
            Some(libc::EACCES) => give_up_privileges().and_then(|()| set_filter(program, flags)),
            _ => Err(error),
        })
    };
    // Kernels before 5.19 know no killable waiting: a signal that meets a waiting call restarts it.
    let result = attempt(listening | libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV)
        .or_else(|error| if error.raw_os_error() == Some(libc::EINVAL) { attempt(listening) } else { Err(error) });
    let listener = Listener(result?);
    listener.wake_on_the_same_processor();
    Ok(listener)
}

fn set_filter(program: &[libc::sock_filter], flags: libc::c_ulong) -> io::Result<OwnedFd> {
    let length = u16::try_from(program.len()).map_err(|_| io::Error::from_raw_os_error(libc::E2BIG))?;
    let program = libc::sock_fprog { len: length, filter: program.as_ptr().cast_mut() };
    // SAFETY: the program lives through the call, which only reads it.
    let result = unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, flags, &program) };
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

/// Whether a filter is on this process already.
pub fn is_filtered() -> bool {
    // SAFETY: this prctl takes no pointers.
    unsafe { libc::prctl(libc::PR_GET_SECCOMP) != 0 }
}

/// Whether the calling thread, and all that it starts, can gain no privileges.
pub fn has_no_new_privileges() -> bool {
    // SAFETY: this prctl takes no pointers.
    unsafe { libc::prctl(libc::PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 }
}

/// A piece of a process's memory.
pub struct Mapping {
    pub range: Range<u64>,
    /// It is for reading and executing, and not for writing.
    pub is_code: bool,
    /// The path of the file that is mapped; empty if there is none, or if it is very long.
    pub name: Vec<u8>,
}

/// As the kernel has it: `struct procmap_query`.
#[repr(C)]
#[derive(Default)]
struct MapQuery {
    size: u64,
    query_flags: u64,
    query_address: u64,
    start: u64,
    end: u64,
    flags: u64,
    page_size: u64,
    offset: u64,
    inode: u64,
    device: [u32; 2],
    name_size: u32,
    build_id_size: u32,
    name: u64,
    build_id: u64,
}

/// What is mapped at an address, asked of a process's open `maps`; an error where the kernel does not know the question (before
/// 6.11).
pub fn mapping_at(maps: &File, address: u64) -> io::Result<Option<Mapping>> {
    const READ_WRITE: u64 = 3;
    const QUERY: u64 = READ_WRITE << 30 | (size_of::<MapQuery>() as u64) << 16 | (b'f' as u64) << 8 | 17;
    const LONGEST_NAME: usize = 1024;
    const RIGHTS: u64 = 7;
    const READ_EXECUTE: u64 = 5;
    let mut name = [0u8; LONGEST_NAME];
    let mut query = MapQuery {
        size: size_of::<MapQuery>() as u64,
        query_address: address,
        name_size: LONGEST_NAME as u32,
        name: name.as_mut_ptr() as u64,
        ..MapQuery::default()
    };
    // SAFETY: the struct, which is as long as it says, and the name, which is as long as the struct says, live through the call.
    let result = unsafe { libc::ioctl(maps.as_raw_fd(), QUERY as _, &raw mut query) };
    if result == 0 {
        // The length counts the NUL at the end.
        let name =
            name[..(query.name_size as usize).min(LONGEST_NAME)].split(|byte| *byte == 0).next().unwrap_or_default();
        let is_code = query.flags & RIGHTS == READ_EXECUTE;
        return Ok(Some(Mapping { range: query.start..query.end, is_code, name: name.to_vec() }));
    }
    match io::Error::last_os_error() {
        error if error.raw_os_error() == Some(libc::ENOTTY) => Err(error),
        _ => Ok(None),
    }
}

impl Listener {
    /// Who waits for an answer sleeps anyway: the kernel may run us at once in its place (6.6 and newer).
    fn wake_on_the_same_processor(&self) {
        const SYNC_WAKE_UP: libc::c_ulong = 1;
        // SAFETY: the argument is a number. A kernel that does not know the call refuses it, which is fine.
        unsafe { libc::ioctl(self.0.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_SET_FLAGS as _, SYNC_WAKE_UP) };
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
        // SAFETY: the struct is plain data, which the kernel demands to be zeroed; it lives through the call.
        // The kernel's own may be larger only if it says so by another ioctl number.
        let notification = unsafe {
            let mut notification: libc::seccomp_notif = std::mem::zeroed();
            let result = libc::ioctl(self.0.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_RECV as _, &raw mut notification);
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

    /// Whether the call still waits: if so, what was read of its process by number was read of the right one.
    pub fn still_waits(&self, call: &Notification) -> bool {
        let id = call.id;
        // SAFETY: the number lives through the call, which only reads it.
        unsafe { libc::ioctl(self.0.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_ID_VALID as _, &raw const id) == 0 }
    }

    /// Lets the call happen as if there were no filter.
    pub fn let_go(&self, call: &Notification) {
        self.answer(call.id, 0, 0, libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32);
    }

    /// Answers an agent with two files and a mark (`request` in the agent's `region.rs`).
    pub fn give(&self, call: &Notification, region: BorrowedFd, code: BorrowedFd, mark: bool) -> io::Result<()> {
        let answer = RegionAnswer { region: self.add(call, region)?, code: self.add(call, code)?, is_alone: mark };
        let _ = self.answer(call.id, answer.pack(), 0, 0);
        Ok(())
    }

    /// Answers an agent with a file, with another one if there is one, and with a mark (`request` in the agent's `lead.rs`).
    pub fn give_board(
        &self,
        call: &Notification,
        board: BorrowedFd,
        other: Option<BorrowedFd>,
        mark: bool,
    ) -> io::Result<()> {
        let board = self.add(call, board)?;
        let patched = other.map(|other| self.add(call, other)).transpose()?;
        let answer = BoardAnswer { board, patched, is_untraced: mark };
        let _ = self.answer(call.id, answer.pack(), 0, 0);
        Ok(())
    }

    /// Answers a call that opens something with a file of ours.
    pub fn give_one(&self, call: &Notification, file: BorrowedFd) -> io::Result<()> {
        let number = self.add(call, file)?;
        self.answer(call.id, number, 0, 0);
        Ok(())
    }

    /// Answers a call that opens something with a file as the caller wants it.
    pub fn give_file(&self, call: &Notification, file: &File, is_closed_on_exec: bool) -> io::Result<()> {
        let number = self.install(call, file.as_fd(), None, is_closed_on_exec)?;
        self.answer(call.id, number, 0, 0);
        Ok(())
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
        self.install(call, file, None, true)
    }

    /// Puts a file in the place of one that the caller has.
    pub fn replace(
        &self,
        call: &Notification,
        file: BorrowedFd,
        number: i32,
        is_closed_on_exec: bool,
    ) -> io::Result<()> {
        self.install(call, file, Some(number), is_closed_on_exec).map(|_| ())
    }

    fn install(
        &self,
        call: &Notification,
        file: BorrowedFd,
        place: Option<i32>,
        is_closed_on_exec: bool,
    ) -> io::Result<i64> {
        let added = libc::seccomp_notif_addfd {
            id: call.id,
            flags: place.map_or(0, |_| libc::SECCOMP_ADDFD_FLAG_SETFD as u32),
            srcfd: file.as_raw_fd() as u32,
            newfd: place.unwrap_or(0) as u32,
            newfd_flags: if is_closed_on_exec { libc::O_CLOEXEC as u32 } else { 0 },
        };
        // SAFETY: the struct lives through the call, which only reads it.
        match unsafe { libc::ioctl(self.0.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_ADDFD as _, &raw const added) } {
            number @ 0.. => Ok(number.into()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Makes the call fail.
    pub fn fail(&self, call: &Notification, errno: i32) {
        self.answer(call.id, 0, -errno, 0);
    }

    /// An answer that comes too late, for a call whose process was killed or interrupted, has no effect: `false`.
    fn answer(&self, id: u64, val: i64, error: i32, flags: u32) -> bool {
        let answer = libc::seccomp_notif_resp { id, val, error, flags };
        // SAFETY: the struct lives through the call.
        unsafe { libc::ioctl(self.0.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_SEND as _, &raw const answer) == 0 }
    }

    /// Leaves a process behind that does nothing but answer, until no task with the filter is left. Without
    /// it, every filtered call of a process that outlives the test would fail (ENOSYS). It holds none of our
    /// descriptors, is in a session of its own, and is nobody's child.
    pub fn leave_behind(&self) -> io::Result<()> {
        // SAFETY: after fork, the child makes only async-signal-safe calls and never returns from here.
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

    /// The left-behind process: a grandchild, so that whoever inherits orphans cleans up after it.
    fn keep_answering(&self) -> ! {
        let listener = self.0.as_raw_fd();
        // SAFETY: only async-signal-safe calls: of the other threads of this process nothing is left but
        // their memory, and their locks may be held for ever.
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
                // SAFETY: ends this process without running anything of the process it was forked from.
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

/// The number of the calling thread.
pub fn own_thread() -> u32 {
    // SAFETY: gettid takes nothing and cannot fail.
    unsafe { libc::gettid() as u32 }
}

/// Makes the command's process die with the thread that starts it: nobody would answer its calls any more.
pub fn dies_with_us(command: &mut Command) {
    // SAFETY: prctl is async-signal-safe and takes no pointers here.
    unsafe {
        command.pre_exec(|| {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            Ok(())
        });
    }
}

/// Reads memory of another thread's process; fewer bytes than asked for where the rest is not mapped.
pub fn read_memory(thread: u32, address: u64, buffer: &mut [u8]) -> io::Result<usize> {
    let local = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    let remote = libc::iovec { iov_base: address as *mut libc::c_void, iov_len: buffer.len() };
    // SAFETY: the local range is the buffer; the remote one is checked by the kernel.
    let count = unsafe { libc::process_vm_readv(thread as libc::pid_t, &local, 1, &remote, 1, 0) };
    usize::try_from(count).map_err(|_| io::Error::last_os_error())
}

/// Sends SIGTRAP to a process, with a value.
pub fn queue_trap(process: u32, value: u64) -> bool {
    #[repr(C)]
    struct Information {
        signal: [i32; 4],
        sender: [u32; 2],
        value: u64,
        rest: [u64; 12],
    }
    let signal = [libc::SIGTRAP, 0, libc::SI_QUEUE, 0];
    // SAFETY: getpid takes nothing and cannot fail.
    let sender = [unsafe { libc::getpid() } as u32, crate::process::sys::user()];
    let information = Information { signal, sender, value, rest: [0; 12] };
    // SAFETY: the struct is as large as a siginfo_t, 128 bytes, and lives through the call, which only reads it.
    unsafe { libc::syscall(libc::SYS_rt_sigqueueinfo, process, libc::SIGTRAP, &raw const information) == 0 }
}

/// Whether a thread is the first of its process, whose number it has then; `None` if we may not know.
pub fn is_first_thread(thread: u32) -> Option<bool> {
    // SAFETY: no pointers, and signal 0 is none: the kernel only looks whether there is such a thread in such a process.
    match unsafe { libc::syscall(libc::SYS_tgkill, thread, thread, 0) } {
        0 => Some(true),
        _ => (io::Error::last_os_error().raw_os_error() == Some(libc::ESRCH)).then_some(false),
    }
}

/// Whether the address space of a process is limited (`ulimit -v`), or cannot be asked about.
pub fn has_little_memory(process: u32) -> bool {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: nothing is set, and what is got lives through the call.
    let result = unsafe { libc::prlimit(process as libc::pid_t, libc::RLIMIT_AS, std::ptr::null(), &mut limit) };
    result != 0 || limit.rlim_cur != libc::RLIM_INFINITY
}

/// Whether a file carries capabilities, which running it gives away like a set-user-id bit.
pub fn has_capabilities(path: &Path) -> bool {
    let Ok(path) = std::ffi::CString::new(path.as_os_str().as_bytes()) else { return false };
    // SAFETY: both strings live through the call; a length of 0 asks for the size only.
    unsafe { libc::getxattr(path.as_ptr(), c"security.capability".as_ptr(), std::ptr::null_mut(), 0) > 0 }
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
    let (mode, own) = unsafe { (libc::fcntl(descriptor, libc::F_GETFL), libc::fcntl(descriptor, libc::F_GETFD)) };
    (mode >= 0 && own >= 0).then_some((mode, own & libc::FD_CLOEXEC != 0))
}

/// Whether there is a POSIX message queue of this name, without the `/` in front of it.
pub fn has_message_queue(name: &[u8]) -> bool {
    let Ok(name) = std::ffi::CString::new(name) else { return false };
    // SAFETY: the name is a valid C string for the length of the call.
    let queue = unsafe { libc::syscall(libc::SYS_mq_open, name.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC, 0, 0) };
    if queue < 0 {
        return io::Error::last_os_error().raw_os_error() != Some(libc::ENOENT);
    }
    // SAFETY: the descriptor was just made and belongs to nobody else.
    drop(unsafe { OwnedFd::from_raw_fd(queue as i32) });
    true
}

/// Linux has given it this number for ever, on both architectures.
const F_SETSIG: i32 = 10;

/// Whether anybody has a file open for writing, or mapped into memory that is written back to it; `None` where the kernel
/// does not tell. Only who reads alone gets a read lease, which is given back at once.
pub fn is_open_for_writing(file: &File) -> Option<bool> {
    let number = file.as_raw_fd();
    // SAFETY: none of the calls takes a pointer. Who opens the file for writing meanwhile waits for the moment that we have the
    // lease, and we are told by a signal that is ignored unless somebody wants it.
    unsafe {
        libc::fcntl(number, F_SETSIG, libc::SIGURG);
        if libc::fcntl(number, libc::F_SETLEASE, libc::F_RDLCK) == 0 {
            libc::fcntl(number, libc::F_SETLEASE, libc::F_UNLCK);
            return Some(false);
        }
    }
    (io::Error::last_os_error().raw_os_error() == Some(libc::EAGAIN)).then_some(true)
}
