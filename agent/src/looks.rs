//! Calls that only query files, and the keys of the table of known looks. The agent (`known.rs`)
//! and the watcher (`src/observe/known.rs`) are both built with this file, since they have to
//! agree.

/// The shared memory: where the counter of finished changes is, and where the head of the table
/// and the table itself are. Agents map only the counter for writing.
pub const FINISHED: usize = 0;
pub const HEAD: usize = 4096;
pub const TABLE: usize = 2 * 4096;
pub const SHARED: usize = TABLE + SLOTS * 16;

/// A slot is a key of two words; a key is in one of the slots of its bucket.
pub const SLOTS: usize = 1 << 16;
pub const BUCKET: usize = 4;

/// The words of the head: the generation, the mode, the secret of the hashes.
pub const GENERATION: usize = 0;
pub const MODE: usize = 1;
pub const SECRET: usize = 2;

/// Bits of the mode: a process may have another working folder than the test had at first;
/// the table is not to be used.
pub const MOVED: u64 = 1;
pub const OFF: u64 = 2;

/// The lowest bit of a slot's second word: what was looked for is there.
pub const FOUND: u64 = 1;

/// A call that looks at a path from the root or the working folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    /// What is looked at, and how: looks of one kind at one path let a run see the same.
    pub kind: u64,
    /// The argument with the path.
    pub path: usize,
}

const ATTRIBUTES: u64 = 1;
const LINK: u64 = 2;
const CONTENT: u64 = 3;
/// Added to a kind.
const NO_FOLLOW: u64 = 1 << 8;
const FOLDER: u64 = 1 << 9;

/// Which look a call of x86-64 is, by its number and arguments.
pub fn look(number: usize, arguments: &[usize; 6]) -> Option<Look> {
    let [first, second, third, fourth, ..] = *arguments;
    let look = |kind, path| Some(Look { kind, path });
    match number {
        2 => look(opened(second)?, 0),
        4 | 21 => look(ATTRIBUTES, 0),
        6 => look(ATTRIBUTES | NO_FOLLOW, 0),
        89 => look(LINK, 0),
        _ if first as i32 != AT_FDCWD => None,
        257 => look(opened(third)?, 1),
        262 | 439 => look(asked(fourth)?, 1),
        267 => look(LINK, 1),
        269 => look(ATTRIBUTES, 1),
        332 => look(asked(third)?, 1),
        _ => None,
    }
}

const AT_FDCWD: i32 = -100;

/// Opens for reading alone. NOCTTY, NONBLOCK, LARGEFILE and CLOEXEC make no difference for files
/// and folders.
fn opened(flags: usize) -> Option<u64> {
    const HARMLESS: u32 = 0o400 | 0o4000 | 0o100000 | 0o2000000;
    const O_DIRECTORY: u32 = 0o200000;
    const O_NOFOLLOW: u32 = 0o400000;
    let flags = flags as u32 & !HARMLESS;
    if flags & !(O_DIRECTORY | O_NOFOLLOW) != 0 {
        return None;
    }
    let folder = if flags & O_DIRECTORY != 0 { FOLDER } else { 0 };
    Some(CONTENT | folder | if flags & O_NOFOLLOW != 0 { NO_FOLLOW } else { 0 })
}

/// Asks for attributes; EACCESS and NO_AUTOMOUNT make no difference.
fn asked(flags: usize) -> Option<u64> {
    const HARMLESS: u32 = 0x200 | 0x800;
    match flags as u32 & !HARMLESS {
        0 => Some(ATTRIBUTES),
        0x100 => Some(ATTRIBUTES | NO_FOLLOW),
        _ => None,
    }
}

/// Where a path starts from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    Root,
    /// The working folder that the test was started in.
    First,
    /// A working folder by its identity: device, inode, mount, time of birth.
    Folder([u64; 5]),
}

/// A key of the table. The generation is part of it: keys of earlier ones are never met again.
pub fn key(secret: [u64; 2], generation: u64, kind: u64, start: &Start, path: &[u8]) -> [u64; 2] {
    let mut hash = Hash::new(secret);
    hash.add(generation);
    match start {
        Start::Root => hash.add(kind << 2),
        Start::First => hash.add(kind << 2 | 1),
        Start::Folder(identity) => {
            hash.add(kind << 2 | 2);
            identity.iter().for_each(|word| hash.add(*word));
        }
    }
    let (words, rest) = path.as_chunks::<8>();
    words.iter().for_each(|word| hash.add(u64::from_le_bytes(*word)));
    let rest = rest.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
    hash.add(rest | (path.len() as u64) << 56);
    let [first, second] = hash.finish();
    [first, second & !FOUND]
}

/// The first slot of a key's bucket.
pub fn bucket(key: [u64; 2]) -> usize {
    key[0] as usize % (SLOTS / BUCKET) * BUCKET
}

/// SipHash-1-3 of 128 bits over words.
struct Hash([u64; 4]);

impl Hash {
    fn new([low, high]: [u64; 2]) -> Hash {
        let start = [
            0x736f_6d65_7073_6575,
            0x646f_7261_6e64_6f6d ^ 0xee,
            0x6c79_6765_6e65_7261,
            0x7465_6462_7974_6573,
        ];
        Hash([start[0] ^ low, start[1] ^ high, start[2] ^ low, start[3] ^ high])
    }

    fn add(&mut self, word: u64) {
        self.0[3] ^= word;
        self.mix();
        self.0[0] ^= word;
    }

    fn mix(&mut self) {
        let [mut a, mut b, mut c, mut d] = self.0;
        a = a.wrapping_add(b);
        b = b.rotate_left(13) ^ a;
        a = a.rotate_left(32);
        c = c.wrapping_add(d);
        d = d.rotate_left(16) ^ c;
        a = a.wrapping_add(d);
        d = d.rotate_left(21) ^ a;
        c = c.wrapping_add(b);
        b = b.rotate_left(17) ^ c;
        c = c.rotate_left(32);
        self.0 = [a, b, c, d];
    }

    fn finish(mut self) -> [u64; 2] {
        let mut half = |index: usize, mark: u64| {
            self.0[index] ^= mark;
            (0..3).for_each(|_| self.mix());
            self.0.iter().fold(0, |all, word| all ^ word)
        };
        [half(2, 0xee), half(1, 0xdd)]
    }
}
