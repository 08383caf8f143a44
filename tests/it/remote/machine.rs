//! A machine of somebody's: a home, a checkout at a path of its own, and a store.

use crate::workshop::{Outcome, TASTING, TASTING_CC, plain_environment, succeed};
use std::path::{Path, PathBuf};
use std::process::Command;
use tasting::model::{Decision, Verdict};
use tasting::store::{FileStore, Journal, Options};
use tempfile::TempDir;

/// A test that reads a file and prints it; it leaves a report behind.
pub const PROGRAM: &str = r#"
#include <stdio.h>
int main(int argc, char **argv) {
    char text[99] = "nothing";
    FILE *file = fopen("data", "r");
    if (file) fgets(text, sizeof text, file);
    FILE *report = fopen("report", "w");
    if (report) fprintf(report, "report of %s\n", argc > 1 ? argv[1] : "all"), fclose(report);
    printf("%s: %s\n", argc > 1 ? argv[1] : "all", text);
    fprintf(stderr, "done\n");
    return 0;
}
"#;

pub struct Machine {
    folder: TempDir,
    name: String,
    pub remote: String,
}

/// A run of a test.
#[derive(Debug)]
pub struct Ran {
    pub outcome: Outcome,
    pub decision: Decision,
}

impl Ran {
    pub fn is_reused(&self) -> bool {
        self.decision.decision == Verdict::Reused
    }
}

impl Machine {
    /// A machine with an empty checkout.
    pub fn bare(name: &str, remote: &str) -> Machine {
        let folder = tempfile::Builder::new()
            .prefix("tasting-machine-")
            .tempdir()
            .expect("a temporary folder");
        let machine = Machine { folder, name: name.to_owned(), remote: remote.to_owned() };
        for folder in [machine.home(), machine.checkout()] {
            std::fs::create_dir_all(folder).expect("folders can be made");
        }
        machine.write("tasting.toml", "");
        machine
    }

    /// A machine with a test program `t` in its checkout.
    pub fn new(name: &str, remote: &str) -> Machine {
        let machine = Machine::bare(name, remote);
        machine.write("data", "the data");
        machine.build("t", PROGRAM, &[]);
        machine
    }

    /// Another machine with a copy of the checkout, as a build server would have it.
    pub fn like(other: &Machine, name: &str) -> Machine {
        let machine = Machine::bare(name, &other.remote);
        let copied = Command::new("cp")
            .arg("-a")
            .arg(other.checkout().join("."))
            .arg(machine.checkout())
            .status();
        assert!(copied.expect("cp starts").success());
        machine
    }

    pub fn home(&self) -> PathBuf {
        self.folder.path().join(format!("home-of-{}", self.name))
    }

    pub fn checkout(&self) -> PathBuf {
        self.folder.path().join(format!("home-of-{0}/projects/{0}", self.name))
    }

    pub fn store_folder(&self) -> PathBuf {
        self.folder.path().join("store")
    }

    pub fn store(&self) -> FileStore {
        FileStore::new(&self.store_folder(), Options::default())
    }

    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.checkout().join(name);
        std::fs::create_dir_all(path.parent().expect("a file lies in a folder"))
            .expect("folders can be made");
        std::fs::write(&path, content).expect("a file can be written");
        path
    }

    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.checkout().join(name)).expect("a file can be read")
    }

    pub fn build(&self, name: &str, source: &str, options: &[&str]) {
        let source = self.write(&format!("{name}.c"), source);
        let mut command = self.command(TASTING_CC);
        command.arg("-o").arg(name).arg(source.file_name().expect("it has a name")).args(options);
        succeed(&mut command).unwrap_or_else(|error| panic!("{error}"));
    }

    pub fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        plain_environment(&mut command);
        let is_of_server = |name: &str| {
            ["GITHUB_", "GITLAB_", "CI_", "AWS_"].iter().any(|start| name.starts_with(start))
        };
        for (name, _) in
            std::env::vars_os().filter(|(name, _)| is_of_server(&name.to_string_lossy()))
        {
            command.env_remove(name);
        }
        command
            .current_dir(self.checkout())
            .env("HOME", self.home())
            .env("TASTING_DIR", self.store_folder());
        for name in [
            "XDG_RUNTIME_DIR",
            "TMPDIR",
            "http_proxy",
            "HTTP_PROXY",
            "https_proxy",
            "HTTPS_PROXY",
            "ALL_PROXY",
            "all_proxy",
        ] {
            command.env_remove(name);
        }
        if !self.remote.is_empty() {
            command.env("TASTING_REMOTE", &self.remote);
        }
        command
    }

    pub fn tasting(&self, words: &[&str]) -> Command {
        let mut command = self.command(TASTING);
        command.args(words);
        command
    }

    /// Runs a command of Tasting's that has to succeed; what it prints.
    #[track_caller]
    pub fn does(&self, words: &[&str]) -> String {
        succeed(&mut self.tasting(words)).unwrap_or_else(|error| panic!("{error}")).stdout_text()
    }

    /// `tasting run` of a test.
    pub fn run(&self, words: &[&str]) -> Ran {
        self.finish(self.tasting(&["run", "--"]).args(words))
    }

    pub fn finish(&self, command: &mut Command) -> Ran {
        let outcome = Outcome::of(command);
        let decision = self
            .store()
            .decisions(1)
            .expect("the log can be read")
            .pop()
            .expect("something was decided");
        Ran { outcome, decision }
    }

    #[track_caller]
    pub fn runs(&self, words: &[&str]) -> Ran {
        let ran = self.run(words);
        assert!(!ran.is_reused(), "{ran:?}");
        ran
    }

    #[track_caller]
    pub fn reuses(&self, words: &[&str]) -> Ran {
        let ran = self.run(words);
        assert!(ran.is_reused(), "{ran:?}");
        ran
    }

    /// Runs a test, and has its result sent.
    #[track_caller]
    pub fn runs_and_sends(&self, words: &[&str]) -> Ran {
        let ran = self.runs(words);
        self.does(&["push"]);
        ran
    }

    pub fn upload_jobs(&self) -> usize {
        let remotes = std::fs::read_dir(self.store_folder().join("results-1/remote"));
        let spools =
            remotes.into_iter().flatten().flatten().map(|remote| remote.path().join("spool"));
        spools.filter_map(|spool| std::fs::read_dir(spool).ok()).map(Iterator::count).sum()
    }
}

/// All files below a folder.
pub fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        match entry.path().is_dir() {
            true => files.extend(files_below(&entry.path())),
            false => files.push(entry.path()),
        }
    }
    files
}
