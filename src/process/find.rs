//! Finding the real compiler that a shim stands in for.
//!
//! In: what the shim was called, its arguments, the environment. Out: the program to run, and how
//! many of the arguments belong to its name. In this order:
//!
//! 1. launcher: `tasting-cc gcc -c x.c`, `tasting-cc ccache gcc -c x.c`. It comes before the
//!    environment, because these words must not be taken for input files, and because a build
//!    system that names a compiler (say `g++`) means that one;
//! 2. `TASTING_CC` or `TASTING_CXX`;
//! 3. masquerade: a link called `gcc` stands for the next `gcc` on `PATH`;
//! 4. the next `cc`, `gcc`, `clang` (`c++`, `g++`, `clang++`) on `PATH`.

use super::names::{self, ToolKind};
use super::search::{self, Hit};
use super::spawn::Program;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use thiserror::Error;

/// Which compiler a shim stands for when nothing else says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tool {
    Cc,
    Cxx,
}

/// The real compiler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compiler {
    pub program: Program,
    /// How many of the arguments (behind the shim's own name) name the compiler.
    pub words: usize,
    /// It has GCC's command line, as far as its name tells.
    pub known: bool,
}

/// Why there is no compiler to run.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NoCompiler {
    #[error(
        "{variable} names {value:?}, which is no program that can be run (or is one of the shims); correct or unset it"
    )]
    Named { variable: &'static str, value: OsString },
    #[error(
        "there is no program {0:?} that can be run besides the shims; install it, or correct the command line"
    )]
    Launched(OsString),
    #[error(
        "found no {names} on PATH besides the shims; install a compiler, or name one in {variable}"
    )]
    Absent { variable: &'static str, names: String },
}

impl Tool {
    /// The variable that names the real tool.
    pub fn variable(self) -> &'static str {
        match self {
            Tool::Cc => "TASTING_CC",
            Tool::Cxx => "TASTING_CXX",
        }
    }

    fn names(self) -> [&'static str; 3] {
        match self {
            Tool::Cc => ["cc", "gcc", "clang"],
            Tool::Cxx => ["c++", "g++", "clang++"],
        }
    }

    /// The tool that a shim's own name stands for.
    fn of_shim(name: &OsStr) -> Option<Self> {
        match name.to_str()? {
            "tasting-cc" => Some(Tool::Cc),
            "tasting-c++" | "tasting-cxx" => Some(Tool::Cxx),
            _ => None,
        }
    }
}

/// The compiler that `tool`, called as `called` with `arguments`, stands for.
pub fn compiler(
    tool: Tool,
    called: &OsStr,
    arguments: &[OsString],
) -> Result<Compiler, NoCompiler> {
    if let Some(inner) = arguments.first().and_then(|word| shim_word(word)) {
        // `tasting-cc tasting-cc -c x.c`, by a launcher and `CC` at the same time: one of them is
        // enough.
        let found = compiler(inner, OsStr::new(""), &arguments[1..])?;
        return Ok(Compiler { words: found.words + 1, ..found });
    }
    let named = std::env::var_os(tool.variable()).filter(|value| !value.is_empty());
    if let Some(found) = launched(arguments, named.is_none()) {
        return Ok(found);
    }
    if let Some(word) = arguments.first().filter(|word| names_missing_compiler(word)) {
        return Err(NoCompiler::Launched(word.clone()));
    }
    if let Some(value) = named {
        return by_variable(tool, value);
    }
    masqueraded(called).or_else(|| by_default(tool)).ok_or_else(|| NoCompiler::Absent {
        variable: tool.variable(),
        names: tool.names().join(", "),
    })
}

/// The tool, if the word is a shim under its own name.
fn shim_word(word: &OsStr) -> Option<Tool> {
    Tool::of_shim(Path::new(word).file_name()?)
}

/// The compiler that leading words name. Names that we do not know count only if `unknown` allows
/// it.
fn launched(arguments: &[OsString], unknown: bool) -> Option<Compiler> {
    let mut words = 0;
    let known = loop {
        let word = arguments.get(words).map_or(OsStr::new(""), OsString::as_os_str);
        match Path::new(word).file_name().map_or(ToolKind::Other, names::kind) {
            ToolKind::Launcher => words += 1,
            ToolKind::Compiler | ToolKind::Shim => break Some(true),
            // `ccache compiler_check=content gcc`
            ToolKind::Other if words > 0 && is_setting(word) => words += 1,
            // `our-own-prefix gcc`
            ToolKind::Other if may_be_program(word) && names_compiler(arguments.get(words + 1)) => {
                words += 1
            }
            ToolKind::Other if (words > 0 || unknown) && may_be_program(word) => break Some(false),
            // `ccache --show-stats` is for the launcher itself.
            ToolKind::Other if words > 0 => break None,
            ToolKind::Other => return None,
        }
    };
    let words = words + usize::from(known.is_some());
    let first = by_word_or_behind(&arguments[0])?;
    let program =
        Program { words: arguments[1..words].to_vec(), ..called_by(&first, &arguments[0]) };
    Some(Compiler { program, words, known: known.unwrap_or(false) })
}

/// A compiler's name, for which there is no file that could be meant as an input instead.
fn names_missing_compiler(word: &OsStr) -> bool {
    let kind = Path::new(word).file_name().map_or(ToolKind::Other, names::kind);
    matches!(kind, ToolKind::Compiler | ToolKind::Launcher)
        && (search::is_shim(Path::new(word)) || !Path::new(word).exists())
}

/// A compiler, a shim or a launcher, and no file that could be an input.
fn names_compiler(word: Option<&OsString>) -> bool {
    let Some(word) = word else { return false };
    let kind = Path::new(word).file_name().map_or(ToolKind::Other, names::kind);
    let is_input = !word.as_bytes().contains(&b'/') && Path::new(word).exists();
    kind != ToolKind::Other && !is_input && by_word_or_behind(word).is_some()
}

fn is_setting(word: &OsStr) -> bool {
    !word.as_bytes().starts_with(b"-") && word.as_bytes().contains(&b'=')
}

/// Whether a word of no known name is to be run rather than compiled: an `nvcc`, say. In doubt it
/// is not.
fn may_be_program(word: &OsStr) -> bool {
    let option =
        word.is_empty() || word.as_bytes().starts_with(b"-") || word.as_bytes().starts_with(b"@");
    let has_slash = word.as_bytes().contains(&b'/');
    !option
        && !names::looks_like_a_file(word)
        && (has_slash || !Path::new(word).exists())
        && search::by_word(word).is_some()
}

/// A program by its word. If the word leads to a shim (a link `/opt/shims/gcc`), the next of its
/// name.
fn by_word_or_behind(word: &OsStr) -> Option<Hit> {
    search::by_word(word).or_else(|| masquerade_of(word))
}

fn masquerade_of(word: &OsStr) -> Option<Hit> {
    if search::is_shim(Path::new(word)) { search::behind(word) } else { None }
}

fn called_by(hit: &Hit, word: &OsStr) -> Program {
    let name = if hit.first { word.to_owned() } else { hit.path.clone().into_os_string() };
    Program { path: hit.path.clone(), name, words: Vec::new() }
}

/// The program that the user's variable names: a path, a name, or several words as in `ccache gcc`.
fn by_variable(tool: Tool, value: OsString) -> Result<Compiler, NoCompiler> {
    if let Some(hit) = by_word_or_behind(&value) {
        let known = !is_foreign(&value);
        return Ok(Compiler { program: called_by(&hit, &value), words: 0, known });
    }
    let words = super::response::words(value.as_bytes());
    match words.first().filter(|_| words.len() > 1).and_then(|word| by_word_or_behind(word)) {
        Some(hit) => {
            let known = !words.last().is_some_and(|word| is_foreign(word));
            let program = Program { words: words[1..].to_vec(), ..called_by(&hit, &words[0]) };
            Ok(Compiler { program, words: 0, known })
        }
        None => Err(NoCompiler::Named { variable: tool.variable(), value }),
    }
}

/// Compilers that do not have GCC's command line, although a user may well name them in the
/// variable.
fn is_foreign(word: &OsStr) -> bool {
    let name = Path::new(word).file_name().and_then(OsStr::to_str).unwrap_or_default();
    matches!(name, "nvcc" | "tcc" | "cl" | "clang-cl" | "rustc")
}

/// The next program of the link's name.
fn masqueraded(called: &OsStr) -> Option<Compiler> {
    let name = Path::new(called).file_name()?;
    let kind = names::kind(name);
    if kind == ToolKind::Shim {
        return None;
    }
    let hit = search::behind(called)?;
    Some(Compiler { program: called_by(&hit, name), words: 0, known: kind == ToolKind::Compiler })
}

fn by_default(tool: Tool) -> Option<Compiler> {
    tool.names().iter().map(OsStr::new).find_map(|name| {
        let hit = search::on_path(name)?;
        Some(Compiler { program: called_by(&hit, name), words: 0, known: true })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(arguments: &[&str]) -> Option<Compiler> {
        launched(&arguments.iter().map(OsString::from).collect::<Vec<_>>(), true)
    }

    #[test]
    fn leading_words_name_the_compiler() {
        let gcc = found(&["gcc", "-c", "x.c"]).unwrap();
        assert_eq!(
            (gcc.program.name, gcc.program.words.len(), gcc.words, gcc.known),
            ("gcc".into(), 0, 1, true)
        );
        let path = found(&["/usr/bin/gcc", "-c", "x.c"]).unwrap();
        assert_eq!((path.program.path, path.words), ("/usr/bin/gcc".into(), 1));
        let other = found(&["/bin/sh", "-c", "x.c"]).unwrap();
        assert_eq!((other.words, other.known), (1, false));
    }

    #[test]
    fn inputs_and_options_do_not() {
        for arguments in [
            &["x.c"][..],
            &["-c", "gcc"],
            &["missing-compiler"],
            &[],
            &["@gcc"],
            &["/bin/missing-gcc"],
        ] {
            assert_eq!(found(arguments), None, "{arguments:?}");
        }
    }

    #[test]
    fn a_missing_compiler_is_no_input_file() {
        let arguments = ["no-such-machine-gcc", "-c", "x.c"].map(OsString::from);
        let found = compiler(Tool::Cc, OsStr::new("tasting-cc"), &arguments);
        assert_eq!(found, Err(NoCompiler::Launched("no-such-machine-gcc".into())));
    }

    #[test]
    fn nested_shims_count_once() {
        let arguments = ["/opt/bin/tasting-c++", "gcc", "-c"].map(OsString::from);
        let found = compiler(Tool::Cc, OsStr::new("tasting-cc"), &arguments).unwrap();
        assert_eq!((found.program.name, found.words), ("gcc".into(), 2));
    }
}
