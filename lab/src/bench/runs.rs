//! Runs of a built program: plainly, under other circumstances, in valgrind, and by `tasting`. In:
//! a test. Out: how it ended.

use super::{Bench, LIBRARY, PATIENCE, PROGRAM};
use crate::process::{self, Ended};
use crate::program::Test;
use crate::setup::command;
use std::fs;
use std::io;
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use tasting::process::Settings;

impl Bench<'_> {
    pub(super) fn run(&self, command: &mut Command, patience: Duration) -> io::Result<Ended> {
        process::run(command, &self.folder.join("out"), patience)
    }

    /// What a test does by itself.
    pub fn run_plainly(&self, test: &Test, patience: Duration) -> io::Result<Ended> {
        // As `tasting run` starts it: programs see their names.
        let mut command =
            command(Path::new("./prog"), &self.folder.join("bin"), &self.folder, &self.setup.level);
        self.run(command.args(&test.argument), patience)
    }

    /// The same under circumstances that no sound program notices: what lies on the stack is
    /// another, or all threads have one processor.
    pub fn run_otherwise(&self, test: &Test, turn: usize, patience: Duration) -> io::Result<Ended> {
        let on_path = |name: &str| tasting::process::search::on_path(name.as_ref());
        // Threads of a program on one processor run in another order.
        let taskset = on_path("taskset").filter(|_| turn % 5 == 4);
        let program = taskset.as_ref().map_or(Path::new("./prog"), |found| &found.path);
        let mut command =
            command(program, &self.folder.join("bin"), &self.folder, &self.setup.level);
        if taskset.is_some() {
            command.args(["-c", "0", "./prog"]);
        }
        match turn % 4 {
            0 => command.env("LD_BIND_NOW", "1"),
            1 => command.env("FILLER", "x".repeat(8 + 24 * turn)),
            2 => command.env("LD_PRELOAD", "libm.so.6"),
            _ => &mut command,
        };
        self.run(command.args(&test.argument), patience)
    }

    /// What valgrind says of a test; `None` where there is none. It gets copies without debug
    /// information: 3.19 gives up where that is clang's (DWARF 5).
    pub fn run_in_valgrind(&self, test: &Test, patience: Duration) -> io::Result<Option<String>> {
        let Some(valgrind) = tasting::process::search::on_path("valgrind".as_ref()) else {
            return Ok(None);
        };
        let folder = self.folder.join("stripped");
        fs::create_dir_all(&folder)?;
        for name in [LIBRARY, PROGRAM] {
            let binary = self.folder.join("bin").join(name);
            if binary.exists() {
                let mut strip = Command::new("strip");
                strip.arg("--strip-debug").arg(binary).arg("-o").arg(folder.join(name));
                self.run(&mut strip, PATIENCE)?;
            }
        }
        let mut command = command(&valgrind.path, &folder, &self.folder, &self.setup.level);
        command.args(["-q", "--error-exitcode=99", "--", "./prog"]).args(&test.argument);
        Ok(Some(self.run(&mut command, patience)?.describe()))
    }

    /// `tasting`, about a test.
    pub fn tasting(
        &self,
        words: &[&str],
        test: &Test,
        variable: Option<&str>,
        patience: Duration,
    ) -> io::Result<Ended> {
        let mut command =
            command(&self.tools.tasting, &self.folder.join("bin"), &self.folder, &self.setup.level);
        command.args(words).args(["--", "./prog"]).args(&test.argument);
        if let Some(variable) = variable {
            command.env(variable, "1");
        }
        self.run(&mut command, patience)
    }

    /// The fingerprint of a test with its libraries: what `tasting fingerprint` prints, for it is
    /// the same function.
    pub fn fingerprint(&self, test: &Test) -> Option<String> {
        let settings = Settings::default();
        let path = self.folder.join("bin").join(PROGRAM);
        tasting::fingerprint::fingerprint(&path, test.entry.as_deref(), &settings)
            .ok()
            .map(|hash| hash.to_string())
    }
}
