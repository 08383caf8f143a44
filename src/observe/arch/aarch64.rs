//! AArch64.

use crate::observe::act::{ALWAYS, AT, Act, Row};

/// AUDIT_ARCH_AARCH64.
pub const ARCHITECTURE: u32 = 0xc000_00b7;

/// Calls of 32-bit programs that no such program does without: open, execve, connect, openat. One
/// of them is enough to know that there is one.
pub const CALLS_OF_32_BITS: &[u32] = &[5, 11, 281, 322];

/// Whether functions can have gates, so that noting them takes no signal.
pub const HAS_GATES: bool = false;

/// Whether agents lead calls past the filter.
pub const LEADS_CALLS: bool = false;

/// What the loader opens libraries by: nothing, since no calls are led.
pub const OPENING_LIBRARIES: &[u32] = &[];

/// Calls that wait for sets of descriptors in memory, that duplicate a descriptor to a given
/// number, and that set an alarm.
pub const SELECT: &[i64] = &[libc::SYS_pselect6];
pub const DUPLICATE: &[i64] = &[libc::SYS_dup3];
pub const ALARM: Option<i64> = None;

/// Calls that only this processor has: `renameat`, which libc has no name for.
pub const OLD_CALLS: &[Row] =
    &[(38, Act::Rename { from: AT, old: 1, to: Some(2), new: 3, flags: None }, ALWAYS)];
