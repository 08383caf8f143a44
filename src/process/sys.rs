//! The operating system calls that the standard library has no safe form of. With `observe/kernel/`
//! the only file of the crate with unsafe code; each call is wrapped so that the rest of the crate
//! cannot misuse it.
//!
//! In: paths, signal numbers, process ids. Out: mapped files, memory files, signal dispositions.

#![expect(
    unsafe_code,
    reason = "mmap, memfd_create, sigaction, kill and prctl have no safe wrapper in std"
)]

mod signals;

pub use signals::{
    die_by, forward_signals_to, pass_on_signals, survive_file_size_limit, survive_signals,
    survived_signal, wait_while_signals_are_passed_on,
};

use std::ffi::CStr;
use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::ops::Deref;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

/// A file's content, mapped read-only. An empty file is an empty slice.
#[derive(Debug)]
pub struct Mapped(Option<memmap2::Mmap>);

impl Deref for Mapped {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.0.as_deref().unwrap_or_default()
    }
}

/// Maps the file at `path`. Only a regular file has a content that can be mapped; a pipe without a
/// writer must not even be waited for.
pub fn map(path: &Path) -> io::Result<Mapped> {
    Ok(map_with_metadata(path)?.0)
}

/// The same, with what the file system says of the file.
pub fn map_with_metadata(path: &Path) -> io::Result<(Mapped, Metadata)> {
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    Ok((map_length(&file, metadata.len())?, metadata))
}

/// Whether code of a file can be mapped: file systems can forbid it.
pub fn can_be_executed(path: &Path) -> bool {
    let Ok(file) = File::open(path) else { return false };
    // SAFETY: the map is not looked at, and gone at once.
    unsafe { memmap2::MmapOptions::new().len(1).map_exec(&file).is_ok() }
}

/// Maps an open file.
pub fn map_file(file: &File) -> io::Result<Mapped> {
    map_length(file, file.metadata()?.len())
}

/// Maps a file of a known length; of a length of 0 too, which mmap itself refuses.
fn map_length(file: &File, length: u64) -> io::Result<Mapped> {
    if length == 0 {
        return Ok(Mapped(None));
    }
    // SAFETY: the map is private to this process and only read. Whoever truncates the file
    // meanwhile makes us die by SIGBUS, as it does to linkers; we map only what a tool that has
    // ended has written, or what that tool itself has just mapped.
    let mapped = unsafe { memmap2::MmapOptions::new().len(length as usize).map(file)? };
    Ok(Mapped(Some(mapped)))
}

/// A file in memory, which a child process can write to by its path.
#[derive(Debug)]
pub struct Memory {
    file: File,
}

impl Memory {
    /// A new empty one; the name shows up in `/proc` only.
    pub fn new(name: &CStr) -> io::Result<Self> {
        // SAFETY: the name is a valid C string for the length of the call.
        let descriptor = unsafe { libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC) };
        if descriptor < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor was just made and belongs to nobody else.
        Ok(Memory { file: unsafe { File::from_raw_fd(descriptor) } })
    }

    /// The path under which children reach it. By our own process id, because a linker may be a
    /// script that starts another process, and because nothing needs to be inherited.
    pub fn path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/{}/fd/{}", std::process::id(), self.file.as_raw_fd()))
    }

    /// Makes it as long as this, with zeros.
    pub fn resize(&self, length: u64) -> io::Result<()> {
        self.file.set_len(length)
    }

    /// Writes to it.
    pub fn write_at(&self, content: &[u8], offset: u64) -> io::Result<()> {
        std::os::unix::fs::FileExt::write_all_at(&self.file, content, offset)
    }

    /// Its descriptor.
    pub fn descriptor(&self) -> std::os::fd::BorrowedFd<'_> {
        std::os::fd::AsFd::as_fd(&self.file)
    }

    /// How much was written to it so far.
    pub fn length(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    /// Reads so much of what comes next and puts it behind what is there. Those who write have
    /// places of their own.
    pub fn read(&self, text: &mut Vec<u8>, length: u64) -> io::Result<usize> {
        text.reserve_exact(length as usize);
        io::Read::read_to_end(&mut io::Read::take(&self.file, length), text)
    }

    /// What was written to it so far.
    pub fn content(&self) -> io::Result<Mapped> {
        map_file(&self.file)
    }
}

/// Words of memory that is shared with other processes.
pub struct SharedWords(memmap2::MmapMut);

impl SharedWords {
    /// A part of a memory, which has to be long enough already.
    pub fn new(memory: &Memory, offset: u64, length: usize) -> io::Result<SharedWords> {
        // SAFETY: the map is only ever used by way of atomic words, whoever else writes there.
        // Nobody makes the file shorter: what others have of it are descriptors that they close
        // once they have mapped it.
        let map = unsafe {
            memmap2::MmapOptions::new().offset(offset).len(length).map_mut(&memory.file)?
        };
        Ok(SharedWords(map))
    }

    /// One of the words.
    pub fn get(&self, index: usize) -> Option<&AtomicU64> {
        let words = self.0.len() / size_of::<AtomicU64>();
        // SAFETY: the word is within the map, which begins at a page and lives as long as the
        // reference.
        (index < words).then(|| unsafe { &*self.0.as_ptr().cast::<AtomicU64>().add(index) })
    }
}

/// Has the memory that is given back kept for what comes next: the kernel takes longer to hand out
/// and to take back pages than we take to fill them. For a process that ends soon.
pub fn keep_memory() {
    #[cfg(target_env = "gnu")]
    for (setting, value) in [
        // One heap for all threads, in one piece.
        (libc::M_ARENA_MAX, 1),
        (libc::M_MMAP_THRESHOLD, MOST_AT_ONCE as libc::c_int),
        (libc::M_TRIM_THRESHOLD, libc::c_int::MAX),
        (libc::M_TOP_PAD, 4 << 20),
    ] {
        // SAFETY: it changes numbers of the allocator's own, and takes no pointers.
        unsafe { libc::mallopt(setting, value) };
    }
}

/// The most that the allocator takes from its heap at once.
const MOST_AT_ONCE: usize = 32 << 20;

/// Has the kernel hand out so much memory now, while nobody waits for us. To be called after
/// `keep_memory`; does nothing where that does nothing.
pub fn prepare_memory(bytes: usize) {
    const PAGE: usize = 4096;
    if cfg!(not(target_env = "gnu")) {
        return;
    }
    let mut block: Vec<u8> = Vec::with_capacity(bytes.min(MOST_AT_ONCE / 2));
    let start = (block.as_mut_ptr() as usize).next_multiple_of(PAGE);
    let end = (block.as_ptr() as usize + block.capacity()) / PAGE * PAGE;
    if start < end {
        // SAFETY: the pages lie within the block, which nobody has written to. Where the kernel
        // does not know the advice, it says so, and hands the pages out later.
        unsafe {
            libc::madvise(start as *mut libc::c_void, end - start, libc::MADV_POPULATE_WRITE)
        };
    }
}

/// What this process was given, noted before Rust's own start opens what is closed and ignores
/// SIGPIPE.
static CLOSED: AtomicU32 = AtomicU32::new(0);
static IGNORES_SIGPIPE: AtomicBool = AtomicBool::new(false);
static BLOCKED: AtomicU64 = AtomicU64::new(0);

#[used]
#[unsafe(link_section = ".init_array")]
static AT_START: extern "C" fn() = note_what_is_given;

extern "C" fn note_what_is_given() {
    for number in 0..3 {
        // SAFETY: F_GETFD takes no pointers.
        if unsafe { libc::fcntl(number, libc::F_GETFD) } < 0 {
            CLOSED.fetch_or(1 << number, Ordering::Relaxed);
        }
    }
    IGNORES_SIGPIPE.store(is_ignored(libc::SIGPIPE), Ordering::Relaxed);
    BLOCKED.store(change_mask(None), Ordering::Relaxed);
}

/// As the kernel has it: handler, flags, restorer, mask. The C library does not let anyone near the
/// two signals that it uses itself.
type Action = [u64; 4];

/// What is done about a signal, if there is such a signal.
fn action(signal: libc::c_int) -> Option<Action> {
    let mut action: Action = [0; 4];
    let none = std::ptr::null::<Action>();
    // SAFETY: the array is as long as what the kernel fills, and lives through the call.
    let result = unsafe {
        libc::syscall(libc::SYS_rt_sigaction, signal, none, action.as_mut_ptr(), size_of::<u64>())
    };
    (result == 0).then_some(action)
}

fn is_ignored(signal: libc::c_int) -> bool {
    action(signal).is_some_and(|action| action[0] == libc::SIG_IGN as u64)
}

/// Async-signal-safe.
fn ignore(signal: libc::c_int) {
    set_action(signal, &[libc::SIG_IGN as u64, 0, 0, 0]);
}

/// Does about a signal what is done about another one.
fn copy_action(of: libc::c_int, signal: libc::c_int) {
    if let Some(action) = action(of) {
        set_action(signal, &action);
    }
}

/// In: to ignore it, what happens by default, or what libc has set for another one.
/// Async-signal-safe.
fn set_action(signal: libc::c_int, action: &Action) {
    let none = std::ptr::null_mut::<Action>();
    // SAFETY: the array is as long as what the kernel reads, and lives through the call; the
    // handler, if there is one, is one that libc would set.
    unsafe {
        libc::syscall(libc::SYS_rt_sigaction, signal, action.as_ptr(), none, size_of::<u64>())
    };
}

/// Sets the mask of blocked signals, if there is a new one; gives the old one. Async-signal-safe.
fn change_mask(new: Option<u64>) -> u64 {
    let mut old = 0u64;
    let new = new.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: both numbers live through the call and are as long as it is told.
    unsafe {
        libc::syscall(
            libc::SYS_rt_sigprocmask,
            libc::SIG_SETMASK,
            new,
            &raw mut old,
            size_of::<u64>(),
        )
    };
    old
}

/// Whether standard input, output or error was closed when this process started.
pub fn lacks_a_standard_descriptor() -> bool {
    CLOSED.load(Ordering::Relaxed) != 0
}

/// Whether this process was started with SIGPIPE ignored.
pub fn was_given_no_sigpipe() -> bool {
    IGNORES_SIGPIPE.load(Ordering::Relaxed)
}

/// The signals that this process was given as ignored, and those given as blocked, a bit each, as
/// far as they tell test runs apart. To be asked for the first time before `survive_signals`. Those
/// that libc keeps for itself are left out: whether they are ignored depends on whether the process
/// that started this one ever had a second thread.
pub fn given_signals() -> (u64, u64) {
    let of_libc =
        (libc::SIGSYS + 1..signals::FIRST_REAL_TIME).fold(0, |set, signal| set | bit(signal));
    (given_as_ignored() & !of_libc, BLOCKED.load(Ordering::Relaxed))
}

fn bit(signal: libc::c_int) -> u64 {
    1 << (signal - 1)
}

/// All signals that this process was given as ignored: what the first call found, before a handler
/// of ours or of libc's.
fn given_as_ignored() -> u64 {
    static IGNORED: OnceLock<u64> = OnceLock::new();
    let is_ignored = |signal: &i32| {
        if *signal == libc::SIGPIPE { was_given_no_sigpipe() } else { is_ignored(*signal) }
    };
    *IGNORED.get_or_init(|| (1..=64).filter(is_ignored).fold(0, |set, signal| set | bit(signal)))
}

/// Lets a command start with closed descriptors and signals as we were given them: Rust would give
/// it others.
pub fn start_as_given(command: &mut Command) {
    let (closed, blocked) = (CLOSED.load(Ordering::Relaxed), BLOCKED.load(Ordering::Relaxed));
    let no_sigpipe = was_given_no_sigpipe();
    if closed == 0 && blocked == 0 && !no_sigpipe {
        return;
    }
    // SAFETY: only async-signal-safe calls that take no pointers but to locals.
    unsafe {
        command.pre_exec(move || {
            for number in (0..3).filter(|number| closed & (1 << number) != 0) {
                libc::close(number);
            }
            if no_sigpipe {
                libc::signal(libc::SIGPIPE, libc::SIG_IGN);
            }
            change_mask(Some(blocked));
            Ok(())
        });
    }
}

/// The same for a command that gets all signals that are sent to us (`pass_on_signals`): what we
/// were given as ignored, and catch to pass it on, is ignored there.
pub fn start_test_as_given(command: &mut Command) {
    start_as_given(command);
    let ignored = given_as_ignored();
    if ignored == 0 {
        return;
    }
    // SAFETY: setting signals is async-signal-safe.
    unsafe {
        command.pre_exec(move || {
            (1..=64).filter(|signal| ignored & bit(*signal) != 0).for_each(ignore);
            Ok(())
        });
    }
}

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
/// else. Whoever waits for the end of our own output waits for it, as for the process that still
/// prints.
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

/// Whether a file has been opened once and no more, to be written by whoever shares that: others
/// who opened it would stand in the way of a lease.
pub fn is_opened_once(file: BorrowedFd) -> bool {
    // SAFETY: these commands of fcntl take numbers. The lease is given back at once, before it can
    // stop anyone.
    unsafe {
        let is_leased = libc::fcntl(file.as_raw_fd(), libc::F_SETLEASE, libc::F_WRLCK) == 0;
        if is_leased {
            libc::fcntl(file.as_raw_fd(), libc::F_SETLEASE, libc::F_UNLCK);
        }
        is_leased
    }
}

/// Whether files may not become as large as they like (`ulimit -f`).
pub fn file_size_is_limited() -> bool {
    soft_limit(libc::RLIMIT_FSIZE) != libc::RLIM_INFINITY
}

/// What `getrlimit` counts: libraries differ in its type.
#[cfg(target_env = "gnu")]
type Resource = libc::__rlimit_resource_t;
#[cfg(not(target_env = "gnu"))]
type Resource = libc::c_int;

/// What this process may use of something; 0 if that cannot be told.
fn soft_limit(resource: Resource) -> u64 {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the pointer is to a local that lives through the call.
    let is_known = unsafe { libc::getrlimit(resource, &mut limit) } == 0;
    if is_known { limit.rlim_cur } else { 0 }
}

/// Whether so little memory is allowed that deciding about a test could fail for want of it
/// (`ulimit -v`, `ulimit -d`).
pub fn lacks_memory() -> bool {
    const NEEDED: u64 = 256 << 20;
    [libc::RLIMIT_AS, libc::RLIMIT_DATA].into_iter().any(|resource| soft_limit(resource) < NEEDED)
}

/// Whether so few processes are allowed (`ulimit -u`) that our threads, which count as processes,
/// would take them away from a test. The limit does not hold for root.
pub fn lacks_processes() -> bool {
    const NEEDED: u64 = 64;
    user() != 0 && soft_limit(libc::RLIMIT_NPROC) < NEEDED
}

/// What the processes that we start are limited to (`ulimit`; a test can raise a limit up to the
/// second number), and the permissions that their files do not get (`umask`). Limits that follow
/// the machine's memory are left out.
pub fn limits() -> ([(u64, u64); 10], u32) {
    const LIMITS: [Resource; 10] = [
        libc::RLIMIT_STACK,
        libc::RLIMIT_AS,
        libc::RLIMIT_DATA,
        libc::RLIMIT_NOFILE,
        libc::RLIMIT_FSIZE,
        libc::RLIMIT_CORE,
        libc::RLIMIT_CPU,
        libc::RLIMIT_MEMLOCK,
        libc::RLIMIT_NICE,
        libc::RLIMIT_RTPRIO,
    ];
    let limits = LIMITS.map(|resource| {
        let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: the pointer is to a local that lives through the call.
        unsafe { libc::getrlimit(resource, &mut limit) };
        (limit.rlim_cur, limit.rlim_max)
    });
    // SAFETY: umask takes no pointers and cannot fail. It can only be asked for by setting it; a
    // file that another thread makes meanwhile gets fewer permissions, not more.
    let mask = unsafe {
        let mask = libc::umask(0o077);
        libc::umask(mask);
        mask
    };
    (limits, mask)
}

/// What this process and those that it starts may do beyond other users, and how the kernel treats
/// them: effective, permitted and inheritable capabilities, whether programs can give new ones, and
/// the personality.
pub fn powers() -> ([u32; 6], bool, i32) {
    const VERSION: u32 = 0x2008_0522;
    const ASK: libc::c_ulong = 0xffff_ffff;
    let header = [VERSION, 0];
    let mut sets = [0u32; 6];
    // SAFETY: the header is that of the version with two sets of three numbers, which the kernel
    // fills; both live through the call. The other calls take no pointers.
    unsafe {
        libc::syscall(libc::SYS_capget, header.as_ptr(), sets.as_mut_ptr());
        (sets, libc::prctl(libc::PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1, libc::personality(ASK))
    }
}

/// The user that this process acts as.
pub fn user() -> u32 {
    // SAFETY: geteuid takes nothing and cannot fail.
    unsafe { libc::geteuid() }
}

/// The group that this process acts as.
pub fn group() -> u32 {
    // SAFETY: getegid takes nothing and cannot fail.
    unsafe { libc::getegid() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_file_maps_to_nothing() {
        let file = tempfile::NamedTempFile::new().unwrap();
        assert!(map(file.path()).unwrap().is_empty());
    }

    #[test]
    fn a_child_can_write_to_memory() {
        let memory = Memory::new(c"test").unwrap();
        let script = format!("echo hello > {}", memory.path().display());
        assert!(std::process::Command::new("sh").args(["-c", &script]).status().unwrap().success());
        assert_eq!(&*memory.content().unwrap(), b"hello\n");
    }
}
