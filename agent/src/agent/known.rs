//! Looks that need no question: the watcher has recorded the same look before, and nothing has
//! changed since. A table that all processes of a run share says so (`src/observe/known.rs` argues
//! why that is sound).

use super::arch::{call, syscall};
use crate::looks::{
    self, BUCKET, FINISHED, FOUND, GENERATION, HEAD, MODE, MOVED, OFF, SECRET, Start, TABLE,
};
use crate::protocol::{CALL, PAGE};
use core::ptr::null;
use core::slice;
use core::sync::atomic::{AtomicU64, Ordering};

/// Longer paths are not in the table.
const LONGEST: usize = 1024;

/// The head with the table behind it, and the counter of finished changes; null where they could
/// not be mapped.
static mut KNOWN: *const AtomicU64 = null();
static mut COUNTER: *const AtomicU64 = null();

/// The table is mapped at `shared`, and at an offset of the watcher's file. The counter of finished
/// changes is mapped once more, to be written to.
pub unsafe fn open(shared: usize, file: usize, offset: usize) {
    const READ_WRITE: usize = 3;
    const MAP_SHARED: usize = 1;
    // SAFETY: `open` is called once, before there are other threads. The kernel chooses where the
    // counter is, and nothing else is there.
    unsafe {
        let counter =
            syscall(call::MMAP, [0, PAGE, READ_WRITE, MAP_SHARED, file, offset + FINISHED]);
        KNOWN = (shared + HEAD) as *const AtomicU64;
        COUNTER = if counter > 0 { counter as *const AtomicU64 } else { null() };
    }
}

/// A change that the watcher has granted has been made.
pub unsafe fn finish() {
    // SAFETY: the counter was mapped by `open`, for good.
    unsafe {
        if let Some(counter) = COUNTER.as_ref() {
            counter.fetch_add(1, Ordering::Release);
        }
    }
}

/// Whether the watcher knows already that working folders change.
pub unsafe fn has_moved() -> bool {
    // SAFETY: as in `word`, which reads the head.
    unsafe { !KNOWN.is_null() && word(MODE) & MOVED != 0 }
}

/// Whether a call is a known look, and if so, whether there was something to be seen.
pub unsafe fn find(number: usize, arguments: &[usize; 6]) -> Option<bool> {
    // SAFETY: numbers of words stay within the head and the table, whose size `open` has mapped.
    unsafe {
        let look = looks::look(number, arguments)?;
        if KNOWN.is_null() || word(MODE) & OFF != 0 {
            return None;
        }
        let generation = word(GENERATION);
        let path = path_at(arguments[look.path])?;
        let start = start_of(path)?;
        let key = looks::key([word(SECRET), word(SECRET + 1)], generation, look.kind, &start, path);
        let first = (TABLE - HEAD) / 8 + 2 * looks::bucket(key);
        (0..BUCKET).find_map(|index| {
            let second = word(first + 2 * index + 1);
            (word(first + 2 * index) == key[0] && second & !FOUND == key[1])
                .then_some(second & FOUND != 0)
        })
    }
}

unsafe fn word(index: usize) -> u64 {
    // SAFETY: the caller's word lies in what `open` has mapped, for good; others write to it
    // atomically.
    unsafe { (*KNOWN.add(index)).load(Ordering::Acquire) }
}

/// A path, if it can be read: the caller's address may be wrong, which the call itself is to find
/// out.
unsafe fn path_at(address: usize) -> Option<&'static [u8]> {
    let mut end = address;
    // SAFETY: each page is asked for before it is read.
    unsafe {
        while end - address < LONGEST {
            if (end == address || end.is_multiple_of(PAGE)) && !is_readable(end) {
                return None;
            }
            if *(end as *const u8) == 0 {
                return Some(slice::from_raw_parts(address as *const u8, end - address));
            }
            end = end.checked_add(1)?;
        }
    }
    None
}

/// Whether a page can be read: by a call that reads 8 bytes, unless it gets no address at all, and
/// then fails because it is told to do nothing with them.
unsafe fn is_readable(address: usize) -> bool {
    const NOTHING: usize = -1isize as usize;
    const EFAULT: isize = -14;
    // SAFETY: the call reads eight bytes or fails; told to do nothing, it changes no mask.
    address >= PAGE
        && unsafe { syscall(call::SIGPROCMASK, [NOTHING, address & !7, 0, 8, 0, 0]) != EFAULT }
}

unsafe fn start_of(path: &[u8]) -> Option<Start> {
    match path.first()? {
        b'/' => Some(Start::Root),
        // SAFETY: it only reads the table.
        _ if unsafe { !has_moved() } => Some(Start::First),
        // SAFETY: as for `working_folder`.
        _ => unsafe { working_folder() },
    }
}

/// The working folder's identity.
unsafe fn working_folder() -> Option<Start> {
    const STATX: usize = 332;
    const AT_FDCWD: usize = -100isize as usize;
    const AT_EMPTY_PATH: usize = 0x1000;
    const INODE_BIRTH_MOUNT: usize = 0x100 | 0x800 | 0x1000;
    let mut found = [0u64; 32];
    let arguments = [
        AT_FDCWD,
        c"".as_ptr() as usize,
        AT_EMPTY_PATH,
        INODE_BIRTH_MOUNT,
        found.as_mut_ptr() as usize,
        0,
    ];
    // From the agent's own code: what is asked by the working folder alone is stopped.
    // SAFETY: the kernel writes a `statx`, which has the length of this array.
    let result = unsafe { super::lead::from_page(CALL, STATX, &arguments) };
    let [device, inode, mount] = [found[17], found[4], found[18]];
    (result == 0).then_some(Start::Folder([
        device,
        inode,
        mount,
        found[10],
        found[11] & 0xffff_ffff,
    ]))
}
