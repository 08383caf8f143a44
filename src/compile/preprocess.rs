//! The preprocessed text of a unit, from the real compiler. In: a call that compiles one source.
//! Out: the text, whether the preprocessor printed diagnostics, and (if asked for) the dependency
//! file. The compilation itself is a separate call on the original source: compiling the
//! preprocessed text would produce other diagnostics, at other positions.

use super::option::Affects;
use super::words::Word;
use crate::process::spawn::{self, Program, unset};
use crate::process::sys::Memory;
use crate::process::{guard, names, search};
use rustc_hash::FxHashSet;
use std::ffi::{OsStr, OsString};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// Variables that make drivers write dependency files.
pub const DEPENDENCY_VARIABLES: [&str; 2] = ["DEPENDENCIES_OUTPUT", "SUNPRO_DEPENDENCIES"];

/// What the preprocessor is asked for besides the text.
#[derive(Default)]
pub struct PreprocessOptions {
    /// Options in front of the others.
    pub options: Vec<OsString>,
    /// Whether it matters if it has anything to say; of times that are compiled in it always has.
    pub messages: bool,
}

/// What came of it.
pub struct Preprocessed {
    pub text: Vec<u8>,
    /// It has warned of something.
    pub has_messages: bool,
}

/// The compiler behind launchers: they have no part in preprocessing.
pub fn driver(program: &Program) -> Option<Program> {
    let Some(word) = program.words.last() else { return Some(program.clone()) };
    let hit = search::by_word(word)?;
    let name = if hit.first { word.clone() } else { hit.path.clone().into_os_string() };
    Some(Program { path: hit.path, name, words: Vec::new() })
}

/// The driver takes files that are called `.c` for C.
pub fn is_for_c(driver: &Program) -> bool {
    let name = Path::new(&driver.name).file_name().unwrap_or(OsStr::new(""));
    !names::tool(name).unwrap_or_default().contains("++")
}

/// The arguments of the call that preprocesses.
fn arguments(words: &[Word], wanted: &PreprocessOptions) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = vec!["-E".into(), "-fpch-preprocess".into()];
    if !wanted.messages {
        arguments.push("-w".into());
    }
    arguments.extend(wanted.options.iter().cloned());
    let (inputs, options): (Vec<&Word>, Vec<&Word>) =
        words.iter().partition(|word| word.is_input());
    let is_wanted = |word: &&Word| match word.affects() {
        Affects::Files | Affects::Dependencies | Affects::Link => false,
        // Times are reported even where diagnostics are switched off.
        Affects::Diagnostics => wanted.messages && word.word != "-w",
        _ => true,
    };
    let add = |arguments: &mut Vec<OsString>, word: &Word| match word.affects() {
        // A macro tells whether there is any.
        Affects::DebugInfo => arguments.extend(without_definitions(word.word)),
        _ => arguments.extend(word.parts().map(OsStr::to_owned)),
    };
    options.into_iter().filter(is_wanted).for_each(|word| add(&mut arguments, word));
    arguments.extend(wanted.messages.then(|| "-Wdate-time".into()));
    inputs.into_iter().for_each(|word| add(&mut arguments, word));
    arguments
}

/// An option that asks for debug information: of the third level the preprocessor would print all
/// definitions, of the second it does not. Nothing for the options that only say what it looks
/// like.
fn without_definitions(word: &OsStr) -> Option<OsString> {
    const THIRD: [&str; 2] = ["-g3", "-ggdb3"];
    if THIRD.iter().any(|it| word == *it) {
        return Some("-g2".into());
    }
    word.as_bytes().starts_with(b"-g").then(|| word.to_owned())
}

/// Runs the preprocessor.
pub fn run(
    driver: &Program,
    words: &[Word],
    wanted: &PreprocessOptions,
) -> io::Result<Preprocessed> {
    let mut changes = vec![guard::mark(guard::COMPILER)];
    changes.extend(DEPENDENCY_VARIABLES.map(unset));
    let said = Memory::new(c"messages")?;
    let messages = if wanted.messages {
        said.descriptor().try_clone_to_owned()?.into()
    } else {
        Stdio::null()
    };
    let mut child = spawn::start_reading(driver, &arguments(words, wanted), &changes, messages)?;
    let mut text = Vec::with_capacity(1 << 20);
    if let Some(mut output) = child.stdout.take() {
        output.read_to_end(&mut text)?;
    }
    if !child.wait()?.success() {
        return Err(io::Error::other("the preprocessor failed"));
    }
    Ok(Preprocessed { text, has_messages: said.length()? > 0 })
}

/// The files that a preprocessed text was made of, as its line markers name them. One that ends in
/// two slashes is the folder that the compiler was started in.
pub fn files(text: &[u8]) -> Vec<PathBuf> {
    let mut names: FxHashSet<&[u8]> = FxHashSet::default();
    let starts = memchr::memmem::find_iter(text, b"\n# ").map(|at| at + 3);
    for start in (text.starts_with(b"# ").then_some(2)).into_iter().chain(starts) {
        let rest = &text[start..];
        let line = &rest[..memchr::memchr(b'\n', rest).unwrap_or(rest.len())];
        let mut parts = line.split(|&byte| byte == b'"');
        if line.first().is_some_and(u8::is_ascii_digit) && parts.next().is_some() {
            names.extend(
                parts.next().filter(|name| !name.starts_with(b"<") && !name.ends_with(b"//")),
            );
        }
    }
    names.into_iter().map(|name| PathBuf::from(OsStr::from_bytes(name))).collect()
}

#[cfg(test)]
mod tests {
    use super::super::words::words;
    use super::*;

    #[test]
    fn files_are_those_of_the_line_markers() {
        let text =
            b"# 0 \"x.c\"\n# 1 \"/src//\"\n# 0 \"<built-in>\"\n# 1 \"inc/y.h\" 1 3\nint y;\n# 2 \"x.c\" 2\n#pragma once \"no\"\n";
        let mut found = files(text);
        found.sort();
        assert_eq!(found, [Path::new("inc/y.h"), Path::new("x.c")]);
    }

    #[test]
    fn nothing_is_written_and_nothing_is_said() {
        let line = "-c -O2 -DX -I inc -o x.o -MD -MF x.d -Wall -Werror -g3 -save-temps -Wp,-MD,y.d -Wp,-DY x.c";
        let given: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
        let made = arguments(&words(&given), &PreprocessOptions::default());
        let made: Vec<_> = made.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        assert_eq!(made.join(" "), "-E -fpch-preprocess -w -O2 -DX -I inc -g2 -Wp,-DY x.c");
    }
}
