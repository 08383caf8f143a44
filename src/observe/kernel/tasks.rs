//! Questions to the kernel about processes and threads, and changes to them.
//!
//! In: numbers of processes and threads, addresses in them. Out: memory, mappings, limits.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::process::Command;

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

/// What is mapped at an address, asked of a process's open `maps`; an error where the kernel does
/// not know the question (before 6.11).
pub fn mapping_at(maps: &File, address: u64) -> io::Result<Option<Mapping>> {
    const READ_WRITE: u64 = 3;
    const QUERY: u64 =
        READ_WRITE << 30 | (size_of::<MapQuery>() as u64) << 16 | (b'f' as u64) << 8 | 17;
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
    // SAFETY: the struct, which is as long as it says, and the name, which is as long as the struct
    // says, live through the call.
    let result = unsafe { libc::ioctl(maps.as_raw_fd(), QUERY as _, &raw mut query) };
    if result == 0 {
        // The length counts the NUL at the end.
        let name = name[..(query.name_size as usize).min(LONGEST_NAME)]
            .split(|byte| *byte == 0)
            .next()
            .unwrap_or_default();
        let is_code = query.flags & RIGHTS == READ_EXECUTE;
        return Ok(Some(Mapping { range: query.start..query.end, is_code, name: name.to_vec() }));
    }
    match io::Error::last_os_error() {
        error if error.raw_os_error() == Some(libc::ENOTTY) => Err(error),
        _ => Ok(None),
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

/// The number of the calling thread.
pub fn own_thread() -> u32 {
    // By its number: Rust's library names the function weakly, and a static program that is
    // optimised as a whole may get none.
    // SAFETY: gettid takes nothing and cannot fail.
    unsafe { libc::syscall(libc::SYS_gettid) as u32 }
}

/// Makes the command's process die with the thread that starts it: nobody would answer its calls
/// any more.
pub fn dies_with_us(command: &mut Command) {
    // SAFETY: prctl is async-signal-safe and takes no pointers here.
    unsafe {
        command.pre_exec(|| {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            Ok(())
        });
    }
}

/// Reads memory of another thread's process; fewer bytes than asked for where the rest is not
/// mapped.
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
    // SAFETY: the struct is as large as a siginfo_t, 128 bytes, and lives through the call, which
    // only reads it.
    unsafe {
        libc::syscall(libc::SYS_rt_sigqueueinfo, process, libc::SIGTRAP, &raw const information)
            == 0
    }
}

/// Whether a thread is the first of its process, whose number it has then; `None` if we may not
/// know.
pub fn is_first_thread(thread: u32) -> Option<bool> {
    // SAFETY: no pointers, and signal 0 is none: the kernel only looks whether there is such a
    // thread in such a process.
    match unsafe { libc::syscall(libc::SYS_tgkill, thread, thread, 0) } {
        0 => Some(true),
        _ => (io::Error::last_os_error().raw_os_error() == Some(libc::ESRCH)).then_some(false),
    }
}

/// Whether the address space of a process is limited (`ulimit -v`), or cannot be asked about.
pub fn has_little_memory(process: u32) -> bool {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: nothing is set, and what is got lives through the call.
    let result = unsafe {
        libc::prlimit(process as libc::pid_t, libc::RLIMIT_AS, std::ptr::null(), &mut limit)
    };
    result != 0 || limit.rlim_cur != libc::RLIM_INFINITY
}

/// How large a file may become that a process writes to (`ulimit -f`).
pub fn file_size_limit(process: u32) -> u64 {
    let mut limit = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: 0 };
    // SAFETY: nothing is set, and what is got lives through the call.
    unsafe {
        libc::prlimit(process as libc::pid_t, libc::RLIMIT_FSIZE, std::ptr::null(), &mut limit)
    };
    limit.rlim_cur
}
