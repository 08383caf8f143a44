//! Files mapped into memory, files in memory, shared memory, and the allocator's settings.

use std::ffi::CStr;
use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::ops::Deref;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;

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
    // SAFETY: the map is private to this process and only read. A process that truncates the file
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
        // SAFETY: the map is only ever used by way of atomic words, which others may write too.
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
