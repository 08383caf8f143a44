//! The steps that random tests are made of: a table for each language, of lines in which names in
//! braces stand for something random.
//!
//! | in braces | stands for |
//! |---|---|
//! | `file`, `dir`, `link`, `exe` | what is there at the beginning, mostly, and may be changed from outside |
//! | `keep` | a file that nobody changes |
//! | `own` | the name of one of two tests in a folder |
//! | `absent` | what is not there, and may appear |
//! | `out`, `new` | what tests make |
//! | `var`, `word`, `n`, `port` | a variable, a text, a number, the worker's port |
//! | `tool`, `traced`, `sanitized`, `libc` | a program of `toolbox/`: plain, built with the shims, with a sanitizer, of another C library |
//! | `bwrap` | a sandbox, where it is installed |

pub mod c;
pub mod perl;
pub mod python;
pub mod shell;

use super::toolbox::Toolbox;
use crate::dice::Dice;
use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What a step is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum, Serialize, Deserialize)]
pub enum Feature {
    Files,
    Folders,
    Links,
    Attributes,
    Descriptors,
    Input,
    Processes,
    Signals,
    Pipes,
    Sockets,
    Terminals,
    Environment,
    Sanitizers,
    Libcs,
    Privileges,
    Sandboxes,
    Locks,
    Limits,
    /// Programs that were built with the shims.
    Traced,
    /// Two tests at once in one folder.
    Parallel,
    /// The times of files that are left behind are compared.
    Times,
    /// What lies in the place of files that tests make is changed from outside.
    Targets,
}

/// What tests are written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    Dash,
    Bash,
    Python,
    Perl,
    C,
}

/// What a step makes use of, and what may be changed for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Use {
    File(String),
    Folder(String),
    Link(String),
    Absent(String),
    Made(String),
    Variable(String),
}

/// A step of a test.
#[derive(Clone, Debug)]
pub struct Step {
    pub feature: Feature,
    /// The line of the table: what steps that failed are told apart by.
    pub line: &'static str,
    pub text: String,
    pub uses: Vec<Use>,
}

pub const FILES: &[&str] =
    &["in/a", "in/b", "in/c", "in/sub/d", "in/empty", "dir/x1.txt", "dir/x2.txt", "link", "chain"];
pub const FOLDERS: &[&str] = &["in", "in/sub", "dir", "dirlink", "emptydir"];
pub const LINKS: &[&str] = &["link", "chain", "dangling", "dirlink"];
pub const PROGRAMS: &[&str] = &["bin/prog", "bin/other"];
pub const ABSENT: &[&str] = &["in/none", "missing", "none/deep/file", "dir/x9.txt"];
const MADE: &[&str] = &["out/1", "out/2", "out/3", "made-file"];
const NEW: &[&str] = &["made", "out/made", "dir/made"];
/// None of those that do not count by design (`tasting config`).
pub const VARIABLES: &[&str] =
    &["COLOUR", "COLLECTION", "CI_DB", "RUNNER_MODE", "GITHUB_LAB", "EMPTY", "MODE_X"];
const WORDS: &[&str] = &["alpha", "beta", "gamma", "delta", "a", "omega"];

/// What may be something else each time that it stands in a step.
const DIFFERS: &[&str] = &["file", "word", "n"];

impl Language {
    fn tables(self) -> [&'static [(Feature, &'static str)]; 2] {
        match self {
            Language::Dash => [shell::ALL, &[]],
            Language::Bash => [shell::ALL, shell::BASH],
            Language::Python => [python::ALL, &[]],
            Language::Perl => [perl::ALL, &[]],
            Language::C => [c::ALL, &[]],
        }
    }
}

/// What steps are made of.
pub struct Maker<'m> {
    pub toolbox: &'m Toolbox,
    pub features: &'m [Feature],
    pub port: u16,
    /// The name that a test of two has for itself; such tests have steps of their own.
    pub own: Option<&'static str>,
}

impl Maker<'_> {
    /// A random step of a test that has the folder for itself; none where no feature that is wanted
    /// has one in this language.
    pub fn step(&self, dice: &mut Dice, language: Language) -> Option<Step> {
        let lines = || {
            language
                .tables()
                .into_iter()
                .flatten()
                .filter(|(feature, _)| self.features.contains(feature))
        };
        // Features come equally often, however many lines they have.
        let mut features: Vec<Feature> = lines().map(|(feature, _)| *feature).collect();
        features.sort_unstable();
        features.dedup();
        let feature = *features.get(dice.below(features.len().max(1)))?;
        let choice: Vec<&'static str> =
            lines().filter(|(of, _)| *of == feature).map(|(_, line)| *line).collect();
        let line = choice[dice.below(choice.len())];
        Some(self.fill(dice, feature, line))
    }

    /// A random step of one of two tests in a folder.
    pub fn parallel_step(&self, dice: &mut Dice) -> Step {
        let line = shell::PARALLEL[dice.below(shell::PARALLEL.len())];
        self.fill(dice, Feature::Parallel, line)
    }

    fn fill(&self, dice: &mut Dice, feature: Feature, line: &'static str) -> Step {
        let mut uses = Vec::new();
        let mut given: BTreeMap<&str, String> = BTreeMap::new();
        let mut text = String::new();
        let mut rest = line;
        while let Some(at) = rest.find('{') {
            let after = &rest[at + 1..];
            let name = after.find('}').map(|end| &after[..end]);
            let known = name.and_then(|name| given.get(name).cloned());
            match known.or_else(|| self.value(dice, name?, &mut uses)) {
                Some(value) => {
                    if let Some(name) = name.filter(|name| !DIFFERS.contains(name)) {
                        given.insert(name, value.clone());
                    }
                    text += &rest[..at];
                    text += &value;
                    rest = &after[name.map_or(0, |name| name.len() + 1)..];
                }
                None => {
                    text += &rest[..=at];
                    rest = after;
                }
            }
        }
        Step { feature, line, text: text + rest, uses }
    }

    /// What a name in braces stands for; none if it is none of ours.
    fn value(&self, dice: &mut Dice, name: &str, uses: &mut Vec<Use>) -> Option<String> {
        let mut pick = |from: &[&str]| dice.pick(from).to_string();
        let value = match name {
            "file" => pick(FILES),
            "dir" => pick(FOLDERS),
            "link" => pick(LINKS),
            "exe" => pick(PROGRAMS),
            "absent" => pick(ABSENT),
            "out" => pick(MADE),
            "new" => pick(NEW),
            "var" => pick(VARIABLES),
            "word" => pick(WORDS),
            "keep" => "in/keep".to_owned(),
            "n" => dice.between(1, 4).to_string(),
            "port" => self.port.to_string(),
            "tool" => self.toolbox.any(dice),
            "traced" => "bin/tool".to_owned(),
            "sanitized" => self.toolbox.sanitized(dice),
            "libc" => self.toolbox.libc(dice),
            "own" => self.own.unwrap_or("own").to_owned(),
            "bwrap" => self.toolbox.sandbox.clone(),
            _ => return None,
        };
        uses.extend(match name {
            "file" | "exe" | "traced" => Some(Use::File(value.clone())),
            "dir" => Some(Use::Folder(value.clone())),
            "link" => Some(Use::Link(value.clone())),
            "absent" => Some(Use::Absent(value.clone())),
            "out" | "new" if self.features.contains(&Feature::Targets) => {
                Some(Use::Made(value.clone()))
            }
            "var" => Some(Use::Variable(value.clone())),
            _ => None,
        });
        // Programs are started by a path with a folder in it.
        Some(if matches!(name, "exe" | "traced") { format!("./{value}") } else { value })
    }
}

/// A whole test.
pub fn text(language: Language, steps: &[Step]) -> String {
    let texts = steps.iter().map(|step| step.text.as_str());
    match language {
        Language::Dash => {
            format!("#!/bin/dash\n{}\nexit 0\n", texts.collect::<Vec<_>>().join("\n"))
        }
        Language::Bash => {
            format!("#!/bin/bash\n{}\nexit 0\n", texts.collect::<Vec<_>>().join("\n"))
        }
        Language::Python => {
            let function = |text: &str| {
                let body: String = text.lines().map(|line| format!("    {line}\n")).collect();
                format!("def step():\n{body}attempt(step)\n")
            };
            format!(
                "#!/usr/bin/python3 -IS\n{}{}",
                python::HEAD,
                texts.map(function).collect::<String>()
            )
        }
        Language::Perl => {
            let block = |text: &str| format!("eval {{ {text} }};\nprint \"died: $@\\n\" if $@;\n");
            let blocks: String = texts.map(block).collect();
            format!("#!/usr/bin/perl\nuse Cwd; my $start = getcwd; $| = 1;\n{blocks}exit 0;\n")
        }
        Language::C => texts.collect::<Vec<_>>().join(" , "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::fs;
    use std::process::Command;

    /// What is in `dir` after a script, when its entries were made in the given order.
    fn left_by(script: &str, entries: &[&str]) -> String {
        let folder = tempfile::tempdir().unwrap();
        for entry in entries {
            let path = folder.path().join(entry);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, entry).unwrap();
        }
        let script = format!("{script}\nfind dir | sort");
        let ran =
            Command::new("sh").args(["-c", &script]).current_dir(folder.path()).output().unwrap();
        String::from_utf8(ran.stdout).unwrap()
    }

    /// `cp -r dir dir/made` into a folder that is there copies what it meets before its own target,
    /// in the order of entries.
    #[test]
    fn copies_do_not_depend_on_entry_order() {
        let (_, line) =
            shell::ALL.iter().find(|(_, line)| line.contains("cp -r {dir} {new}")).unwrap();
        let script = line.replace("{dir}", "dir").replace("{new}", "dir/made");
        let names = ["dir/a", "dir/b", "dir/made/q", "dir/y", "dir/z"];
        let orders = (0..names.len()).map(|first| [&names[first..], &names[..first]].concat());
        let left: BTreeSet<String> = orders.map(|order| left_by(&script, &order)).collect();
        assert_eq!(left.len(), 1, "{left:#?}");
    }
}
