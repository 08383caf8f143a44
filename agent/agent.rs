//! The agent: a tiny library that is preloaded into the programs of a test. It notes which functions are executed.
//!
//! For each module of the process it asks the watcher for a *region* of shared memory: where its functions lie, a byte for
//! each that is to be set when it is executed, and an *image* of the module's code in which every byte of every function is
//! a breakpoint. It maps the image in the place of the code. Whatever a function is entered by, and wherever, the handler of
//! SIGTRAP sets the byte, puts the function's code into the image, and lets it go on. So code that was not noted was not
//! executed: it was not there. Functions that are called in the usual way have a call of the *gate* at their front, which
//! does the same in a tenth of the time. All processes of a test share the image, which outlives them: what one has executed costs
//! the next one nothing, and nothing is lost however a process ends.
//!
//! Libraries that are opened later are met in the function that the dynamic loader calls for debuggers, between mapping a
//! library and running its constructors.
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
    const STACK: usize = 160;
    /// The function that the loader calls for debuggers does nothing: `ret`, with or without `endbr64`.
    pub const NOTHING: [&[u8]; 3] = [&[0xc3], &[0xf3, 0x0f, 0x1e, 0xfa, 0xc3], &[0xf3, 0xc3]];

    /// Processors of this kind see changed code by themselves.
    pub unsafe fn changed(_at: usize, _size: usize) {}

    /// Returns from a function that has just been entered.
    pub unsafe fn leave(context: *mut core::ffi::c_void) {
        unsafe {
            let stack = context.byte_add(STACK).cast::<*const usize>();
            *context.byte_add(COUNTER).cast::<usize>() = **stack;
            *stack = (*stack).add(1);
        }
    }
}

#[cfg(target_arch = "aarch64")]
mod processor {
    pub type Code = u32;
    /// `brk #0x7a57`
    pub const BREAKPOINT: Code = 0xd420_0000 | 0x7a57 << 5;
    pub const PASSED: usize = 0;
    pub const COUNTER: usize = 440;
    const LINK: usize = 424;
    /// `ret`, with or without `bti c`.
    pub const NOTHING: [&[u8]; 2] = [&[0xc0, 0x03, 0x5f, 0xd6], &[0x5f, 0x24, 0x03, 0xd5, 0xc0, 0x03, 0x5f, 0xd6]];

    /// Makes changed code known to the processor.
    pub unsafe fn changed(at: usize, size: usize) {
        /// No processor has shorter lines in its caches.
        const LINE: usize = 16;
        let mut line = at & !(LINE - 1);
        while line < at + size {
            unsafe { core::arch::asm!("dc cvau, {0}", "dsb ish", "ic ivau, {0}", in(reg) line) };
            line += LINE;
        }
        unsafe { core::arch::asm!("dsb ish", "isb") };
    }

    /// Returns from a function that has just been entered.
    pub unsafe fn leave(context: *mut core::ffi::c_void) {
        unsafe { *context.byte_add(COUNTER).cast::<usize>() = *context.byte_add(LINK).cast::<usize>() };
    }
}

use processor::{BREAKPOINT, COUNTER, Code, NOTHING, PASSED};

/// The numbers of system calls.
#[cfg(target_arch = "x86_64")]
mod call {
    pub const OPENAT: usize = 257;
    pub const CLOSE: usize = 3;
    pub const MMAP: usize = 9;
    pub const MPROTECT: usize = 10;
    pub const MUNMAP: usize = 11;
    pub const MREMAP: usize = 25;
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
    pub const MUNMAP: usize = 215;
    pub const MREMAP: usize = 216;
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

// The gate: what the fronts of functions call. No register changes, for compilers know which ones a function of theirs leaves
// alone. Then the function starts anew, with its own code. The shorter way out by `ret` would be fit for nothing but the
// return address that the call left.
#[cfg(target_arch = "x86_64")]
global_asm!(
    ".local tasting_gate",
    "tasting_gate:",
    "pushfq; cld",
    "push rax; push rcx; push rdx; push rsi; push rdi; push r8; push r9; push r10; push r11; push rbp",
    "mov rbp, rsp; sub rsp, 256; and rsp, -16",
    ".irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15; movaps [rsp + 16 * \\n], xmm\\n; .endr",
    "mov rdi, [rbp + 88]; sub rdi, {call}; mov [rbp + 88], rdi",
    "call {entered}",
    ".irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15; movaps xmm\\n, [rsp + 16 * \\n]; .endr",
    "mov rsp, rbp",
    "pop rbp; pop r11; pop r10; pop r9; pop r8; pop rdi; pop rsi; pop rdx; pop rcx; pop rax; popfq",
    "lea rsp, [rsp + 8]; jmp [rsp - 8]",
    call = const CALL_OF_THE_GATE,
    entered = sym entered,
);

/// The address of the gate's address, which is the same in all processes, and as short as an instruction can have it. It is made
/// of breakpoints and of an instruction that there is not, for whoever enters a function in the middle of the call.
#[cfg(target_arch = "x86_64")]
const GATE: usize = 0x60cc_cccc;
/// `call [GATE]`
#[cfg(target_arch = "x86_64")]
const CALL_OF_THE_GATE: usize = 7;

/// Calls of the gate come here, with the place that called.
#[cfg(target_arch = "x86_64")]
unsafe extern "C" fn entered(at: usize) {
    unsafe {
        if matches!(note(at), Noted::Stuck | Noted::Nothing) {
            die();
        }
    }
}

/// Puts the gate where it is called.
#[cfg(target_arch = "x86_64")]
unsafe fn open_gate() -> bool {
    unsafe extern "C" {
        fn tasting_gate();
    }
    const READ_WRITE: usize = 3;
    const READ: usize = 1;
    const PRIVATE_ANONYMOUS_NOREPLACE: usize = 0x10_0022;
    unsafe {
        let shadow: usize;
        asm!("xor {0:e}, {0:e}", "rdsspq {0}", out(reg) shadow);
        // The processor checks that functions return to where they were called.
        if shadow != 0 {
            return false;
        }
        let page = GATE & !(PAGE - 1);
        let place = [page, PAGE, READ_WRITE, PRIVATE_ANONYMOUS_NOREPLACE, usize::MAX, 0];
        if syscall(call::MMAP, place) != page as isize {
            return false;
        }
        (GATE as *mut usize).write_unaligned(tasting_gate as *const () as usize);
        syscall(call::MPROTECT, [page, PAGE, READ, 0, 0, 0]) == 0
    }
}

/// Other processors have breakpoints only.
#[cfg(not(target_arch = "x86_64"))]
unsafe fn open_gate() -> bool {
    true
}

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

/// What the loader shows to debuggers.
#[repr(C)]
struct Debug {
    version: c_int,
    modules: *const LinkMap,
    /// Called whenever the list of modules changes.
    changes: usize,
    state: c_int,
    loader: usize,
    /// From version 2 on: the modules of another namespace.
    next: *const Debug,
}

/// The list of modules is complete.
const CONSISTENT: c_int = 0;

/// A module, as the loader lists it.
#[repr(C)]
struct LinkMap {
    base: usize,
    name: *const c_char,
    dynamic: *const c_void,
    next: *const LinkMap,
}

// The regions.

/// The start of a region. Behind it: `count` places (u32, from the module's base, ascending), `count` sizes (u32), `count`
/// bytes that say what was executed; and from `image` on the image.
#[repr(C)]
struct Head {
    magic: u64,
    count: u32,
    /// Set when something could not be watched: all counts as executed then.
    failed: u32,
    image: u64,
    /// Where in the module the image belongs, and its length: whole pages.
    start: u64,
    length: u64,
    /// Some of the code that is to be there: where in the image, and what.
    samples: [(u64, u64); SAMPLES],
}

const MAGIC: u64 = u64::from_le_bytes(*b"TASTETRC");
const SAMPLES: usize = 16;

/// What the path of a request starts with. Behind it: what is asked for; then the module's path, or nothing for the program.
const REQUEST: &[u8] = b"/.tasting-agent-2/";
/// The region, to be written to, and the same only to be read: nobody can write to code that is mapped from it.
const REGION: u8 = b'r';
const CODE: u8 = b'c';

const MOST_MODULES: usize = 1024;
const LONGEST_PATH: usize = 4096;
const PAGE: usize = 4096;

/// A module that was met. The range is empty for those that are not traced, and for those that were closed.
#[derive(Clone, Copy)]
struct Module {
    link: *const LinkMap,
    base: usize,
    start: usize,
    end: usize,
    region: *mut Head,
    /// The code as it was.
    original: *const u8,
}

const NO_MODULE: Module = Module { link: null(), base: 0, start: 0, end: 0, region: null_mut(), original: null() };

/// Each module has its own place in the list as long as the process lives, so that handlers can read it at any time.
static mut MODULES: [Module; MOST_MODULES] = [NO_MODULE; MOST_MODULES];
static MODULE_COUNT: AtomicUsize = AtomicUsize::new(0);
static IS_ARMED: AtomicBool = AtomicBool::new(false);

/// The function that the loader calls when the list of modules changes.
static CHANGES: AtomicUsize = AtomicUsize::new(0);

impl Head {
    unsafe fn places(region: *mut Head) -> *const u32 {
        unsafe { region.add(1).cast() }
    }

    unsafe fn sizes(region: *mut Head) -> *const u32 {
        unsafe { Head::places(region).add((*region).count as usize) }
    }

    unsafe fn hits(region: *mut Head) -> *mut u8 {
        unsafe { Head::sizes(region).add((*region).count as usize).cast_mut().cast() }
    }

    unsafe fn size(region: *mut Head) -> usize {
        unsafe { ((*region).image + (*region).length) as usize }
    }
}

#[used]
#[unsafe(link_section = ".init_array")]
static START: extern "C" fn() = start;

/// Runs before everything else in the process.
extern "C" fn start() {
    unsafe {
        if addr_of!(_r_debug).is_null() || (*addr_of!(_r_debug)).modules.is_null() {
            return;
        }
        let program = (*addr_of!(_r_debug)).modules;
        let region = request(null());
        if region.is_null() {
            // Nobody watches, or the program is not one that can be traced: neither are its libraries.
            return;
        }
        if !handle_traps() || !open_gate() || !watch_the_loader() {
            (*region).failed = 1;
            return;
        }
        IS_ARMED.store(true, Ordering::Release);
        add(program, null(), region);
        meet();
    }
}

/// Makes the list of modules fit the loader's.
unsafe fn meet() {
    unsafe {
        let debug = addr_of!(_r_debug);
        let modules = addr_of_mut!(MODULES).cast::<Module>();
        for number in 0..MODULE_COUNT.load(Ordering::Acquire) {
            let module = modules.add(number);
            if !(*module).link.is_null() && !is_listed((*module).link) {
                forget(module);
            }
        }
        let mut link = (*debug).modules;
        while !link.is_null() {
            if !is_met(link) {
                let name = (*link).name;
                // The kernel's own module has no file.
                let has_file = !name.is_null() && *name != 0;
                add(link, name, if has_file { request(name) } else { null_mut() });
            }
            link = (*link).next;
        }
        if (*debug).version > 1 && !(*debug).next.is_null() {
            // The same library can be there once more, unseen.
            (0..MODULE_COUNT.load(Ordering::Acquire)).for_each(|number| fail(modules.add(number)));
        }
    }
}

unsafe fn is_listed(sought: *const LinkMap) -> bool {
    unsafe {
        let mut link = (*addr_of!(_r_debug)).modules;
        while !link.is_null() && link != sought {
            link = (*link).next;
        }
        !link.is_null()
    }
}

unsafe fn is_met(link: *const LinkMap) -> bool {
    let modules = addr_of!(MODULES).cast::<Module>();
    (0..MODULE_COUNT.load(Ordering::Acquire)).any(|number| unsafe { (*modules.add(number)).link == link })
}

unsafe fn fail(module: *const Module) {
    unsafe {
        if !(*module).region.is_null() {
            (*(*module).region).failed = 1;
        }
    }
}

/// A module that was closed. No thread is in its code any more.
unsafe fn forget(module: *mut Module) {
    unsafe {
        let Module { start, end, region, original, .. } = *module;
        (*module).link = null();
        (*module).region = null_mut();
        addr_of_mut!((*module).end).write_volatile(0);
        if end > start {
            unmap(original as usize, end - start);
            unmap(region as usize, Head::size(region));
        }
    }
}

unsafe fn unmap(at: usize, size: usize) {
    unsafe { syscall(call::MUNMAP, [at, size, 0, 0, 0, 0]) };
}

/// Adds a module to the list, with breakpoints in place of its functions if it has a region.
unsafe fn add(link: *const LinkMap, name: *const c_char, region: *mut Head) {
    unsafe {
        let number = MODULE_COUNT.load(Ordering::Acquire);
        if number == MOST_MODULES {
            if !region.is_null() {
                (*region).failed = 1;
            }
            return;
        }
        let module = addr_of_mut!(MODULES).cast::<Module>().add(number);
        *module = Module { link, base: (*link).base, region, ..NO_MODULE };
        let is_ready = region.is_null() || prepare(module);
        MODULE_COUNT.store(number + 1, Ordering::Release);
        if !is_ready || !region.is_null() && !show(module, name) {
            (*region).failed = 1;
        }
    }
}

/// Puts the code of a module aside, where functions are taken from when they are executed.
unsafe fn prepare(module: *mut Module) -> bool {
    const MAYMOVE_FIXED_DONTUNMAP: usize = 7;
    const PRIVATE_ANONYMOUS: usize = 0x22;
    unsafe {
        let Head { start, length, samples, .. } = *(*module).region;
        let (start, length) = ((*module).base + start as usize, length as usize);
        for (at, code) in samples {
            if ((start + at as usize) as *const u64).read_unaligned() != code {
                // Not what was linked.
                return false;
            }
        }
        let aside = syscall(call::MMAP, [0, length, 0, PRIVATE_ANONYMOUS, usize::MAX, 0]);
        if aside < 0 {
            return false;
        }
        let moved = syscall(call::MREMAP, [start, length, length, MAYMOVE_FIXED_DONTUNMAP, aside as usize, 0]);
        if moved != aside {
            unmap(aside as usize, length);
            return false;
        }
        (*module).original = aside as *const u8;
        (*module).start = start;
        (*module).end = start + length;
        true
    }
}

/// Maps the image in the place of a module's code.
unsafe fn show(module: *const Module, name: *const c_char) -> bool {
    const READ_EXECUTE: usize = 5;
    const SHARED_FIXED: usize = 0x11;
    unsafe {
        let Module { start, end, region, .. } = *module;
        let file = ask(CODE, name);
        if file < 0 {
            return false;
        }
        let place = [start, end - start, READ_EXECUTE, SHARED_FIXED, file as usize, (*region).image as usize];
        let is_shown = syscall(call::MMAP, place) == start as isize;
        syscall(call::CLOSE, [file as usize, 0, 0, 0, 0, 0]);
        is_shown
    }
}

/// The region of a module, or of the program if it has no name; null if there is none.
unsafe fn request(name: *const c_char) -> *mut Head {
    unsafe {
        let file = ask(REGION, name);
        if file < 0 {
            return null_mut();
        }
        let region = map(file as usize);
        syscall(call::CLOSE, [file as usize, 0, 0, 0, 0, 0]);
        region
    }
}

/// Asks the watcher for something of a module: it answers with a file.
unsafe fn ask(what: u8, name: *const c_char) -> isize {
    const AT_FDCWD: usize = -100isize as usize;
    const O_PATH: usize = 0o10000000;
    let mut path = [0u8; LONGEST_PATH];
    path[..REQUEST.len()].copy_from_slice(REQUEST);
    path[REQUEST.len()] = what;
    let mut length = REQUEST.len() + 1;
    unsafe {
        let mut from = name.cast::<u8>();
        while !from.is_null() && *from != 0 && length < LONGEST_PATH - 1 {
            path[length] = *from;
            from = from.add(1);
            length += 1;
        }
        syscall(call::OPENAT, [AT_FDCWD, path.as_ptr() as usize, O_PATH, 0, 0, 0])
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
        let size = if (*head).magic == MAGIC { Head::size(head) } else { 0 };
        let whole = match size {
            0 => -1,
            size => syscall(call::MMAP, [0, size, READ_WRITE, MAP_SHARED, file, 0]),
        };
        if whole < 0 {
            (*head).failed = 1;
        }
        unmap(first as usize, PAGE);
        if whole < 0 { null_mut() } else { whole as *mut Head }
    }
}

/// Puts a breakpoint into the function that the loader calls when it has mapped a library.
unsafe fn watch_the_loader() -> bool {
    const READ_WRITE_EXECUTE: usize = 7;
    unsafe {
        let at = (*addr_of!(_r_debug)).changes;
        let is_there = |code: &&[u8]| (0..code.len()).all(|index| *((at + index) as *const u8) == code[index]);
        if at == 0 || !NOTHING.iter().any(is_there) {
            return false;
        }
        let page = at & !(PAGE - 1);
        if syscall(call::MPROTECT, [page, PAGE, READ_WRITE_EXECUTE, 0, 0, 0]) != 0 {
            return false;
        }
        CHANGES.store(at, Ordering::Release);
        (at as *mut Code).write_unaligned(BREAKPOINT);
        processor::changed(at, size_of::<Code>());
        true
    }
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
        if at == CHANGES.load(Ordering::Acquire) {
            if (*addr_of!(_r_debug)).state == CONSISTENT {
                meet();
            }
            processor::leave(context);
        } else {
            match note(at) {
                Noted::Ours => *counter = at,
                Noted::Theirs | Noted::Nothing => pass_on(signal, information, context),
                Noted::Stuck => die(),
            }
        }
    }
}

/// What was found where execution stopped.
enum Noted {
    /// A function whose code is there now.
    Ours,
    /// The same, and a breakpoint of the program's own.
    Theirs,
    /// A function whose code does not come back: the program has put other pages in the place of the image.
    Stuck,
    Nothing,
}

/// Notes that a function is executed, and puts its code back.
unsafe fn note(at: usize) -> Noted {
    let count = MODULE_COUNT.load(Ordering::Acquire);
    let modules = addr_of!(MODULES).cast::<Module>();
    for number in 0..count {
        unsafe {
            let module = modules.add(number);
            let end = addr_of!((*module).end).read_volatile();
            if at < (*module).start || at >= end {
                continue;
            }
            let Module { base, start, region, original, .. } = *module;
            let Some((index, place, size)) = find(region, at - base) else { return Noted::Nothing };
            Head::hits(region).add(index).write_volatile(1);
            let from = base + place - start;
            let image = region.cast::<u8>().add((*region).image as usize);
            put_back(image.add(from), original.add(from), size);
            processor::changed(base + place, size);
            let code = original.add(at - start).cast::<Code>().read_unaligned();
            return match code == BREAKPOINT {
                true => Noted::Theirs,
                false if (at as *const Code).read_volatile() == code => Noted::Ours,
                false => Noted::Stuck,
            };
        }
    }
    Noted::Nothing
}

/// Puts code in the place of breakpoints, from its end to its front: others may be about to execute it. A call of the gate, which
/// is one aligned word, goes at once. Any number of threads and processes may do so, for they write the same.
unsafe fn put_back(image: *mut u8, original: *const u8, size: usize) {
    let mut left = size / size_of::<Code>() * size_of::<Code>();
    let front = if (image as usize).is_multiple_of(8) && size >= 8 { 8 } else { 0 };
    unsafe {
        while left > front {
            left -= size_of::<Code>();
            let code = original.add(left).cast::<Code>().read_unaligned();
            image.add(left).cast::<Code>().write_volatile(code);
        }
        if front != 0 {
            image.cast::<u64>().write_volatile(original.cast::<u64>().read_unaligned());
        }
    }
}

/// The function that lies at a place: its number, place and size.
unsafe fn find(region: *mut Head, place: usize) -> Option<(usize, usize, usize)> {
    unsafe {
        let (places, sizes) = (Head::places(region), Head::sizes(region));
        let (mut low, mut high) = (0, (*region).count as usize);
        while low < high {
            let middle = (low + high) / 2;
            if *places.add(middle) as usize <= place {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        let index = low.checked_sub(1)?;
        let (start, size) = (*places.add(index) as usize, *sizes.add(index) as usize);
        (place < start + size).then_some((index, start, size))
    }
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
        die();
    }
}

/// Ends the process by the signal, now or when its handler has returned.
unsafe fn die() {
    unsafe {
        set_action(SIGTRAP, 0, 0, 0);
        let (process, thread) = (syscall(call::GETPID, [0; 6]), syscall(call::GETTID, [0; 6]));
        syscall(call::TGKILL, [process as usize, thread as usize, SIGTRAP as usize, 0, 0, 0]);
    }
}

// The functions of the C library with which a program could take the signal from us. A breakpoint that is met while the
// signal is blocked kills the process.

const RTLD_NEXT: *mut c_void = -1isize as *mut c_void;

fn is_armed() -> bool {
    IS_ARMED.load(Ordering::Relaxed)
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
