//! `tasting explain`: why a test would run, or why not.

mod hints;
mod objects;

use super::{exit, now, open_store, print};
use crate::change::{self, Comparison};
use crate::fingerprint::walk::NodeSet;
use crate::fingerprint::{self, Opened};
use crate::model::{Decision, FormatError, Manifest, Refusal};
use crate::process::Settings;
use crate::report::explanation::{
    self, BinaryExplanation, Explanation, ShownDifference, ShownRun, ShownUse,
};
use crate::report::functions;
use crate::report::program::ShownProgram;
use crate::report::shown::level_name;
use crate::report::units;
use crate::run::Options;
use crate::run::inspect::{self, BinaryInspection, Builds, Difference, Inspection, Latest};
use crate::store::Journal;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// How many commands are named that are near to one that has never run.
const MOST_NEAR: usize = 3;

/// How far back in the log such commands are looked for.
const LOOKED_AT: usize = 2000;

/// Tell whether a test would run or be reused, and why. Nothing is run.
///
/// For a command: the run that would be reused (when, where, which commit), or what is different
/// from the nearest run: a file, a folder, a variable, a library, standard input; of a program, the
/// functions and data that have changed, with their place in the source and the chain of references
/// by which the program reaches them.
///
/// For a binary: its fingerprint, how finely it was hashed and why not more finely, and what has
/// changed in it since a test last used it.
#[derive(clap::Args)]
#[command(
    override_usage = "tasting explain [OPTIONS] BINARY\n       tasting explain [OPTIONS] -- COMMAND [ARGUMENT]...",
    after_help = "Source lines need debug information (-g).\n\n  \
        tasting explain -- ./test --all     # why did this run?\n  \
        tasting explain build/libparser.so  # what is new in it?"
)]
pub struct Arguments {
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Answer for `tasting run --reuse-failures`
    #[arg(long)]
    reuse_failures: bool,
    /// Of an object: where its functions differ from those of this one, an earlier version of it
    #[arg(long, value_name = "OBJECT", requires = "binary")]
    old: Option<PathBuf>,
    /// An executable or a shared library (an object with --old)
    #[arg(value_name = "BINARY", required_unless_present = "command", conflicts_with = "command")]
    binary: Option<PathBuf>,
    /// A test and its arguments, as for `tasting run`
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

pub fn run(arguments: Arguments) -> anyhow::Result<u8> {
    match &arguments.binary {
        Some(object) if arguments.old.is_some() => {
            let shown = objects::explain(arguments.old.as_deref().unwrap_or(object), object)?;
            print(arguments.json, &shown, |out, shown, _| functions::write(out, shown))?;
        }
        Some(binary) => {
            let shown = explain_binary(binary)?;
            print(arguments.json, &shown, |out, shown, colour| {
                explanation::write_binary(out, shown, now(), colour)
            })?;
        }
        None => {
            let options =
                Options { reuse_failures: arguments.reuse_failures, ..Options::default() };
            let shown = explain_command(&arguments.command, options);
            print(arguments.json, &shown, |out, shown, colour| {
                explanation::write(out, shown, now(), colour)
            })?;
        }
    }
    Ok(exit::OK)
}

/// In words that people type for a test, which a harness starts elsewhere and by the whole path.
fn explain_command(words: &[OsString], options: Options) -> Explanation {
    let mut hints = hints::hints(words, &Settings::from_environment());
    let mut inspection = inspect::inspect(words, options);
    if inspection.reason.sort == "new"
        && let Some(decision) = latest_run_of(&inspection.argv, &recent_decisions())
        && std::env::set_current_dir(&decision.cwd).is_ok()
    {
        let words: Vec<OsString> = decision.argv.iter().map(OsString::from).collect();
        inspection = inspect::inspect(&words, options);
        hints.insert(0, format!("this is how it ran: in {}", units::visible(&decision.cwd)));
    }
    Explanation { hints, ..explained(inspection) }
}

/// The latest decision about a command of the same words, where a path is the same as another one
/// to the same file. At least one word has to be such a path: `make check` is another test in
/// another folder.
fn latest_run_of(argv: &[String], decisions: &[Decision]) -> Option<Decision> {
    let is_it = |decision: &&Decision| {
        let folder = Path::new(&decision.cwd);
        let mut pairs = argv.iter().zip(&decision.argv);
        let names_file = pairs.clone().any(|(asked, ran)| names_same_file(asked, ran, folder));
        let is_program = pairs.next().is_some_and(|(asked, ran)| {
            names_same_file(asked, ran, folder) || is_same_in_path(asked, ran)
        });
        names_file
            && is_program
            && argv.len() == decision.argv.len()
            && pairs.all(|(asked, ran)| asked == ran || names_same_file(asked, ran, folder))
    };
    decisions.iter().rev().find(is_it).cloned()
}

/// Whether a word here and a word of a command in a folder are paths to the same file. What is
/// looked for in PATH is none.
fn names_same_file(asked: &str, ran: &str, folder: &Path) -> bool {
    Path::new(asked)
        .canonicalize()
        .is_ok_and(|file| folder.join(ran).canonicalize().is_ok_and(|other| file == other))
}

/// Whether two names of programs, of which PATH is asked where they are no paths, are of the same
/// one.
fn is_same_in_path(asked: &str, ran: &str) -> bool {
    let file = |program: &str| which::which(program).ok()?.canonicalize().ok();
    file(asked).is_some_and(|program| file(ran) == Some(program))
}

fn explained(inspection: Inspection) -> Explanation {
    let Inspection { argv, reused, reason, latest, nearer, differences, programs, assumed } =
        inspection;
    let mut programs: BTreeMap<String, ShownProgram> = programs
        .into_iter()
        .map(|builds| (builds.program.clone(), shown_program(&builds)))
        .collect();
    let difference = |Difference { reason, subject, .. }: Difference| ShownDifference {
        sort: reason.sort,
        program: programs.remove(&subject),
        subject,
        text: reason.text,
    };
    Explanation {
        decision: if reused.is_some() { "reused" } else { "executed" },
        nearest: if reason.sort == "new" {
            nearest(&argv, &recent_decisions())
        } else {
            Vec::new()
        },
        argv,
        reason: reason.text,
        sort: reason.sort,
        refusals: latest
            .as_ref()
            .filter(|_| reused.is_none())
            .map(|run| run.refusals.clone())
            .unwrap_or_default(),
        reused: reused.map(|run| {
            ShownRun::new(run.origin, run.exit_code, Some(run.duration.as_millis() as u64))
        }),
        latest: latest.map(shown_run),
        nearer: nearer.map(shown_run),
        differences: differences.into_iter().map(difference).collect(),
        assumed,
        hints: Vec::new(),
    }
}

fn shown_run(latest: Latest) -> ShownRun {
    ShownRun::new(latest.origin, latest.exit_code, None)
}

/// What has changed in a program.
fn shown_program(builds: &Builds) -> ShownProgram {
    if !builds.note.is_empty() {
        return ShownProgram::closed(builds.note.clone());
    }
    match (manifests(&builds.before), manifests(&builds.now)) {
        (Ok(before), Ok(now)) => {
            let refusals = now
                .iter()
                .flat_map(|manifest| &manifest.refusals)
                .map(Refusal::to_string)
                .collect();
            let set = NodeSet::from_bytes(&builds.executed);
            let executed = (!builds.executed.is_empty()).then_some(&set);
            let compare =
                |executed| change::compare(&before, &now, builds.entry.as_deref(), executed);
            let narrowed = compare(executed);
            // What nobody executed may still be all that can be told.
            let comparison =
                if narrowed == Comparison::default() { compare(None) } else { narrowed };
            ShownProgram::new(comparison, refusals, &builds.libraries)
        }
        (Err(error), _) | (_, Err(error)) => {
            ShownProgram::closed(format!("a manifest cannot be used: {error}"))
        }
    }
}

fn manifests(bytes: &[Vec<u8>]) -> Result<Vec<Manifest<'_>>, FormatError> {
    bytes.iter().map(|bytes| Manifest::decode(bytes)).collect()
}

fn explain_binary(path: &Path) -> anyhow::Result<BinaryExplanation> {
    let settings = Settings::from_environment();
    let opened = Opened::open(path, &settings)?;
    let binary = opened.binary()?;
    let (levels, refusals) =
        opened.manifest(&binary).map(|manifest| narrowness(&manifest)).unwrap_or_default();
    let fingerprint = fingerprint::fingerprint(path, None, &settings);
    Ok(BinaryExplanation {
        binary: path.display().to_string(),
        problem: fingerprint.as_ref().err().map(ToString::to_string),
        fingerprint: fingerprint.ok().map(|fingerprint| fingerprint.to_string()),
        levels,
        refusals,
        used_by: inspect::inspect_binary(path, &settings).map(shown_use),
    })
}

/// How finely a binary was hashed, and why not more finely.
fn narrowness(manifest: &Manifest) -> (BTreeMap<&'static str, u64>, Vec<String>) {
    let mut levels = BTreeMap::new();
    manifest.nodes.iter().for_each(|node| *levels.entry(level_name(node.level)).or_default() += 1);
    (levels, manifest.refusals.iter().map(Refusal::to_string).collect())
}

fn shown_use(inspection: BinaryInspection) -> ShownUse {
    let BinaryInspection { argv, latest, changed } = inspection;
    ShownUse {
        argv,
        run: shown_run(latest),
        program: changed.as_ref().map(|builds| builds.program.clone()),
        changed: changed.as_ref().map(shown_program),
    }
}

fn recent_decisions() -> Vec<Decision> {
    let store = open_store(&Settings::from_environment()).ok();
    store.and_then(|opened| opened.store.decisions(LOOKED_AT).ok()).unwrap_or_default()
}

/// The commands in the log that run the same program and have most of their words in common with
/// this one.
fn nearest(argv: &[String], decisions: &[Decision]) -> Vec<String> {
    let name = |argv: &[String]| {
        argv.first().and_then(|program| program.rsplit('/').next().map(str::to_owned))
    };
    let mut near: Vec<(usize, &Decision)> = Vec::new();
    for decision in decisions.iter().rev().filter(|decision| name(&decision.argv) == name(argv)) {
        if near
            .iter()
            .all(|(_, known)| (&known.argv, &known.cwd) != (&decision.argv, &decision.cwd))
        {
            near.push((decision.argv.iter().filter(|word| argv.contains(word)).count(), decision));
        }
    }
    near.sort_by_key(|(common, _)| std::cmp::Reverse(*common));
    let shown = |decision: &Decision| {
        format!("{} (in {})", units::command(&decision.argv), units::visible(&decision.cwd))
    };
    near.into_iter().take(MOST_NEAR).map(|(_, decision)| shown(decision)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Verdict;

    #[test]
    fn the_nearest_commands_come_first_and_once() {
        let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let decision = |line: &str| Decision {
            time: 0,
            argv: words(line),
            cwd: "/w".into(),
            decision: Verdict::Executed,
            step: None,
            reason: String::new(),
            sort: String::new(),
            exit_code: 0,
            told_failure: false,
            duration_ms: 0,
            saved_ms: 0,
            audit: None,
            shared: false,
            not_kept: None,
            disturbed: None,
            shadow: None,
        };
        let log = ["./t a b", "./t a b", "./other a b c", "./t x", "sub/t y"].map(decision);
        assert_eq!(
            nearest(&words("./t a c"), &log),
            ["./t a b (in /w)", "./t x (in /w)", "sub/t y (in /w)"]
        );
        assert!(nearest(&words("./unknown"), &log).is_empty());
    }
}
