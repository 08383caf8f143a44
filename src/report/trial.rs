//! The result of building and testing a copy of a project: for `tasting init --try`.

use super::style::Style;
use super::units::{counted, duration, visible};
use serde::Serialize;
use std::io::{self, Write};

/// A trial: a build, and its tests once or more.
#[derive(Serialize)]
pub struct Trial {
    pub build_ms: u64,
    /// How long the tests took, each time.
    pub test_ms: Vec<u64>,
    /// Tests of the last time.
    pub total: u64,
    pub reused: u64,
    /// Those of the last time that ran.
    pub executed: Vec<NotReused>,
    /// Why there is nothing to count.
    pub problem: Option<String>,
    /// What whoever reads this should know.
    pub notes: Vec<String>,
}

/// A test that ran although nothing had changed.
#[derive(Serialize)]
pub struct NotReused {
    pub name: String,
    /// The code of the reason.
    pub code: String,
    pub reason: String,
}

/// Writes the times and, in the last line or lines, what was reused.
pub fn write(out: &mut impl Write, trial: &Trial, colour: bool) -> io::Result<()> {
    let Style { bold, red, green, yellow, plain, .. } = Style::new(colour);
    let times: Vec<String> = trial.test_ms.iter().map(|time| duration(*time)).collect();
    let build = duration(trial.build_ms);
    match &times[..] {
        [] => writeln!(out, "{bold}tried{plain}: built in {build}")?,
        times => writeln!(
            out,
            "{bold}tried{plain}: built in {build}, tested in {}",
            times.join(", then ")
        )?,
    }
    trial
        .notes
        .iter()
        .try_for_each(|note| writeln!(out, "{yellow}note{plain}: {}", visible(note)))?;
    if let Some(problem) = &trial.problem {
        let mut lines = problem.lines().map(visible);
        writeln!(out, "{red}{}{plain}", lines.next().unwrap_or_default())?;
        return lines.try_for_each(|line| writeln!(out, "    {line}"));
    }
    let reused =
        format!("{green}{} of {} reused{plain}", trial.reused, counted(trial.total, "test"));
    match &trial.executed[..] {
        [] => writeln!(out, "{reused}"),
        [one] => writeln!(out, "{reused}; 1 cannot be: {}", because(one)),
        several => {
            writeln!(out, "{reused}; {} cannot be:", several.len())?;
            several.iter().try_for_each(|one| writeln!(out, "  {}", because(one)))
        }
    }
}

fn because(test: &NotReused) -> String {
    format!(
        "{}, because {} (`tasting help {}`)",
        visible(&test.name),
        visible(&test.reason),
        test.code
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(executed: &[(&str, &str, &str)], problem: Option<&str>) -> String {
        let shown = |(name, code, reason): &(&str, &str, &str)| {
            let [name, code, reason] = [name, code, reason].map(|text| (*text).to_owned());
            NotReused { name, code, reason }
        };
        let executed: Vec<NotReused> = executed.iter().map(shown).collect();
        let problem = problem.map(str::to_owned);
        let (total, reused) = (3, 3 - executed.len() as u64);
        let trial = Trial {
            build_ms: 1200,
            test_ms: vec![30, 4],
            total,
            reused,
            executed,
            problem,
            notes: vec!["n".into()],
        };
        let mut text = Vec::new();
        write(&mut text, &trial, false).unwrap();
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn the_last_line_says_what_was_reused() {
        let begin = "tried: built in 1.2 s, tested in 30 ms, then 4 ms\nnote: n\n";
        let (a, b) =
            (("./a", "network", "it used the network"), ("./b", "device", "it read a device"));
        assert_eq!(text(&[], None), format!("{begin}3 of 3 tests reused\n"));
        assert_eq!(
            text(&[a], None),
            format!(
                "{begin}2 of 3 tests reused; 1 cannot be: ./a, because it used the network (`tasting help network`)\n"
            )
        );
        assert_eq!(
            text(&[a, b], None),
            format!(
                "{begin}1 of 3 tests reused; 2 cannot be:\n  \
                 ./a, because it used the network (`tasting help network`)\n  \
                 ./b, because it read a device (`tasting help device`)\n"
            )
        );
        assert_eq!(
            text(&[], Some("it does not build\nerror")),
            format!("{begin}it does not build\n    error\n")
        );
    }
}
