//! The words of a compile call. In: its arguments. Out: each option with its argument and its row
//! of the table of options, and each input.

use super::option::{Affects, CompilerOption, Form, option};
use super::option_table::{ASSEMBLER_FILE, PLUGIN};
use super::options::{self, Value};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

/// One option with its argument, or one input.
#[derive(Clone, Copy, Debug)]
pub struct Word<'a> {
    pub word: &'a OsStr,
    /// The argument, where it is a word of its own.
    pub value: Option<&'a OsStr>,
    /// What the option is; of some it depends on the argument what they affect.
    pub option: CompilerOption,
}

impl<'a> Word<'a> {
    /// As it stands on the command line.
    pub fn parts(&self) -> impl Iterator<Item = &'a OsStr> {
        [self.word].into_iter().chain(self.value)
    }

    pub fn affects(&self) -> Affects {
        self.option.affects
    }

    pub fn is_input(&self) -> bool {
        self.affects() == Affects::Input
    }
}

const INPUT: CompilerOption = option("", Form::Alone).affects(Affects::Input);

/// What Clang's compiler proper is told that we cannot look into.
const OPAQUE_FOR_CLANG: [&str; 6] =
    ["-load", "-plugin", "-add-plugin", "-include-pch", "-fmodule", "-fplugin"];

/// The words of a call.
pub fn words(arguments: &[OsString]) -> Vec<Word<'_>> {
    let mut words = Vec::with_capacity(arguments.len());
    let mut left = arguments.iter().map(OsString::as_os_str);
    let mut only_inputs = false;
    while let Some(word) = left.next() {
        if only_inputs || word.as_bytes().first() != Some(&b'-') || word == "-" {
            words.push(Word { word, value: None, option: INPUT });
        } else if word == "--" {
            only_inputs = true;
        } else {
            words.push(with_value(word, &mut left));
        }
    }
    words
}

fn with_value<'a>(word: &'a OsStr, left: &mut impl Iterator<Item = &'a OsStr>) -> Word<'a> {
    let (option, place) = options::look_up(word).unwrap_or((&options::UNLISTED, Value::None));
    let value = if place == Value::Next { left.next() } else { None };
    let argument = match place {
        Value::Here(rest) => Some(rest),
        _ => value,
    };
    let affects =
        argument.and_then(|argument| opaque_argument(option, argument)).unwrap_or(option.affects);
    Word { word, value, option: option.affects(affects) }
}

/// An argument that names something which decides over the code and which we do not read.
fn opaque_argument(option: &CompilerOption, argument: &OsStr) -> Option<Affects> {
    let starts = |start: &&str| argument.as_bytes().starts_with(start.as_bytes());
    match option.name {
        "-Xclang" | "-Xclang=" => OPAQUE_FOR_CLANG.iter().any(starts).then_some(PLUGIN),
        "-Wa," | "-Xassembler" | "--for-assembler" | "--for-assembler=" => {
            names_file(argument).then_some(ASSEMBLER_FILE)
        }
        _ => None,
    }
}

/// `@file`, as one of the words between commas.
fn names_file(argument: &OsStr) -> bool {
    argument.as_bytes().split(|&byte| byte == b',').any(|part| part.starts_with(b"@"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use Affects::{Code, DebugInfo, Dependencies, Diagnostics, Files, Input, Link, Opaque, Text};

    fn of(line: &str) -> Vec<(Affects, String)> {
        let arguments: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
        let show = |word: &Word| {
            word.parts()
                .map(|part| part.to_string_lossy().into_owned())
                .collect::<Vec<_>>()
                .join(" ")
        };
        words(&arguments).iter().map(|word| (word.affects(), show(word))).collect()
    }

    #[test]
    fn options_affect_what_they_say() {
        let line = "-c -O2 -DX=1 -I inc -o x.o -MD -MF x.d -Wall -Wa,-L -Wp,-MD,x.d -g -fPIC -L. -pedantic -ansi x.c";
        let affected: Vec<Affects> = of(line).into_iter().map(|(affects, _)| affects).collect();
        let expected = [
            Files,
            Code,
            Text,
            Text,
            Files,
            Dependencies,
            Dependencies,
            Diagnostics,
            Code,
            Dependencies,
            DebugInfo,
            Code,
            Link,
            Diagnostics,
            Code,
            Input,
        ];
        assert_eq!(affected, expected);
    }

    #[test]
    fn names_with_equal_prefixes_differ() {
        for line in ["-coverage", "-fprofile-use=x", "-wrapper x,y", "-include-pch x.pch"] {
            assert!(matches!(of(line)[0].0, Opaque(_)), "{line}");
        }
        for (line, expected) in [
            ("-Wa,@options", ASSEMBLER_FILE),
            ("-Xassembler @options", ASSEMBLER_FILE),
            ("-Xclang -load", PLUGIN),
            ("-Xclang -O3", Code),
            ("-fplugin=x.so", PLUGIN),
            ("-fdebug-prefix-map=a=b", DebugInfo),
            ("-undef", Text),
            ("-unknown", Link),
        ] {
            assert_eq!(of(line)[0].0, expected, "{line}");
        }
    }

    #[test]
    fn behind_two_dashes_there_are_inputs_only() {
        assert_eq!(of("-c -- -x.c"), [(Files, "-c".to_owned()), (Input, "-x.c".to_owned())]);
    }
}
