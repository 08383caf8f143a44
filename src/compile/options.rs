//! What an option of a compiler driver (GCC, Clang) means. In: one argument. Out: its row of the
//! table, and where its value is.

use super::option::Form::{self, Alone, Either, Family, Joined, JoinedThenSeparate, Separate};
use super::option::{CompilerOption, option};
use super::option_table::TABLE;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

/// Any option that is not listed.
pub static UNLISTED: CompilerOption = option("", Alone);

/// Where an option's argument is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    None,
    /// The rest of the word.
    Here(&'a OsStr),
    /// The next word.
    Next,
}

/// The row for an argument: that of the longest name which the argument starts with.
pub fn look_up(argument: &OsStr) -> Option<(&'static CompilerOption, Value<'_>)> {
    let bytes = argument.as_bytes();
    let mut length = bytes.len();
    loop {
        // Every name that these bytes start with stands before them, and is what this one starts
        // with.
        let at = TABLE
            .partition_point(|option| option.name.as_bytes() <= &bytes[..length])
            .checked_sub(1)?;
        let name = TABLE[at].name.as_bytes();
        let common = name.iter().zip(bytes).take_while(|(one, other)| one == other).count();
        if common == name.len()
            && let Some(value) = TABLE[at].form.value(OsStr::from_bytes(&bytes[common..]))
        {
            return Some((&TABLE[at], value));
        }
        length = common.min(length - 1);
    }
}

/// The row for an argument, without its value.
pub fn row(argument: &OsStr) -> &'static CompilerOption {
    look_up(argument).map_or(&UNLISTED, |(option, _)| option)
}

impl Form {
    /// Where the value of an option is that is followed by `rest` in its word. `None`: it is
    /// another option.
    fn value(self, rest: &OsStr) -> Option<Value<'_>> {
        match (self, rest.is_empty()) {
            (Alone, true) | (Family, _) => Some(Value::None),
            (Joined, _) | (Either, false) => Some(Value::Here(rest)),
            (Separate | Either, true) | (JoinedThenSeparate, false) => Some(Value::Next),
            (Alone | Separate, false) | (JoinedThenSeparate, true) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted() {
        assert!(TABLE.is_sorted_by(|one, other| one.name < other.name));
        assert!(TABLE.iter().all(|option| option.name.len() >= 2));
    }

    fn found(argument: &str) -> Option<(&'static str, Value<'_>)> {
        look_up(OsStr::new(argument)).map(|(option, value)| (option.name, value))
    }

    #[test]
    fn forms() {
        let here = |rest| Value::Here(OsStr::new(rest));
        assert_eq!(found("-c"), Some(("-c", Value::None)));
        assert_eq!(found("-o"), Some(("-o", Value::Next)));
        assert_eq!(found("-ox.o"), Some(("-o", here("x.o"))));
        assert_eq!(found("-MFdeps"), Some(("-MF", here("deps"))));
        assert_eq!(found("-MD"), Some(("-MD", Value::None)));
        assert_eq!(found("-fuse-ld="), Some(("-fuse-ld=", here(""))));
        assert_eq!(found("-Xarch_x86_64"), Some(("-Xarch_", Value::Next)));
        assert_eq!(found("-include-pch"), Some(("-include-pch", Value::Next)));
        assert_eq!(found("-includex.h"), Some(("-include", here("x.h"))));
        assert_eq!(found("-fdump-tree-all"), Some(("-fdump-", Value::None)));
        assert_eq!(found("-mavx512f"), Some(("-m", Value::None)));
    }

    #[test]
    fn plain_flags_are_not_listed() {
        for flag in ["-O2", "-fPIC", "-", "--", "", "-std=c99", "-pthread", "-ansi"] {
            assert_eq!(found(flag), None, "{flag}");
        }
    }
}
