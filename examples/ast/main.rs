//! The proof of the AST level on real code:
//! `cargo run --release --example ast -- COMMAND [OPTION…] FILE…`, where the files are preprocessed
//! units. (`scripts/lab/ast.sh` makes them of real projects, and calls this.)
//!
//! - `read`: how many units are understood, why others are not, and how fast it is (by the
//!   processor's time).
//! - `bodies`: one token of a function's body is changed; the hash of that function changes, and of
//!   no other.
//! - `mutate`: random changes of tokens and declarations; wherever the meaning stays the same, both
//!   versions are compiled, and the objects are compared.
//! - `levels`: a table of edits, and what the AST level and the code level see of each.
//!
//! Options: `--seed N` (1), `--count N` changes in all (1000), `--level -O0` for the compilers
//! (-O2), `--keep FOLDER` for what goes wrong.

mod bodies;
mod compile;
mod levels;
mod mutations;
mod random;
mod text;

use random::Random;
use std::path::PathBuf;
use std::time::Duration;
use tasting::ast;

/// So much text is read at the least to measure the speed.
const MEASURED: usize = 200_000_000;

struct Options {
    seed: u64,
    count: usize,
    level: String,
    keep: PathBuf,
    files: Vec<String>,
}

fn main() {
    let mut words = std::env::args().skip(1);
    let command = words.next().unwrap_or_default();
    let mut options = Options {
        seed: 1,
        count: 1000,
        level: "-O2".to_owned(),
        keep: "wrong".into(),
        files: Vec::new(),
    };
    while let Some(word) = words.next() {
        let mut value = || words.next().expect("an option's value");
        match word.as_str() {
            "--seed" => options.seed = value().parse().expect("a number"),
            "--count" => options.count = value().parse().expect("a number"),
            "--keep" => options.keep = value().into(),
            "--level" => options.level = value(),
            _ => options.files.push(word),
        }
    }
    let is_right = match command.as_str() {
        "read" => read(&options.files),
        "bodies" => bodies::check(&options),
        "mutate" => mutate(&options),
        "levels" => levels::table(),
        _ => panic!("read, bodies, mutate or levels"),
    };
    std::process::exit(i32::from(!is_right));
}

/// How many units are understood, and how fast.
fn read(paths: &[String]) -> bool {
    let mut understood = 0;
    let mut bytes = 0;
    let mut spent = Duration::ZERO;
    for batch in paths.chunks(100) {
        let texts: Vec<Vec<u8>> =
            batch.iter().map(|path| std::fs::read(path).expect("a file")).collect();
        let size: usize = texts.iter().map(Vec::len).sum();
        for (path, text) in batch.iter().zip(&texts) {
            match ast::read(text) {
                Ok(_) => understood += 1,
                Err(problem) => println!("{path}: {problem}"),
            }
        }
        let rounds = MEASURED.div_ceil(size.max(1) * paths.len().div_ceil(100));
        let start = processor_time();
        for text in (0..rounds).flat_map(|_| &texts) {
            std::hint::black_box(ast::read(text).is_ok());
        }
        spent += processor_time() - start;
        bytes += size * rounds;
    }
    let megabytes = bytes as f64 / 1e6;
    println!(
        "{understood} of {} units understood; {:.0} MB/s",
        paths.len(),
        megabytes / spent.as_secs_f64()
    );
    understood == paths.len()
}

/// The time that this process has had a processor, whoever else wants one.
fn processor_time() -> Duration {
    let text = std::fs::read_to_string("/proc/self/schedstat")
        .expect("the scheduler's account of this process");
    Duration::from_nanos(
        text.split(' ').next().and_then(|word| word.parse().ok()).expect("a number of nanoseconds"),
    )
}

/// Mutates units, and compiles what means the same.
fn mutate(options: &Options) -> bool {
    let mut random = Random(options.seed);
    let mut bench = compile::Bench::new(options);
    let mut sums = Sums::default();
    for done in 1..=options.count {
        mutate_one(options, &mut random, &mut bench, &mut sums);
        if done == options.count {
            println!("{done} mutations (seed {}, {}): {sums}", options.seed, options.level);
        } else if done % 50 == 0 {
            eprintln!("{done}: {sums}");
        }
    }
    sums.wrong == 0
}

fn mutate_one(options: &Options, random: &mut Random, bench: &mut compile::Bench, sums: &mut Sums) {
    let path = random.choice(&options.files);
    let before = std::fs::read_to_string(path).expect("a unit of text");
    // A unit may be empty, if nothing of it was configured.
    let Some(unit) = ast::read(before.as_bytes()).ok().filter(|unit| !unit.definitions.is_empty())
    else {
        sums.refused += 1;
        return;
    };
    let (kind, after) = mutations::mutate(&before, random);
    let Ok(other) = ast::read(after.as_bytes()) else {
        sums.refused += 1;
        return;
    };
    if before == after || unit.meaning != other.meaning {
        sums.different += 1;
        return;
    }
    match bench.compare(path, &before, &after) {
        compile::Verdict::Equal => sums.equal += 1,
        compile::Verdict::NotCompiled => sums.not_compiled += 1,
        compile::Verdict::Different(compiler) => {
            println!(
                "WRONG: {path}: {kind}: {compiler} makes another object; see {}",
                bench.keep(path, &before, &after)
            );
            sums.wrong += 1;
        }
    }
}

#[derive(Default)]
struct Sums {
    refused: usize,
    different: usize,
    equal: usize,
    not_compiled: usize,
    wrong: usize,
}

impl std::fmt::Display for Sums {
    fn fmt(&self, out: &mut std::fmt::Formatter) -> std::fmt::Result {
        let same = self.equal + self.not_compiled + self.wrong;
        write!(
            out,
            "{} refused, {} with another meaning, {same} with the same: ",
            self.refused, self.different
        )?;
        write!(
            out,
            "{} with equal objects, {} that do not compile, {} WRONG",
            self.equal, self.not_compiled, self.wrong
        )
    }
}
