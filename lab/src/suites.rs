//! Real projects and their own tests: each test's binaries scorched; and the mutation check
//! (`scripts/lab/mutate.py`).

use crate::process::{self, End, Ended};
use crate::progress::Progress;
use crate::report::Suites;
use crate::scorch;
use crate::setup::Tools;
use anyhow::Context;
use serde::Deserialize;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(30);

/// A test of a project.
#[derive(Debug, Deserialize)]
struct Test {
    name: String,
    command: Vec<String>,
    folder: PathBuf,
}

struct Suite<'s> {
    tools: &'s Tools,
    /// For the store, and what programs write.
    folder: PathBuf,
    misses: PathBuf,
}

/// Scorches the tests of a project, until the time is over.
pub fn scorch(
    tools: &Tools,
    repository: &Path,
    project: &str,
    folder: &Path,
    time: Duration,
    found: &mut Suites,
) -> anyhow::Result<()> {
    let built = tools.tasting.parent().context("the tools are in no folder")?;
    let mut command = Command::new(repository.join("scripts/lab/suite.py"));
    command
        .env("BUILT", built)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .arg("--folder")
        .arg(folder)
        .arg(project);
    let listed = command
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .context("cannot start scripts/lab/suite.py")?;
    anyhow::ensure!(listed.status.success(), "{project} cannot be built: see above");
    let tests: Vec<Test> = serde_json::from_slice(&listed.stdout)?;
    let suite = Suite { tools, folder: folder.join(project), misses: folder.join("misses") };
    let progress = Progress::new("suites", time);
    let start = Instant::now();
    let counts = found.scorched.entry(project.to_owned()).or_default();
    for test in &tests {
        if start.elapsed() > time {
            break;
        }
        match suite.test(test, &mut found.bytes)? {
            None => found.not_scorched += 1,
            Some(noticed) => *counts = (counts.0 + 1, counts.1 + u64::from(noticed)),
        }
        progress.tell(&format!(
            "{project}: {} of {} tests, {} differ",
            counts.0,
            tests.len(),
            counts.1
        ));
    }
    progress.end();
    Ok(())
}

impl Suite<'_> {
    /// Whether a test notices that all it does not use is destroyed. `None` if it cannot be told:
    /// it ends this way and that, or its result cannot be reused.
    fn test(&self, test: &Test, bytes: &mut (u64, u64)) -> io::Result<Option<bool>> {
        let plain = self.run(test, &[])?;
        if plain.end == End::Hang || self.run(test, &[])? != plain {
            return Ok(None);
        }
        self.run(test, &["run", "--reuse-failures"])?;
        let cover = self.run(test, &["cover"])?;
        let Ok(modules) = scorch::modules(&cover.text()) else { return Ok(None) };
        if !modules.iter().any(|module| module.narrowed) {
            return Ok(None);
        }
        let mut copies = Vec::new();
        for module in &modules {
            let Some(copy) = module.scorch(&fs::read(&module.path)?) else { continue };
            *bytes = (bytes.0 + copy.destroyed, bytes.1 + copy.of);
            copies.push((module.path.clone(), copy.bytes));
        }
        let given = scorch::with_copies(&copies, || self.run(test, &[]))?;
        if given == plain {
            return Ok(Some(false));
        }
        // Once more, before anybody hears of it.
        if self.run(test, &[])? != plain
            || scorch::with_copies(&copies, || self.run(test, &[]))? == plain
        {
            return Ok(None);
        }
        fs::create_dir_all(&self.misses)?;
        let file = self.misses.join(format!("scorched {}.txt", test.name.replace('/', " ")));
        fs::write(
            &file,
            format!(
                "{test:?}\n== plainly\n{}\n== scorched\n{}\n== cover\n{}\n",
                plain.describe(),
                given.describe(),
                cover.text()
            ),
        )?;
        eprintln!("lab: scorched: {}", file.display());
        Ok(Some(true))
    }

    /// Runs a test, or `tasting` about it.
    fn run(&self, test: &Test, tasting: &[&str]) -> io::Result<Ended> {
        let mut command = match tasting {
            [] => Command::new(&test.command[0]),
            words => {
                let mut command = Command::new(&self.tools.tasting);
                command.args(words).args(["--", &test.command[0]]);
                command
            }
        };
        command
            .args(&test.command[1..])
            .current_dir(&test.folder)
            .env("LC_ALL", "C")
            .env("TASTING_DIR", self.folder.join("store"));
        process::run(&mut command, &self.folder, PATIENCE)
    }
}

/// Mutations of real projects: whether no result was reused wrongly.
pub fn mutate(
    tools: &Tools,
    repository: &Path,
    projects: &[String],
    seed: u64,
    mutations: u64,
    folder: &Path,
) -> anyhow::Result<bool> {
    let built = tools.tasting.parent().context("the tools are in no folder")?;
    let mut command = Command::new(repository.join("scripts/lab/mutate.py"));
    command.env("BUILT", built).env("PYTHONDONTWRITEBYTECODE", "1").arg("--folder").arg(folder);
    command
        .arg("--seed")
        .arg(seed.to_string())
        .arg("--mutations")
        .arg(mutations.to_string())
        .args(projects);
    Ok(command
        .stdin(Stdio::null())
        .status()
        .context("cannot start scripts/lab/mutate.py")?
        .success())
}
