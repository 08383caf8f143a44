//! The functions of the C library that compilers know as built-ins.
//!
//! Compilers call them on their own (to copy a structure, `puts` for `printf`), and an unused
//! declaration can decide whether and how: gcc replaces `strcpy` and `strlen` by `stpcpy` only
//! where `stpcpy` is declared, and calls `memcpy` by the symbol that a declaration gives it. So
//! their declarations always count.

/// Whether a function is one of them, or one of those behind the compiler's own library, guards and
/// instrumentation.
pub fn is_known(name: &[u8]) -> bool {
    let is_arithmetic = name.starts_with(b"__") && name.last().is_some_and(u8::is_ascii_digit);
    is_arithmetic
        || name.ends_with(b"_chk")
        || INSTRUMENTATION.iter().any(|start| name.starts_with(start.as_bytes()))
        || KNOWN.binary_search_by(|known| known.as_bytes().cmp(name)).is_ok()
}

/// The starts of names that compilers call on their own account.
#[rustfmt::skip]
const INSTRUMENTATION: &[&str] = &[
    "__stack_chk", "__tls_", "__mcount", "mcount", "__fentry__", "__cyg_profile_", "_Unwind_", "__sync_", "__atomic_", "__gcov_",
    "__asan_", "__tsan_", "__msan_", "__ubsan_", "__sanitizer_",
];

/// In the order of their bytes.
#[rustfmt::skip]
const KNOWN: &[&str] = &[
    "_exit", "_setjmp", "abort", "abs", "acos", "acosf", "acosh", "acoshf", "acoshl", "acosl", "aligned_alloc",
    "alloca", "asin", "asinf", "asinh", "asinhf", "asinhl", "asinl", "atan", "atan2", "atan2f", "atan2l", "atanf",
    "atanh", "atanhf", "atanhl", "atanl", "bcmp", "bcopy", "bzero", "cabs", "cabsf", "cabsl", "cacos", "cacosf",
    "cacosh", "cacoshf", "cacoshl", "cacosl", "calloc", "carg", "cargf", "cargl", "casin", "casinf", "casinh",
    "casinhf", "casinhl", "casinl", "catan", "catanf", "catanh", "catanhf", "catanhl", "catanl", "cbrt", "cbrtf",
    "cbrtl", "ccos", "ccosf", "ccosh", "ccoshf", "ccoshl", "ccosl", "ceil", "ceilf", "ceilf128", "ceilf16", "ceilf32",
    "ceilf32x", "ceilf64", "ceilf64x", "ceill", "cexp", "cexpf", "cexpl", "cimag", "cimagf", "cimagl", "clog",
    "clog10", "clog10f", "clog10l", "clogf", "clogl", "conj", "conjf", "conjl", "copysign", "copysignf",
    "copysignf128", "copysignf16", "copysignf32", "copysignf32x", "copysignf64", "copysignf64x", "copysignl", "cos",
    "cosf", "cosh", "coshf", "coshl", "cosl", "cpow", "cpowf", "cpowl", "cproj", "cprojf", "cprojl", "creal",
    "crealf", "creall", "csin", "csinf", "csinh", "csinhf", "csinhl", "csinl", "csqrt", "csqrtf", "csqrtl", "ctan",
    "ctanf", "ctanh", "ctanhf", "ctanhl", "ctanl", "dcgettext", "dgettext", "drem", "dremf", "dreml", "erf", "erfc",
    "erfcf", "erfcl", "erff", "erfl", "execl", "execle", "execlp", "execv", "execve", "execvp", "exit", "exp",
    "exp10", "exp10f", "exp10l", "exp2", "exp2f", "exp2l", "expf", "expl", "expm1", "expm1f", "expm1l", "fabs",
    "fabsd128", "fabsd32", "fabsd64", "fabsf", "fabsf128", "fabsf16", "fabsf32", "fabsf32x", "fabsf64", "fabsf64x",
    "fabsl", "fdim", "fdimf", "fdiml", "feclearexcept", "fegetenv", "fegetexceptflag", "fegetround", "feholdexcept",
    "feraiseexcept", "fesetenv", "fesetexceptflag", "fesetround", "fetestexcept", "feupdateenv", "ffs", "ffsimax",
    "ffsl", "ffsll", "finite", "finited128", "finited32", "finited64", "finitef", "finitel", "floor", "floorf",
    "floorf128", "floorf16", "floorf32", "floorf32x", "floorf64", "floorf64x", "floorl", "fma", "fmaf", "fmaf128",
    "fmaf16", "fmaf32", "fmaf32x", "fmaf64", "fmaf64x", "fmal", "fmax", "fmaxf", "fmaxf128", "fmaxf16", "fmaxf32",
    "fmaxf32x", "fmaxf64", "fmaxf64x", "fmaxl", "fmin", "fminf", "fminf128", "fminf16", "fminf32", "fminf32x",
    "fminf64", "fminf64x", "fminl", "fmod", "fmodf", "fmodl", "fork", "fprintf", "fprintf_unlocked", "fputc",
    "fputc_unlocked", "fputs", "fputs_unlocked", "free", "frexp", "frexpf", "frexpl", "fscanf", "fwrite",
    "fwrite_unlocked", "gamma", "gamma_r", "gammaf", "gammaf_r", "gammal", "gammal_r", "gettext", "hypot", "hypotf",
    "hypotl", "ilogb", "ilogbf", "ilogbl", "imaxabs", "index", "isalnum", "isalpha", "isascii", "isblank", "iscntrl",
    "isdigit", "isgraph", "isinf", "isinfd128", "isinfd32", "isinfd64", "isinff", "isinfl", "islower", "isnan",
    "isnand128", "isnand32", "isnand64", "isnanf", "isnanl", "isprint", "ispunct", "isspace", "isupper", "iswalnum",
    "iswalpha", "iswblank", "iswcntrl", "iswdigit", "iswgraph", "iswlower", "iswprint", "iswpunct", "iswspace",
    "iswupper", "iswxdigit", "isxdigit", "j0", "j0f", "j0l", "j1", "j1f", "j1l", "jn", "jnf", "jnl", "labs", "ldexp",
    "ldexpf", "ldexpl", "lgamma", "lgamma_r", "lgammaf", "lgammaf_r", "lgammal", "lgammal_r", "llabs", "llrint",
    "llrintf", "llrintl", "llround", "llroundf", "llroundl", "log", "log10", "log10f", "log10l", "log1p", "log1pf",
    "log1pl", "log2", "log2f", "log2l", "logb", "logbf", "logbl", "logf", "logl", "longjmp", "lrint", "lrintf",
    "lrintl", "lround", "lroundf", "lroundl", "malloc", "memccpy", "memchr", "memcmp", "memcpy", "memmove", "mempcpy",
    "memset", "modf", "modff", "modfl", "nan", "nand128", "nand32", "nand64", "nanf", "nanf128", "nanf16", "nanf32",
    "nanf32x", "nanf64", "nanf64x", "nanl", "nearbyint", "nearbyintf", "nearbyintf128", "nearbyintf16",
    "nearbyintf32", "nearbyintf32x", "nearbyintf64", "nearbyintf64x", "nearbyintl", "nextafter", "nextafterf",
    "nextafterl", "nexttoward", "nexttowardf", "nexttowardl", "posix_memalign", "pow", "pow10", "pow10f", "pow10l",
    "powf", "powl", "printf", "printf_unlocked", "putc", "putc_unlocked", "putchar", "putchar_unlocked", "puts",
    "puts_unlocked", "realloc", "reallocarray", "remainder", "remainderf", "remainderl", "remquo", "remquof",
    "remquol", "rindex", "rint", "rintf", "rintf128", "rintf16", "rintf32", "rintf32x", "rintf64", "rintf64x",
    "rintl", "round", "roundeven", "roundevenf", "roundevenf128", "roundevenf16", "roundevenf32", "roundevenf32x",
    "roundevenf64", "roundevenf64x", "roundevenl", "roundf", "roundf128", "roundf16", "roundf32", "roundf32x",
    "roundf64", "roundf64x", "roundl", "scalb", "scalbf", "scalbl", "scalbln", "scalblnf", "scalblnl", "scalbn",
    "scalbnf", "scalbnl", "scanf", "setjmp", "siglongjmp", "signbit", "signbitd128", "signbitd32", "signbitd64",
    "signbitf", "signbitl", "significand", "significandf", "significandl", "sigsetjmp", "sin", "sincos", "sincosf",
    "sincosl", "sinf", "sinh", "sinhf", "sinhl", "sinl", "snprintf", "sprintf", "sqrt", "sqrtf", "sqrtf128",
    "sqrtf16", "sqrtf32", "sqrtf32x", "sqrtf64", "sqrtf64x", "sqrtl", "sscanf", "stpcpy", "stpncpy", "strcasecmp",
    "strcat", "strchr", "strcmp", "strcpy", "strcspn", "strdup", "strfmon", "strftime", "strlcat", "strlcpy",
    "strlen", "strncasecmp", "strncat", "strncmp", "strncpy", "strndup", "strnlen", "strpbrk", "strrchr", "strspn",
    "strstr", "strtol", "tan", "tanf", "tanh", "tanhf", "tanhl", "tanl", "tgamma", "tgammaf", "tgammal", "toascii",
    "tolower", "toupper", "towlower", "towupper", "trunc", "truncf", "truncf128", "truncf16", "truncf32", "truncf32x",
    "truncf64", "truncf64x", "truncl", "vfork", "vfprintf", "vfscanf", "vprintf", "vscanf", "vsnprintf", "vsprintf",
    "vsscanf", "y0", "y0f", "y0l", "y1", "y1f", "y1l", "yn", "ynf", "ynl",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_order() {
        assert!(KNOWN.is_sorted());
        assert!(
            is_known(b"stpcpy")
                && is_known(b"_exit")
                && is_known(b"__memcpy_chk")
                && is_known(b"__udivti3")
        );
        assert!(!is_known(b"fopen") && !is_known(b"__errno_location"));
    }
}
