//! The soundness laboratory: hunts for changes that Tasting misses. See docs/lab.md.
//!
//! `hunt` (workers, what was done) → `trial` (the oracle): `generate` (programs) → `mutate` →
//! `bench` (built with the shims) → what they do (`process`), what the objects say (`objects`),
//! what is left when all else is destroyed (`scorch`) → `sums`, `evidence`. Beside it `suites`
//! (real projects), `fuzz` (readers of foreign bytes), `faults` (what can go wrong around us).

mod bench;
mod dice;
mod done;
mod evidence;
mod explanation;
mod faults;
mod fuzz;
mod generate;
mod hunt;
mod mutate;
mod objects;
mod process;
mod program;
mod progress;
mod report;
mod runs;
mod scorch;
mod seeds;
mod setup;
mod stored;
mod suites;
mod sums;
mod trial;

use anyhow::Context;
use clap::{Parser, ValueEnum};
use report::Report;
use rustix::process::{Resource, Rlimit, setrlimit};
use setup::{Compiler, Tools};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;
use trial::Plan;

/// Hunt for missed changes: random programs and their mutations, scorched binaries, real suites,
/// damaged inputs, faults.
///
/// The same seed tries the same. A hunt that was interrupted goes on where it was. The exit status
/// is 1 if anything was found.
#[derive(Parser)]
struct Arguments {
    /// What to do; everything but `suites`, `mutations` and `runs` if nothing is named
    #[arg(value_enum)]
    parts: Vec<Part>,
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How long the parts take together, about
    #[arg(long, default_value_t = 10.0)]
    minutes: f64,
    /// A run of two minutes with little of everything
    #[arg(long)]
    short: bool,
    /// How many random programs to try, at the most
    #[arg(long)]
    programs: Option<u64>,
    /// How many times each program is changed
    #[arg(long, default_value_t = 25)]
    steps: usize,
    /// The level of hashing: code, file, ast, or mixed (code and file)
    #[arg(long, default_value = "mixed")]
    level: String,
    /// What random programs are compiled with; the version is the one in `PATH`
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = Compiler::ALL)]
    compilers: Vec<Compiler>,
    /// The real projects whose tests are scorched, and that are mutated
    #[arg(long, value_delimiter = ',', default_value = "jansson,yaml-cpp")]
    projects: Vec<String>,
    /// How many mutations of each real project to try
    #[arg(long, default_value_t = 20)]
    mutations: u64,
    /// How many scenarios of random tests to try, at the most
    #[arg(long)]
    scenarios: Option<u64>,
    /// What random tests are about, if not about everything
    #[arg(long, value_delimiter = ',')]
    only: Vec<runs::Feature>,
    /// What random tests are not about
    #[arg(long, value_delimiter = ',')]
    without: Vec<runs::Feature>,
    /// Programs or tests at the same time [default: one for each processor]
    #[arg(long, alias = "jobs")]
    workers: Option<usize>,
    /// The folder with Tasting's binaries [default: the one with this program]
    #[arg(long)]
    built: Option<PathBuf>,
    /// Where state, report and contradictions go
    #[arg(long, default_value = "target/lab")]
    folder: PathBuf,
    /// Where programs are built: memory is faster
    #[arg(long, default_value = "/dev/shm")]
    scratch: PathBuf,
    /// Take every mutant for unchanged, to see that the oracle finds what is wrong then
    #[arg(long)]
    blind: bool,
    /// Leave the folders of the programs
    #[arg(long)]
    keep: bool,
    /// Print one random mutation of these files as JSON, and do nothing else
    #[arg(long, num_args = 1..)]
    mutate: Vec<PathBuf>,
    /// What the mutation of files follows from
    #[arg(long, default_value = "1")]
    mutation_seed: String,
}

/// Minutes of a short run, less the faults.
const SHORT: f64 = 1.5;
/// Where random tests are run: what is in memory (tmpfs) is treated otherwise by Tasting.
const ON_DISK: &str = "/var/tmp";
/// Random tests at the same time, for each processor.
const WORKERS_OF_RUNS: usize = 3;
/// Many programs, and each of them not for long.
const FEW_STEPS: usize = 6;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Random programs, their mutations, and scorched copies of them
    Programs,
    /// Damaged inputs for all readers
    Fuzz,
    /// Killed processes, a full disk, a read-only store, clocks, versions, many processes
    Faults,
    /// Real projects: their tests with scorched binaries
    Suites,
    /// Real projects: mutations of them
    Mutations,
    /// Random tests, plainly and under `tasting run`, with changes from outside in between
    Runs,
}

fn main() -> anyhow::Result<ExitCode> {
    let arguments = Arguments::parse();
    if !arguments.mutate.is_empty() {
        let mutated = mutate::files::mutated(&arguments.mutation_seed, &arguments.mutate)?;
        println!("{}", serde_json::to_string(&mutated)?);
        return Ok(ExitCode::SUCCESS);
    }
    // Programs that were mutated write for ever, or die.
    setrlimit(Resource::Fsize, Rlimit { current: Some(256 << 20), maximum: Some(256 << 20) })?;
    setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) })?;
    fs::create_dir_all(&arguments.folder)
        .with_context(|| format!("cannot make {}", arguments.folder.display()))?;
    let folder = fs::canonicalize(&arguments.folder)?;
    let scratch = arguments.scratch.join(format!("tasting-lab-{}", std::process::id()));
    fs::create_dir_all(&scratch)?;
    let on_disk = Path::new(ON_DISK).join(format!("tasting-lab-{}", std::process::id()));
    fs::create_dir_all(&on_disk)?;
    let report = work(&arguments, &folder, &scratch, &on_disk);
    if !arguments.keep {
        fs::remove_dir_all(&scratch)?;
        fs::remove_dir_all(&on_disk)?;
    }
    let report = report?;
    fs::write(folder.join("report.json"), serde_json::to_vec_pretty(&report)?)?;
    fs::write(folder.join("report.txt"), report.text())?;
    print!("{}", report.text());
    Ok(if report.is_clean() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn work(
    arguments: &Arguments,
    folder: &Path,
    scratch: &Path,
    on_disk: &Path,
) -> anyhow::Result<Report> {
    let own = std::env::current_exe()?;
    let built = arguments
        .built
        .clone()
        .or_else(|| own.parent().map(PathBuf::from))
        .context("this program is in no folder")?;
    let command =
        std::env::args().skip(1).fold("lab".to_owned(), |all, word| format!("{all} {word}"));
    let mut report = Report { command, seed: arguments.seed, ..Report::default() };
    let is_slow = |part: Part| matches!(part, Part::Suites | Part::Mutations | Part::Runs);
    // A short run takes a small project.
    let projects = if arguments.short { &["tiny".to_owned()][..] } else { &arguments.projects[..] };
    let by_itself = |part: Part| !is_slow(part) || arguments.short && part != Part::Mutations;
    let wants = |part: Part| {
        if arguments.parts.is_empty() { by_itself(part) } else { arguments.parts.contains(&part) }
    };
    let repository = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..");
    // Faults take as long as they take.
    let shares = [(Part::Programs, 6.0), (Part::Fuzz, 1.0), (Part::Suites, 3.0), (Part::Runs, 4.0)];
    let all: f64 = shares.iter().filter(|(part, _)| wants(*part)).map(|(_, share)| share).sum();
    let minutes = if arguments.short { SHORT } else { arguments.minutes };
    let time = |wanted: Part| {
        let share =
            shares.iter().find(|(part, _)| *part == wanted).map_or(1.0, |(_, share)| *share);
        Duration::from_secs_f64(60.0 * minutes * share / all)
    };
    let workers = arguments
        .workers
        .or(std::thread::available_parallelism().ok().map(usize::from))
        .unwrap_or(1);
    let tools = Tools::in_folder(&built)?;
    if wants(Part::Faults) {
        report.faults = Some(faults::run(
            &tools,
            scratch,
            arguments.seed,
            if arguments.short { 1 } else { 5 },
        )?);
    }
    if wants(Part::Fuzz) {
        let seeds = seeds::make(&tools, scratch, &repository.join("fixtures"), arguments.seed)?;
        report.fuzz = Some(fuzz::run(
            &fuzz::ALL,
            &seeds,
            arguments.seed,
            workers,
            time(Part::Fuzz),
            &folder.join("crashes"),
        )?);
    }
    if wants(Part::Suites) {
        let suites = report.suites.get_or_insert_default();
        for project in projects {
            suites::scorch(
                &tools,
                &repository,
                project,
                &folder.join("suites"),
                time(Part::Suites) / projects.len() as u32,
                suites,
            )?;
        }
    }
    if wants(Part::Mutations) {
        let clean = suites::mutate(
            &tools,
            &repository,
            projects,
            arguments.seed,
            arguments.mutations,
            &folder.join("mutations"),
        )?;
        report.suites.get_or_insert_default().mutations = Some(clean);
    }
    if wants(Part::Runs) {
        let plan = runs::Plan {
            tools: tools.clone(),
            seed: arguments.seed,
            features: runs::features(&arguments.only, &arguments.without),
            most: arguments.scenarios,
            scratch: on_disk.to_owned(),
            stores: scratch.to_owned(),
            toolbox: Path::new(ON_DISK).join("tasting-lab-toolbox"),
            failures: folder.join("failures"),
            blind: arguments.blind,
        };
        let state = folder.join(format!("runs-{}.json", arguments.seed));
        if arguments.short {
            let _ = fs::remove_file(&state);
        }
        // Tests wait: for each other, for timers, for the watcher.
        let workers = arguments.workers.unwrap_or(workers * WORKERS_OF_RUNS);
        let (counts, left_out) = runs::run(&plan, &state, workers, time(Part::Runs))?;
        (report.runs, report.runs_left_out) = (Some(counts), left_out);
    }
    if wants(Part::Programs) {
        let plan = Plan {
            tools: tools.clone(),
            seed: arguments.seed,
            level: arguments.level.clone(),
            compilers: arguments.compilers.clone(),
            steps: if arguments.short { FEW_STEPS } else { arguments.steps },
            scratch: scratch.to_owned(),
            misses: folder.join("misses"),
            blind: arguments.blind,
            keep: arguments.keep,
        };
        let state = folder.join(format!("state-{}.json", arguments.seed));
        if arguments.short {
            // What it found the last time may be corrected by now.
            let _ = fs::remove_file(&state);
        }
        report.programs =
            Some(hunt::run(&plan, &state, workers, time(Part::Programs), arguments.programs)?);
    }
    Ok(report)
}
