//! What the filter lets through although the table of calls says otherwise: calls that the agent
//! has already asked about, and two calls that the loader makes with constant paths.
//!
//! In: the addresses of such calls. Out: filter instructions that allow them, placed before those
//! that stop other calls of the same number.

use super::instructions::{
    ARGUMENTS, EQUAL, EQUAL_OTHER, INSTRUCTION, LOAD, MASK, RETURN, SUBTRACT_OTHER, TO_OTHER, step,
};
use super::sites::OwnCall;
use libc::{SECCOMP_RET_ALLOW, sock_filter};

/// What is let through although it would be looked at.
#[derive(Clone, Copy, Debug)]
pub struct Passes {
    /// The instruction pointer of led calls, or `VARIANT` behind it.
    pub instruction: u64,
    /// How the loader asks for the attributes of descriptors.
    pub own_ask: Option<OwnCall>,
    /// How it opens its cache, which was noted when it looked for libraries to preload.
    pub own_open: Option<OwnCall>,
}

/// So far from the instruction whose calls are let through is a second one.
pub const VARIANT: u32 = 32;

/// Allows a call that is made by this instruction, or by the other.
pub fn let_through(instruction: u64) -> [sock_filter; 6] {
    [
        step(LOAD, INSTRUCTION, 0, 0),
        step(MASK, !VARIANT, 0, 0),
        step(EQUAL, instruction as u32, 0, 3),
        step(LOAD, INSTRUCTION + 4, 0, 0),
        step(EQUAL, (instruction >> 32) as u32, 0, 1),
        step(RETURN, SECCOMP_RET_ALLOW, 0, 0),
    ]
}

/// Allows two calls by the loader's own instruction with a path of its own: `newfstatat` with an
/// empty one, for who asks for the attributes of an open file by its descriptor alone lets nobody
/// see more than opening it did, unless that is from outside; and `openat` of its cache, only to
/// read it.
pub fn let_own_call_through(passes: Passes, number: i64, foreign: &[i32]) -> Vec<sock_filter> {
    const AT_EMPTY_PATH: u32 = 0x1000;
    let through = match number {
        libc::SYS_newfstatat => {
            passes.own_ask.map(|own| let_path_through(own, (3, AT_EMPTY_PATH), foreign))
        }
        libc::SYS_openat => {
            passes.own_open.map(|own| let_path_through(own, (2, libc::O_CLOEXEC as u32), &[]))
        }
        _ => None,
    };
    through.unwrap_or_default()
}

/// The loader lies anywhere, but on a page, and its path as far from its instruction as in its
/// file. In: the call, the argument with its flags and what they are to be, and what argument 0 is
/// not to be.
fn let_path_through(
    own: OwnCall,
    (flags, wanted): (u32, u32),
    foreign: &[i32],
) -> Vec<sock_filter> {
    const WITHIN_PAGE: u32 = 0xfff;
    let argument = |number: u32| step(LOAD, ARGUMENTS + 8 * number, 0, 0);
    let mut steps = vec![
        argument(flags),
        step(EQUAL, wanted, 0, 0),
        step(LOAD, INSTRUCTION + 4, 0, 0),
        step(TO_OTHER, 0, 0, 0),
        step(LOAD, ARGUMENTS + 8 + 4, 0, 0),
        step(EQUAL_OTHER, 0, 0, 0),
        step(LOAD, INSTRUCTION, 0, 0),
        step(TO_OTHER, 0, 0, 0),
        step(MASK, WITHIN_PAGE, 0, 0),
        step(EQUAL, own.instruction & WITHIN_PAGE, 0, 0),
        argument(1),
        step(SUBTRACT_OTHER, 0, 0, 0),
        step(EQUAL, own.path.wrapping_sub(own.instruction), 0, 0),
        argument(0),
    ];
    // Whatever is not as it is to be leads behind the last step, and so does a descriptor from
    // outside.
    let behind = |at: usize, count: usize| (count - at) as u8;
    let count = steps.len() + foreign.len();
    for (at, step) in
        steps.iter_mut().enumerate().filter(|(_, step)| [EQUAL, EQUAL_OTHER].contains(&step.code))
    {
        step.jf = behind(at, count);
    }
    for number in foreign {
        steps.push(step(EQUAL, *number as u32, behind(steps.len(), count), 0));
    }
    steps.push(step(RETURN, SECCOMP_RET_ALLOW, 0, 0));
    steps
}
