//! Which language an input file of a compiler driver is in, as sorted tables: by the ending of its
//! name, or by what `-x` said.
//!
//! In: a file name, or a language's name. Out: what a driver makes of such a file.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

/// What a driver makes of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// Compiled to code; it can be asked for one section per function.
    C,
    Cxx,
    /// Another language, of which the same holds.
    Compiled,
    /// Assembled as it is written.
    Assembler,
    /// Made into a precompiled header or a header unit.
    Header,
    /// Something whose objects we do not know (GPU code and the like).
    Foreign,
}

impl Language {
    /// It is made into code.
    pub fn is_compiled(self) -> bool {
        matches!(self, Language::C | Language::Cxx | Language::Compiled)
    }
}

/// The language of a file, by its name. `None`: it is handed to the linker.
pub fn by_name(file: &OsStr) -> Option<Language> {
    let name = file.as_bytes().rsplit(|&byte| byte == b'/').next().unwrap_or_default();
    let dot = name.iter().rposition(|&byte| byte == b'.')?;
    let at =
        ENDINGS.binary_search_by(|(ending, _)| ending.as_bytes().cmp(&name[dot + 1..])).ok()?;
    Some(ENDINGS[at].1)
}

/// The language that `-x` names; a name that we do not know is foreign.
pub fn by_option(language: &OsStr) -> Language {
    let Some(language) = language.to_str() else { return Language::Foreign };
    if language.contains("-header") {
        return Language::Header;
    }
    match language {
        "assembler" | "assembler-with-cpp" => Language::Assembler,
        "c" | "cpp-output" => Language::C,
        "c++" | "c++-cpp-output" => Language::Cxx,
        _ if COMPILED.binary_search(&language).is_ok() => Language::Compiled,
        _ => Language::Foreign,
    }
}

/// The names for `-x` of what else is compiled.
static COMPILED: &[&str] = &[
    "ada",
    "c++-module",
    "d",
    "f77",
    "f77-cpp-input",
    "f95",
    "f95-cpp-input",
    "go",
    "ir",
    "objc++-cpp-output",
    "objc-cpp-output",
    "objective-c",
    "objective-c++",
    "objective-c++-cpp-output",
    "objective-c-cpp-output",
    "pcm",
];

/// The endings that GCC or Clang know. What one of them does not know it hands to the linker; then
/// there is no object afterwards, and nothing is done.
#[rustfmt::skip]
static ENDINGS: &[(&str, Language)] = &[
    ("C", Language::Cxx),
    ("CPP", Language::Cxx),
    ("F", Language::Compiled),
    ("F03", Language::Compiled),
    ("F08", Language::Compiled),
    ("F90", Language::Compiled),
    ("F95", Language::Compiled),
    ("FOR", Language::Compiled),
    ("FPP", Language::Compiled),
    ("FTN", Language::Compiled),
    ("H", Language::Header),
    ("HPP", Language::Header),
    ("M", Language::Compiled),
    ("S", Language::Assembler),
    ("adb", Language::Compiled),
    ("ads", Language::Compiled),
    ("asm", Language::Assembler),
    ("bc", Language::Compiled),
    ("c", Language::C),
    ("c++", Language::Cxx),
    ("c++m", Language::Compiled),
    ("cc", Language::Cxx),
    ("ccm", Language::Compiled),
    ("cl", Language::Foreign),
    ("cp", Language::Cxx),
    ("cpp", Language::Cxx),
    ("cppm", Language::Compiled),
    ("cu", Language::Foreign),
    ("cui", Language::Foreign),
    ("cxx", Language::Cxx),
    ("cxxm", Language::Compiled),
    ("d", Language::Compiled),
    ("dd", Language::Compiled),
    ("di", Language::Compiled),
    ("f", Language::Compiled),
    ("f03", Language::Compiled),
    ("f08", Language::Compiled),
    ("f90", Language::Compiled),
    ("f95", Language::Compiled),
    ("fi", Language::Compiled),
    ("for", Language::Compiled),
    ("fpp", Language::Compiled),
    ("ftn", Language::Compiled),
    ("go", Language::Compiled),
    ("h", Language::Header),
    ("h++", Language::Header),
    ("hh", Language::Header),
    ("hip", Language::Foreign),
    ("hp", Language::Header),
    ("hpp", Language::Header),
    ("hxx", Language::Header),
    ("i", Language::C),
    ("ii", Language::Cxx),
    ("ixx", Language::Compiled),
    ("ll", Language::Compiled),
    ("m", Language::Compiled),
    ("mi", Language::Compiled),
    ("mii", Language::Compiled),
    ("mm", Language::Compiled),
    ("pcm", Language::Compiled),
    ("s", Language::Assembler),
    ("sx", Language::Assembler),
    ("tcc", Language::Header),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tables_are_sorted() {
        assert!(ENDINGS.is_sorted_by(|(one, _), (other, _)| one < other));
        assert!(COMPILED.is_sorted_by(|one, other| one < other));
    }

    #[test]
    fn by_ending() {
        let language = |name| by_name(OsStr::new(name));
        assert_eq!(language("a/b.c"), Some(Language::C));
        assert_eq!(language("a/b.f90"), Some(Language::Compiled));
        assert_eq!(language("x.y.C"), Some(Language::Cxx));
        assert_eq!(language("x.S"), Some(Language::Assembler));
        assert_eq!(language("x.hpp"), Some(Language::Header));
        assert_eq!(language("x.cu"), Some(Language::Foreign));
        assert_eq!(language("x.c/y"), None);
        assert_eq!(language("x.o"), None);
        assert_eq!(language("x"), None);
    }

    #[test]
    fn by_x() {
        let language = |name| by_option(OsStr::new(name));
        assert_eq!(language("c"), Language::C);
        assert_eq!(language("f95"), Language::Compiled);
        assert_eq!(language("c++-header"), Language::Header);
        assert_eq!(language("c++-system-header"), Language::Header);
        assert_eq!(language("assembler-with-cpp"), Language::Assembler);
        assert_eq!(language("cuda"), Language::Foreign);
    }
}
