//! Functions that compilers call on their own: for copies, divisions, checks of the stack. In: a
//! name. Out: whether it may be one of them.

/// Those whose names do not start with two underscores.
#[rustfmt::skip]
const CALLED: [&str; 24] = [
    "abort", "bcmp", "exp10", "fma", "fputc", "fputs", "fwrite", "memccpy", "memchr", "memcmp", "memcpy", "memmove", "mempcpy",
    "memset", "putchar", "puts", "sincos", "sqrt", "stpcpy", "strcat", "strchr", "strcpy", "strlen", "strncpy",
];

/// A compiler may call a function of this name without being told.
pub fn by_compilers(name: &str) -> bool {
    name.starts_with("__") || CALLED.binary_search(&name).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted() {
        assert!(CALLED.is_sorted());
    }
}
