//! What was done to a program, as one of its tests sees it. In: a step. Out: its description.

use crate::bench::Built;
use crate::mutate::{Mutation, Step};
use crate::program::Program;

/// What was done, as a test sees it.
pub(super) struct Change<'c> {
    pub(super) kind: &'static str,
    /// The mutation of this very test.
    pub(super) mutation: Option<&'c Mutation>,
    pub(super) step: &'c Step,
    pub(super) built: &'c Built,
}

impl Change<'_> {
    pub(super) fn describe(&self, program: &Program, test: usize) -> String {
        let head = format!("test {test} ({:?}), {}", program.tests[test].argument, self.kind);
        let lines = |mutation: &Mutation| {
            let before = &program.units[mutation.unit].segments[mutation.segment].text;
            let pairs =
                before.lines().zip(mutation.text.lines()).filter(|(before, after)| before != after);
            let shown: Vec<String> =
                pairs.take(6).map(|(before, after)| format!("- {before}\n+ {after}")).collect();
            format!(
                "{} in {} (test {}):\n{}",
                mutation.kind,
                program.units[mutation.unit].name,
                mutation.owner,
                shown.join("\n")
            )
        };
        let what = match (self.mutation, self.step) {
            (Some(mutation), _) => lines(mutation),
            (None, Step::Each(mutations)) => {
                mutations.iter().map(lines).collect::<Vec<_>>().join("\n")
            }
            (None, Step::Whole { change, .. }) => format!("{change:?}"),
        };
        format!("{head}\n{what}")
    }
}
