//! x86-64.

use crate::observe::act::{ALWAYS, AT, Act, CWD, READS, Row, WAITS};

/// AUDIT_ARCH_X86_64.
pub const ARCHITECTURE: u32 = 0xc000_003e;

/// Calls of 32-bit programs that no such program does without: open, execve, socketcall, openat.
/// One of them is enough to know that there is one.
pub const CALLS_OF_32_BITS: &[u32] = &[5, 11, 102, 295];

/// Whether functions can have gates, so that noting them takes no signal.
pub const HAS_GATES: bool = true;

/// Whether agents lead calls past the filter.
pub const LEADS_CALLS: bool = true;

/// What the loader opens libraries by once programs run: operands of its sites, AT_FDCWD where the
/// folder is set last. The rest of its calls belong to starting programs and to profiling them.
/// Each page with a site costs every process a copy of it.
pub const OPENING_LIBRARIES: &[u32] = &[
    libc::AT_FDCWD as u32,
    libc::SYS_open as u32,
    libc::SYS_openat as u32,
    libc::SYS_stat as u32,
    libc::SYS_lstat as u32,
    libc::SYS_newfstatat as u32,
    libc::SYS_statx as u32,
    libc::SYS_readlink as u32,
    libc::SYS_readlinkat as u32,
];

/// Calls that wait for sets of descriptors in memory, that duplicate a descriptor to a given
/// number, and that set an alarm.
pub const SELECT: &[i64] = &[libc::SYS_pselect6, libc::SYS_select];
pub const DUPLICATE: &[i64] = &[libc::SYS_dup3, libc::SYS_dup2];
pub const ALARM: Option<i64> = Some(libc::SYS_alarm);

/// Calls of before there were folder descriptors, which newer processors have never had.
#[rustfmt::skip]
pub const OLD_CALLS: &[Row] = &[
    (libc::SYS_dup2,      Act::Inherited, READS),
    (libc::SYS_poll,      Act::Inherited, WAITS),
    (libc::SYS_select,    Act::Inherited, WAITS),
    (libc::SYS_alarm,     Act::Signals, ALWAYS),
    (libc::SYS_open,      Act::Open { folder: CWD, path: 0, flags: 1 }, ALWAYS),
    (libc::SYS_creat,     Act::Create { path: 0 }, ALWAYS),
    (libc::SYS_stat,      Act::Ask { folder: CWD, path: 0, follow: true, flags: None }, ALWAYS),
    (libc::SYS_lstat,     Act::Ask { folder: CWD, path: 0, follow: false, flags: None }, ALWAYS),
    (libc::SYS_access,    Act::Ask { folder: CWD, path: 0, follow: true, flags: None }, ALWAYS),
    (libc::SYS_readlink,  Act::ReadLink { folder: CWD, path: 0 }, ALWAYS),
    (libc::SYS_getdents,  Act::List, ALWAYS),
    (libc::SYS_rename,    Act::Rename { from: CWD, old: 0, to: CWD, new: 1, flags: None }, ALWAYS),
    (libc::SYS_renameat,  Act::Rename { from: AT, old: 1, to: Some(2), new: 3, flags: None }, ALWAYS),
    (libc::SYS_link,      Act::HardLink { from: CWD, old: 0, to: CWD, new: 1, flags: None }, ALWAYS),
    (libc::SYS_symlink,   Act::Make { folder: CWD, path: 1 }, ALWAYS),
    (libc::SYS_mknod,     Act::Make { folder: CWD, path: 0 }, ALWAYS),
    (libc::SYS_mkdir,     Act::MakeFolder { folder: CWD, path: 0 }, ALWAYS),
    (libc::SYS_unlink,    Act::Remove { folder: CWD, path: 0, flags: None }, ALWAYS),
    (libc::SYS_rmdir,     Act::RemoveFolder { path: 0 }, ALWAYS),
    (libc::SYS_chmod,     Act::Change { folder: CWD, path: 0, follow: true, flags: None }, ALWAYS),
    (libc::SYS_chown,     Act::Change { folder: CWD, path: 0, follow: true, flags: None }, ALWAYS),
    (libc::SYS_lchown,    Act::Change { folder: CWD, path: 0, follow: false, flags: None }, ALWAYS),
    (libc::SYS_utime,     Act::Change { folder: CWD, path: 0, follow: true, flags: None }, ALWAYS),
    (libc::SYS_utimes,    Act::Change { folder: CWD, path: 0, follow: true, flags: None }, ALWAYS),
    (libc::SYS_futimesat, Act::Change { folder: AT, path: 1, follow: true, flags: None }, ALWAYS),
];
