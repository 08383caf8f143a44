//! Which parts of its surroundings an outcome contains: the names of the folders that the checkout
//! lies in, the length of its path, the folder for temporary files, variables that are otherwise
//! ignored. Such an outcome is valid only where these are the same.
//!
//! In: the project, what a run printed and left behind. Out: dependencies of the kind `Mentioned`,
//! and their current values.

use super::config;
use super::environment;
use super::project::Project;
use crate::model::{Base, Hash, Hasher, Left, LeftFile, PortablePath};
use crate::observe::{Use, agent, patched};
use memchr::memmem;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Variables whose values say nothing that is not known otherwise.
const KNOWN: [&str; 6] = ["_", "PWD", "OLDPWD", "SHLVL", "LS_COLORS", "MAKEFLAGS"];

/// Shorter values of variables are found everywhere.
const SHORTEST: usize = 4;

/// From this length on, a name counts in the middle of a word too.
const LONG: usize = 6;

/// What a run has printed and left behind.
pub struct Traces<'a> {
    pub output: [&'a [u8]; 2],
    pub files: &'a [LeftFile],
    pub used: &'a [Use],
}

impl Traces<'_> {
    /// Whether any text has this one in it.
    fn contain(&self, fits: impl Fn(&[u8]) -> bool) -> bool {
        let in_file = |file: &LeftFile| {
            let in_content = match &file.left {
                Left::File { content, .. } => fits(content),
                Left::Link { target } => fits(target),
                Left::Folder { .. } | Left::Gone => false,
            };
            in_content || fits(&file.place.path)
        };
        self.output.iter().any(|text| fits(text)) || self.files.iter().any(in_file)
    }
}

/// What a process can read of us in `/proc`: the agent and its memory among what is mapped, the
/// filter in its status (which is shown without it as a rule).
const OWN_TRACES: [&[u8]; 2] = [b"/memfd:tasting", b"Seccomp:\t2"];

/// Whether a run has printed or written that it was watched, which without us it would not have.
pub fn shows_watcher(traces: &Traces) -> bool {
    let agent = agent::file_name();
    let names = || OWN_TRACES.into_iter().chain([agent.as_bytes(), patched::FOLDER.as_bytes()]);
    traces.contain(|text| names().any(|name| memmem::find(text, name).is_some()))
}

/// What a run mentions of its surroundings.
pub fn of(project: &Project, on_terminal: bool, traces: &Traces) -> Vec<PortablePath> {
    let folders = parts_mentioned(project, traces);
    let length = length_mentioned(project, traces);
    let temporary = temporary_mentioned(project, traces);
    folders
        .into_iter()
        .chain(length)
        .chain(temporary)
        .chain(variables_mentioned(project, on_terminal, traces))
        .collect()
}

fn parts_mentioned(project: &Project, traces: &Traces) -> Vec<PortablePath> {
    let mut mentioned = Vec::new();
    for (base, parts) in project.parts() {
        for (index, part) in parts.iter().rev().enumerate() {
            if traces.contain(|text| has_word(text, part)) {
                let path = match index {
                    0 => "part 1".to_owned(),
                    _ => format!("part {} of {}", index + 1, parts.len()),
                };
                mentioned.push(PortablePath { base, path: path.into_bytes() });
            }
        }
    }
    mentioned
}

/// `pwd | wc -c` counts the end of the line too.
fn length_mentioned(project: &Project, traces: &Traces) -> Option<PortablePath> {
    let base = project.place(&project.working).base;
    let folder = project.folder(base)?;
    let lengths = [&project.working, folder].map(|path| path.as_os_str().len());
    let numbers =
        lengths.iter().flat_map(|length| [*length, length + 1]).map(|number| number.to_string());
    let numbers: Vec<String> = numbers.collect();
    let is_mentioned =
        traces.contain(|text| numbers.iter().any(|number| has_number(text, number.as_bytes())));
    is_mentioned.then(|| PortablePath { base, path: b"length".to_vec() })
}

fn temporary_mentioned(project: &Project, traces: &Traces) -> Option<PortablePath> {
    let spellings = project.spellings_of(Base::Temporary);
    let is_mentioned =
        |text: &[u8]| spellings.iter().any(|folder| memmem::find(text, folder).is_some());
    traces
        .contain(is_mentioned)
        .then(|| PortablePath { base: Base::Temporary, path: b"all".to_vec() })
}

fn variables_mentioned(project: &Project, on_terminal: bool, traces: &Traces) -> Vec<PortablePath> {
    let settings = &project.config.environment;
    let is_ignored = |name: &str| {
        let by_project = settings.ignore.iter().any(|pattern| config::matches(pattern, name));
        !by_project
            && !KNOWN.contains(&name)
            && !environment::counts(name, &project.config, on_terminal)
    };
    let is_mentioned = |value: &[u8]| {
        let is_used = |used: &Use| used.path().starts_with(OsStr::from_bytes(value));
        let is_path =
            value.starts_with(b"/") && Path::new(OsStr::from_bytes(value)).parent().is_some();
        traces.contain(|text| has_word(text, value)) || (is_path && traces.used.iter().any(is_used))
    };
    project
        .environment
        .0
        .iter()
        .filter(|(name, value)| value.len() >= SHORTEST && is_ignored(&name.to_string_lossy()))
        .filter(|(name, _)| !name.to_string_lossy().starts_with(environment::OWN))
        .filter(|(_, value)| is_mentioned(value.as_bytes()))
        .map(|(name, _)| PortablePath { base: Base::None, path: [b"$", name.as_bytes()].concat() })
        .collect()
}

/// The value of something that was mentioned, here and now.
pub fn value(project: &Project, place: &PortablePath) -> Hash {
    let mut hasher = Hasher::new("mentioned");
    let words: Vec<&[u8]> = place.path.split(|&byte| byte == b' ').collect();
    let number = |index: usize| {
        words.get(index).and_then(|word| std::str::from_utf8(word).ok()?.parse::<usize>().ok())
    };
    match words[..] {
        [name] if name.starts_with(b"$") => {
            let value = project.environment.get(OsStr::from_bytes(&name[1..]));
            hasher
                .number(value.is_some().into())
                .bytes(value.map_or(&[][..], |value| value.as_bytes()));
        }
        [b"part", ..] => {
            let parts = project
                .parts()
                .into_iter()
                .find(|(base, _)| *base == place.base)
                .map(|(_, parts)| parts);
            let parts = parts.unwrap_or_default();
            let is_as_deep = number(3).is_none_or(|depth| depth == parts.len());
            let part = number(1).and_then(|number| parts.iter().rev().nth(number.checked_sub(1)?));
            hasher.number(is_as_deep.into()).bytes(part.copied().unwrap_or_default());
        }
        [b"length"] => {
            hasher.number(
                project.folder(place.base).map_or(0, |folder| folder.as_os_str().len() as u64),
            );
        }
        _ => {
            _ = hasher.bytes(
                project.folder(place.base).map_or(&[][..], |folder| folder.as_os_str().as_bytes()),
            )
        }
    }
    hasher.finish()
}

/// What was mentioned, for people.
pub fn describe(place: &PortablePath) -> String {
    let path = String::from_utf8_lossy(&place.path);
    match (path.strip_prefix('$'), place.base) {
        (Some(name), _) => format!("the variable {name}"),
        (None, Base::Home) => "the home folder".to_owned(),
        (None, Base::Temporary) => "the folder for temporary files".to_owned(),
        (None, Base::Build) => "the build folder".to_owned(),
        (None, _) => "the project's folder".to_owned(),
    }
}

/// Whether a text has a name in it: a short one as a word of its own.
fn has_word(text: &[u8], name: &[u8]) -> bool {
    let is_letter =
        |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
    memmem::find_iter(text, name).any(|at| {
        let (before, after) =
            (at.checked_sub(1).and_then(|before| text.get(before)), text.get(at + name.len()));
        name.len() >= LONG || !(is_letter(before) || is_letter(after))
    })
}

/// Whether a text has a number in it that is no part of a longer one.
fn has_number(text: &[u8], number: &[u8]) -> bool {
    memmem::find_iter(text, number).any(|at| {
        let before = at.checked_sub(1).and_then(|before| text.get(before));
        let (after, next) = (text.get(at + number.len()), text.get(at + number.len() + 1));
        let goes_on = |byte: Option<&u8>| {
            byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
        };
        let is_fraction = after == Some(&b'.') && next.is_some_and(u8::is_ascii_digit);
        !goes_on(before) && before != Some(&b'.') && !goes_on(after) && !is_fraction
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_names_are_words_of_their_own() {
        assert!(has_word(b"in src/x", b"src") && !has_word(b"srcs and _src", b"src"));
        assert!(has_word(b"xcheckouty", b"checkout") && !has_word(b"check out", b"checkout"));
    }

    #[test]
    fn numbers_are_not_parts_of_others() {
        assert!(
            has_number(b"length 42.", b"42")
                && has_number(b"42", b"42")
                && has_number(b"(42)", b"42")
        );
        for text in ["421", "142", "4.42", "42.5", "42ms", "x42"] {
            assert!(!has_number(text.as_bytes(), b"42"), "{text}");
        }
    }
}
