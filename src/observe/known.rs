//! The table of known looks: queries that the agent need not ask about again. The agent's side is
//! its `known.rs`.
//!
//! A *look* is a `stat`, an `access`, a `readlink` or an open for reading. When the watcher has
//! recorded a look, it enters it into shared memory under a key of 128 bits: what is looked at and
//! how, the folder where the path starts, the path, and the *generation*. An agent that finds the
//! key makes its call without asking the watcher. This is sound because of what holds for a second
//! look with the same key:
//!
//! - **It would record nothing new.** The first look has recorded the path, the links on the way
//!   and, depending on its kind, the content or the attributes. Which process looks makes no
//!   difference: paths for which it does (`/proc`, `/dev`, libraries that the loader opens) are
//!   never entered. What belongs to the run does not become an input again.
//! - **The path means the same.** Every call by which the run can change names, links, folders or
//!   files is stopped, and increases the generation *before* it continues. The change itself
//!   happens a little later, and a look in between may still see the old state: so nothing is
//!   entered until all granted changes are finished. Agents count finished changes in shared
//!   memory. A thread without an agent has finished its change when it makes another watched call,
//!   or has ended.
//! - **It starts in the same folder.** As long as no process has changed its working folder, all
//!   share the first one. From then on the folder's identity is part of the key, and agents ask the
//!   kernel for it. Memory could not tell: a child of vfork shares the memory of its parent but has
//!   a working folder of its own.
//! - **Changes by other processes** are noticed as before: files, links and absences are checked
//!   again when the run ends; and an agent that does not find what was found, or finds what was
//!   missing, asks the watcher.
//!
//! A torn or lost entry leads to one more question, never to one less: a slot holds nothing but a
//! key, and each word of it is written at once, by one thread.
//!
//! In: looks and changes, as they are recorded. Out: the table.

use super::kernel::Notification;
use super::listing::Kind;
use super::policy::{self, Treatment};
use super::resolve::{Found, Place, Trail};
use crate::process::sys::{Memory, SharedWords};
use rustc_hash::FxHashSet;
use rustix::fs::{AtFlags, CWD, StatxFlags, statx};
use std::fs;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::path::Path;
use std::sync::atomic::Ordering;

pub use tasting_agent::looks::SHARED;
use tasting_agent::looks::{
    self, BUCKET, FINISHED, FOUND, GENERATION, HEAD, Look, MODE, MOVED, OFF, SECRET, Start, TABLE,
};

/// What a call does to looks that are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    Nothing,
    /// It is a look that can be known from now on.
    Looks {
        key: [u64; 2],
        found: bool,
    },
    /// A process changes its working folder.
    Moves,
    /// Something may mean something else afterwards.
    Changes,
    /// Agents can make no calls of their own any more.
    TurnsOff,
}

/// The table, and the changes that are not finished.
pub struct KnownLooks {
    words: SharedWords,
    secret: [u64; 2],
    generation: u64,
    mode: u64,
    /// How many changes were granted to agents, and to which threads since the last time that all
    /// were finished.
    granted: u64,
    led: FxHashSet<u32>,
    /// Threads whose changes were let go, and of which nothing was heard since.
    unled: FxHashSet<u32>,
    /// Which slot of a full bucket is taken next.
    next: usize,
}

impl KnownLooks {
    /// In a memory that agents get, from an offset on.
    pub fn new(memory: &Memory, offset: u64) -> io::Result<KnownLooks> {
        let words = SharedWords::new(memory, offset, SHARED)?;
        let secret = [RandomState::new().hash_one("known"), RandomState::new().hash_one("looks")];
        let known = KnownLooks {
            words,
            secret,
            generation: 0,
            mode: 0,
            granted: 0,
            led: FxHashSet::default(),
            unled: FxHashSet::default(),
            next: 0,
        };
        (0..2).for_each(|index| known.store(HEAD / 8 + SECRET + index, secret[index]));
        Ok(known)
    }

    /// A thread makes a watched call.
    pub fn begins(&mut self, thread: u32) {
        self.unled.remove(&thread);
    }

    /// Whether an agent's question is about a look that can be known, while no change is under way.
    /// To be asked before the path is looked up.
    pub fn can_know(&mut self, call: &Notification) -> bool {
        let is_for_loader = call.arguments[5] != 0;
        !is_for_loader && self.mode & OFF == 0 && look(call).is_some() && self.all_are_finished()
    }

    fn all_are_finished(&mut self) -> bool {
        let finished = self.load(FINISHED / 8);
        if self.granted != finished && self.led.iter().all(|thread| has_ended(*thread)) {
            // Some were killed before they could count.
            self.granted = finished;
        }
        if self.granted == finished {
            self.led.clear();
        }
        self.unled.retain(|thread| !has_ended(*thread));
        self.granted == finished && self.unled.is_empty()
    }

    /// What a call that can be known does, whose path leads from the folder `start` to a place.
    pub fn effect(
        &self,
        call: &Notification,
        start: &Path,
        text: &[u8],
        place: &Place,
        trail: &Trail,
    ) -> Option<Effect> {
        let look = look(call).filter(|_| is_shared(place, trail))?;
        let found = match (&place.found, place.kind()) {
            (Found::There(_), Some(Kind::File | Kind::Folder | Kind::Link)) => true,
            (Found::Missing | Found::MissingFolder, _) => false,
            _ => return None,
        };
        let start = match text.first()? {
            b'/' => Start::Root,
            _ if self.mode & MOVED == 0 => Start::First,
            _ => Start::Folder(identity(start)?),
        };
        Some(Effect::Looks {
            key: looks::key(self.secret, self.generation, look.kind, &start, text),
            found,
        })
    }

    /// To be called before a call goes on.
    pub fn takes(&mut self, effect: Effect) {
        match effect {
            Effect::Nothing => {}
            Effect::Looks { key, found } => self.enter(key, found),
            Effect::Moves => self.set_mode(MOVED),
            Effect::TurnsOff => self.set_mode(OFF),
            Effect::Changes => {
                self.generation += 1;
                self.store(HEAD / 8 + GENERATION, self.generation);
            }
        }
    }

    /// A thread may make a change from now on, and will say when it is finished.
    pub fn grants(&mut self, thread: u32) {
        self.granted += 1;
        self.led.insert(thread);
    }

    /// A change of a thread that is not led goes on.
    pub fn lets_go(&mut self, thread: u32) {
        self.unled.insert(thread);
    }

    fn set_mode(&mut self, bit: u64) {
        if self.mode & bit == 0 {
            self.mode |= bit;
            self.store(HEAD / 8 + MODE, self.mode);
        }
    }

    fn enter(&mut self, [first, second]: [u64; 2], found: bool) {
        let bucket = TABLE / 8 + 2 * looks::bucket([first, second]);
        self.next = (self.next + 1) % BUCKET;
        let same = (0..BUCKET).find(|index| self.load(bucket + 2 * index) == first);
        let slot = bucket + 2 * same.unwrap_or(self.next);
        self.store(slot, first);
        self.store(slot + 1, second | if found { FOUND } else { 0 });
    }

    fn load(&self, index: usize) -> u64 {
        self.words.get(index).map_or(0, |word| word.load(Ordering::SeqCst))
    }

    fn store(&self, index: usize, value: u64) {
        if let Some(word) = self.words.get(index) {
            word.store(value, Ordering::SeqCst);
        }
    }
}

fn look(call: &Notification) -> Option<Look> {
    let number = usize::try_from(call.number).ok()?;
    looks::look(number, &call.arguments.map(|argument| argument as usize))
}

/// Whether a place is the same for all processes, and an ordinary one.
fn is_shared(place: &Place, trail: &Trail) -> bool {
    let is_ordinary = policy::of(&place.path, &|_| false) == Treatment::Ordinary;
    !trail.is_of_a_process && is_ordinary && !place.path.starts_with("/dev")
}

/// What agents find out about their working folders.
fn identity(folder: &Path) -> Option<[u64; 5]> {
    let wanted = StatxFlags::INO | StatxFlags::BTIME | StatxFlags::MNT_ID;
    let found = statx(CWD, folder, AtFlags::SYMLINK_NOFOLLOW, wanted).ok()?;
    let device = u64::from(found.stx_dev_major) | u64::from(found.stx_dev_minor) << 32;
    let birth = found.stx_btime;
    Some([device, found.stx_ino, found.stx_mnt_id, birth.tv_sec as u64, birth.tv_nsec.into()])
}

/// Whether a thread makes no calls any more.
fn has_ended(thread: u32) -> bool {
    let Ok(status) = fs::read_to_string(format!("/proc/{thread}/stat")) else { return true };
    status.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with(['Z', 'X']))
}

#[cfg(test)]
mod tests {
    use super::looks::{key, look};
    use super::*;

    const SECRET: [u64; 2] = [1, 2];

    #[test]
    fn different_parts_have_different_keys() {
        let folder = Start::Folder([1, 2, 3, 4, 5]);
        let other = Start::Folder([1, 2, 3, 4, 6]);
        let mut keys = Vec::new();
        for path in ["a", "a\0", "aaaaaaa", "aaaaaaaa", "aaaaaaaaa", "b"] {
            for start in [Start::Root, Start::First, folder, other] {
                for (kind, generation) in [(1, 0), (2, 0), (1, 1)] {
                    keys.push(key(SECRET, generation, kind, &start, path.as_bytes()));
                }
            }
        }
        let count = keys.len();
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), count);
    }

    #[test]
    fn calls_that_may_write_are_no_examinations() {
        let open = |flags: i32| look(257, &[-100isize as usize, 0, flags as usize, 0, 0, 0]);
        assert_eq!(open(libc::O_RDONLY | libc::O_CLOEXEC | libc::O_NONBLOCK), open(0));
        assert_eq!(open(0).map(|look| look.path), Some(1));
        assert_ne!(open(libc::O_NOFOLLOW), open(0));
        for flags in [
            libc::O_WRONLY,
            libc::O_RDWR,
            libc::O_CREAT,
            libc::O_TRUNC,
            libc::O_PATH,
            libc::O_TMPFILE,
        ] {
            assert_eq!(open(flags), None, "{flags:o}");
        }
        assert_eq!(look(257, &[3, 0, 0, 0, 0, 0]), None, "below a folder's descriptor");
        assert_eq!(look(4, &[0; 6]), Some(Look { kind: 1, path: 0 }));
        assert_ne!(look(4, &[0; 6]), look(6, &[0; 6]));
    }

    #[test]
    fn changes_finish_when_their_thread_ends() {
        let memory = Memory::new(c"test").unwrap();
        memory.resize(SHARED as u64).unwrap();
        let mut known = KnownLooks::new(&memory, 0).unwrap();
        assert!(known.all_are_finished());
        known.grants(std::process::id());
        assert!(!known.all_are_finished());
        known.store(FINISHED / 8, 1);
        assert!(known.all_are_finished());
        known.grants(u32::MAX);
        assert!(known.all_are_finished(), "no such thread");
        known.lets_go(std::process::id());
        assert!(!known.all_are_finished());
        known.begins(std::process::id());
        assert!(known.all_are_finished());
    }
}
