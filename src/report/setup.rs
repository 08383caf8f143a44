//! How a project is built and tested through Tasting: for `tasting init`.

use super::style::Style;
use super::trial::{self, Trial};
use super::units::visible;
use serde::Serialize;
use std::io::{self, Write};

/// All that applies to a project.
#[derive(Serialize)]
pub struct Setup {
    pub folder: String,
    pub systems: Vec<System>,
    /// What has to be seen to before.
    pub notes: Vec<String>,
    /// What building and testing a copy has shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trial: Option<Trial>,
}

/// A build system.
#[derive(Serialize)]
pub struct System {
    pub system: &'static str,
    /// By what it was recognised.
    pub because: String,
    /// The commands that build and test.
    pub build: Vec<String>,
    pub test: Vec<String>,
    pub files: Vec<WrittenFile>,
}

/// Lines for a file.
#[derive(Serialize)]
pub struct WrittenFile {
    pub path: String,
    pub lines: String,
    /// A text by which they are known again.
    #[serde(skip)]
    pub knows: &'static str,
    pub state: SetupState,
    /// What to type where they are there, if that is shorter.
    #[serde(skip)]
    pub commands: Option<Commandlines>,
}

/// What to type to build and to test.
#[derive(Clone, Default)]
pub struct Commandlines {
    pub build: Vec<String>,
    pub test: Vec<String>,
}

/// What became of the lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SetupState {
    /// They could be written.
    Suggested,
    Written,
    /// They are there already.
    Present,
    /// They have to be put into what is there by hand.
    ByHand,
}

/// Writes the lines, ready to be copied.
pub fn write(out: &mut impl Write, setup: &Setup, colour: bool) -> io::Result<()> {
    let Style { bold, green, yellow, plain, .. } = Style::new(colour);
    for system in &setup.systems {
        writeln!(out, "{bold}{}{plain} ({})", system.system, visible(&system.because))?;
        writeln!(out, "  build")?;
        system.build.iter().try_for_each(|line| writeln!(out, "    {}", visible(line)))?;
        writeln!(out, "  test")?;
        system.test.iter().try_for_each(|line| writeln!(out, "    {}", visible(line)))?;
        for file in &system.files {
            let path = visible(&file.path);
            match file.state {
                SetupState::Written => writeln!(out, "  {green}written{plain} to {path}")?,
                SetupState::Present => writeln!(out, "  {path} has the lines for it")?,
                SetupState::Suggested => {
                    writeln!(out, "  lines for {path} (`tasting init --write` adds them)")?
                }
                SetupState::ByHand => {
                    writeln!(out, "  {yellow}by hand{plain} into {path}, which is there already")?
                }
            }
            if matches!(file.state, SetupState::Suggested | SetupState::ByHand) {
                file.lines.lines().try_for_each(|line| writeln!(out, "    {}", visible(line)))?;
            }
        }
    }
    setup
        .notes
        .iter()
        .try_for_each(|note| writeln!(out, "{yellow}note{plain}: {}", visible(note)))?;
    setup.trial.iter().try_for_each(|trial| trial::write(out, trial, colour))
}
