//! What works on this machine and what does not: for `tasting doctor`.

use super::style::Style;
use super::units::{counted, visible};
use serde::Serialize;
use std::io::{self, Write};

/// How it is about something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum FindingState {
    Works,
    /// Something less does not work, or is good to know.
    Note,
    /// Something essential does not work.
    Broken,
}

/// One thing that was looked at.
#[derive(Clone, Debug, Serialize)]
pub struct Finding {
    pub subject: String,
    pub state: FindingState,
    /// What was found, and what follows from it.
    pub text: String,
}

impl Finding {
    pub fn works(subject: impl Into<String>, text: impl Into<String>) -> Self {
        Finding { subject: subject.into(), state: FindingState::Works, text: text.into() }
    }

    pub fn note(subject: impl Into<String>, text: impl Into<String>) -> Self {
        Finding { subject: subject.into(), state: FindingState::Note, text: text.into() }
    }

    pub fn broken(subject: impl Into<String>, text: impl Into<String>) -> Self {
        Finding { subject: subject.into(), state: FindingState::Broken, text: text.into() }
    }
}

/// All that was found.
#[derive(Serialize)]
pub struct Findings {
    /// Everything essential works.
    pub works: bool,
    pub findings: Vec<Finding>,
}

impl Findings {
    pub fn new(findings: Vec<Finding>) -> Self {
        Findings {
            works: findings.iter().all(|finding| finding.state != FindingState::Broken),
            findings,
        }
    }
}

/// Writes a line for each finding, and the sum of them.
pub fn write(out: &mut impl Write, found: &Findings, colour: bool) -> io::Result<()> {
    let Style { bold, red, green, yellow, plain, .. } = Style::new(colour);
    let width =
        found.findings.iter().map(|finding| finding.subject.chars().count()).max().unwrap_or(0);
    for finding in &found.findings {
        let (colour, state) = match finding.state {
            FindingState::Works => (green, "works"),
            FindingState::Note => (yellow, "note"),
            FindingState::Broken => (red, "broken"),
        };
        let subject = visible(&finding.subject);
        writeln!(
            out,
            "{colour}{state:<6}{plain}  {bold}{subject:<width$}{plain}  {}",
            visible(&finding.text)
        )?;
    }
    let broken =
        found.findings.iter().filter(|finding| finding.state == FindingState::Broken).count();
    match broken {
        0 => writeln!(out, "{green}Everything essential works.{plain}"),
        1 => writeln!(out, "{red}1 thing that is essential does not work.{plain}"),
        count => writeln!(
            out,
            "{red}{} that are essential do not work.{plain}",
            counted(count as u64, "thing")
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_problem_decides() {
        let found = |findings: &[Finding]| Findings::new(findings.to_vec());
        let (works, note, broken) =
            (Finding::works("a", "x"), Finding::note("bb", "y"), Finding::broken("c", "z"));
        assert!(
            found(&[works.clone(), note.clone()]).works
                && !found(&[works.clone(), broken.clone()]).works
        );
        let mut text = Vec::new();
        write(&mut text, &found(&[works, note, broken]), false).unwrap();
        assert_eq!(
            String::from_utf8(text).unwrap(),
            "works   a   x\nnote    bb  y\nbroken  c   z\n1 thing that is essential does not work.\n"
        );
    }
}
