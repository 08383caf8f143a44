//! Why a test would run or be reused, and what is known of a binary: for `tasting explain`.

use super::program::{self, ShownProgram};
use super::style::Style;
use super::units::{command, duration, origin, visible};
use crate::model::Origin;
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::{self, Write};

/// How many refusals of a manifest are named for people.
const MOST_REFUSALS: usize = 3;

/// What would be done about a command.
#[derive(Serialize)]
pub struct Explanation {
    pub argv: Vec<String>,
    /// `reused` or `executed`.
    pub decision: &'static str,
    pub reason: String,
    /// The sort of reason, in few words.
    pub sort: &'static str,
    /// The run that would be reused.
    pub reused: Option<ShownRun>,
    /// The latest execution.
    pub latest: Option<ShownRun>,
    /// An earlier execution from which less is different; the differences are from this one then.
    pub nearer: Option<ShownRun>,
    /// Why the latest execution cannot be reused.
    pub refusals: Vec<String>,
    /// What is different from the nearest execution.
    pub differences: Vec<ShownDifference>,
    /// Recorded commands that are near to one that has never run.
    pub nearest: Vec<String>,
    /// What was taken from the latest execution because it cannot be told from here.
    pub assumed: Vec<&'static str>,
    /// What could be better about the command itself.
    pub hints: Vec<String>,
}

/// A run, and where it was.
#[derive(Serialize)]
pub struct ShownRun {
    /// Milliseconds since 1970.
    pub time: u64,
    pub host: String,
    pub root: String,
    pub commit: Option<String>,
    /// Whether it was on another machine.
    pub shared: bool,
    pub exit_code: i32,
    pub duration_ms: Option<u64>,
    #[serde(skip)]
    origin: Origin,
}

/// One thing that is different.
#[derive(Serialize)]
pub struct ShownDifference {
    pub sort: &'static str,
    pub subject: String,
    pub text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub program: Option<ShownProgram>,
}

/// What is known of a binary.
#[derive(Serialize)]
pub struct BinaryExplanation {
    pub binary: String,
    pub fingerprint: Option<String>,
    /// Why there is no fingerprint.
    pub problem: Option<String>,
    /// How many atoms were hashed how finely.
    pub levels: BTreeMap<&'static str, u64>,
    /// Why something was not hashed more finely.
    pub refusals: Vec<String>,
    /// The latest test that used it.
    pub used_by: Option<ShownUse>,
}

/// A test that used a binary.
#[derive(Serialize)]
pub struct ShownUse {
    pub argv: Vec<String>,
    pub run: ShownRun,
    /// What has changed in the binary, or in the program that it is a library of; none if nothing
    /// has.
    pub changed: Option<ShownProgram>,
    /// The program that has changed.
    pub program: Option<String>,
}

impl ShownRun {
    pub fn new(origin: Origin, exit_code: i32, duration_ms: Option<u64>) -> Self {
        ShownRun {
            time: origin.time,
            host: origin.host.clone(),
            root: String::from_utf8_lossy(&origin.root).into_owned(),
            commit: origin.commit.clone(),
            shared: origin.is_shared(),
            exit_code,
            duration_ms,
            origin,
        }
    }
}

/// Writes what would be done about a command, and why. `now` is in milliseconds since 1970.
pub fn write(
    out: &mut impl Write,
    explanation: &Explanation,
    now: u64,
    colour: bool,
) -> io::Result<()> {
    let style = Style::new(colour);
    let Style { bold, green, yellow, plain, .. } = style;
    let verdict = match explanation.decision {
        "reused" => format!("{green}would be reused{plain}"),
        _ => format!("{yellow}would run{plain}"),
    };
    writeln!(
        out,
        "{bold}{}{plain} {verdict}: {}",
        command(&explanation.argv),
        visible(&explanation.reason)
    )?;
    if let Some(run) = &explanation.reused {
        writeln!(out, "  since it ran {}", origin(&run.origin, now))?;
        let took =
            run.duration_ms.map_or(String::new(), |time| format!("took {}, ", duration(time)));
        writeln!(out, "  {took}ended with {}", run.exit_code)?;
    } else if let Some(run) = &explanation.latest {
        writeln!(
            out,
            "  it last ran {}, and ended with {}",
            origin(&run.origin, now),
            run.exit_code
        )?;
    }
    if let Some(run) = &explanation.nearer {
        writeln!(out, "  compared with the nearest run, {}", origin(&run.origin, now))?;
    }
    for refusal in
        explanation.refusals.iter().filter(|refusal| !explanation.reason.contains(*refusal))
    {
        writeln!(out, "  that run could not be kept: {}", visible(refusal))?;
    }
    for difference in &explanation.differences {
        if difference.text != explanation.reason {
            writeln!(out, "  also: {}", visible(&difference.text))?;
        }
        if let Some(program) = &difference.program {
            program::write(out, program, "    ", style)?;
        }
    }
    if !explanation.nearest.is_empty() {
        writeln!(out, "  the nearest commands that have run:")?;
    }
    explanation.nearest.iter().try_for_each(|near| writeln!(out, "    {near}"))?;
    explanation.assumed.iter().try_for_each(|assumed| writeln!(out, "  assumed: {assumed}"))?;
    explanation.hints.iter().try_for_each(|hint| writeln!(out, "  hint: {}", visible(hint)))
}

/// Writes what is known of a binary.
pub fn write_binary(
    out: &mut impl Write,
    shown: &BinaryExplanation,
    now: u64,
    colour: bool,
) -> io::Result<()> {
    let style = Style::new(colour);
    let Style { bold, red, plain, .. } = style;
    match (&shown.fingerprint, &shown.problem) {
        (Some(fingerprint), _) => {
            writeln!(out, "{bold}{}{plain}: fingerprint {fingerprint}", visible(&shown.binary))?
        }
        (None, problem) => {
            let problem = visible(problem.as_deref().unwrap_or_default());
            writeln!(
                out,
                "{bold}{}{plain}: {red}no fingerprint{plain}: {problem}",
                visible(&shown.binary)
            )?;
        }
    }
    if !shown.levels.is_empty() {
        let levels: Vec<String> =
            shown.levels.iter().map(|(level, count)| format!("{count} by {level}")).collect();
        writeln!(out, "  atoms: {}", levels.join(", "))?;
    }
    for refusal in shown.refusals.iter().take(MOST_REFUSALS) {
        writeln!(out, "  not more finely: {}", visible(refusal))?;
    }
    if let Some(more) = shown.refusals.len().checked_sub(MOST_REFUSALS).filter(|more| *more > 0) {
        writeln!(out, "  and {more} more refusals (--json lists all)")?;
    }
    match &shown.used_by {
        Some(used) => write_use(out, used, now, style),
        None => writeln!(out, "  no test of this project has run it"),
    }
}

fn write_use(out: &mut impl Write, used: &ShownUse, now: u64, style: Style) -> io::Result<()> {
    let Style { bold, green, yellow, plain, .. } = style;
    writeln!(
        out,
        "  last used by {bold}{}{plain}, {}",
        command(&used.argv),
        origin(&used.run.origin, now)
    )?;
    match (&used.changed, &used.program) {
        (Some(changed), name) => {
            let name = name.as_deref().unwrap_or("the program");
            writeln!(
                out,
                "  {yellow}changed since then{plain} ({}): tests that use it would run",
                visible(name)
            )?;
            program::write(out, changed, "    ", style)
        }
        (None, _) => {
            writeln!(out, "  {green}unchanged since then{plain}: no test runs because of it")
        }
    }
}
