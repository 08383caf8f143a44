//! Options in the words of a harness's command line.
//!
//! In: words; names of options, each with the number of words behind it. Out: words, values.

use std::ffi::{OsStr, OsString};

/// The words without some options and what belongs to them.
pub fn without(words: &[OsString], options: &[(&str, usize)]) -> Vec<OsString> {
    let mut kept = Vec::new();
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        let text = word.to_string_lossy();
        let is_joined = |name: &str| {
            name.starts_with("--")
                && text.strip_prefix(name).is_some_and(|rest| rest.starts_with('='))
        };
        match options.iter().find(|(name, _)| text == *name || is_joined(name)) {
            Some((name, count)) if text == *name => {
                _ = (0..*count).filter(|_| rest.next().is_some()).count()
            }
            Some(_) => {}
            None => kept.push(word.clone()),
        }
    }
    kept
}

/// What an option is set to, the last time it is given.
pub fn value_of(words: &[OsString], option: &str) -> Option<OsString> {
    let mut value = None;
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        if word == option {
            value = rest.next().cloned();
        } else if let Some(text) =
            word.to_str().and_then(|text| text.strip_prefix(option)?.strip_prefix('='))
        {
            value = Some(OsStr::new(text).to_owned());
        }
    }
    value
}

/// The words that are neither options nor belong to one, by the options that there are; or the
/// first word that is none of these.
pub fn positional<'w>(
    words: &'w [OsString],
    options: &[(&str, usize)],
) -> Result<Vec<&'w OsString>, &'w OsString> {
    let mut found = Vec::new();
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        let text = word.to_string_lossy();
        let name = text.split('=').next().unwrap_or_default();
        let is_short = |option: &str| option.len() == 2 && text.starts_with(option);
        match options.iter().find(|(option, _)| text == *option) {
            Some((_, count)) => _ = (0..*count).filter(|_| rest.next().is_some()).count(),
            None if !text.starts_with('-') => found.push(word),
            None if options
                .iter()
                .any(|(option, count)| *count == 1 && (name == *option || is_short(option))) => {}
            None => return Err(word),
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<OsString> {
        text.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn options_go_with_their_words() {
        let given = words("-j 4 --tests-information=3 -R x -I 1,2 --rerun-failed -V");
        let choosing = [("-I", 1), ("--tests-information", 1), ("--rerun-failed", 0)];
        assert_eq!(without(&given, &choosing), words("-j 4 -R x -V"));
        assert_eq!(
            value_of(&words("--test-dir a --test-dir=b/c"), "--test-dir"),
            Some("b/c".into())
        );
        assert_eq!(value_of(&words("-j4"), "--test-dir"), None);
    }

    #[test]
    fn other_words_are_told_from_those_of_options() {
        let known = [("-C", 1), ("-v", 0), ("--suite", 1)];
        let given = words("-C build one --suite=x -v -Cb two");
        assert_eq!(positional(&given, &known), Ok(vec![&"one".into(), &"two".into()]));
        assert_eq!(positional(&words("one --what"), &known), Err(&"--what".into()));
    }
}
