//! The operating system calls that the standard library has no safe form of. With `observe/kernel.rs` the only
//! file of the crate with unsafe code; each call is wrapped so that the rest of the crate cannot misuse it.
//!
//! In: paths, signal numbers, process ids. Out: mapped files, memory files, signal dispositions.

#![expect(unsafe_code, reason = "mmap, memfd_create, sigaction, kill and prctl have no safe wrapper in std")]

use std::ffi::CStr;
use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::ops::Deref;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, Ordering};

/// A file's content, mapped read-only. An empty file is an empty slice.
#[derive(Debug)]
pub struct Mapped(Option<memmap2::Mmap>);

impl Deref for Mapped {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.0.as_deref().unwrap_or_default()
    }
}

/// Maps the file at `path`. Only a regular file has a content that can be mapped; a pipe without a writer must not
/// even be waited for.
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
    // SAFETY: the map is private to this process and only read. Whoever truncates the file meanwhile makes
    // us die by SIGBUS, as it does to linkers; we map only what a tool that has ended has written, or
    // what that tool itself has just mapped.
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

    /// The path under which children reach it. By our own process id, because a linker may be a script
    /// that starts another process, and because nothing needs to be inherited.
    pub fn path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/{}/fd/{}", std::process::id(), self.file.as_raw_fd()))
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

    /// Reads so much of what comes next and puts it behind what is there. Those who write have places of their own.
    pub fn read(&self, text: &mut Vec<u8>, length: u64) -> io::Result<usize> {
        text.reserve_exact(length as usize);
        io::Read::read_to_end(&mut io::Read::take(&self.file, length), text)
    }

    /// What was written to it so far.
    pub fn content(&self) -> io::Result<Mapped> {
        map_file(&self.file)
    }
}

/// Has the memory that is given back kept for what comes next: the kernel takes longer to hand out and to take back pages
/// than we take to fill them. For a process that ends soon.
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

/// Has the kernel hand out so much memory now, while nobody waits for us. To be called after `keep_memory`.
pub fn prepare_memory(bytes: usize) {
    const PAGE: usize = 4096;
    let mut block: Vec<u8> = Vec::with_capacity(bytes.min(MOST_AT_ONCE / 2));
    let start = (block.as_mut_ptr() as usize).next_multiple_of(PAGE);
    let end = (block.as_ptr() as usize + block.capacity()) / PAGE * PAGE;
    if start < end {
        // SAFETY: the pages lie within the block, which nobody has written to. Where the kernel does not know the advice,
        // it says so, and hands the pages out later.
        unsafe { libc::madvise(start as *mut libc::c_void, end - start, libc::MADV_POPULATE_WRITE) };
    }
}

/// What this process was given, noted before Rust's own start opens what is closed and ignores SIGPIPE.
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

fn is_ignored(signal: libc::c_int) -> bool {
    // SAFETY: the struct is plain data for which zero is valid, and lives through the call, which only fills it.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, std::ptr::null(), &mut action) == 0 && action.sa_sigaction == libc::SIG_IGN
    }
}

/// Sets the mask of blocked signals, if there is a new one; gives the old one. Async-signal-safe.
fn change_mask(new: Option<u64>) -> u64 {
    let mut old = 0u64;
    let new = new.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: both numbers live through the call and are as long as it is told.
    unsafe { libc::syscall(libc::SYS_rt_sigprocmask, libc::SIG_SETMASK, new, &raw mut old, size_of::<u64>()) };
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

/// The signals that this process was given as ignored, and those given as blocked, a bit each. To be asked before
/// `survive_signals`.
pub fn given_signals() -> (u64, u64) {
    let is_ignored = |signal: i32| if signal == libc::SIGPIPE { was_given_no_sigpipe() } else { is_ignored(signal) };
    let ignored = (1..=64).filter(|signal| is_ignored(*signal)).fold(0, |set, signal| set | 1 << (signal - 1));
    (ignored, BLOCKED.load(Ordering::Relaxed))
}

/// Lets a command start with closed descriptors and signals as we were given them: Rust would give it others.
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

/// Lets a command start in a session of its own, with nothing of ours open but its standard streams.
pub fn detach(command: &mut Command) {
    // SAFETY: only async-signal-safe calls that take no pointers.
    unsafe {
        command.pre_exec(|| {
            libc::setsid();
            let all = libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC);
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

/// The child that signals are passed on to; 0 while there is none.
static CHILD: AtomicI32 = AtomicI32::new(0);
/// A signal that came before the child was known; 0 if none did.
static EARLY: AtomicI32 = AtomicI32::new(0);
/// The last signal that we survived; 0 if none came.
static SURVIVED: AtomicI32 = AtomicI32::new(0);

type Handler = extern "C" fn(libc::c_int, *const libc::siginfo_t);

/// Survives a signal, and passes it on if some process has sent it, perhaps to us alone. What the terminal sends, the child
/// gets as well; what we cause ourselves is for us.
extern "C" fn survive(signal: libc::c_int, origin: *const libc::siginfo_t) {
    SURVIVED.store(signal, Ordering::SeqCst);
    // SAFETY: the kernel gives a handler that asks for it (SA_SIGINFO) a valid pointer; a signal of a process has its number.
    let is_sent = unsafe { (*origin).si_code <= 0 && (*origin).si_pid() != libc::getpid() };
    if is_sent {
        forward(signal);
    }
}

fn forward(signal: libc::c_int) {
    match CHILD.load(Ordering::SeqCst) {
        0 => EARLY.store(signal, Ordering::SeqCst),
        child => send(child, signal),
    }
}

fn send(process: i32, signal: i32) {
    // SAFETY: kill takes no pointers and is async-signal-safe.
    unsafe { libc::kill(process, signal) };
}

/// Makes this process outlive signals that are meant for the child it is about to start. Handlers, not
/// SIG_IGN: exec resets handlers, so the child starts with the dispositions that we were given.
pub fn survive_signals() {
    for signal in [
        libc::SIGINT,
        libc::SIGQUIT,
        libc::SIGTERM,
        libc::SIGHUP,
        libc::SIGUSR1,
        libc::SIGUSR2,
        libc::SIGALRM,
        libc::SIGABRT,
        // A limit on the size of files is for the child to die of; our own writing just fails.
        libc::SIGXFSZ,
    ] {
        install(signal, survive);
    }
}

/// Sets a handler, unless the signal is ignored: then the child has to ignore it too (`nohup make`).
fn install(signal: libc::c_int, handler: Handler) {
    // SAFETY: both structs are plain data for which zero is valid, and live through the calls; the handlers
    // only touch atomics and call kill, which is async-signal-safe.
    unsafe {
        let mut old: libc::sigaction = std::mem::zeroed();
        if libc::sigaction(signal, std::ptr::null(), &mut old) != 0 || old.sa_sigaction == libc::SIG_IGN {
            return;
        }
        let mut new: libc::sigaction = std::mem::zeroed();
        new.sa_sigaction = handler as *const () as libc::sighandler_t;
        new.sa_flags = libc::SA_RESTART | libc::SA_SIGINFO;
        libc::sigaction(signal, &new, std::ptr::null_mut());
    }
}

/// Names the child that signals go to, and passes on what came before it was known.
/// `None` once it has been waited for, since its number may then be another process's.
pub fn forward_signals_to(child: Option<u32>) {
    let child = child.and_then(|id| i32::try_from(id).ok()).unwrap_or(0);
    CHILD.store(child, Ordering::SeqCst);
    if child != 0 {
        match EARLY.swap(0, Ordering::SeqCst) {
            0 => {}
            signal => send(child, signal),
        }
    }
}

/// The last signal that came since `survive_signals`.
pub fn survived_signal() -> Option<i32> {
    Some(SURVIVED.load(Ordering::SeqCst)).filter(|&signal| signal != 0)
}

/// Ends this process by a signal, without a core dump: the child has left the one that matters.
pub fn die_by(signal: i32) {
    // SAFETY: no pointers but to locals that live through the calls; the zeroed structs are plain data.
    unsafe {
        libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0);
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = libc::SIG_DFL;
        libc::sigaction(signal, &action, std::ptr::null_mut());
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        libc::sigaddset(&mut set, signal);
        libc::sigprocmask(libc::SIG_UNBLOCK, &set, std::ptr::null_mut());
        libc::raise(signal);
    }
}

/// Leaves a process behind that passes on what comes from each descriptor to the number beside it, until all are at their
/// end. It is in a session of its own, is nobody's child, and holds nothing else. Whoever waits for the end of our own
/// output waits for it, as for the process that still prints.
pub fn pass_on_behind(pairs: &[(OwnedFd, i32)]) {
    // SAFETY: after fork, the child makes only async-signal-safe calls and never returns from here: of the other threads of
    // this process nothing is left but their memory, and their locks may be held for ever. The parent waits for the
    // child just made, which ends at once.
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
                {}
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

/// Whether files may not become as large as they like (`ulimit -f`).
pub fn file_size_is_limited() -> bool {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the pointer is to a local that lives through the call.
    let known = unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &mut limit) } == 0;
    !known || limit.rlim_cur != libc::RLIM_INFINITY
}

/// What the processes that we start are limited to (`ulimit`; a test can raise a limit up to the second number), and the
/// permissions that their files do not get (`umask`). Limits that follow the machine's memory are left out.
pub fn limits() -> ([(u64, u64); 10], u32) {
    const LIMITS: [libc::__rlimit_resource_t; 10] = [
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
    // SAFETY: umask takes no pointers and cannot fail. It can only be asked for by setting it; a file that another thread
    // makes meanwhile gets fewer permissions, not more.
    let mask = unsafe {
        let mask = libc::umask(0o077);
        libc::umask(mask);
        mask
    };
    (limits, mask)
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
