//! Functions of the C and C++ libraries, and of compilers' runtimes, that never return to their
//! caller. In: a symbol's name. Out: whether it is one of them.
//!
//! The list has only what the standards or the compilers' own interfaces guarantee. A program that
//! replaces one of them by a function that returns (`abort`, `__assert_fail`) is not affected: its
//! own function is linked, and its code is examined.

#[rustfmt::skip]
const NAMES: [&str; 36] = [
    "_Exit", "_Unwind_Resume", "_ZSt9terminatev", "__assert", "__assert_fail", "__assert_perror_fail", "__chk_fail",
    "__cxa_bad_cast", "__cxa_bad_typeid", "__cxa_call_terminate", "__cxa_call_unexpected", "__cxa_deleted_virtual",
    "__cxa_pure_virtual", "__cxa_rethrow", "__cxa_throw", "__cxa_throw_bad_array_length",
    "__cxa_throw_bad_array_new_length", "__fortify_fail", "__libc_fatal", "__longjmp_chk", "__stack_chk_fail",
    "__stack_chk_fail_local", "__stack_smash_handler", "_exit", "_longjmp", "abort", "err", "errx", "exit", "longjmp",
    "pthread_exit", "quick_exit", "siglongjmp", "thrd_exit", "verr", "verrx",
];

/// What the sanitizers' reports that end the program start and end with.
const ABORTING: [(&str, &str); 1] = [("__ubsan_handle_", "_abort")];

/// Whether the function of this name never returns.
pub fn is_known(name: &str) -> bool {
    let is_report = |(start, end): &(&str, &str)| name.starts_with(start) && name.ends_with(end);
    NAMES.contains(&name) || throws(name) || ABORTING.iter().any(is_report)
}

/// The functions by which the C++ library throws: `std::__throw_length_error(const char *)` and its
/// like.
fn throws(name: &str) -> bool {
    let Some(name) = name.strip_prefix("_ZSt") else { return false };
    name.trim_start_matches(|letter: char| letter.is_ascii_digit()).starts_with("__throw_")
}
