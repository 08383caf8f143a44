//! The protocol between the agent and the watcher (`src/observe/`): the file names by which the
//! agent asks, the answers, and the layout of the memory that they share. Both are built with this
//! file.

use core::ffi::CStr;
use core::mem::{offset_of, size_of};

pub const PAGE: usize = 4096;

/// What the path of a request for a module's region starts with. Behind it: the module's path, or
/// nothing for the program.
pub const REGION_REQUEST: &[u8] = b"/.tasting-agent-4/";

/// The path of the request for the board.
pub const BOARD_REQUEST: &CStr = c"/.tasting-lead-3";

/// With this value the watcher sends SIGTRAP: a debugger is about to get hold of the process.
pub const SHOW_CODE: u64 = 0x0074_6173_7469_6e67;

/// The start of a region. Behind it: `count` places (u32, from the module's base, ascending),
/// `count` sizes (u32), `count` bytes that say what was executed; and from `image` on the image.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Head {
    pub magic: u64,
    pub count: u32,
    /// Set when something could not be watched: all counts as executed then.
    pub failed: u32,
    pub image: u64,
    /// Where in the module the image belongs, and its length: whole pages.
    pub start: u64,
    pub length: u64,
    /// Some of the code that is to be there: where in the image, and what.
    pub samples: [(u64, u64); SAMPLES],
    /// Where the pages of the landing area are, behind the image, and their length; 0 if no
    /// function has a gate.
    pub landing: u64,
    pub landing_length: u64,
    /// How far from the code the landing area is.
    pub distance: u64,
}

pub const REGION_MAGIC: u64 = u64::from_le_bytes(*b"TASTETRC");
pub const SAMPLES: usize = 4;

/// Whether an agent has given up, in the bytes of a head.
pub const FAILED: core::ops::Range<usize> = offset_of!(Head, failed)..offset_of!(Head, image);

impl Head {
    /// As it is written to memory.
    pub fn bytes(&self) -> [u8; size_of::<Head>()] {
        const {
            assert!(
                size_of::<Head>() == 40 + 16 * SAMPLES + 24,
                "there are no gaps between its fields"
            )
        };
        // SAFETY: it consists of numbers without gaps, each of whose bytes has a value.
        unsafe { core::mem::transmute(*self) }
    }
}

/// The answer to a request for a region: two descriptors, and whether none of the libraries that
/// the loader has opened so far has a region.
#[derive(Clone, Copy)]
pub struct RegionAnswer {
    pub region: i64,
    pub code: i64,
    pub is_alone: bool,
}

const NUMBER: i64 = 0x7fff_ffff;

impl RegionAnswer {
    /// As the result of a system call.
    pub fn pack(self) -> i64 {
        self.region | self.code << 31 | i64::from(self.is_alone) << 62
    }

    /// `None` if that is an error.
    pub fn unpack(answer: i64) -> Option<RegionAnswer> {
        let (region, code) = (answer & NUMBER, answer >> 31 & NUMBER);
        (answer >= 0).then_some(RegionAnswer { region, code, is_alone: answer >> 62 != 0 })
    }
}

/// The answer to a request for the board: its descriptor, and what else there is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BoardAnswer {
    pub board: i64,
    /// A copy of the C library.
    pub patched: Option<i64>,
    /// The program's region, as in a `RegionAnswer`. One without the other is to be closed.
    pub region: Option<i64>,
    pub code: Option<i64>,
    pub is_alone: bool,
    /// There is no region of the program.
    pub is_untraced: bool,
}

impl BoardAnswer {
    const BITS: u32 = 15;
    const NONE: i64 = (1 << BoardAnswer::BITS) - 1;

    /// As the result of a system call; `None` if a descriptor's number is too large.
    pub fn pack(self) -> Option<i64> {
        let files = [Some(self.board), self.patched, self.region, self.code];
        let marks = i64::from(self.is_alone) | i64::from(self.is_untraced) << 1;
        files.into_iter().try_fold(marks, |packed, file| {
            let is_possible = file.is_none_or(|number| (0..BoardAnswer::NONE).contains(&number));
            is_possible.then(|| packed << BoardAnswer::BITS | file.unwrap_or(BoardAnswer::NONE))
        })
    }

    /// `None` if that is an error.
    pub fn unpack(answer: i64) -> Option<BoardAnswer> {
        let file = |index: u32| answer >> (BoardAnswer::BITS * index) & BoardAnswer::NONE;
        let option = |index| Some(file(index)).filter(|number| *number != BoardAnswer::NONE);
        let marks = answer >> (BoardAnswer::BITS * 4);
        (answer >= 0).then_some(BoardAnswer {
            board: file(3),
            patched: option(2),
            region: option(1),
            code: option(0),
            is_alone: marks & 1 != 0,
            is_untraced: marks & 2 != 0,
        })
    }
}

/// What the watcher tells all processes of a run, behind the call page: the libraries are behind
/// this head, each with its sites behind it.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Board {
    pub magic: u64,
    pub call_page: u64,
    /// Bits for the descriptors that the test inherits from outside.
    pub foreign: u64,
    pub libraries: u32,
    pub unused: u32,
}

pub const BOARD_MAGIC: u64 = u64::from_le_bytes(*b"TASTELED");
/// The board's length. It lies behind the call page, and before the table of known looks.
pub const BOARD: usize = 2 * PAGE;

/// How long a library's name can be, with a NUL.
pub const NAME: usize = 32;

/// A library on the board; its sites are behind it.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Library {
    /// The last part of its path, with a NUL.
    pub name: [u8; NAME],
    /// Where its code lies, from the library's base.
    pub start: u32,
    pub length: u32,
    pub sites: u32,
    pub is_loader: u32,
    /// Where its code is in the file of its copy (`src/observe/patched.rs`), and where the pointer
    /// to the agent's code is to be; 0 if there is no copy.
    pub file: u32,
    pub pointer: u32,
    /// Where its build ID is, and what it is.
    pub build: u32,
    pub id: [u8; 20],
}

/// A place in a library: 5 bytes of instruction and `syscall`.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Site {
    pub place: u32,
    /// The last bytes of the instruction: the call's number, as a rule.
    pub operand: u32,
}

impl Board {
    /// As it is written to memory.
    pub fn bytes(&self) -> [u8; size_of::<Board>()] {
        const { assert!(size_of::<Board>() == 3 * 8 + 2 * 4, "there are no gaps between its fields") };
        // SAFETY: it consists of numbers without gaps, each of whose bytes has a value.
        unsafe { core::mem::transmute(*self) }
    }
}

impl Library {
    /// As it is written to memory.
    pub fn bytes(&self) -> [u8; size_of::<Library>()] {
        const {
            assert!(
                size_of::<Library>() == NAME + 7 * 4 + 20,
                "there are no gaps between its fields"
            )
        };
        // SAFETY: it consists of numbers without gaps, each of whose bytes has a value.
        unsafe { core::mem::transmute(*self) }
    }
}

impl Site {
    /// As it is written to memory.
    pub fn bytes(&self) -> [u8; size_of::<Site>()] {
        const { assert!(size_of::<Site>() == 2 * 4, "there are no gaps between its fields") };
        // SAFETY: it consists of numbers without gaps, each of whose bytes has a value.
        unsafe { core::mem::transmute(*self) }
    }
}

/// Where in the call page a call is made, and where one is made only to ask the watcher.
pub const CALL: usize = 0;
pub const ASK: usize = 16;
/// Where one is made that returns to what r9 says.
pub const CLONE: usize = 32;

/// The watcher's answer to those who only ask: the call may be made.
pub const GRANTED: i64 = 0x7a57_0001;
/// The same, and that it is to be told when it was made: it changes something.
pub const GRANTED_CHANGE: i64 = 0x7a57_0002;

/// What stands in the place of a function's code until it is executed.
#[cfg(target_arch = "x86_64")]
pub const BREAKPOINT: u8 = 0xcc;
/// `brk #0x7a57`
#[cfg(target_arch = "aarch64")]
pub const BREAKPOINT: u32 = 0xd420_0000 | 0x7a57 << 5;

/// The front of a function that has a gate: a call of a place far below, all of whose bytes but the
/// first are breakpoints.
pub const FRONT_BELOW: [u8; 5] = [0xe8, 0xcc, 0xcc, 0xcc, 0xcc];
/// A call of a place above. The last byte is an instruction that there is not: all breakpoints are
/// negative numbers.
pub const FRONT_ABOVE: [u8; 5] = [0xe8, 0xcc, 0xcc, 0xcc, 0x60];

/// A chunk of the landing area, as agents map it again and again.
pub const CHUNK: usize = 1 << 18;
/// How much of a chunk's first page the jump to the gate takes, which agents write at its end.
pub const JUMP: usize = 32;
