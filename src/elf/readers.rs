//! Functions of the C and C++ libraries that read texts and keep no pointer to them, nor return
//! one. In: a symbol's name. Out: whether it is one of them.
//!
//! What a program has in their place may do otherwise: `link/graph/readers.rs` sees to that.

const NAMES: [&str; 9] = [
    "__assert_fail",
    "memcmp",
    "memcpy",
    "strcasecmp",
    "strcmp",
    "strcpy",
    "strlen",
    "strncasecmp",
    "strncmp",
];

/// Whether the library's function of this name only reads the texts that it is given.
pub fn is_known(name: &str) -> bool {
    NAMES.contains(&name) || throws(name)
}

/// The functions by which the C++ library throws, `std::__throw_length_error(const char *)` and its
/// like: exceptions have copies of their texts.
fn throws(name: &str) -> bool {
    let Some(name) = name.strip_prefix("_ZSt") else { return false };
    let name = name.trim_start_matches(|letter: char| letter.is_ascii_digit());
    name.starts_with("__throw_") && (name.ends_with("PKc") || name.ends_with("PKcz"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_that_throw_only_read() {
        assert!(throws("_ZSt20__throw_length_errorPKc"));
        assert!(throws("_ZSt24__throw_out_of_range_fmtPKcz"));
        assert!(!throws("_ZSt17__throw_bad_allocv") && !throws("_ZN3own7__throwEPKc"));
        assert!(is_known("strcmp") && !is_known("strchr"));
    }
}
