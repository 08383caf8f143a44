//! Routes the watched calls of the C library and of the dynamic loader past the filter ("led"
//! calls).
//!
//! A call that the filter stops can be interrupted by a signal before the watcher receives it: a
//! `stat` then fails with EINTR, which it never does otherwise. So the places where these libraries
//! make such calls (`mov $number, %eax; syscall`) are replaced by jumps to our code. It asks the
//! watcher, asks again if it is interrupted, and then makes the call itself from the *call page*,
//! whose calls the filter lets through. Calls that are not led (other libraries, static programs)
//! are stopped by the filter.

mod libraries;

use self::libraries::{each_library, replace_sites, show_copy, write_stubs};
use super::arch::{call, syscall};
use super::known;
use super::region::{self, Given};
use super::system::unmap;
use crate::looks::SHARED;
use crate::protocol::{
    self, ASK, BOARD, BOARD_MAGIC, BOARD_REQUEST, Board, BoardAnswer, CALL, CLONE, PAGE,
    RegionAnswer,
};
use core::arch::{asm, global_asm};
use core::ptr::{addr_of_mut, null};

const CLONE3: usize = 435;
const GRANTED: isize = protocol::GRANTED as isize;
const GRANTED_CHANGE: isize = protocol::GRANTED_CHANGE as isize;

/// An instruction of 5 bytes and `syscall`.
const SITE: usize = 7;
const SYSCALL: [u8; 2] = [0x0f, 0x05];
const JUMP: u8 = 0xe9;
/// `mov rcx, imm64`, the instruction of the site, `jmp rel32`.
const STUB: usize = 20;

#[repr(C, align(4096))]
struct Stubs([u8; PAGE]);

static mut STUBS: Stubs = Stubs([0; PAGE]);
static mut CALL_PAGE: usize = 0;
static mut FOREIGN: u64 = 0;
/// The base of the library whose code was exchanged for that of its copy.
static mut SHOWN: usize = 0;
/// The call page is there.
static mut IS_READY: bool = false;
/// Where the constants of a led library lie.
static mut CONSTANTS: [usize; 2] = [0, 0];

// Sites come here, with the place to return to in rcx, where `syscall` would leave it. Below the
// stack pointer there may be something: the red zone. Compilers expect nothing but rax, rcx and r11
// to change.
global_asm!(
    ".local tasting_lead, tasting_lead_loader",
    "tasting_lead_loader: mov r11d, 1; jmp 2f",
    // Attributes asked for by a descriptor alone, which is not from outside: nobody need know of
    // that. The C library has an empty path of its own then, which is there to be read.
    "tasting_lead: cmp eax, {fstatat}; jne 4f",
    "cmp r10d, {empty_path}; jne 4f",
    "cmp edi, 64; jae 4f",
    "mov r11, [rip + {foreign}]; bt r11, rdi; jc 4f",
    "cmp rsi, [rip + {constants}]; jb 4f",
    "cmp rsi, [rip + {constants} + 8]; jae 4f",
    "cmp byte ptr [rsi], 0; jne 4f",
    "lea rsp, [rsp - 128]; push rcx; push rsi",
    "mov rsi, rdx; mov eax, {fstat}; syscall",
    "pop rsi; pop rcx; lea rsp, [rsp + 128]; jmp rcx",
    "4: xor r11d, r11d",
    "2: lea rsp, [rsp - 128]",
    "push rcx; push rbp; mov rbp, rsp",
    "push r11; push r9; push r8; push r10; push rdx; push rsi; push rdi; push rax",
    "mov rdi, rsp; sub rsp, 256; and rsp, -16",
    ".irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15; movaps [rsp + 16 * \\n], xmm\\n; .endr",
    "call {led}",
    ".irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15; movaps xmm\\n, [rsp + 16 * \\n]; .endr",
    "lea rsp, [rbp - 56]",
    "pop rdi; pop rsi; pop rdx; pop r10; pop r8; pop r9; pop r11; pop rbp; pop rcx",
    "lea rsp, [rsp + 128]",
    "cmp rax, {granted}; je 3f",
    "jmp rcx",
    // The new thread has no stack to return by. Nobody expects anything in a register of an
    // argument that the call does not have.
    "3: mov r9, rcx; mov eax, {clone}",
    "mov r11, [rip + {page}]; add r11, {place}; jmp r11",
    led = sym led,
    fstatat = const FSTATAT,
    fstat = const FSTAT,
    empty_path = const AT_EMPTY_PATH,
    foreign = sym FOREIGN,
    constants = sym CONSTANTS,
    granted = const GRANTED,
    clone = const CLONE3,
    page = sym CALL_PAGE,
    place = const CLONE,
);

unsafe extern "C" {
    fn tasting_lead();
    fn tasting_lead_loader();
}

/// A call that is led, as it was on the stack.
#[repr(C)]
struct Led {
    number: usize,
    arguments: [usize; 6],
    is_loader: usize,
}

/// Asks the watcher, and makes the call.
unsafe extern "C" fn led(call: *const Led) -> isize {
    // SAFETY: the code that calls this has put the call's number and arguments on its stack; the
    // call is the program's own.
    unsafe {
        let Led { number, arguments, is_loader } = *call;
        if is_beyond_knowledge(number, &arguments) {
            return syscall(number, arguments);
        }
        if needs_no_question(number, &arguments) {
            return from_page(CALL, number, &arguments);
        }
        if is_loader == 0
            && let Some(found) = known::find(number, &arguments)
        {
            let result = from_page(CALL, number, &arguments);
            // Where that is not what was found before, somebody else has changed it.
            return if (result >= 0) == found { result } else { tell(number, &arguments, result) };
        }
        match ask(number, &arguments, is_loader) {
            GRANTED if number == CLONE3 => GRANTED,
            GRANTED => from_page(CALL, number, &arguments),
            GRANTED_CHANGE => {
                let result = from_page(CALL, number, &arguments);
                known::finish();
                result
            }
            // Nobody watches any more: the call was made.
            result => result,
        }
    }
}

/// Lets the watcher look at what a call was made about.
unsafe fn tell(number: usize, arguments: &[usize; 6], result: isize) -> isize {
    const OPEN: usize = 2;
    // SAFETY: the question has the arguments of the program's own call.
    match unsafe { ask(number, arguments, 0) } {
        GRANTED | GRANTED_CHANGE => result,
        // Nobody watches any more: the call was made a second time.
        second => {
            if result >= 0 && [OPEN, call::OPENAT].contains(&number) {
                // SAFETY: the descriptor was opened just now, and nobody has seen it.
                unsafe { syscall(call::CLOSE, [result as usize, 0, 0, 0, 0, 0]) };
            }
            second
        }
    }
}

/// Asks the watcher, again if that is interrupted.
unsafe fn ask(number: usize, arguments: &[usize; 6], is_loader: usize) -> isize {
    const EINTR: isize = -4;
    let [a, b, c, d, e, _] = *arguments;
    loop {
        // SAFETY: the question has the arguments of the program's own call.
        match unsafe { from_page(ASK, number, &[a, b, c, d, e, is_loader]) } {
            EINTR => {}
            answer => return answer,
        }
    }
}

const FCHDIR: usize = 81;

const FCNTL: usize = 72;
/// What `fcntl` is told to have signals sent: F_SETSIG, F_SETOWN_EX, F_SETOWN, F_SETLEASE,
/// F_NOTIFY; and to lock a file: F_GETLK, F_SETLK, F_SETLKW, and the same for open files.
const COMMANDS: [u32; 11] = [10, 15, 8, 1024, 1026, 5, 6, 7, 36, 37, 38];

/// Calls about descriptors, some of which may be from outside.
const DESCRIPTORS: [usize; 4] = [32, 33, FCNTL, 292];

/// Whether only the filter knows if a descriptor is from outside.
fn is_beyond_knowledge(number: usize, arguments: &[usize; 6]) -> bool {
    DESCRIPTORS.contains(&number) && arguments[0] as u32 >= u64::BITS
}

/// Signal handlers count only if they interrupt calls, and descriptors only if they are from
/// outside.
unsafe fn needs_no_question(number: usize, arguments: &[usize; 6]) -> bool {
    const SA_RESTART: usize = 0x1000_0000;
    const SIG_IGN: usize = 1;
    if number == FCHDIR {
        // SAFETY: it only reads the table.
        return unsafe { known::has_moved() };
    }
    if number == FCNTL && COMMANDS.contains(&(arguments[1] as u32)) {
        return false;
    }
    if DESCRIPTORS.contains(&number) {
        // SAFETY: it is written once, before there are other threads.
        return unsafe { FOREIGN } >> (arguments[0] as u32) & 1 == 0;
    }
    if number != call::SIGACTION {
        return false;
    }
    let action = arguments[1] as *const [usize; 2];
    // The C library's own copy.
    // SAFETY: the C library gives its own copy of the action, which is read only if there is one.
    action.is_null() || unsafe { (*action)[0] <= SIG_IGN || (*action)[1] & SA_RESTART != 0 }
}

const FSTATAT: usize = 262;
const FSTAT: usize = 5;
const AT_EMPTY_PATH: usize = 0x1000;

/// Makes a call from a place of the call page.
pub unsafe fn from_page(place: usize, number: usize, arguments: &[usize; 6]) -> isize {
    let [a, b, c, d, e, f] = *arguments;
    let result: isize;
    // SAFETY: the page has `syscall; ret` there; who calls knows what the system call does.
    unsafe {
        asm!("call {page}", page = in(reg) CALL_PAGE + place, inlateout("rax") number as isize => result,
             in("rdi") a, in("rsi") b, in("rdx") c, in("r10") d, in("r8") e, in("r9") f,
             lateout("rcx") _, lateout("r11") _);
    }
    result
}

/// Makes a call of the agent's own, of which the watcher need not know.
pub unsafe fn unwatched(number: usize, arguments: [usize; 6]) -> isize {
    // SAFETY: as the caller promises for the call.
    unsafe {
        if IS_READY { from_page(CALL, number, &arguments) } else { syscall(number, arguments) }
    }
}

/// Asks for the board, and replaces the sites of the libraries that it tells of. Gives what there
/// is for the program; `None` if functions are not to be watched here.
pub unsafe fn lead() -> Option<Given> {
    // SAFETY: it runs before everything else in the process; the board is mapped, and the stubs are
    // ours.
    unsafe {
        let Asked { board, patched, given, is_untraced } = request();
        if board.is_null() {
            return Some(given.unwrap_or_else(|| region::request(null())));
        }
        let stubs = addr_of_mut!(STUBS).cast::<u8>();
        let mut used = 0;
        each_library(board, |link, library| {
            if !patched.is_some_and(|patched| show_copy(link, library, patched)) {
                used = write_stubs(link, library, stubs, used);
            }
        });
        if let Some(patched) = patched {
            syscall(call::CLOSE, [patched, 0, 0, 0, 0, 0]);
        }
        const READ_EXECUTE: usize = 5;
        if used != 0 && syscall(call::MPROTECT, [stubs as usize, PAGE, READ_EXECUTE, 0, 0, 0]) == 0
        {
            let mut first = 0;
            each_library(board, |link, library| first = replace_sites(link, library, stubs, first));
        }
        (!is_untraced).then(|| given.unwrap_or_else(|| region::request(null())))
    }
}

/// What the watcher has for all processes, and for this one.
struct Asked {
    /// Null if there is none.
    board: *const Board,
    /// The file of a copy of the C library.
    patched: Option<usize>,
    /// The program's region.
    given: Option<Given>,
    /// There is no region of the program.
    is_untraced: bool,
}

unsafe fn request() -> Asked {
    const AT_FDCWD: usize = -100isize as usize;
    const O_PATH: usize = 0o10000000;
    const NONE: Asked = Asked { board: null(), patched: None, given: None, is_untraced: false };
    const READ: usize = 1;
    const MAP_SHARED: usize = 1;
    // SAFETY: the kernel chooses where, and what is mapped is a board as the watcher has written
    // it, or has another magic number.
    unsafe {
        let answer =
            syscall(call::OPENAT, [AT_FDCWD, BOARD_REQUEST.as_ptr() as usize, O_PATH, 0, 0, 0]);
        let Some(answer) = BoardAnswer::unpack(answer as i64) else { return NONE };
        let (file, patched) =
            (answer.board as usize, answer.patched.map(|patched| patched as usize));
        let given = take_region(&answer);
        // The table of known looks is behind the board, and both stay.
        let mapped = syscall(call::MMAP, [0, BOARD + SHARED, READ, MAP_SHARED, file, PAGE]);
        let board = mapped as *const Board;
        if mapped > 0 {
            FOREIGN = (*board).foreign;
        }
        let is_ready = mapped > 0
            && (*board).magic == BOARD_MAGIC
            && open_call_page((*board).call_page as usize, file as isize);
        IS_READY = is_ready;
        if is_ready {
            known::open(mapped as usize + BOARD, file, PAGE + BOARD);
        }
        syscall(call::CLOSE, [file, 0, 0, 0, 0, 0]);
        if is_ready {
            return Asked { board, patched, given, is_untraced: answer.is_untraced };
        }
        if mapped > 0 {
            unmap(mapped as usize, BOARD + SHARED);
        }
        if let Some(patched) = patched {
            syscall(call::CLOSE, [patched, 0, 0, 0, 0, 0]);
        }
        Asked { given, ..NONE }
    }
}

/// The region that came with the board.
unsafe fn take_region(answer: &BoardAnswer) -> Option<Given> {
    let BoardAnswer { region, code, is_alone, .. } = *answer;
    // SAFETY: the descriptors were given to us alone.
    unsafe {
        match (region, code) {
            (Some(region), Some(code)) => {
                Some(region::take(RegionAnswer { region, code, is_alone }))
            }
            (Some(file), None) | (None, Some(file)) => {
                syscall(call::CLOSE, [file as usize, 0, 0, 0, 0, 0]);
                None
            }
            (None, None) => None,
        }
    }
}

/// Maps the call page to its place.
unsafe fn open_call_page(page: usize, file: isize) -> bool {
    const READ_EXECUTE: usize = 5;
    const PRIVATE_NOREPLACE: usize = 0x10_0002;
    // SAFETY: what else lies at the page's place is not replaced.
    unsafe {
        let mapped =
            syscall(call::MMAP, [page, PAGE, READ_EXECUTE, PRIVATE_NOREPLACE, file as usize, 0]);
        if mapped > 0 && mapped as usize != page {
            unmap(mapped as usize, PAGE);
        }
        CALL_PAGE = page;
        mapped as usize == page
    }
}
