//! What each option of a compile call bears on: the preprocessed text, the files that are written, messages, debug
//! information, the link, or the code. In: a call's arguments. Out: its words, each with its bearing.
//!
//! What is not in the table bears on the code: an option too many in a hash costs a result that could have been reused, one too few
//! would be a missed change.

use super::options::{self, Value};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

/// What an option has an effect on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bearing {
    /// An input file.
    Input,
    /// Only on what the preprocessor makes of the source: its effect is in the text.
    Text,
    /// Which files are written besides, and where.
    Files,
    /// Dependency files.
    Dependencies,
    Messages,
    DebugInfo,
    Link,
    Code,
    /// A program or file that we do not look into decides over the code. With the reason.
    Opaque(&'static str),
}

/// One option with its argument, or one input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Word<'a> {
    pub bearing: Bearing,
    pub word: &'a OsStr,
    /// The argument, where it is a word of its own.
    pub value: Option<&'a OsStr>,
}

impl<'a> Word<'a> {
    /// As it stands on the command line.
    pub fn parts(&self) -> impl Iterator<Item = &'a OsStr> {
        [self.word].into_iter().chain(self.value)
    }

    /// Whether debug information has it in itself, or follows it.
    pub fn is_in_debug_info(&self) -> bool {
        self.bearing == DebugInfo || self.word.as_bytes().starts_with(b"-ffile-prefix-map=")
    }
}

use Bearing::{Code, DebugInfo, Dependencies, Files, Input, Link, Messages, Opaque, Text};

const PLUGIN: Bearing = Opaque("a plugin of the compiler takes part in it");
const SPECS: Bearing = Opaque("it changes which programs and options the compiler takes");
const PRECOMPILED: Bearing = Opaque("it uses a precompiled header or module");

/// By how an option starts; the longest that fits counts. Sorted.
#[rustfmt::skip]
static TABLE: &[(&str, Bearing)] = &[
    ("--compile", Files),
    ("--config", SPECS),
    ("--define-macro", Text),
    ("--dumpbase", Files),
    ("--dumpdir", Files),
    ("--imacros", Text),
    ("--include", Text),
    ("--ld-path=", Link),
    ("--library", Link),
    ("--output", Files),
    ("--pedantic", Messages),
    ("--prefix", SPECS),
    ("--save-temps", Files),
    ("--serialize-diagnostics", Files),
    ("--specs", SPECS),
    ("--sysroot", Text),
    ("--undefine-macro", Text),
    ("--verbose", Files),
    ("--write-dependencies", Dependencies),
    ("--write-user-dependencies", Dependencies),
    ("-A", Text),
    ("-B", SPECS),
    ("-D", Text),
    ("-F", Text),
    ("-I", Text),
    ("-L", Link),
    ("-M", Dependencies),
    ("-T", Link),
    ("-U", Text),
    ("-W", Messages),
    ("-Wa,", Code),
    ("-Wl,", Link),
    ("-Wp,", Code),
    ("-Wp,-M", Dependencies),
    ("-Xclang", Code),
    ("-Xlinker", Link),
    ("-aux-info", Files),
    ("-c", Files),
    ("-ccc-", SPECS),
    ("-cxx-isystem", Text),
    ("-dumpbase", Files),
    ("-dumpdir", Files),
    ("-e", Link),
    ("-fansi-escape-codes", Messages),
    ("-fauto-profile", Code),
    ("-fcaret-diagnostics", Messages),
    ("-fcolor-diagnostics", Messages),
    ("-fdebug-", DebugInfo),
    ("-fdiagnostics", Messages),
    ("-fdump-", Files),
    ("-feliminate-unused-debug", DebugInfo),
    ("-ferror-limit=", Messages),
    ("-ffile-prefix-map=", Text),
    ("-fmacro-prefix-map=", Text),
    ("-fmax-errors=", Messages),
    ("-fmessage-length=", Messages),
    ("-fmodule", PRECOMPILED),
    ("-fno-color-diagnostics", Messages),
    ("-fno-diagnostics", Messages),
    ("-fpass-plugin", PLUGIN),
    ("-fplugin", PLUGIN),
    ("-ftime-report", Files),
    ("-ftime-trace", Files),
    ("-fuse-ld=", Link),
    ("-g", DebugInfo),
    ("-gcc-toolchain", Code),
    ("-idirafter", Text),
    ("-iframework", Text),
    ("-imacros", Text),
    ("-imultiarch", Text),
    ("-include", Text),
    ("-include-pch", PRECOMPILED),
    ("-iplugindir", PLUGIN),
    ("-iprefix", Text),
    ("-iquote", Text),
    ("-isysroot", Text),
    ("-isystem", Text),
    ("-ivfsoverlay", Opaque("a description of other files takes part in it")),
    ("-iwithprefix", Text),
    ("-iwithsysroot", Text),
    ("-l", Link),
    ("-load", PLUGIN),
    ("-no-integrated-cpp", SPECS),
    ("-nostdinc", Text),
    ("-o", Files),
    ("-pedantic", Messages),
    ("-pipe", Files),
    ("-rpath", Link),
    ("-save-temps", Files),
    ("-serialize-diagnostics", Files),
    ("-specs", SPECS),
    ("-u", Link),
    ("-undef", Text),
    ("-v", Files),
    ("-w", Messages),
    ("-wrapper", SPECS),
    ("-z", Link),
];

/// Options in the table by which only the whole word is meant.
const WHOLE: [&str; 6] = ["-c", "-pipe", "-undef", "-v", "-w", "--compile"];

/// What Clang's compiler proper is told that we cannot look into.
const OPAQUE_FOR_CLANG: [&str; 6] = ["-load", "-plugin", "-add-plugin", "-include-pch", "-fmodule", "-fplugin"];

/// The words of a call.
pub fn words(arguments: &[OsString]) -> Vec<Word<'_>> {
    let mut words = Vec::with_capacity(arguments.len());
    let mut left = arguments.iter().map(OsString::as_os_str);
    let mut only_inputs = false;
    while let Some(word) = left.next() {
        if only_inputs || word.as_bytes().first() != Some(&b'-') || word == "-" {
            words.push(Word { bearing: Input, word, value: None });
        } else if word == "--" {
            only_inputs = true;
        } else {
            let value = match options::look_up(word) {
                Some((_, Value::Next)) => left.next(),
                _ => None,
            };
            words.push(Word { bearing: bearing(word, value), word, value });
        }
    }
    words
}

fn bearing(word: &OsStr, value: Option<&OsStr>) -> Bearing {
    let bytes = word.as_bytes();
    let opaque_value = |value: &OsStr| OPAQUE_FOR_CLANG.iter().any(|it| value.as_bytes().starts_with(it.as_bytes()));
    if bytes.starts_with(b"-Xclang") && value.or_else(|| after_equals(word)).is_some_and(opaque_value) {
        return PLUGIN;
    }
    let fits = |(name, _): &&(&str, Bearing)| {
        bytes.starts_with(name.as_bytes()) && (!WHOLE.contains(name) || bytes.len() == name.len())
    };
    TABLE.iter().filter(fits).max_by_key(|(name, _)| name.len()).map_or(Code, |(_, bearing)| *bearing)
}

fn after_equals(word: &OsStr) -> Option<&OsStr> {
    let equals = word.as_bytes().iter().position(|&byte| byte == b'=')?;
    Some(OsStr::from_bytes(&word.as_bytes()[equals + 1..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str) -> Vec<(Bearing, String)> {
        let arguments: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
        let show =
            |word: &Word| word.parts().map(|part| part.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ");
        words(&arguments).iter().map(|word| (word.bearing, show(word))).collect()
    }

    #[test]
    fn the_table_is_sorted() {
        assert!(TABLE.is_sorted_by(|(one, _), (other, _)| one < other));
    }

    #[test]
    fn options_bear_on_what_they_say() {
        let line = "-c -O2 -DX=1 -I inc -o x.o -MD -MF x.d -Wall -Wa,-L -Wp,-MD,x.d -g -fPIC -L. -pedantic -ansi x.c";
        let bearings: Vec<Bearing> = of(line).into_iter().map(|(bearing, _)| bearing).collect();
        let expected = [
            Files,
            Code,
            Text,
            Text,
            Files,
            Dependencies,
            Dependencies,
            Messages,
            Code,
            Dependencies,
            DebugInfo,
            Code,
            Link,
            Messages,
            Code,
            Input,
        ];
        assert_eq!(bearings, expected);
    }

    #[test]
    fn what_starts_alike_is_told_apart() {
        for (line, expected) in [
            ("-coverage", Code),
            ("-wrapper x,y", SPECS),
            ("-include-pch x.pch", PRECOMPILED),
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
