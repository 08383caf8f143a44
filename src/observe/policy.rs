//! How paths outside of ordinary file systems are treated: `/dev`, `/proc`, `/sys` and a few
//! sockets. One table, in which the first matching line counts; `docs/observing.md` describes it
//! for users.
//!
//! The principle: what a program can also ask without a file (the clock, the number of processors,
//! free memory, the kernel's version, random numbers) is not an input when it is read from a file.
//! Verdicts that depend on it differ from run to run anyway.

use std::path::{Path, PathBuf};

/// How a path counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Treatment {
    /// As every file does.
    Ordinary,
    /// Not at all.
    Ignored,
    /// A file of the kernel: by what it says, since it has no times and no size.
    ByContent,
    /// It makes a run impossible to reuse.
    Refused(&'static str),
}

use Treatment::{ByContent, Ignored, Ordinary, Refused};

/// Asks whether a process belongs to the test.
pub type IsOwn<'a> = &'a dyn Fn(u32) -> bool;

/// Paths, or whole trees (with a `/` at the end), and how they are treated. A line without any is
/// the rest.
#[rustfmt::skip]
const TABLE: &[(Treatment, &[&str])] = &[
    // Devices that are the same everywhere, or the test's own. What is random is so in every run.
    (Ignored, &["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/ptmx",
                "/dev/pts/", "/dev/fd", "/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/log", "/dev/console"]),
    // Logs, which nothing comes back from, and what answers in the place of /etc/passwd and
    // /etc/hosts.
    (Ignored, &["/run/systemd/journal/", "/run/nscd/", "/run/systemd/userdb/"]),
    // Files in memory are files.
    (Ordinary, &["/dev/shm/", "/dev/mqueue/", "/dev/hugepages/", "/dev"]),
    // The machine, which can be asked by instructions and system calls too: sysinfo, sysconf,
    // uname, cpuid.
    (Ignored, &["/proc/cpuinfo", "/proc/meminfo", "/proc/loadavg", "/proc/uptime", "/proc/stat", "/proc/vmstat",
                "/proc/version", "/proc/diskstats", "/proc/interrupts", "/proc/softirqs", "/proc/zoneinfo",
                "/proc/pressure/", "/proc/sys/kernel/random/", "/proc/sys/kernel/hostname",
                "/proc/sys/kernel/domainname", "/proc/sys/kernel/osrelease", "/proc/sys/kernel/ostype",
                "/proc/sys/kernel/version", "/proc/sys/fs/file-nr", "/proc/sys/fs/inode-nr", "/proc/sys/fs/dentry-state",
                "/proc/sys/kernel/ngroups_max", "/proc/sys/kernel/cap_last_cap", "/proc/sys/kernel/pid_max",
                "/proc/filesystems", "/proc/cgroups",
                "/sys/devices/system/cpu/", "/sys/devices/system/node/", "/sys/devices/system/memory/",
                "/sys/fs/cgroup/", "/sys/kernel/mm/"]),
    // Folders on the way.
    (Ignored, &["/proc", "/proc/self", "/proc/thread-self", "/proc/sys", "/proc/sys/kernel", "/proc/sys/vm", "/proc/sys/fs", "/proc/sys/net",
                "/sys", "/sys/devices", "/sys/devices/system", "/sys/fs", "/sys/kernel"]),
    (Refused("looks at shared memory and queues of others"), &["/proc/sysvipc/"]),
    // Reading them waits, takes something away, or shows the whole machine's memory or doings.
    (Refused("reads the kernel's log, memory or traces"), &["/proc/kmsg", "/proc/kcore", "/proc/kpagecount", "/proc/kpageflags",
                "/sys/kernel/debug/", "/sys/kernel/tracing/", "/sys/kernel/security/"]),
    (ByContent, &["/proc/", "/sys/"]),
    (Refused("uses a device"), &["/dev/"]),
];

/// How a path is treated that links have been followed of.
pub fn of(path: &Path, is_own: IsOwn) -> Treatment {
    let Some(text) = path.to_str() else { return Ordinary };
    if !["/dev", "/proc", "/sys", "/run/"].iter().any(|tree| text.starts_with(tree)) {
        return Ordinary;
    }
    if let Some(process) = process_of(text) {
        return if is_own(process) {
            of_own_process(text)
        } else {
            Refused("looks at a process that is not its own")
        };
    }
    let fits = |line: &&str| {
        text == *line || (line.ends_with('/') && text.starts_with(*line)) || is_tree(line, text)
    };
    TABLE
        .iter()
        .find(|(_, lines)| lines.iter().any(fits))
        .map_or(Ordinary, |(treatment, _)| *treatment)
}

/// Of what a process can read about itself, this is not its own but the machine's.
fn of_own_process(text: &str) -> Treatment {
    match about(text).split('/').next() {
        Some("net") => Refused("looks at the machine's connections"),
        Some(table) if MOUNTS.contains(&table) => ByContent,
        _ => Ignored,
    }
}

/// The tables of mounted file systems, which all processes see alike that see the same files.
const MOUNTS: [&str; 3] = ["mountinfo", "mounts", "mountstats"];

/// Whether a file of a process has the names of the files that are mapped into its memory.
pub fn names_mapped_files(path: &Path) -> bool {
    let text = path.to_str().unwrap_or_default();
    let tables = ["maps", "smaps", "numa_maps", "map_files"];
    process_of(text).is_some()
        && about(text).split('/').next().is_some_and(|table| tables.contains(&table))
}

/// Whether a file is the status of a process, or of a thread.
pub fn is_status_of_process(path: &Path) -> bool {
    let text = path.to_str().unwrap_or_default();
    process_of(text).is_some() && about(text) == "status"
}

/// Whether a file is the memory of a process.
pub fn is_memory_of_process(path: &Path) -> bool {
    let text = path.to_str().unwrap_or_default();
    process_of(text).is_some() && about(text) == "mem"
}

/// Whether a named pipe is the one by which valgrind lets a debugger in. It is there in every run,
/// and hardly ever used.
pub fn is_for_debuggers(pipe: &Path) -> bool {
    pipe.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"vgdb-pipe-"))
}

/// What a path of `/proc/PID` or `/proc/PID/task/TID` is about.
fn about(text: &str) -> &str {
    let mut parts = text.trim_start_matches("/proc/").splitn(4, '/');
    match [parts.next(), parts.next(), parts.next(), parts.next()] {
        [_, Some("task"), _, Some(rest)] => rest,
        _ => text.trim_start_matches("/proc/").split_once('/').map_or("", |(_, rest)| rest),
    }
}

/// The path under which a file of the kernel can be read again when the process is gone.
pub fn lasting(path: &Path) -> Option<PathBuf> {
    let text = path.to_str()?;
    process_of(text)?;
    let table = about(text);
    MOUNTS.contains(&table).then(|| Path::new("/proc/self").join(table))
}

/// Whether `text` is the folder that a line for a tree is about.
fn is_tree(line: &str, text: &str) -> bool {
    line.strip_suffix('/') == Some(text)
}

/// The number of the process that a path of `/proc` is about.
pub fn process_of(text: &str) -> Option<u32> {
    text.strip_prefix("/proc/")?.split('/').next()?.parse().ok()
}

/// How listing a folder is treated.
pub fn of_listing(path: &Path, is_own: IsOwn) -> Treatment {
    match path.to_str() {
        Some("/proc") => Refused("lists the processes of the machine"),
        _ => of(path, is_own),
    }
}

/// Whether a file is the kernel's, without times or size of its own.
pub fn is_pseudo(path: &Path) -> bool {
    path.starts_with("/proc") || path.starts_with("/sys")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_that_fits_counts() {
        let treated = |path: &str| of(Path::new(path), &|process| process == 12);
        assert_eq!(treated("/etc/passwd"), Ordinary);
        assert_eq!(treated("/device"), Ordinary);
        assert_eq!(treated("/dev/null"), Ignored);
        assert_eq!(treated("/dev/shm/x"), Ordinary);
        assert_eq!(treated("/dev/sda"), Refused("uses a device"));
        assert_eq!(treated("/proc/12/maps"), Ignored);
        assert!(matches!(treated("/proc/13/maps"), Refused(_)));
        assert_eq!(treated("/proc/12/mountinfo"), ByContent);
        assert_eq!(treated("/proc/12/task/13/mounts"), ByContent);
        assert!(matches!(treated("/proc/12/net/tcp"), Refused(_)));
        assert_eq!(lasting(Path::new("/proc/12/task/13/mounts")), Some("/proc/self/mounts".into()));
        assert_eq!(lasting(Path::new("/proc/modules")), None);
        assert_eq!(treated("/proc/meminfo"), Ignored);
        assert!(is_memory_of_process(Path::new("/proc/12/task/13/mem")));
        assert!(!is_memory_of_process(Path::new("/proc/meminfo")));
        assert_eq!(treated("/proc/sys/vm/overcommit_memory"), ByContent);
        assert_eq!(treated("/sys/devices/system/cpu/online"), Ignored);
        assert_eq!(treated("/sys/class/net/lo/mtu"), ByContent);
        assert!(matches!(of_listing(Path::new("/proc"), &|_| true), Refused(_)));
    }
}
