//! The dependency file of a skipped compilation: the preprocessor writes it, from the current
//! headers. In: the options of the call. Out: those for the preprocessor, and the path of the file.

use super::option::Affects;
use super::words::Word;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// A dependency file that the call would write.
#[derive(Debug, PartialEq, Eq)]
pub struct Dependencies {
    pub file: PathBuf,
    /// The options that have it written, but for its place.
    options: Vec<OsString>,
}

impl Dependencies {
    /// What a call that makes `output` writes. The error is the reason why somebody else cannot do
    /// that.
    pub fn of(words: &[Word], output: &Path) -> Result<Option<Self>, &'static str> {
        let (mut file, mut kind, mut options, mut has_target) = (None, None, Vec::new(), false);
        for word in words.iter().filter(|word| word.affects() == Affects::Dependencies) {
            let (name, value) = split(word);
            match (name, value) {
                ("-MD" | "--write-dependencies", _) => kind = Some("-MD"),
                ("-MMD" | "--write-user-dependencies", _) => kind = Some("-MMD"),
                ("-MF", Some(value)) if value != "-" && !value.is_empty() => {
                    file = Some(PathBuf::from(value))
                }
                ("-MP", _) => options.push("-MP".into()),
                ("-MT" | "-MQ", Some(value)) => {
                    has_target = true;
                    options.extend([name.into(), value.to_owned()]);
                }
                _ => return Err("it writes dependencies in an unusual way"),
            }
        }
        let Some(kind) = kind else { return Ok(None) };
        if !has_target {
            options.extend(["-MQ".into(), output.as_os_str().to_owned()]);
        }
        options.push(kind.into());
        Ok(Some(Dependencies { file: file.unwrap_or_else(|| output.with_extension("d")), options }))
    }

    /// Has the preprocessor write it to `place`.
    pub fn options(&self, place: &Path) -> Vec<OsString> {
        let mut options = self.options.clone();
        options.extend(["-MF".into(), place.as_os_str().to_owned()]);
        options
    }
}

/// An option and its argument, joined or not.
fn split<'a>(word: &Word<'a>) -> (&'a str, Option<&'a OsStr>) {
    let text = word.word.as_bytes();
    for name in ["-MF", "-MT", "-MQ"] {
        if let Some(rest) = text.strip_prefix(name.as_bytes()) {
            return (name, word.value.or(Some(OsStr::from_bytes(rest))));
        }
    }
    (word.word.to_str().unwrap_or_default(), word.value)
}

#[cfg(test)]
mod tests {
    use super::super::words::words;
    use super::*;

    fn of(line: &str) -> Result<Option<(String, String)>, &'static str> {
        let arguments: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
        let found = Dependencies::of(&words(&arguments), Path::new("out/x.o"))?;
        let shown = |found: Dependencies| {
            let options = found
                .options(Path::new("t"))
                .iter()
                .map(|it| it.to_string_lossy().into_owned())
                .collect::<Vec<_>>();
            (found.file.display().to_string(), options.join(" "))
        };
        Ok(found.map(shown))
    }

    #[test]
    fn the_file_and_its_target_have_defaults() {
        let expect = |line, file: &str, options: &str| {
            assert_eq!(of(line), Ok(Some((file.to_owned(), options.to_owned()))), "{line}");
        };
        assert_eq!(of("-c x.c -MF x.d"), Ok(None));
        expect("-c x.c -MD", "out/x.d", "-MQ out/x.o -MD -MF t");
        expect("-c x.c -MMD -MP -MF deps/x", "deps/x", "-MP -MQ out/x.o -MMD -MF t");
        expect("-c x.c -MD -MTfoo -MQ bar -MFy.d", "y.d", "-MT foo -MQ bar -MD -MF t");
    }

    #[test]
    fn unusual_options_are_refused() {
        for line in ["-MD -MF -", "-MD -MG", "-Wp,-MD,x.d", "-MJ x.json"] {
            assert!(of(line).is_err(), "{line}");
        }
    }
}
