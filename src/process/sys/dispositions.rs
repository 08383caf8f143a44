//! Signal dispositions and masks, by the kernel's own calls: the C library hides the two signals
//! that it uses itself.

/// The C library of most tests uses two signals itself, below those that programs may use.
pub const FIRST_REAL_TIME: libc::c_int = 34;

/// As the kernel has it: handler, flags, restorer, mask. The C library does not let anyone near the
/// two signals that it uses itself.
pub type Action = [u64; 4];

/// What is done about a signal, if there is such a signal.
pub fn action(signal: libc::c_int) -> Option<Action> {
    let mut action: Action = [0; 4];
    let none = std::ptr::null::<Action>();
    // SAFETY: the array is as long as what the kernel fills, and lives through the call.
    let result = unsafe {
        libc::syscall(libc::SYS_rt_sigaction, signal, none, action.as_mut_ptr(), size_of::<u64>())
    };
    (result == 0).then_some(action)
}

pub fn is_ignored(signal: libc::c_int) -> bool {
    action(signal).is_some_and(|action| action[0] == libc::SIG_IGN as u64)
}

/// Async-signal-safe.
pub fn ignore(signal: libc::c_int) {
    set_action(signal, &[libc::SIG_IGN as u64, 0, 0, 0]);
}

/// Does about a signal what is done about another one.
pub fn copy_action(of: libc::c_int, signal: libc::c_int) {
    if let Some(action) = action(of) {
        set_action(signal, &action);
    }
}

/// In: to ignore it, what happens by default, or what libc has set for another one.
/// Async-signal-safe.
pub fn set_action(signal: libc::c_int, action: &Action) {
    let none = std::ptr::null_mut::<Action>();
    // SAFETY: the array is as long as what the kernel reads, and lives through the call; the
    // handler, if there is one, is one that libc would set.
    unsafe {
        libc::syscall(libc::SYS_rt_sigaction, signal, action.as_ptr(), none, size_of::<u64>())
    };
}

/// Sets the mask of blocked signals, if there is a new one; gives the old one. Async-signal-safe.
pub fn change_mask(new: Option<u64>) -> u64 {
    let mut old = 0u64;
    let new = new.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: both numbers live through the call and are as long as it is told.
    unsafe {
        libc::syscall(
            libc::SYS_rt_sigprocmask,
            libc::SIG_SETMASK,
            new,
            &raw mut old,
            size_of::<u64>(),
        )
    };
    old
}

/// The bit of a signal in a set.
pub fn bit(signal: libc::c_int) -> u64 {
    1 << (signal - 1)
}
