//! Resource limits and privileges of this process, which its children inherit.

use super::user;

/// Whether files may not become as large as they like (`ulimit -f`).
pub fn file_size_is_limited() -> bool {
    soft_limit(libc::RLIMIT_FSIZE) != libc::RLIM_INFINITY
}

/// What `getrlimit` counts: libraries differ in its type.
#[cfg(target_env = "gnu")]
type Resource = libc::__rlimit_resource_t;
#[cfg(not(target_env = "gnu"))]
type Resource = libc::c_int;

/// What this process may use of something; 0 if that cannot be told.
fn soft_limit(resource: Resource) -> u64 {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the pointer is to a local that lives through the call.
    let is_known = unsafe { libc::getrlimit(resource, &mut limit) } == 0;
    if is_known { limit.rlim_cur } else { 0 }
}

/// Whether so little memory is allowed that deciding about a test could fail for want of it
/// (`ulimit -v`, `ulimit -d`).
pub fn lacks_memory() -> bool {
    const NEEDED: u64 = 256 << 20;
    [libc::RLIMIT_AS, libc::RLIMIT_DATA].into_iter().any(|resource| soft_limit(resource) < NEEDED)
}

/// Whether so few processes are allowed (`ulimit -u`) that our threads, which count as processes,
/// would take them away from a test. The limit does not hold for root.
pub fn lacks_processes() -> bool {
    const NEEDED: u64 = 64;
    user() != 0 && soft_limit(libc::RLIMIT_NPROC) < NEEDED
}

/// What the processes that we start are limited to (`ulimit`; a test can raise a limit up to the
/// second number), and the permissions that their files do not get (`umask`). Limits that follow
/// the machine's memory are left out.
pub fn limits() -> ([(u64, u64); 10], u32) {
    const LIMITS: [Resource; 10] = [
        libc::RLIMIT_STACK,
        libc::RLIMIT_AS,
        libc::RLIMIT_DATA,
        libc::RLIMIT_NOFILE,
        libc::RLIMIT_FSIZE,
        libc::RLIMIT_CORE,
        libc::RLIMIT_CPU,
        libc::RLIMIT_MEMLOCK,
        libc::RLIMIT_NICE,
        libc::RLIMIT_RTPRIO,
    ];
    let limits = LIMITS.map(|resource| {
        let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: the pointer is to a local that lives through the call.
        unsafe { libc::getrlimit(resource, &mut limit) };
        (limit.rlim_cur, limit.rlim_max)
    });
    // SAFETY: umask takes no pointers and cannot fail. It can only be asked for by setting it; a
    // file that another thread makes meanwhile gets fewer permissions, not more.
    let mask = unsafe {
        let mask = libc::umask(0o077);
        libc::umask(mask);
        mask
    };
    (limits, mask)
}

/// What this process and those that it starts may do beyond other users, and how the kernel treats
/// them: effective, permitted and inheritable capabilities, whether programs can give new ones, and
/// the personality.
pub fn powers() -> ([u32; 6], bool, i32) {
    const VERSION: u32 = 0x2008_0522;
    const ASK: libc::c_ulong = 0xffff_ffff;
    let header = [VERSION, 0];
    let mut sets = [0u32; 6];
    // SAFETY: the header is that of the version with two sets of three numbers, which the kernel
    // fills; both live through the call. The other calls take no pointers.
    unsafe {
        libc::syscall(libc::SYS_capget, header.as_ptr(), sets.as_mut_ptr());
        (sets, libc::prctl(libc::PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1, libc::personality(ASK))
    }
}
