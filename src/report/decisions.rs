//! The log for people: one aligned line for each decision.

use super::style::Style;
use super::units::{command, duration, time, visible};
use crate::model::{Audit, Decision, Verdict};
use std::io::{self, Write};

/// Commands that are longer do not widen the column of all.
const WIDEST: usize = 48;

/// Writes the decisions, in the order that they have.
pub fn write(out: &mut impl Write, decisions: &[Decision], colour: bool) -> io::Result<()> {
    let style = Style::new(colour);
    let commands: Vec<String> = decisions.iter().map(shown_command).collect();
    let width = commands
        .iter()
        .map(|command| command.chars().count())
        .filter(|width| *width <= WIDEST)
        .max()
        .unwrap_or(0);
    for (decision, command) in decisions.iter().zip(&commands) {
        line(out, decision, command, width, style)?;
    }
    Ok(())
}

fn shown_command(decision: &Decision) -> String {
    let command = command(&decision.argv);
    match decision.exit_code {
        0 if decision.told_failure => format!("{command} (tells of failures)"),
        0 => command,
        code => format!("{command} (exit {code})"),
    }
}

fn line(
    out: &mut impl Write,
    decision: &Decision,
    command: &str,
    width: usize,
    style: Style,
) -> io::Result<()> {
    let Style { bold, dim, red, green, yellow, plain } = style;
    let (colour, verdict, took) = match decision.decision {
        Verdict::Reused => (green, "reused", format!("saved {}", duration(decision.saved_ms))),
        Verdict::Executed => (yellow, "executed", duration(decision.duration_ms)),
    };
    let alarm =
        if matches!(decision.audit, Some(Audit::Missed | Audit::Unstable)) { red } else { "" };
    let end = if alarm.is_empty() { "" } else { plain };
    let disturbed = decision
        .disturbed
        .as_deref()
        .map_or(String::new(), |how| format!("; disturbed: {}", visible(how)));
    let (time, reason) = (time(decision.time), visible(&decision.reason));
    writeln!(
        out,
        "{dim}{time}{plain}  {colour}{verdict:<8}{plain}  {took:>14}  {bold}{command:<width$}{plain}  {alarm}{reason}{disturbed}{end}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Step;

    #[test]
    fn lines_are_aligned_and_say_it_all() {
        let decision = |argv: &str, verdict, code| Decision {
            time: 0,
            argv: argv.split(' ').map(str::to_owned).collect(),
            cwd: "/w".into(),
            decision: verdict,
            step: (verdict == Verdict::Reused).then_some(Step::Static),
            reason: "because\n".into(),
            sort: "s".into(),
            exit_code: code,
            told_failure: false,
            duration_ms: 3,
            saved_ms: 1500,
            audit: None,
            shared: false,
            not_kept: None,
            disturbed: None,
            shadow: None,
        };
        let decisions =
            [decision("./t a", Verdict::Reused, 0), decision("./longer", Verdict::Executed, 1)];
        let mut text = Vec::new();
        write(&mut text, &decisions, false).unwrap();
        assert_eq!(
            String::from_utf8(text).unwrap(),
            "1970-01-01 00:00:00Z  reused       saved 1.5 s  ./t a              because\\n\n\
             1970-01-01 00:00:00Z  executed            3 ms  ./longer (exit 1)  because\\n\n"
        );
    }
}
