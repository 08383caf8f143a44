//! The agent: a tiny library that is preloaded into the programs of a test. It notes which functions are executed.
//!
//! For each module of the process it asks the watcher for a *region* of shared memory: where the functions start, what is
//! there, and a byte for each that is to be set when it is executed. It writes a breakpoint at each start; the handler of
//! SIGTRAP sets the byte, puts the instruction back, and lets the function go on. After the first call of a function
//! nothing is left of it. The region outlives the process, so that nothing is lost however it ends.
//!
//! Built by the crate's `build.rs` into a shared library without dependencies, not even on the C library. It is
//! initialised before all other modules (`-z initfirst`), so that constructors are seen too.

#![no_std]

use core::arch::{asm, global_asm};
use core::ffi::{c_char, c_int, c_void};
use core::ptr::{addr_of, addr_of_mut, null, null_mut};
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    loop {
        unsafe { syscall(call::EXIT_GROUP, [134, 0, 0, 0, 0, 0]) };
    }
}

// What the processor has.

#[cfg(target_arch = "x86_64")]
mod processor {
    pub type Code = u8;
    /// `int3`
    pub const BREAKPOINT: Code = 0xcc;
    /// How far the program counter has gone on when the handler is called.
    pub const PASSED: usize = 1;
    /// Where it is in the handler's context.
    pub const COUNTER: usize = 168;

    /// Processors of this kind see changed code by themselves.
    pub unsafe fn changed(_at: usize) {}
}

#[cfg(target_arch = "aarch64")]
mod processor {
    pub type Code = u32;
    /// `brk #0x7a57`
    pub const BREAKPOINT: Code = 0xd420_0000 | 0x7a57 << 5;
    pub const PASSED: usize = 0;
    pub const COUNTER: usize = 440;

    /// Makes a changed instruction known to the processor.
    pub unsafe fn changed(at: usize) {
        unsafe {
            core::arch::asm!("dc cvau, {0}", "dsb ish", "ic ivau, {0}", "dsb ish", "isb", in(reg) at);
        }
    }
}

use processor::{BREAKPOINT, COUNTER, Code, PASSED};

/// The numbers of system calls.
#[cfg(target_arch = "x86_64")]
mod call {
    pub const OPENAT: usize = 257;
    pub const CLOSE: usize = 3;
    pub const MMAP: usize = 9;
    pub const MPROTECT: usize = 10;
    pub const SIGACTION: usize = 13;
    pub const SIGPROCMASK: usize = 14;
    pub const GETPID: usize = 39;
    pub const GETTID: usize = 186;
    pub const TGKILL: usize = 234;
    pub const EXIT_GROUP: usize = 231;
}

#[cfg(target_arch = "aarch64")]
mod call {
    pub const OPENAT: usize = 56;
    pub const CLOSE: usize = 57;
    pub const MMAP: usize = 222;
    pub const MPROTECT: usize = 226;
    pub const SIGACTION: usize = 134;
    pub const SIGPROCMASK: usize = 135;
    pub const GETPID: usize = 172;
    pub const GETTID: usize = 178;
    pub const TGKILL: usize = 131;
    pub const EXIT_GROUP: usize = 94;
}

#[cfg(target_arch = "x86_64")]
unsafe fn syscall(number: usize, arguments: [usize; 6]) -> isize {
    let [a, b, c, d, e, f] = arguments;
    let result: isize;
    unsafe {
        asm!("syscall", inlateout("rax") number as isize => result, in("rdi") a, in("rsi") b, in("rdx") c,
             in("r10") d, in("r8") e, in("r9") f, lateout("rcx") _, lateout("r11") _, options(nostack));
    }
    result
}

#[cfg(target_arch = "aarch64")]
unsafe fn syscall(number: usize, arguments: [usize; 6]) -> isize {
    let [a, b, c, d, e, f] = arguments;
    let result: isize;
    unsafe {
        asm!("svc 0", in("x8") number, inlateout("x0") a as isize => result, in("x1") b, in("x2") c, in("x3") d,
             in("x4") e, in("x5") f, options(nostack));
    }
    result
}

// The way back from a signal handler.
#[cfg(target_arch = "x86_64")]
global_asm!(".local tasting_return", "tasting_return:", "mov rax, 15", "syscall");
#[cfg(target_arch = "aarch64")]
global_asm!(".local tasting_return", "tasting_return:", "mov x8, #139", "svc 0");

// What compilers and libraries of the language call. Hidden: nobody else must come to use it.
#[cfg(target_arch = "x86_64")]
global_asm!(
    ".globl memset, memcpy, rust_eh_personality",
    ".hidden memset, memcpy, rust_eh_personality",
    "memset: mov r8, rdi; mov eax, esi; mov rcx, rdx; rep stosb; mov rax, r8; ret",
    "memcpy: mov rax, rdi; mov rcx, rdx; rep movsb; ret",
    "rust_eh_personality: ud2",
);
#[cfg(target_arch = "aarch64")]
global_asm!(
    ".globl memset, memcpy, rust_eh_personality",
    ".hidden memset, memcpy, rust_eh_personality",
    "memset: mov x3, x0",
    "1: cbz x2, 2f; strb w1, [x3], #1; sub x2, x2, #1; b 1b",
    "2: ret",
    "memcpy: mov x3, x0",
    "1: cbz x2, 2f; ldrb w4, [x1], #1; strb w4, [x3], #1; sub x2, x2, #1; b 1b",
    "2: ret",
    "rust_eh_personality: brk #1",
);

// What the dynamic loader and the C library have, if they have it.
global_asm!(".weak _r_debug", ".weak dlsym");

unsafe extern "C" {
    fn tasting_return();
    static _r_debug: Debug;
    fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
}

#[repr(C)]
struct Debug {
    version: c_int,
    modules: *const LinkMap,
}

/// A module, as the loader lists it.
#[repr(C)]
struct LinkMap {
    base: usize,
    name: *const c_char,
    dynamic: *const c_void,
    next: *const LinkMap,
}

// The regions.

/// The start of a region. Behind it: `count` places (u32, from the module's base, ascending), `count` instructions, `count`
/// bytes that say what was executed.
#[repr(C)]
struct Head {
    magic: u64,
    count: u32,
    /// Set when something could not be watched: all counts as executed then.
    failed: u32,
    size: u64,
}

const MAGIC: u64 = u64::from_le_bytes(*b"TASTETRC");

/// What the path of a request starts with. Behind it: the module's path, or nothing for the program.
const REQUEST: &[u8] = b"/.tasting-agent-1/";

const MOST_MODULES: usize = 64;
const LONGEST_PATH: usize = 4096;
const PAGE: usize = 4096;

#[derive(Clone, Copy)]
struct Module {
    base: usize,
    places: *const u32,
    instructions: *const Code,
    hits: *mut u8,
    count: usize,
}

static mut MODULES: [Module; MOST_MODULES] =
    [Module { base: 0, places: null(), instructions: null(), hits: null_mut(), count: 0 }; MOST_MODULES];
static MODULE_COUNT: AtomicUsize = AtomicUsize::new(0);

#[used]
#[unsafe(link_section = ".init_array")]
static START: extern "C" fn() = start;

/// Runs before everything else in the process.
extern "C" fn start() {
    unsafe {
        if addr_of!(_r_debug).is_null() {
            return;
        }
        let mut module = (*addr_of!(_r_debug)).modules;
        let mut is_first = true;
        while !module.is_null() {
            let region = request((*module).name, is_first);
            if is_first && region.is_null() {
                // Nobody watches, or the program is not one that can be traced: neither are its libraries.
                return;
            }
            if !region.is_null() {
                arm((*module).base, region);
            }
            is_first = false;
            module = (*module).next;
        }
    }
}

/// The region of a module; null if there is none.
unsafe fn request(name: *const c_char, is_program: bool) -> *mut Head {
    const AT_FDCWD: usize = -100isize as usize;
    const O_PATH: usize = 0o10000000;
    let mut path = [0u8; LONGEST_PATH];
    path[..REQUEST.len()].copy_from_slice(REQUEST);
    let mut length = REQUEST.len();
    unsafe {
        if !is_program && (name.is_null() || *name == 0) {
            // The kernel's own module has no file.
            return null_mut();
        }
        let mut from = name.cast::<u8>();
        while !is_program && *from != 0 && length < LONGEST_PATH - 1 {
            path[length] = *from;
            from = from.add(1);
            length += 1;
        }
        let file = syscall(call::OPENAT, [AT_FDCWD, path.as_ptr() as usize, O_PATH, 0, 0, 0]);
        if file < 0 {
            return null_mut();
        }
        let region = map(file as usize);
        syscall(call::CLOSE, [file as usize, 0, 0, 0, 0, 0]);
        region
    }
}

unsafe fn map(file: usize) -> *mut Head {
    const READ_WRITE: usize = 3;
    const MAP_SHARED: usize = 1;
    unsafe {
        let first = syscall(call::MMAP, [0, PAGE, READ_WRITE, MAP_SHARED, file, 0]);
        if first < 0 {
            return null_mut();
        }
        let head = first as *mut Head;
        if (*head).magic != MAGIC {
            return null_mut();
        }
        let size = (*head).size as usize;
        if size <= PAGE {
            return head;
        }
        let whole = syscall(call::MMAP, [0, size, READ_WRITE, MAP_SHARED, file, 0]);
        if whole < 0 {
            (*head).failed = 1;
            return null_mut();
        }
        whole as *mut Head
    }
}

/// Puts breakpoints at all functions of a module that nobody was seen to execute yet.
unsafe fn arm(base: usize, region: *mut Head) {
    unsafe {
        let count = (*region).count as usize;
        let number = MODULE_COUNT.load(Ordering::Relaxed);
        if count == 0 {
            return;
        }
        let places = region.add(1).cast::<u32>();
        let instructions = places.add(count).cast::<Code>();
        let hits = instructions.add(count).cast::<u8>();
        let first = base + *places as usize & !(PAGE - 1);
        let end = base + *places.add(count - 1) as usize + size_of::<Code>();
        if number == MOST_MODULES || !make_writable(first, end) || (number == 0 && !handle_traps()) {
            (*region).failed = 1;
            return;
        }
        MODULES[number] = Module { base, places, instructions, hits, count };
        MODULE_COUNT.store(number + 1, Ordering::Release);
        for index in 0..count {
            if hits.add(index).read_volatile() != 0 {
                continue;
            }
            let at = base + *places.add(index) as usize;
            let code = at as *mut Code;
            if code.read_unaligned() == *instructions.add(index) {
                code.write_unaligned(BREAKPOINT);
                processor::changed(at);
            } else {
                // Not what was linked: somebody else changes code here.
                hits.add(index).write_volatile(1);
            }
        }
    }
}

/// The code stays writable, so that the handler has nothing to do but to write.
unsafe fn make_writable(first: usize, end: usize) -> bool {
    const READ_WRITE_EXECUTE: usize = 7;
    unsafe { syscall(call::MPROTECT, [first, end - first, READ_WRITE_EXECUTE, 0, 0, 0]) == 0 }
}

// Signals.

const SIGTRAP: c_int = 5;
const SA_SIGINFO: u64 = 4;
const SA_RESTORER: u64 = 0x0400_0000;
const SA_NODEFER: u64 = 0x4000_0000;


/// As the kernel has it.
#[repr(C)]
struct KernelAction {
    handler: usize,
    flags: u64,
    restorer: usize,
    mask: u64,
}

unsafe fn set_action(signal: c_int, handler: usize, flags: u64, mask: u64) -> bool {
    let action =
        KernelAction { handler, flags: flags | SA_RESTORER, restorer: tasting_return as *const () as usize, mask };
    unsafe { syscall(call::SIGACTION, [signal as usize, addr_of!(action) as usize, 0, 8, 0, 0]) == 0 }
}

/// Installs the handler, and lets the signal through: it may be blocked by whoever started us.
unsafe fn handle_traps() -> bool {
    const SIG_UNBLOCK: usize = 1;
    let set: u64 = 1 << (SIGTRAP - 1);
    unsafe {
        // The program's own handler, which ours may call, has a breakpoint too.
        set_action(SIGTRAP, trapped as *const () as usize, SA_SIGINFO | SA_NODEFER, !set)
            && syscall(call::SIGPROCMASK, [SIG_UNBLOCK, addr_of!(set) as usize, 0, 8, 0, 0]) == 0
    }
}

/// A breakpoint: ours, or somebody else's.
unsafe extern "C" fn trapped(signal: c_int, information: *mut c_void, context: *mut c_void) {
    unsafe {
        let counter = context.byte_add(COUNTER).cast::<usize>();
        let at = (*counter).wrapping_sub(PASSED);
        if note(at) {
            *counter = at;
        } else {
            pass_on(signal, information, context);
        }
    }
}

/// Notes that a function is executed, and puts its first instruction back. Any number of threads may do so at once: they
/// write the same.
unsafe fn note(at: usize) -> bool {
    let count = MODULE_COUNT.load(Ordering::Acquire);
    let modules = addr_of!(MODULES).cast::<Module>();
    for number in 0..count {
        unsafe {
            let module = *modules.add(number);
            let Some(index) = find(&module, at.wrapping_sub(module.base)) else { continue };
            module.hits.add(index).write_volatile(1);
            (at as *mut Code).write_unaligned(*module.instructions.add(index));
            processor::changed(at);
        }
        return true;
    }
    false
}

unsafe fn find(module: &Module, place: usize) -> Option<usize> {
    let (mut low, mut high) = (0, module.count);
    while low < high {
        let middle = (low + high) / 2;
        let found = unsafe { *module.places.add(middle) } as usize;
        match found {
            _ if found == place => return Some(middle),
            _ if found < place => low = middle + 1,
            _ => high = middle,
        }
    }
    None
}

/// What the program itself wants to be done about SIGTRAP: the C library's `struct sigaction`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Action {
    handler: usize,
    mask: [u64; 16],
    flags: c_int,
    restorer: usize,
}

static mut WANTED: Action = Action { handler: 0, mask: [0; 16], flags: 0, restorer: 0 };
static IS_WANTED: AtomicBool = AtomicBool::new(false);

/// Does what would have been done without us.
unsafe fn pass_on(signal: c_int, information: *mut c_void, context: *mut c_void) {
    const SIG_IGN: usize = 1;
    unsafe {
        let wanted = *addr_of!(WANTED);
        if IS_WANTED.load(Ordering::Acquire) && wanted.handler > SIG_IGN {
            let handler: unsafe extern "C" fn(c_int, *mut c_void, *mut c_void) = core::mem::transmute(wanted.handler);
            return handler(signal, information, context);
        }
        // The default is to die of it; a trap that is ignored kills as well.
        set_action(SIGTRAP, 0, 0, 0);
        let (process, thread) = (syscall(call::GETPID, [0; 6]), syscall(call::GETTID, [0; 6]));
        syscall(call::TGKILL, [process as usize, thread as usize, SIGTRAP as usize, 0, 0, 0]);
    }
}

// The functions of the C library with which a program could take the signal from us. A breakpoint that is met while the
// signal is blocked kills the process.

const RTLD_NEXT: *mut c_void = -1isize as *mut c_void;

fn is_armed() -> bool {
    MODULE_COUNT.load(Ordering::Relaxed) != 0
}

/// The same function of the C library; looked up once.
macro_rules! next {
    ($name:literal, $kind:ty) => {{
        static FOUND: AtomicUsize = AtomicUsize::new(0);
        let mut found = FOUND.load(Ordering::Relaxed);
        if found == 0 && dlsym as *const () as usize != 0 {
            found = unsafe { dlsym(RTLD_NEXT, concat!($name, "\0").as_ptr().cast()) } as usize;
            FOUND.store(found, Ordering::Relaxed);
        }
        (found != 0).then(|| unsafe { core::mem::transmute::<usize, $kind>(found) })
    }};
}

/// A set of signals without SIGTRAP.
unsafe fn without_trap(set: *const u64, copy: &mut [u64; 16]) -> *const u64 {
    if set.is_null() || !is_armed() {
        return set;
    }
    // Of the C library's 1024 bits the first 64 are in use.
    copy[0] = unsafe { *set } & !(1 << (SIGTRAP - 1));
    copy.as_ptr()
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sigaction(signal: c_int, new: *const Action, old: *mut Action) -> c_int {
    let Some(next) = next!("sigaction", unsafe extern "C" fn(c_int, *const Action, *mut Action) -> c_int) else {
        return -1;
    };
    unsafe {
        if signal == SIGTRAP && is_armed() {
            if !old.is_null() {
                *old = *addr_of!(WANTED);
            }
            if !new.is_null() {
                *addr_of_mut!(WANTED) = *new;
                IS_WANTED.store(true, Ordering::Release);
            }
            return 0;
        }
        if new.is_null() {
            return next(signal, new, old);
        }
        let mut copy = *new;
        let mut mask = [0; 16];
        copy.mask[0] = *without_trap(copy.mask.as_ptr(), &mut mask);
        next(signal, &copy, old)
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn signal(number: c_int, handler: usize) -> usize {
    if number == SIGTRAP && is_armed() {
        unsafe {
            let old = (*addr_of!(WANTED)).handler;
            *addr_of_mut!(WANTED) = Action { handler, mask: [0; 16], flags: 0, restorer: 0 };
            IS_WANTED.store(true, Ordering::Release);
            return old;
        }
    }
    match next!("signal", unsafe extern "C" fn(c_int, usize) -> usize) {
        Some(next) => unsafe { next(number, handler) },
        None => usize::MAX,
    }
}

type Masking = unsafe extern "C" fn(c_int, *const u64, *mut u64) -> c_int;

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sigprocmask(how: c_int, set: *const u64, old: *mut u64) -> c_int {
    match next!("sigprocmask", Masking) {
        Some(next) => unsafe { next(how, masked(how, set, &mut [0; 16]), old) },
        None => -1,
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_sigmask(how: c_int, set: *const u64, old: *mut u64) -> c_int {
    match next!("pthread_sigmask", Masking) {
        Some(next) => unsafe { next(how, masked(how, set, &mut [0; 16]), old) },
        None => -1,
    }
}

/// What is blocked, or is all that is blocked, is so without SIGTRAP.
unsafe fn masked(how: c_int, set: *const u64, copy: &mut [u64; 16]) -> *const u64 {
    const SIG_UNBLOCK: c_int = 1;
    if how == SIG_UNBLOCK { set } else { unsafe { without_trap(set, copy) } }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sigsuspend(set: *const u64) -> c_int {
    match next!("sigsuspend", unsafe extern "C" fn(*const u64) -> c_int) {
        Some(next) => unsafe { next(without_trap(set, &mut [0; 16])) },
        None => -1,
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ppoll(files: *mut c_void, count: usize, time: *const c_void, set: *const u64) -> c_int {
    match next!("ppoll", unsafe extern "C" fn(*mut c_void, usize, *const c_void, *const u64) -> c_int) {
        Some(next) => unsafe { next(files, count, time, without_trap(set, &mut [0; 16])) },
        None => -1,
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pselect(
    count: c_int,
    read: *mut c_void,
    write: *mut c_void,
    except: *mut c_void,
    time: *const c_void,
    set: *const u64,
) -> c_int {
    type Select =
        unsafe extern "C" fn(c_int, *mut c_void, *mut c_void, *mut c_void, *const c_void, *const u64) -> c_int;
    match next!("pselect", Select) {
        Some(next) => unsafe { next(count, read, write, except, time, without_trap(set, &mut [0; 16])) },
        None => -1,
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn epoll_pwait(
    file: c_int,
    events: *mut c_void,
    most: c_int,
    time: c_int,
    set: *const u64,
) -> c_int {
    match next!("epoll_pwait", unsafe extern "C" fn(c_int, *mut c_void, c_int, c_int, *const u64) -> c_int) {
        Some(next) => unsafe { next(file, events, most, time, without_trap(set, &mut [0; 16])) },
        None => -1,
    }
}
