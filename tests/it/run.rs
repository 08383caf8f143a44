//! `tasting run` on real programs: what it uses decides whether a test runs, its end and output
//! stay as they are.

mod autotools;
pub mod cargo;
pub mod cmake;
mod drivers;
mod ends;
mod forwarded;
mod frameworks;
mod harnesses;
mod hunted;
mod hunted_names;
mod inherited_descriptors;
mod inputs;
mod interrupted;
mod invocation_context;
mod kept_details;
mod known_looks;
mod large;
mod left_behind;
mod library_versions;
mod limits;
mod locked;
mod many;
mod meson;
mod noticed;
mod output_files;
mod outsiders;
mod parallel_tests;
mod places;
mod programs;
mod repeated;
mod sandboxes;
mod security;
mod shadow;
mod surroundings;
mod syntax;
mod traced;
mod trust;
mod unseen_inputs;

use crate::workshop::{Outcome, TASTING, TASTING_CC, Workshop, succeed, write_executable};
use std::path::PathBuf;
use std::process::Command;
use tasting::model::{Decision, Verdict};
use tasting::store::{FileStore, Journal, Options};

/// A project with a store of its own.
pub struct Bench {
    pub shop: Workshop,
    /// Outside of the project, as for people.
    store: tempfile::TempDir,
}

/// A test that has run, or not.
#[derive(Debug)]
pub struct Ran {
    pub outcome: Outcome,
    pub decision: Decision,
}

impl Bench {
    pub fn new() -> Bench {
        let store = tempfile::tempdir().expect("a temporary folder can be made");
        let bench = Bench { shop: Workshop::new(), store };
        bench.write("tasting.toml", "");
        bench
    }

    /// A project with a program `t` of this source.
    pub fn with(source: &str) -> Bench {
        let bench = Bench::new();
        bench.build("t", source);
        bench
    }

    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        self.shop.write(name, content)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.shop.path(name)
    }

    /// Writes an executable script.
    pub fn script(&self, name: &str, content: &str) -> PathBuf {
        let path = self.path(name);
        write_executable(&path, content);
        path
    }

    /// Builds a program of one source with the compile shim.
    pub fn build(&self, name: &str, source: &str) {
        self.compile(&["-o", name, "-x", "c", "-"], source);
    }

    /// Calls the compile shim.
    pub fn compile(&self, arguments: &[&str], source: &str) {
        let source = self.write(".source.c", source);
        let mut command = self.command(TASTING_CC);
        command.args(
            arguments
                .iter()
                .map(|word| if *word == "-" { source.as_os_str() } else { word.as_ref() }),
        );
        succeed(&mut command).unwrap_or_else(|error| panic!("{error}"));
        std::fs::remove_file(source).expect("the source was just written");
    }

    pub fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = self.shop.command(program);
        command.env("TASTING_DIR", self.store.path());
        command
    }

    /// `tasting run` with these words.
    pub fn tasting(&self, words: &[&str]) -> Command {
        let mut command = self.command(TASTING);
        command.arg("run").args(words);
        command
    }

    /// Runs a test.
    pub fn run(&self, words: &[&str]) -> Ran {
        self.finish(&mut self.tasting(words))
    }

    /// Runs a `tasting run` to its end.
    pub fn finish(&self, command: &mut Command) -> Ran {
        let outcome = Outcome::of(command);
        let decision = self.store().decisions(1).expect("the log can be read").pop();
        let decision = decision.unwrap_or_else(|| panic!("nothing was decided: {outcome:?}"));
        Ran { outcome, decision }
    }

    /// The folder of the store.
    pub fn store_path(&self) -> &std::path::Path {
        self.store.path()
    }

    pub fn store(&self) -> FileStore {
        FileStore::new(self.store.path(), Options::default())
    }

    /// The latest decision.
    pub fn last(&self) -> Decision {
        self.store()
            .decisions(1)
            .expect("the log can be read")
            .pop()
            .expect("something was decided")
    }

    /// The test has to run.
    #[track_caller]
    pub fn runs(&self, words: &[&str]) -> Ran {
        let ran = self.run(words);
        assert_eq!(ran.decision.decision, Verdict::Executed, "{ran:?}");
        ran
    }

    /// The test need not run.
    #[track_caller]
    pub fn reuses(&self, words: &[&str]) -> Ran {
        let ran = self.run(words);
        assert_eq!(ran.decision.decision, Verdict::Reused, "{ran:?}");
        ran
    }

    /// The test runs, and then need not run again.
    #[track_caller]
    pub fn settles(&self, words: &[&str]) -> Ran {
        let first = self.runs(words);
        let second = self.reuses(words);
        assert_eq!(first.outcome, second.outcome);
        second
    }

    /// After the first change the test runs; after the second, which undoes it, it is reused.
    #[track_caller]
    pub fn follows(&self, words: &[&str], change: impl Fn(&Bench), undo: impl Fn(&Bench)) {
        self.settles(words);
        change(self);
        self.settles(words);
        undo(self);
        self.reuses(words);
    }
}

impl Ran {
    pub fn text(&self) -> String {
        self.outcome.stdout_text()
    }

    #[track_caller]
    pub fn not_kept(&self, words: &str) {
        assert!(
            self.decision.reason.contains(words),
            "{words:?} is not in {:?}",
            self.decision.reason
        );
    }
}
