//! What Tasting would have done over a range of commits: the figures of `tasting history`.
//!
//! In: the commits, with what became of each test. Out: sums, JSON, and a summary as text or as
//! Markdown.

pub mod changes;
pub mod costs;
mod markdown;
mod summary;
pub mod troubles;

pub use markdown::{write_decisions_markdown, write_markdown};
pub use summary::{AstSums, Miss, Overhead, Row, Summary, Times};

use super::json;
use super::style::Style;
use super::units::{counted, duration, share, visible};
use crate::model::{Audit, Granularities, Verdict};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::cell::RefCell;
use std::collections::HashSet;
use std::io::{self, Write};
use std::rc::Rc;

/// A text that is there many times and is kept once: names and reasons of millions of cells.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Text(Rc<str>);

thread_local! {
    static TEXTS: RefCell<HashSet<Rc<str>>> = RefCell::default();
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        TEXTS.with_borrow_mut(|texts| match texts.get(text) {
            Some(known) => Text(known.clone()),
            None => {
                let new: Rc<str> = text.into();
                texts.insert(new.clone());
                Text(new)
            }
        })
    }
}

impl std::ops::Deref for Text {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl Serialize for Text {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self)
    }
}

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        std::borrow::Cow::<str>::deserialize(deserializer).map(|text| Text::from(&*text))
    }
}

/// A range of commits, replayed. The names are those of the JSON.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct History {
    pub project: String,
    /// Oldest first.
    pub commits: Vec<Commit>,
    pub summary: Summary,
}

/// One commit.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Commit {
    pub sha: String,
    #[serde(default)]
    pub subject: String,
    /// Seconds since 1970.
    #[serde(default)]
    pub time: u64,
    pub built: bool,
    /// Why there are no tests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    #[serde(default)]
    pub build_ms: u64,
    #[serde(default)]
    pub test_ms: u64,
    pub tests: Vec<Test>,
    /// The project's files that differ from those of the latest commit before that was tested.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<Text>,
    /// What building and testing takes with and without Tasting, where it was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overhead: Option<Overhead>,
    /// What testing takes without Tasting and with reuse, where it was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub times: Option<Times>,
}

/// One test at one commit.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Test {
    pub name: Text,
    /// What would have been done.
    pub decision: Granularities<Verdict>,
    pub exit_code: i32,
    /// Whether it failed, where that is known by something else than the exit code: its output,
    /// or its harness.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<bool>,
    pub reason: Text,
    /// The sort of reason.
    #[serde(default = "no_text")]
    pub sort: Text,
    #[serde(default)]
    pub duration_ms: u64,
    /// How it ended, compared with the result that would have been replayed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audit: Option<Audit>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disturbed: Option<Text>,
    /// The same in a build at the AST level, where that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ast: Option<AtLevel>,
    /// The functions and data whose change made it run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<Changed>,
}

/// What would have been done about a test in a build at another level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AtLevel {
    pub decision: Verdict,
    pub exit_code: i32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audit: Option<Audit>,
}

fn no_text() -> Text {
    Text::from("")
}

/// Something that has changed in a program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Changed {
    pub what: Text,
    pub name: Text,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Text>,
    /// The object or archive member that it comes from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<Text>,
    /// The names that lead to it, from where the program starts.
    #[serde(default)]
    pub chain: Vec<Text>,
}

/// What is said of a changed file that is no part of a program.
const FILE_CHANGED: &str = "changed, which the test reads";

impl Changed {
    /// A file that a test reads, or looks for.
    pub fn file(path: &str) -> Self {
        Changed {
            what: FILE_CHANGED.into(),
            name: path.into(),
            source: None,
            object: None,
            chain: Vec::new(),
        }
    }

    /// Whether it is such a file, and no function or datum.
    pub fn is_file(&self) -> bool {
        &*self.what == FILE_CHANGED
    }
}

impl Test {
    /// Whether whoever counts tests counts it as failed.
    pub fn has_failed(&self) -> bool {
        self.failed.unwrap_or(self.exit_code != 0)
    }
}

impl History {
    /// Commits with their sums.
    pub fn new(project: String, commits: Vec<Commit>) -> Self {
        let summary = Summary::of(&commits);
        History { project, commits, summary }
    }

    /// Whether tests ran although their results would have been reused.
    pub fn is_shadow(&self) -> bool {
        self.commits.iter().flat_map(|commit| &commit.tests).any(|test| &*test.sort == "shadow")
    }
}

/// What is printed as JSON: the history, and the figures of its tables.
#[derive(Serialize)]
struct Printed<'h> {
    #[serde(flatten)]
    history: &'h History,
    costs: costs::Costs<'h>,
    troubles: Vec<troubles::Trouble<'h>>,
}

/// Writes everything as one line of JSON.
pub fn write_json(out: &mut impl Write, shown: &History) -> io::Result<()> {
    let (costs, troubles) = (costs::Costs::of(shown), troubles::of(shown));
    json::write_line(out, &Printed { history: shown, costs, troubles })
}

/// What building and testing takes with Tasting, as a multiple of what it takes without; `None`
/// where nothing was measured.
pub fn ratio(with: u64, without: u64) -> Option<String> {
    share(with, without).filter(|_| with > 0).map(|ratio| format!("{ratio:.2}"))
}

/// Writes the sums for people.
pub fn write(out: &mut impl Write, shown: &History, colour: bool) -> io::Result<()> {
    let Style { bold, red, green, plain, dim, .. } = Style::new(colour);
    let sums = &shown.summary;
    for commit in shown.commits.iter().filter(|commit| commit.error.is_some()) {
        let (sha, subject) = (short(&commit.sha), visible(&commit.subject));
        let error = visible(
            commit.error.as_deref().and_then(|error| error.lines().next()).unwrap_or_default(),
        );
        writeln!(out, "{dim}{sha}{plain} {subject}: {error}")?;
    }
    writeln!(
        out,
        "{bold}{}{plain}, {} not built; {} of tests in {}, {}",
        counted(sums.commits, "commit"),
        sums.not_built,
        counted(sums.executions, "execution"),
        duration(sums.total_ms),
        counted(sums.failures, "failure"),
    )?;
    writeln!(
        out,
        "\n{bold}{:<10} {:>9} {:>11} {:>14}{plain}",
        "", "would run", "time saved", "time left"
    )?;
    for Row { name, ran, saved, left, .. } in sums.rows() {
        writeln!(out, "{name:<10} {ran:>9} {saved:>11} {left:>14}")?;
    }
    writeln!(out)?;
    if let Some(overhead) = &sums.overhead {
        writeln!(out, "{}", overhead.sentence())?;
    }
    if let Some(times) = &sums.times {
        writeln!(out, "{}", times.sentence())?;
    }
    let colour = if sums.missed > 0 { red } else { green };
    writeln!(out, "{colour}{} would have been missed{plain}", counted(sums.missed, "failure"))?;
    for Miss { sha, name, exit_code, level } in &sums.misses {
        let level = level.as_ref().map_or(String::new(), |level| format!(", level {level}"));
        writeln!(out, "  {red}{}{plain} {} (exit {exit_code}{level})", short(sha), visible(name))?;
    }
    if sums.unstable > 0 {
        writeln!(
            out,
            "{} by unstable tests, which end this way and that by themselves",
            counted(sums.unstable, "surprise")
        )?;
    }
    Ok(())
}

/// As much of a commit's name as people read.
pub fn short(sha: &str) -> &str {
    sha.get(..10).unwrap_or(sha)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn test(name: &str, reused: [bool; 4], exit_code: i32, audit: Option<Audit>) -> Test {
        let verdict = |reused| if reused { Verdict::Reused } else { Verdict::Executed };
        let [whole, file, reachable, executed] = reused.map(verdict);
        Test {
            name: name.into(),
            decision: Granularities { whole, file, reachable, executed },
            exit_code,
            failed: None,
            reason: "r".into(),
            sort: "s".into(),
            duration_ms: 100,
            audit,
            disturbed: None,
            ast: None,
            changed: Vec::new(),
        }
    }

    fn history() -> History {
        let tests = vec![
            test("a", [false, false, true, true], 0, Some(Audit::Same)),
            test("b`\n", [false, false, false, true], 3, Some(Audit::Missed)),
        ];
        let commit =
            Commit { sha: "0123456789abcdef".into(), built: true, tests, ..Commit::default() };
        let broken =
            Commit { sha: "f".into(), error: Some("no\nmore".into()), ..Commit::default() };
        History::new("p".into(), vec![commit, broken])
    }

    #[test]
    fn the_names_are_those_of_the_contract() {
        let json = serde_json::to_value(history()).unwrap();
        let test = &json["commits"][0]["tests"][0];
        assert_eq!(
            (&test["decision"]["whole"], &test["decision"]["static"]),
            (&"executed".into(), &"reused".into())
        );
        assert!(test["name"] == "a" && test["exit_code"] == 0 && test["reason"] == "r");
        assert!(json["commits"][0]["built"] == true && json["commits"][1]["built"] == false);
        let summary = &json["summary"];
        assert_eq!((&summary["executions"], &summary["missed"]), (&2.into(), &1.into()));
        assert_eq!(
            (&summary["reused"]["static"], &summary["reused"]["executed"]),
            (&1.into(), &2.into())
        );
        let back: History = serde_json::from_value(json).unwrap();
        assert_eq!(back.commits[0].tests[1].exit_code, 3);
    }

    #[test]
    fn another_level_and_times_are_summed_up() {
        let mut shown = history();
        let at = |decision, audit| Some(AtLevel { decision, exit_code: 3, audit });
        shown.commits[0].tests[0].ast = at(Verdict::Executed, None);
        shown.commits[0].tests[1].ast = at(Verdict::Reused, Some(Audit::Missed));
        let times = Times {
            plain_ms: 100,
            reusing_ms: 50,
            plain_cpu_ms: 80,
            reusing_cpu_ms: 20,
            other_ends: 1,
        };
        shown.commits.iter_mut().for_each(|commit| commit.times = Some(times));
        let shown = History::new(shown.project, shown.commits);
        assert_eq!(
            shown.summary.rows().last().map(|row| (row.name, row.ran.clone())),
            Some(("ast", "50.0%".into()))
        );
        assert_eq!(
            (shown.summary.missed, shown.summary.misses[1].level.as_deref()),
            (2, Some("ast"))
        );
        let mut text = Vec::new();
        write(&mut text, &shown, false).unwrap();
        let text = String::from_utf8(text).unwrap();
        for line in [
            "b`\\n (exit 3, level ast)",
            "100 ms instead of 200 ms",
            "40 ms instead of 160 ms",
            "2 commits ended otherwise",
        ] {
            assert!(text.contains(line), "{line:?} is not in {text}");
        }
    }

    #[test]
    fn sums_are_shown_and_misses_named() {
        let mut text = Vec::new();
        write(&mut text, &history(), false).unwrap();
        let text = String::from_utf8(text).unwrap();
        for line in [
            "f : no\n",
            "static         50.0%       50.0%         100 ms",
            "1 failure would have been missed",
            "b`\\n (exit 3)",
        ] {
            assert!(text.contains(line), "{line:?} is not in {text}");
        }
        let mut text = Vec::new();
        write_markdown(&mut text, &history()).unwrap();
        let text = String::from_utf8(text).unwrap();
        assert!(
            text.contains("| executed | 0.0% | 100.0% | 0 ms |") && text.contains("`b'\\n`"),
            "{text}"
        );
    }
}
