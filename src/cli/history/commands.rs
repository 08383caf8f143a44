//! How a commit is configured, built and tested: as `[history]` in `tasting.toml` says, else as
//! `tasting init` finds it.
//!
//! In: the project's folder at that commit. Out: lines for a shell, and running them.

use crate::cli::init;
use crate::run::config;
use std::ffi::OsStr;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

/// As much of the output is kept for whoever wonders why a commit does not build.
const TAIL: usize = 4096;

/// Variables of the user that mean another store, another root, or no decisions at all.
const UNWANTED: [&str; 7] = [
    "TASTING_DISABLE",
    "TASTING_READONLY",
    "TASTING_RECACHE",
    "TASTING_ROOT",
    "TASTING_MANIFEST_DIR",
    "TASTING_LOGFILE",
    "TASTING_MAXSIZE",
];

/// The lines of one commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Commands {
    pub configure: Option<String>,
    pub build: String,
    pub test: String,
}

impl Commands {
    /// What was found out about a project, and what its settings say.
    pub fn new(found: init::Commandlines, given: &config::History) -> Commands {
        let (configure, build) = match found.build.split_last() {
            Some((build, before)) => {
                ((!before.is_empty()).then(|| before.join(" && ")), build.clone())
            }
            None => (None, "true".to_owned()),
        };
        Commands {
            // Whoever says how to build says how to configure, or that there is nothing to
            // configure.
            configure: given.configure.clone().or(configure.filter(|_| given.build.is_none())),
            build: given.build.clone().unwrap_or(build),
            test: given
                .test
                .clone()
                .or(found.test.into_iter().next())
                .unwrap_or_else(|| "true".to_owned()),
        }
    }
}

/// Where lines are run, and how.
pub struct Shell<'s> {
    pub folder: &'s Path,
    /// The store of the replay.
    pub store: &'s Path,
    /// The user's PATH, with the folder of the shims before it.
    pub path: &'s OsStr,
    pub jobs: usize,
    pub mode: Mode,
    /// How finely the shims hash, where that is not for the user's settings to say.
    pub level: Option<&'s str>,
}

/// What Tasting does while a line runs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Every test runs, and what would have been done is noted.
    Shadow,
    /// Nothing.
    Plain,
    /// Results are reused.
    Reusing,
}

/// A line that has run.
pub struct Done {
    pub success: bool,
    pub milliseconds: u64,
    /// Processor time of all processes that it started and waited for.
    pub cpu_ms: u64,
    /// The end of its output.
    pub tail: String,
}

impl Shell<'_> {
    /// Runs a line. Its output goes through a pipe each time: tests can tell.
    pub fn run(&self, line: &str) -> std::io::Result<Done> {
        let (started, cpu_before) = (Instant::now(), cpu_ms());
        let mut command = Command::new("sh");
        command
            .args(["-c", &format!("exec 2>&1; {line}")])
            .current_dir(self.folder)
            .stdin(Stdio::null());
        UNWANTED.iter().for_each(|name| _ = command.env_remove(name));
        let jobs = self.jobs.to_string();
        command.env("TASTING_DIR", self.store).env("TASTING_REMOTE", "none");
        command.env("PATH", self.path).env("MAKEFLAGS", format!("-j{jobs}"));
        for name in ["CMAKE_BUILD_PARALLEL_LEVEL", "CTEST_PARALLEL_LEVEL", "MESON_TESTTHREADS"] {
            command.env(name, &jobs);
        }
        match self.mode {
            Mode::Shadow => command.env("TASTING_SHADOW", "1"),
            Mode::Plain => command.env("TASTING_DISABLE", "1"),
            Mode::Reusing => command.env("TASTING_SHADOW", "0"),
        };
        if let Some(level) = self.level {
            command.env("TASTING_LEVEL", level);
        }
        let mut child = command.stdout(Stdio::piped()).spawn()?;
        let mut tail = Vec::new();
        if let Some(mut output) = child.stdout.take() {
            let mut piece = [0; 8192];
            while let Ok(count @ 1..) = output.read(&mut piece) {
                tail.extend_from_slice(&piece[..count]);
                tail.drain(..tail.len().saturating_sub(TAIL));
            }
        }
        let success = child.wait()?.success();
        let milliseconds = started.elapsed().as_millis() as u64;
        let cpu_ms = cpu_ms().saturating_sub(cpu_before);
        Ok(Done {
            success,
            milliseconds,
            cpu_ms,
            tail: String::from_utf8_lossy(&tail).into_owned(),
        })
    }
}

/// The processor time of all processes that this one has waited for, and that those have; 0 if the
/// kernel does not say.
fn cpu_ms() -> u64 {
    /// `USER_HZ` is 100 on every processor that Linux runs on today, but for Alpha.
    const TICK_MS: u64 = 10;
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The second field is a name, which may hold anything; 16 and 17 are the times of children.
    let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
    let ticks =
        fields.split_whitespace().skip(13).take(2).filter_map(|ticks| ticks.parse::<u64>().ok());
    ticks.sum::<u64>() * TICK_MS
}
