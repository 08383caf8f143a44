//! Leads the watched calls of the C library and of the dynamic loader past the filter.
//!
//! A call that the filter stops can be interrupted by a signal before the watcher takes it up: a `stat` then fails with EINTR,
//! which it never does by itself. So the places where these libraries make such calls (`mov $number, %eax; syscall`) are replaced
//! by jumps to code of ours. It asks the watcher, again if it is interrupted, and then makes the call itself from the *call
//! page*, whose calls the filter lets through. What is not led (other libraries, static programs) is stopped as ever.

use super::PAGE;
use super::known;
use super::loader::{LinkMap, debug};
use super::processor::{call, syscall};
use super::system::unmap;
use core::arch::{asm, global_asm};
use core::ptr::addr_of_mut;

/// The path of the request for the board.
const REQUEST: &[u8] = b"/.tasting-lead-1\0";

/// What the watcher tells all processes of a run: the call page, and behind it the libraries with their sites.
#[repr(C)]
struct Board {
    magic: u64,
    call_page: u64,
    /// Bits for the descriptors that the test inherits from outside.
    foreign: u64,
    libraries: u32,
    unused: u32,
}

/// A library; its sites are behind it.
#[repr(C)]
struct Library {
    /// The last part of its path, with a NUL.
    name: [u8; 32],
    /// Where its code lies, from the library's base.
    start: u32,
    length: u32,
    sites: u32,
    is_loader: u32,
}

/// A place in a library: 5 bytes of instruction and `syscall`.
#[repr(C)]
struct Site {
    place: u32,
    /// The last bytes of the instruction: the call's number, as a rule.
    operand: u32,
}

const MAGIC: u64 = u64::from_le_bytes(*b"TASTELED");
const BOARD: usize = 2 * PAGE;
/// Where in the call page a call is made, and where one is made only to ask the watcher.
pub const CALL: usize = 0;
const ASK: usize = 16;
/// Where one is made that returns to what r9 says.
const CLONE: usize = 32;
const CLONE3: usize = 435;
/// The watcher's answer to those who only ask: the call may be made.
const GRANTED: isize = 0x7a57_0001;
/// The same, and that it is to be told when it was made: it changes something.
const GRANTED_CHANGE: isize = 0x7a57_0002;

/// An instruction of 5 bytes and `syscall`.
const SITE: usize = 7;
const SYSCALL: [u8; 2] = [0x0f, 0x05];
const JUMP: u8 = 0xe9;
const BREAKPOINT: u8 = 0xcc;
/// `mov rcx, imm64`, the instruction of the site, `jmp rel32`.
const STUB: usize = 20;

#[repr(C, align(4096))]
struct Stubs([u8; PAGE]);

static mut STUBS: Stubs = Stubs([0; PAGE]);
static mut CALL_PAGE: usize = 0;
static mut FOREIGN: u64 = 0;
/// Where the constants of a led library lie.
static mut CONSTANTS: (usize, usize) = (0, 0);

// Sites come here, with the place to return to in rcx, where `syscall` would leave it. Below the stack pointer there may be something:
// the red zone. Compilers expect nothing but rax, rcx and r11 to change.
global_asm!(
    ".local tasting_lead, tasting_lead_loader",
    "tasting_lead_loader: mov r11d, 1; jmp 2f",
    "tasting_lead: xor r11d, r11d",
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
    // The new thread has no stack to return by. Nobody expects anything in a register of an argument that the call does not have.
    "3: mov r9, rcx; mov eax, {clone}",
    "mov r11, [rip + {page}]; add r11, {place}; jmp r11",
    led = sym led,
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
    unsafe {
        let Led { number, arguments, is_loader } = *call;
        if is_beyond_knowledge(number, &arguments) {
            return syscall(number, arguments);
        }
        if number == FSTATAT && names_nothing(&arguments) {
            return syscall(FSTAT, [arguments[0], arguments[2], 0, 0, 0, 0]);
        }
        if needs_no_question(number, &arguments) {
            return from_page(CALL, number, &arguments);
        }
        if is_loader == 0 && let Some(found) = known::find(number, &arguments) {
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
    match unsafe { ask(number, arguments, 0) } {
        GRANTED | GRANTED_CHANGE => result,
        // Nobody watches any more: the call was made a second time.
        second => {
            if result >= 0 && [OPEN, call::OPENAT].contains(&number) {
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
        match unsafe { from_page(ASK, number, &[a, b, c, d, e, is_loader]) } {
            EINTR => {}
            answer => return answer,
        }
    }
}

const FCHDIR: usize = 81;

const FCNTL: usize = 72;
/// What `fcntl` is told to have signals sent: F_SETSIG, F_SETOWN_EX, F_SETOWN, F_SETLEASE, F_NOTIFY.
const SIGNALLING: [u32; 5] = [10, 15, 8, 1024, 1026];

/// Calls about descriptors, some of which may be from outside.
const DESCRIPTORS: [usize; 4] = [32, 33, FCNTL, 292];

/// Whether only the filter knows if a descriptor is from outside.
fn is_beyond_knowledge(number: usize, arguments: &[usize; 6]) -> bool {
    DESCRIPTORS.contains(&number) && arguments[0] as u32 >= u64::BITS
}

/// Signal handlers count only if they interrupt calls, and descriptors only if they are from outside.
unsafe fn needs_no_question(number: usize, arguments: &[usize; 6]) -> bool {
    const SA_RESTART: usize = 0x1000_0000;
    const SIG_IGN: usize = 1;
    if number == FCHDIR {
        return unsafe { known::has_moved() };
    }
    if number == FCNTL && SIGNALLING.contains(&(arguments[1] as u32)) {
        return false;
    }
    if DESCRIPTORS.contains(&number) {
        return unsafe { FOREIGN } >> (arguments[0] as u32) & 1 == 0;
    }
    if number != call::SIGACTION {
        return false;
    }
    let action = arguments[1] as *const [usize; 2];
    // The C library's own copy.
    action.is_null() || unsafe { (*action)[0] <= SIG_IGN || (*action)[1] & SA_RESTART != 0 }
}

const FSTATAT: usize = 262;
const FSTAT: usize = 5;

/// Whether attributes are asked for by a descriptor alone, which is not from outside: nobody need know of that. The C library has
/// an empty path of its own then, which is there to be read.
unsafe fn names_nothing(arguments: &[usize; 6]) -> bool {
    const AT_EMPTY_PATH: usize = 0x1000;
    let [descriptor, path, _, flags, ..] = *arguments;
    unsafe {
        let (start, end) = CONSTANTS;
        let is_own = (descriptor as u32) < u64::BITS && FOREIGN >> (descriptor as u32) & 1 == 0;
        is_own && flags as u32 as usize == AT_EMPTY_PATH && (start..end).contains(&path) && *(path as *const u8) == 0
    }
}

/// Makes a call from a place of the call page.
pub unsafe fn from_page(place: usize, number: usize, arguments: &[usize; 6]) -> isize {
    let [a, b, c, d, e, f] = *arguments;
    let result: isize;
    unsafe {
        asm!("call {page}", page = in(reg) CALL_PAGE + place, inlateout("rax") number as isize => result,
             in("rdi") a, in("rsi") b, in("rdx") c, in("r10") d, in("r8") e, in("r9") f,
             lateout("rcx") _, lateout("r11") _);
    }
    result
}

/// Asks for the board, and replaces the sites of the libraries that it tells of.
pub unsafe fn lead() {
    unsafe {
        let board = request();
        if board.is_null() {
            return;
        }
        let stubs = addr_of_mut!(STUBS).cast::<u8>();
        let mut used = 0;
        each_library(board, |link, library| used = write_stubs(link, library, stubs, used));
        const READ_EXECUTE: usize = 5;
        if used != 0 && syscall(call::MPROTECT, [stubs as usize, PAGE, READ_EXECUTE, 0, 0, 0]) == 0 {
            let mut first = 0;
            each_library(board, |link, library| first = replace_sites(link, library, stubs, first));
        }
        unmap(board as usize, BOARD);
    }
}

unsafe fn request() -> *const Board {
    const AT_FDCWD: usize = -100isize as usize;
    const O_PATH: usize = 0o10000000;
    const READ: usize = 1;
    const MAP_SHARED: usize = 1;
    unsafe {
        let file = syscall(call::OPENAT, [AT_FDCWD, REQUEST.as_ptr() as usize, O_PATH, 0, 0, 0]);
        if file < 0 {
            return core::ptr::null();
        }
        let mapped = syscall(call::MMAP, [0, BOARD, READ, MAP_SHARED, file as usize, PAGE]);
        let board = mapped as *const Board;
        if mapped > 0 {
            FOREIGN = (*board).foreign;
        }
        let is_ready = mapped > 0 && (*board).magic == MAGIC && open_call_page((*board).call_page as usize, file);
        if is_ready {
            known::open(file as usize, PAGE + BOARD);
        }
        syscall(call::CLOSE, [file as usize, 0, 0, 0, 0, 0]);
        if is_ready { board } else { core::ptr::null() }
    }
}

/// Maps the call page to its place.
unsafe fn open_call_page(page: usize, file: isize) -> bool {
    const READ_EXECUTE: usize = 5;
    const PRIVATE_NOREPLACE: usize = 0x10_0002;
    unsafe {
        let mapped = syscall(call::MMAP, [page, PAGE, READ_EXECUTE, PRIVATE_NOREPLACE, file as usize, 0]);
        if mapped > 0 && mapped as usize != page {
            unmap(mapped as usize, PAGE);
        }
        CALL_PAGE = page;
        mapped as usize == page
    }
}

/// Calls for each library that is loaded and that the board tells of.
unsafe fn each_library(board: *const Board, mut then: impl FnMut(*const LinkMap, *const Library)) {
    unsafe {
        let mut library = board.add(1).cast::<Library>();
        for _ in 0..(*board).libraries {
            let mut link = (*debug()).modules;
            while !link.is_null() {
                if is_it(link, library) {
                    then(link, library);
                    break;
                }
                link = (*link).next;
            }
            library = sites(library).add((*library).sites as usize).cast();
        }
    }
}

unsafe fn sites(library: *const Library) -> *const Site {
    unsafe { library.add(1).cast() }
}

/// Whether a module has the library's name, and its code where it is to be.
unsafe fn is_it(link: *const LinkMap, library: *const Library) -> bool {
    unsafe {
        let name = (*link).name.cast::<u8>();
        if (*link).base == 0 || name.is_null() {
            return false;
        }
        let (mut last, mut end) = (name, name);
        while *end != 0 {
            if *end == b'/' {
                last = end.add(1);
            }
            end = end.add(1);
        }
        let length = end as usize - last as usize;
        let is_named = length < 32 && (0..=length).all(|index| *last.add(index) == (*library).name[index]);
        is_named && has_code((*link).base, library) && (0..(*library).sites as usize).all(|index| {
            let site = sites(library).add(index);
            let at = ((*link).base + (*site).place as usize) as *const u8;
            at.add(1).cast::<u32>().read_unaligned() == (*site).operand && at.add(5).cast::<[u8; 2]>().read() == SYSCALL
        })
    }
}

/// Whether one of a module's segments is the library's code.
unsafe fn has_code(base: usize, library: *const Library) -> bool {
    const MAGIC: u32 = u32::from_le_bytes(*b"\x7fELF");
    const LOAD_EXECUTE: u64 = 1 | 5 << 32;
    unsafe {
        if *(base as *const u32) != MAGIC {
            return false;
        }
        let table = base + *((base + 32) as *const usize);
        let count = *((base + 56) as *const u16) as usize;
        (0..count).any(|index| {
            let header = (table + index * 56) as *const u64;
            *header == LOAD_EXECUTE && *header.add(2) == (*library).start.into() && *header.add(4) == (*library).length.into()
        })
    }
}

/// Where a module's constants lie: the segment behind its code, which can only be read.
unsafe fn constants(base: usize, library: *const Library) -> (usize, usize) {
    const LOAD_READ: u64 = 1 | 4 << 32;
    unsafe {
        let table = base + *((base + 32) as *const usize);
        let count = *((base + 56) as *const u16) as usize;
        for index in 0..count {
            let header = (table + index * 56) as *const u64;
            if *header == LOAD_READ && *header.add(2) > (*library).start.into() {
                let start = base + *header.add(2) as usize;
                return (start, start + *header.add(4) as usize);
            }
        }
        (0, 0)
    }
}

/// Writes the code that the sites of a library jump to. Gives how many there are.
unsafe fn write_stubs(link: *const LinkMap, library: *const Library, stubs: *mut u8, used: usize) -> usize {
    unsafe {
        let count = (*library).sites as usize;
        if (used + count) * STUB > PAGE || !is_near((*link).base, library, stubs) {
            return used;
        }
        if (*library).is_loader == 0 {
            CONSTANTS = constants((*link).base, library);
        }
        let target = if (*library).is_loader != 0 { tasting_lead_loader as *const () } else { tasting_lead as *const () };
        for index in 0..count {
            let stub = stubs.add((used + index) * STUB);
            let site = (*link).base + (*sites(library).add(index)).place as usize;
            stub.cast::<[u8; 2]>().write([0x48, 0xb9]);
            stub.add(2).cast::<usize>().write_unaligned(site + SITE);
            stub.add(10).cast::<[u8; 5]>().write(*(site as *const [u8; 5]));
            stub.add(15).write(JUMP);
            stub.add(16).cast::<i32>().write_unaligned((target as isize - (stub as isize + STUB as isize)) as i32);
        }
        used + count
    }
}

/// Whether a jump leads from each of the library's sites to the stubs.
unsafe fn is_near(base: usize, library: *const Library, stubs: *const u8) -> bool {
    const FARTHEST: usize = 0x7000_0000;
    let end = unsafe { base + (*library).start as usize + (*library).length as usize };
    base.abs_diff(stubs as usize) < FARTHEST && end.abs_diff(stubs as usize) < FARTHEST
}

/// Puts jumps in the place of a library's sites. Whoever would jump to the `syscall` itself meets a breakpoint.
unsafe fn replace_sites(link: *const LinkMap, library: *const Library, stubs: *mut u8, first: usize) -> usize {
    const READ_EXECUTE: usize = 5;
    const READ_WRITE_EXECUTE: usize = 7;
    unsafe {
        let count = (*library).sites as usize;
        if (first + count) * STUB > PAGE || !is_near((*link).base, library, stubs) {
            return first;
        }
        let start = ((*link).base + (*library).start as usize) & !(PAGE - 1);
        let end = (*link).base + (*library).start as usize + (*library).length as usize;
        let length = (end - start).next_multiple_of(PAGE);
        if syscall(call::MPROTECT, [start, length, READ_WRITE_EXECUTE, 0, 0, 0]) == 0 {
            for index in 0..count {
                let site = (*link).base + (*sites(library).add(index)).place as usize;
                let stub = stubs.add((first + index) * STUB) as isize;
                let [a, b, c, d] = ((stub - (site as isize + 5)) as i32).to_le_bytes();
                (site as *mut [u8; SITE]).write([JUMP, a, b, c, d, BREAKPOINT, BREAKPOINT]);
            }
            syscall(call::MPROTECT, [start, length, READ_EXECUTE, 0, 0, 0]);
        }
        first + count
    }
}
