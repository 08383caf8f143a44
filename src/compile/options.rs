//! The options of compiler drivers (GCC and Clang) that matter here, as a sorted table: those that take
//! an argument of their own, which must not be taken for an input file, and those that change what a call
//! does. Every other option is a plain flag and is not listed.
//!
//! In: one argument. Out: its entry, and where its value is.

use Effect::{
    ForClang, Language, LinkInput, LinkerPath, Lto, Nothing, Object, Output, Prefix, Search, Stops, UseLinker,
};
use Form::{Alone, Either, Joined, JoinedThenSeparate, Separate};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

/// How an option takes its argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// It takes none.
    Alone,
    /// In the same word: `-fuse-ld=gold`.
    Joined,
    /// In the next word: `-Xlinker --gc-sections`.
    Separate,
    /// Either: `-ox`, `-o x`.
    Either,
    /// In both: `-Xarch_x86_64 -O2`.
    JoinedThenSeparate,
}

/// What an option does to a call, as far as we care.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Nothing; it is listed for its argument, or because it starts like another.
    Nothing,
    /// Objects are written, nothing is linked.
    Object,
    /// Whatever else is said, no object and no binary is written. With the reason.
    Stops(&'static str),
    Output,
    Language,
    /// Link-time optimisation on or off; the last one counts.
    Lto(bool),
    /// A folder in which programs are looked for before all others.
    Prefix,
    /// It bears on where the driver looks for programs.
    Search,
    /// Which linker, by a short name (or, for Clang, a path).
    UseLinker,
    /// Which linker, by its file.
    LinkerPath,
    /// It brings something to link, as an input file does.
    LinkInput,
    /// Its argument is an option of Clang's compiler proper.
    ForClang,
}

/// One option.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    pub name: &'static str,
    pub form: Form,
    pub effect: Effect,
}

/// Where an option's argument is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    None,
    /// The rest of the word.
    Here(&'a OsStr),
    /// The next word.
    Next,
}

const fn entry(name: &'static str, form: Form, effect: Effect) -> Entry {
    Entry { name, form, effect }
}

/// The entry for an argument, by the longest name that it starts with.
pub fn look_up(argument: &OsStr) -> Option<(Entry, Value<'_>)> {
    let bytes = argument.as_bytes();
    let mut length = bytes.len();
    loop {
        // Every name that these bytes start with stands before them, and is what this one starts with.
        let at = TABLE.partition_point(|entry| entry.name.as_bytes() <= &bytes[..length]).checked_sub(1)?;
        let name = TABLE[at].name.as_bytes();
        let common = name.iter().zip(bytes).take_while(|(one, other)| one == other).count();
        if common == name.len()
            && let Some(value) = TABLE[at].form.value(OsStr::from_bytes(&bytes[common..]))
        {
            return Some((TABLE[at], value));
        }
        length = common.min(length - 1);
    }
}

impl Form {
    /// Where the value of an option is that is followed by `rest` in its word. `None`: it is another option.
    fn value(self, rest: &OsStr) -> Option<Value<'_>> {
        match (self, rest.is_empty()) {
            (Alone, true) => Some(Value::None),
            (Joined, _) | (Either, false) => Some(Value::Here(rest)),
            (Separate | Either, true) | (JoinedThenSeparate, false) => Some(Value::Next),
            (Alone | Separate, false) | (JoinedThenSeparate, true) => None,
        }
    }
}

/// Sorted by the bytes of the name.
#[rustfmt::skip]
static TABLE: &[Entry] = &[
    entry("-###", Alone, Stops("it asks about the tool")),
    entry("--analyze", Alone, Stops("it writes no object")),
    entry("--assemble", Alone, Stops("it writes assembler")),
    entry("--assert", Separate, Nothing),
    entry("--autocomplete=", Joined, Stops("it asks about the tool")),
    entry("--compile", Alone, Object),
    entry("--config", Separate, Search),
    entry("--config-system-dir=", Joined, Search),
    entry("--config-user-dir=", Joined, Search),
    entry("--config=", Joined, Search),
    entry("--define-macro", Separate, Nothing),
    entry("--dependencies", Alone, Stops("it only preprocesses")),
    entry("--driver-mode=cl", Alone, Stops("it has another command line")),
    entry("--driver-mode=cpp", Alone, Stops("it has another command line")),
    entry("--driver-mode=dxc", Alone, Stops("it has another command line")),
    entry("--driver-mode=flang", Alone, Stops("it has another command line")),
    entry("--dumpbase", Separate, Nothing),
    entry("--dumpdir", Separate, Nothing),
    entry("--emit-static-lib", Alone, Stops("it writes no object")),
    entry("--entry", Separate, Nothing),
    entry("--for-assembler", Separate, Nothing),
    entry("--for-linker", Separate, LinkInput),
    entry("--for-linker=", Joined, LinkInput),
    entry("--force-link", Separate, Nothing),
    entry("--gcc-install-dir=", Joined, Search),
    entry("--gcc-toolchain=", Joined, Search),
    entry("--help", Alone, Stops("it asks about the tool")),
    entry("--help-hidden", Alone, Stops("it asks about the tool")),
    entry("--help=", Joined, Stops("it asks about the tool")),
    entry("--imacros", Separate, Nothing),
    entry("--include", Separate, Nothing),
    entry("--include-directory", Separate, Nothing),
    entry("--include-directory-after", Separate, Nothing),
    entry("--include-prefix", Separate, Nothing),
    entry("--include-with-prefix", Separate, Nothing),
    entry("--include-with-prefix-after", Separate, Nothing),
    entry("--include-with-prefix-before", Separate, Nothing),
    entry("--language", Separate, Language),
    entry("--language=", Joined, Language),
    entry("--ld-path=", Joined, LinkerPath),
    entry("--library", Separate, LinkInput),
    entry("--library-directory", Separate, Nothing),
    entry("--library=", Joined, LinkInput),
    entry("--migrate", Alone, Stops("it writes no object")),
    entry("--output", Separate, Output),
    entry("--output=", Joined, Output),
    entry("--param", Separate, Nothing),
    entry("--precompile", Alone, Stops("it writes no object")),
    entry("--prefix", Separate, Prefix),
    entry("--prefix=", Joined, Prefix),
    entry("--preprocess", Alone, Stops("it only preprocesses")),
    entry("--print-", Joined, Stops("it asks about the tool")),
    entry("--serialize-diagnostics", Separate, Nothing),
    entry("--specs", Separate, Search),
    entry("--specs=", Joined, Search),
    entry("--sysroot", Separate, Search),
    entry("--sysroot=", Joined, Search),
    entry("--target-help", Alone, Stops("it asks about the tool")),
    entry("--target=", Joined, Search),
    entry("--undefine-macro", Separate, Nothing),
    entry("--user-dependencies", Alone, Stops("it only preprocesses")),
    entry("--version", Alone, Stops("it asks about the tool")),
    entry("--write-dependencies", Alone, Nothing),
    entry("--write-user-dependencies", Alone, Nothing),
    entry("-A", Either, Nothing),
    entry("-B", Either, Prefix),
    entry("-D", Either, Nothing),
    entry("-E", Alone, Stops("it only preprocesses")),
    entry("-F", Either, Nothing),
    entry("-G", Either, Nothing),
    entry("-I", Either, Nothing),
    entry("-J", Either, Nothing),
    entry("-L", Either, Nothing),
    entry("-M", Alone, Stops("it only preprocesses")),
    entry("-MD", Alone, Nothing),
    entry("-MF", Either, Nothing),
    entry("-MG", Alone, Nothing),
    entry("-MJ", Either, Nothing),
    entry("-MM", Alone, Stops("it only preprocesses")),
    entry("-MMD", Alone, Nothing),
    entry("-MP", Alone, Nothing),
    entry("-MQ", Either, Nothing),
    entry("-MT", Either, Nothing),
    entry("-MV", Alone, Nothing),
    entry("-S", Alone, Stops("it writes assembler")),
    entry("-T", Either, LinkInput),
    entry("-Tbss", Separate, LinkInput),
    entry("-Tdata", Separate, LinkInput),
    entry("-Ttext", Separate, LinkInput),
    entry("-U", Either, Nothing),
    entry("-Wl,", Joined, LinkInput),
    entry("-Xanalyzer", Separate, Nothing),
    entry("-Xarch_", JoinedThenSeparate, Nothing),
    entry("-Xarch_device", Separate, Nothing),
    entry("-Xarch_host", Separate, Nothing),
    entry("-Xassembler", Separate, Nothing),
    entry("-Xclang", Separate, ForClang),
    entry("-Xclang=", Joined, ForClang),
    entry("-Xcuda-fatbinary", Separate, Nothing),
    entry("-Xcuda-ptxas", Separate, Nothing),
    entry("-Xlinker", Separate, LinkInput),
    entry("-Xopenmp-target", Separate, Nothing),
    entry("-Xopenmp-target=", JoinedThenSeparate, Nothing),
    entry("-Xpreprocessor", Separate, Nothing),
    entry("-arch", Separate, Search),
    entry("-aux-info", Separate, Nothing),
    entry("-c", Alone, Object),
    entry("-cc1", Joined, Stops("it is the compiler proper")),
    entry("-ccc-gcc-name", Separate, Search),
    entry("-ccc-install-dir", Separate, Search),
    entry("-cxx-isystem", Either, Nothing),
    entry("-dM", Alone, Stops("it only preprocesses")),
    entry("-dependency-dot", Separate, Nothing),
    entry("-dependency-file", Separate, Nothing),
    entry("-dumpbase", Separate, Nothing),
    entry("-dumpbase-ext", Separate, Nothing),
    entry("-dumpdir", Separate, Nothing),
    entry("-dumpfullversion", Alone, Stops("it asks about the tool")),
    entry("-dumpmachine", Alone, Stops("it asks about the tool")),
    entry("-dumpspecs", Alone, Stops("it asks about the tool")),
    entry("-dumpversion", Alone, Stops("it asks about the tool")),
    entry("-e", Either, Nothing),
    entry("-emit-ast", Alone, Stops("it writes no object")),
    entry("-emit-interface-stubs", Alone, Stops("it writes no object")),
    entry("-emit-llvm", Alone, Stops("it writes no object")),
    entry("-emit-merged-ifs", Alone, Stops("it writes no object")),
    entry("-extract-api", Alone, Stops("it writes no object")),
    entry("-fdebug-compilation-dir", Separate, Nothing),
    entry("-fdriver-only", Alone, Stops("it asks about the tool")),
    entry("-fintrinsic-modules-path", Separate, Nothing),
    entry("-flto", Alone, Lto(true)),
    entry("-flto=", Joined, Lto(true)),
    entry("-fmodule-header", Alone, Stops("it writes no object")),
    entry("-fmodule-header=", Joined, Stops("it writes no object")),
    entry("-fmodule-only", Alone, Stops("it writes no object")),
    entry("-fno-lto", Alone, Lto(false)),
    entry("-framework", Separate, Nothing),
    entry("-fsyntax-only", Alone, Stops("it writes no object")),
    entry("-fuse-ld=", Joined, UseLinker),
    entry("-gcc-toolchain", Separate, Search),
    entry("-help", Alone, Stops("it asks about the tool")),
    entry("-idirafter", Either, Nothing),
    entry("-iframework", Either, Nothing),
    entry("-iframeworkwithsysroot", Either, Nothing),
    entry("-imacros", Either, Nothing),
    entry("-imsvc", Either, Nothing),
    entry("-imultiarch", Either, Nothing),
    entry("-imultilib", Either, Nothing),
    entry("-include", Either, Nothing),
    entry("-include-pch", Separate, Nothing),
    entry("-index-store-path", Separate, Nothing),
    entry("-iprefix", Either, Nothing),
    entry("-iquote", Either, Nothing),
    entry("-isysroot", Either, Nothing),
    entry("-isystem", Either, Nothing),
    entry("-isystem-after", Either, Nothing),
    entry("-ivfsoverlay", Either, Nothing),
    entry("-iwithprefix", Either, Nothing),
    entry("-iwithprefixbefore", Either, Nothing),
    entry("-iwithsysroot", Either, Nothing),
    entry("-l", Either, LinkInput),
    entry("-m16", Alone, Search),
    entry("-m32", Alone, Search),
    entry("-m64", Alone, Search),
    entry("-meabi", Separate, Nothing),
    entry("-mllvm", Separate, Nothing),
    entry("-module-dependency-dir", Separate, Nothing),
    entry("-module-file-info", Alone, Stops("it writes no object")),
    entry("-mthread-model", Separate, Nothing),
    entry("-mx32", Alone, Search),
    entry("-no-canonical-prefixes", Alone, Search),
    entry("-o", Either, Output),
    entry("-print-", Joined, Stops("it asks about the tool")),
    entry("-resource-dir", Separate, Nothing),
    entry("-rewrite-legacy-objc", Alone, Stops("it writes no object")),
    entry("-rewrite-objc", Alone, Stops("it writes no object")),
    entry("-rpath", Separate, Nothing),
    entry("-serialize-diagnostics", Separate, Nothing),
    entry("-specs", Separate, Search),
    entry("-specs=", Joined, Search),
    entry("-target", Separate, Search),
    entry("-u", Either, Nothing),
    entry("-verify-pch", Alone, Stops("it writes no object")),
    entry("-working-directory", Separate, Stops("it works in another folder")),
    entry("-working-directory=", Joined, Stops("it works in another folder")),
    entry("-wrapper", Separate, Nothing),
    entry("-x", Either, Language),
    entry("-z", Either, Nothing),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted_and_within_its_length() {
        assert!(TABLE.is_sorted_by(|one, other| one.name < other.name));
        assert!(TABLE.iter().all(|entry| entry.name.len() >= 2));
    }

    fn found(argument: &str) -> Option<(&'static str, Value<'_>)> {
        look_up(OsStr::new(argument)).map(|(entry, value)| (entry.name, value))
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
    }

    #[test]
    fn plain_flags_are_not_listed() {
        for flag in ["-O2", "-flto-partition=none", "-coverage", "-Wall", "-fPIC", "-", "--", "", "-save-temps"] {
            assert_eq!(found(flag), None, "{flag}");
        }
    }
}
