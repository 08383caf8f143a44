//! The table of watched system calls: what each one does, which of its arguments matter, and when
//! it need not be stopped. Calls without a row cannot tell a program anything about files, programs
//! or other machines that it has not learnt by one of these.
//!
//! Calls that only one processor has are in `arch/`.

use super::act::When::{Always, Foreign, HasBits, IsAny, IsNot, NotNull};
use super::act::{ALWAYS, AT, Act, CWD, READS, Row, WAITS, When};
use super::arch;

/// Of `prctl` and `seccomp`.
const PROCESS_CONTROLS: &[u32] = &[
    libc::PR_SET_SECCOMP as u32,
    libc::PR_GET_SECCOMP as u32,
    libc::PR_SET_PDEATHSIG as u32,
    libc::PR_GET_PDEATHSIG as u32,
];
const FILTERS: &[u32] = &[libc::SECCOMP_SET_MODE_STRICT, libc::SECCOMP_SET_MODE_FILTER];

/// Calls that name a process: 0 is the caller itself.
const OTHERS: &[When] = &[IsNot(0, u32::MAX, &[0])];
const IOPRIO_WHO_PROCESS: u32 = 1;
/// libc's constant has another type for each C library.
const PRIO_PROCESS: u32 = 0;
const PRIORITIES: &[When] = &[IsNot(1, u32::MAX, &[0]), IsNot(0, u32::MAX, &[PRIO_PROCESS])];
const IO_PRIORITIES: &[When] =
    &[IsNot(1, u32::MAX, &[0]), IsNot(0, u32::MAX, &[IOPRIO_WHO_PROCESS])];

/// After such a call, paths are not looked up any more.
pub const MOUNTS: &str = "changes what paths mean (mounts, chroot or namespaces)";
const HANDLES: &str = "opens files by handles, without their paths";
const URING: &str = "uses io_uring, whose operations nobody sees";
const KEYS: &str = "uses the kernel's keyrings";

/// Namespaces in which paths, users or process numbers mean something else: NEWNS, NEWUSER, NEWPID.
pub const NEW_NAMESPACES: u32 = 0x3002_0000;

/// What is asked of a terminal or a pipe beyond what it is. By the request, for the watcher itself
/// makes such calls on descriptors of any number before anybody answers.
pub const CONTROLS: &[u32] = &[
    libc::TIOCGWINSZ as u32,
    libc::FIONREAD as u32,
    libc::TIOCSTI as u32,
    libc::TCSETS as u32,
    libc::TCSETSW as u32,
    libc::TCSETSF as u32,
    libc::TCFLSH as u32,
    libc::TIOCSWINSZ as u32,
    FIOASYNC,
    FIOSETOWN,
    SIOCSPGRP,
];

/// Requests that make the kernel send SIGIO when there is something to be read.
pub const FIOASYNC: u32 = 0x5452;
pub const FIOSETOWN: u32 = 0x8901;
pub const SIOCSPGRP: u32 = 0x8902;

/// What `fcntl` is told for the same: F_SETSIG, F_SETOWN_EX, F_SETOWN, F_SETLEASE, F_NOTIFY.
const SIGNALLING: &[u32] = &[10, 15, 8, 1024, 1026];

/// What `fcntl` is told to lock a file, or to ask who has locked it.
pub const LOCKING: &[u32] = &[
    libc::F_GETLK as u32,
    libc::F_SETLK as u32,
    libc::F_SETLKW as u32,
    libc::F_OFD_GETLK as u32,
    libc::F_OFD_SETLK as u32,
    libc::F_OFD_SETLKW as u32,
];

/// Kinds of sockets that need no look: the addresses that they are connected to are looked at
/// instead.
const PLAIN_FAMILIES: &[u32] = &[libc::AF_UNIX as u32, libc::AF_INET as u32, libc::AF_INET6 as u32];

/// SOCK_NONBLOCK and SOCK_CLOEXEC stand in the same argument as a socket's type.
const SOCKET_TYPE: u32 = 0xf;

pub const PTRACE_TRACEME: u32 = 0;
const PTRACE_ATTACH: u32 = 16;
const PTRACE_SEIZE: u32 = 0x4206;

/// Calls that every architecture has; first those that are looked at only sometimes.
#[rustfmt::skip]
pub const CALLS: &[Row] = &[
    (libc::SYS_read,            Act::Inherited, READS),
    (libc::SYS_write,           Act::Inherited, READS),
    (libc::SYS_readv,           Act::Inherited, READS),
    (libc::SYS_writev,          Act::Inherited, READS),
    (libc::SYS_pread64,         Act::Inherited, READS),
    (libc::SYS_pwrite64,        Act::Inherited, READS),
    (libc::SYS_preadv,          Act::Inherited, READS),
    (libc::SYS_pwritev,         Act::Inherited, READS),
    (libc::SYS_preadv2,         Act::Inherited, READS),
    (libc::SYS_pwritev2,        Act::Inherited, READS),
    (libc::SYS_recvfrom,        Act::Inherited, READS),
    (libc::SYS_recvmsg,         Act::Inherited, READS),
    (libc::SYS_recvmmsg,        Act::Inherited, READS),
    (libc::SYS_accept,          Act::Accept, &[Always, Foreign(0)]),
    (libc::SYS_accept4,         Act::Accept, &[Always, Foreign(0)]),
    (libc::SYS_ppoll,           Act::Inherited, WAITS),
    (libc::SYS_pselect6,        Act::Inherited, WAITS),
    (libc::SYS_epoll_ctl,       Act::Inherited, &[Foreign(2)]),
    (libc::SYS_dup,             Act::Inherited, READS),
    (libc::SYS_dup3,            Act::Inherited, READS),
    (libc::SYS_fcntl,           Act::Signals, &[Foreign(0), IsAny(1, u32::MAX, SIGNALLING), IsAny(1, u32::MAX, LOCKING)]),
    (libc::SYS_mmap,            Act::Inherited, &[Foreign(4)]),
    (libc::SYS_vmsplice,        Act::Inherited, READS),
    (libc::SYS_tee,             Act::Inherited, &[Foreign(0), Foreign(1)]),
    (libc::SYS_sendfile,        Act::Inherited, &[Foreign(0), Foreign(1)]),
    (libc::SYS_splice,          Act::Inherited, &[Foreign(0), Foreign(2)]),
    (libc::SYS_copy_file_range, Act::Inherited, &[Foreign(0), Foreign(2)]),
    (libc::SYS_sendto,          Act::SendTo, &[NotNull(4), Foreign(0)]),
    (libc::SYS_clone,           Act::Refuse(MOUNTS), &[HasBits(0, NEW_NAMESPACES)]),
    (libc::SYS_unshare,         Act::Refuse(MOUNTS), &[HasBits(0, NEW_NAMESPACES)]),
    (libc::SYS_socket,          Act::Socket, &[IsNot(0, u32::MAX, PLAIN_FAMILIES), IsAny(1, SOCKET_TYPE, &[libc::SOCK_RAW as u32])]),
    (libc::SYS_ptrace,          Act::Debug, &[IsAny(0, u32::MAX, &[PTRACE_TRACEME, PTRACE_ATTACH, PTRACE_SEIZE])]),
    (libc::SYS_prctl,           Act::Filter { flags: None }, &[IsAny(0, u32::MAX, PROCESS_CONTROLS)]),
    (libc::SYS_seccomp,         Act::Filter { flags: Some(1) }, &[IsAny(0, u32::MAX, FILTERS)]),
    (libc::SYS_setitimer,       Act::Signals, &[NotNull(1)]),
    (libc::SYS_mq_notify,       Act::Signals, &[NotNull(1)]),
    (libc::SYS_ioctl,           Act::Control, &[IsAny(1, u32::MAX, CONTROLS)]),
    (libc::SYS_lseek,           Act::Inherited, READS),
    (libc::SYS_fstat,           Act::Inherited, READS),
    (libc::SYS_ftruncate,       Act::Inherited, READS),
    (libc::SYS_fallocate,       Act::Inherited, READS),
    (libc::SYS_shmget,          Act::Key("shm"), &[IsNot(0, u32::MAX, &[0])]),
    (libc::SYS_msgget,          Act::Key("msg"), &[IsNot(0, u32::MAX, &[0])]),
    (libc::SYS_semget,          Act::Key("sem"), &[IsNot(0, u32::MAX, &[0])]),
    (libc::SYS_rt_sigaction,    Act::Handler, &[NotNull(1)]),
    (libc::SYS_getpriority,     Act::Priority { process: PRIO_PROCESS }, PRIORITIES),
    (libc::SYS_setpriority,     Act::Priority { process: PRIO_PROCESS }, PRIORITIES),
    (libc::SYS_ioprio_get,      Act::Priority { process: IOPRIO_WHO_PROCESS }, IO_PRIORITIES),
    (libc::SYS_ioprio_set,      Act::Priority { process: IOPRIO_WHO_PROCESS }, IO_PRIORITIES),
    (libc::SYS_prlimit64,       Act::LookInto { process: 0 }, OTHERS),
    (libc::SYS_flock,           Act::Lock, &[IsNot(1, u32::MAX, &[libc::LOCK_UN as u32])]),
    (libc::SYS_getpgid,         Act::LookInto { process: 0 }, OTHERS),
    (libc::SYS_setpgid,         Act::LookInto { process: 0 }, OTHERS),
    (libc::SYS_getsid,          Act::LookInto { process: 0 }, OTHERS),
    (libc::SYS_sched_getaffinity, Act::LookInto { process: 0 }, OTHERS),
    (libc::SYS_sched_setaffinity, Act::LookInto { process: 0 }, OTHERS),
    (libc::SYS_sched_getparam,  Act::LookInto { process: 0 }, OTHERS),
    (libc::SYS_sched_setparam,  Act::LookInto { process: 0 }, OTHERS),
    (libc::SYS_sched_getscheduler, Act::LookInto { process: 0 }, OTHERS),
    (libc::SYS_sched_setscheduler, Act::LookInto { process: 0 }, OTHERS),
    (libc::SYS_sched_getattr,   Act::LookInto { process: 0 }, OTHERS),
    (libc::SYS_sched_setattr,   Act::LookInto { process: 0 }, OTHERS),
    (libc::SYS_sched_rr_get_interval, Act::LookInto { process: 0 }, OTHERS),
    (libc::SYS_get_robust_list, Act::LookInto { process: 0 }, OTHERS),
    (libc::SYS_migrate_pages,   Act::LookInto { process: 0 }, OTHERS),
    (libc::SYS_move_pages,      Act::LookInto { process: 0 }, OTHERS),
    (libc::SYS_perf_event_open, Act::LookInto { process: 1 }, &[IsNot(1, u32::MAX, &[0])]),
    (libc::SYS_kcmp,            Act::LookInto { process: 1 }, ALWAYS),

    (libc::SYS_openat,          Act::Open { folder: AT, path: 1, flags: 2 }, ALWAYS),
    (libc::SYS_openat2,         Act::OpenHow, ALWAYS),
    (libc::SYS_newfstatat,      Act::Ask { folder: AT, path: 1, follow: true, flags: Some(3) }, &[Always, Foreign(0)]),
    (libc::SYS_statx,           Act::Ask { folder: AT, path: 1, follow: true, flags: Some(2) }, &[Always, Foreign(0)]),
    (libc::SYS_faccessat,       Act::Ask { folder: AT, path: 1, follow: true, flags: None }, ALWAYS),
    (libc::SYS_faccessat2,      Act::Ask { folder: AT, path: 1, follow: true, flags: Some(3) }, ALWAYS),
    (libc::SYS_statfs,          Act::Ask { folder: CWD, path: 0, follow: true, flags: None }, ALWAYS),
    (libc::SYS_getxattr,        Act::AskExtended { folder: CWD, path: 0, follow: true, flags: None }, ALWAYS),
    (libc::SYS_lgetxattr,       Act::AskExtended { folder: CWD, path: 0, follow: false, flags: None }, ALWAYS),
    (libc::SYS_listxattr,       Act::AskExtended { folder: CWD, path: 0, follow: true, flags: None }, ALWAYS),
    (libc::SYS_llistxattr,      Act::AskExtended { folder: CWD, path: 0, follow: false, flags: None }, ALWAYS),
    (libc::SYS_fgetxattr,       Act::AskExtendedOf, ALWAYS),
    (libc::SYS_flistxattr,      Act::AskExtendedOf, ALWAYS),
    (libc::SYS_name_to_handle_at, Act::Ask { folder: AT, path: 1, follow: false, flags: None }, ALWAYS),
    (libc::SYS_inotify_add_watch, Act::Ask { folder: CWD, path: 1, follow: true, flags: None }, ALWAYS),
    (libc::SYS_fanotify_mark,   Act::Ask { folder: Some(3), path: 4, follow: true, flags: None }, ALWAYS),
    (libc::SYS_readlinkat,      Act::ReadLink { folder: AT, path: 1 }, ALWAYS),
    (libc::SYS_execve,          Act::Execute { folder: CWD, path: 0, flags: None }, ALWAYS),
    (libc::SYS_execveat,        Act::Execute { folder: AT, path: 1, flags: Some(4) }, ALWAYS),
    (libc::SYS_chdir,           Act::ChangeFolder { path: 0 }, ALWAYS),
    (libc::SYS_fchdir,          Act::EnterFolder, ALWAYS),
    (libc::SYS_getdents64,      Act::List, ALWAYS),
    (libc::SYS_renameat2,       Act::Rename { from: AT, old: 1, to: Some(2), new: 3, flags: Some(4) }, ALWAYS),
    (libc::SYS_linkat,          Act::HardLink { from: AT, old: 1, to: Some(2), new: 3, flags: Some(4) }, ALWAYS),
    (libc::SYS_symlinkat,       Act::Make { folder: Some(1), path: 2 }, ALWAYS),
    (libc::SYS_mknodat,         Act::Make { folder: AT, path: 1 }, ALWAYS),
    (libc::SYS_mkdirat,         Act::MakeFolder { folder: AT, path: 1 }, ALWAYS),
    (libc::SYS_unlinkat,        Act::Remove { folder: AT, path: 1, flags: Some(2) }, ALWAYS),
    (libc::SYS_truncate,        Act::Change { folder: CWD, path: 0, follow: true, flags: None }, ALWAYS),
    (libc::SYS_fchmodat,        Act::Change { folder: AT, path: 1, follow: true, flags: None }, ALWAYS),
    (SYS_FCHMODAT2,             Act::Change { folder: AT, path: 1, follow: true, flags: Some(3) }, ALWAYS),
    (libc::SYS_fchownat,        Act::Change { folder: AT, path: 1, follow: true, flags: Some(4) }, ALWAYS),
    (libc::SYS_utimensat,       Act::Change { folder: AT, path: 1, follow: true, flags: Some(3) }, ALWAYS),
    (libc::SYS_setxattr,        Act::Change { folder: CWD, path: 0, follow: true, flags: None }, ALWAYS),
    (libc::SYS_lsetxattr,       Act::Change { folder: CWD, path: 0, follow: false, flags: None }, ALWAYS),
    (libc::SYS_removexattr,     Act::Change { folder: CWD, path: 0, follow: true, flags: None }, ALWAYS),
    (libc::SYS_lremovexattr,    Act::Change { folder: CWD, path: 0, follow: false, flags: None }, ALWAYS),
    (libc::SYS_connect,         Act::Connect, ALWAYS),
    (libc::SYS_bind,            Act::Bind, ALWAYS),
    (libc::SYS_listen,          Act::Listen, ALWAYS),
    (libc::SYS_sendmsg,         Act::SendMessage { many: false }, ALWAYS),
    (libc::SYS_sendmmsg,        Act::SendMessage { many: true }, ALWAYS),
    (libc::SYS_mq_open,         Act::Queue, ALWAYS),
    (libc::SYS_mq_unlink,       Act::RemoveQueue, ALWAYS),
    (libc::SYS_clone3,          Act::CloneHow, ALWAYS),
    (libc::SYS_kill,            Act::Signals, ALWAYS),
    (libc::SYS_tkill,           Act::Signals, ALWAYS),
    (libc::SYS_tgkill,          Act::Signals, ALWAYS),
    (libc::SYS_rt_sigqueueinfo, Act::Signals, ALWAYS),
    (libc::SYS_rt_tgsigqueueinfo, Act::Signals, ALWAYS),
    (libc::SYS_pidfd_send_signal, Act::Signals, ALWAYS),
    (libc::SYS_timer_create,    Act::Signals, ALWAYS),
    (libc::SYS_pidfd_open,      Act::LookInto { process: 0 }, ALWAYS),
    (libc::SYS_process_vm_readv, Act::LookInto { process: 0 }, ALWAYS),
    (libc::SYS_process_vm_writev, Act::LookInto { process: 0 }, ALWAYS),
    (libc::SYS_setuid,          Act::Become { group: false, count: 1 }, ALWAYS),
    (libc::SYS_setreuid,        Act::Become { group: false, count: 2 }, ALWAYS),
    (libc::SYS_setresuid,       Act::Become { group: false, count: 3 }, ALWAYS),
    (libc::SYS_setfsuid,        Act::Become { group: false, count: 1 }, ALWAYS),
    (libc::SYS_setgid,          Act::Become { group: true, count: 1 }, ALWAYS),
    (libc::SYS_setregid,        Act::Become { group: true, count: 2 }, ALWAYS),
    (libc::SYS_setresgid,       Act::Become { group: true, count: 3 }, ALWAYS),
    (libc::SYS_setfsgid,        Act::Become { group: true, count: 1 }, ALWAYS),
    (libc::SYS_setgroups,       Act::Refuse("changes its groups, and so which files it may read"), ALWAYS),
    (libc::SYS_capset,          Act::Refuse("changes its capabilities, and so which files it may read"), ALWAYS),
    (libc::SYS_mount,           Act::Refuse(MOUNTS), ALWAYS),
    (libc::SYS_umount2,         Act::Refuse(MOUNTS), ALWAYS),
    (libc::SYS_pivot_root,      Act::Refuse(MOUNTS), ALWAYS),
    (libc::SYS_chroot,          Act::Refuse(MOUNTS), ALWAYS),
    (libc::SYS_setns,           Act::Refuse(MOUNTS), ALWAYS),
    (libc::SYS_open_tree,       Act::Refuse(MOUNTS), ALWAYS),
    (libc::SYS_move_mount,      Act::Refuse(MOUNTS), ALWAYS),
    (libc::SYS_fsopen,          Act::Refuse(MOUNTS), ALWAYS),
    (libc::SYS_fspick,          Act::Refuse(MOUNTS), ALWAYS),
    (libc::SYS_fsmount,         Act::Refuse(MOUNTS), ALWAYS),
    (libc::SYS_mount_setattr,   Act::Refuse(MOUNTS), ALWAYS),
    (SYS_OPEN_TREE_ATTR,        Act::Refuse(MOUNTS), ALWAYS),
    (libc::SYS_open_by_handle_at, Act::Refuse(HANDLES), ALWAYS),
    (libc::SYS_io_uring_setup,  Act::Refuse(URING), ALWAYS),
    (libc::SYS_pidfd_getfd,     Act::Refuse("takes descriptors from other processes"), ALWAYS),
    (libc::SYS_keyctl,          Act::Refuse(KEYS), ALWAYS),
    (libc::SYS_add_key,         Act::Refuse(KEYS), ALWAYS),
    (libc::SYS_request_key,     Act::Refuse(KEYS), ALWAYS),
    (SYS_SETXATTRAT,            Act::Change { folder: AT, path: 1, follow: true, flags: Some(2) }, ALWAYS),
    (SYS_GETXATTRAT,            Act::AskExtended { folder: AT, path: 1, follow: true, flags: Some(2) }, ALWAYS),
    (SYS_LISTXATTRAT,           Act::AskExtended { folder: AT, path: 1, follow: true, flags: Some(2) }, ALWAYS),
    (SYS_REMOVEXATTRAT,         Act::Change { folder: AT, path: 1, follow: true, flags: Some(2) }, ALWAYS),
    (SYS_FILE_GETATTR,          Act::Ask { folder: AT, path: 1, follow: true, flags: Some(4) }, ALWAYS),
    (SYS_FILE_SETATTR,          Act::Change { folder: AT, path: 1, follow: true, flags: Some(4) }, ALWAYS),
];

// The same number on every architecture.
const SYS_FCHMODAT2: i64 = 452;
const SYS_SETXATTRAT: i64 = 463;
const SYS_GETXATTRAT: i64 = 464;
const SYS_LISTXATTRAT: i64 = 465;
const SYS_REMOVEXATTRAT: i64 = 466;
const SYS_OPEN_TREE_ATTR: i64 = 467;
const SYS_FILE_GETATTR: i64 = 468;
const SYS_FILE_SETATTR: i64 = 469;

/// The highest number of a call that was known when the tables were written (Linux 6.18). What
/// newer calls do, nobody knows.
pub const HIGHEST: i64 = SYS_FILE_SETATTR;

/// Numbers from here on belong to the x32 interface of x86-64.
pub const X32: i64 = 0x4000_0000;

/// Calls that are led although they are not always looked at. By themselves they are never
/// interrupted.
const ALSO_LED: &[i64] = &[
    libc::SYS_ioctl,
    libc::SYS_rt_sigaction,
    libc::SYS_setitimer,
    libc::SYS_mq_notify,
    libc::SYS_prctl,
    libc::SYS_dup,
    libc::SYS_fcntl,
    libc::SYS_flock,
    libc::SYS_ptrace,
    libc::SYS_socket,
    libc::SYS_shmget,
    libc::SYS_msgget,
    libc::SYS_semget,
    libc::SYS_seccomp,
    libc::SYS_unshare,
];

/// Whether agents lead a call past the filter.
pub fn is_led(number: i64) -> bool {
    let is_always = row(number).is_some_and(|row| row.2.contains(&Always));
    let is_also_led = || ALSO_LED.iter().chain(arch::DUPLICATE).any(|led| *led == number);
    arch::LEADS_CALLS && (is_always || is_also_led())
}

/// The row of a call.
pub fn row(number: i64) -> Option<&'static Row> {
    arch::OLD_CALLS.iter().chain(CALLS).find(|row| row.0 == number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_call_has_two_rows() {
        let mut numbers: Vec<i64> = arch::OLD_CALLS.iter().chain(CALLS).map(|row| row.0).collect();
        let count = numbers.len();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), count);
    }
}
