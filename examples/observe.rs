//! What watching costs: the same command plainly and watched, in turns, in one process.
//! `cargo run --release --example observe [ROUNDS]`

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tasting::model::Hash;
use tasting::observe::{Identity, Memory, Watch, watch};

/// Remembers in memory what a store would.
#[derive(Default)]
struct Remembers(Mutex<HashMap<Identity, Hash>>);

impl Memory for Remembers {
    fn recall(&self, identity: &Identity) -> Option<Hash> {
        self.0.lock().ok()?.get(identity).copied()
    }

    fn remember(&self, learned: &[(Identity, Hash)]) {
        if let Ok(mut known) = self.0.lock() {
            known.extend(learned.iter().copied());
        }
    }
}

fn main() {
    let rounds = std::env::args().nth(1).and_then(|word| word.parse().ok()).unwrap_or(200);
    let folder = std::env::temp_dir().join(format!("tasting-observe-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("a temporary folder can be made");
    for number in 0..50 {
        fs::write(folder.join(number.to_string()), format!("{number}\n").repeat(500))
            .expect("files can be written");
    }
    // Younger files are not remembered.
    std::thread::sleep(Duration::from_secs(4));
    println!("| command | plain | watched | ratio | more |\n|---|---|---|---|---|");
    let opens_50: Vec<String> = (0..50).map(|number| number.to_string()).collect();
    let opens_2000: Vec<String> = opens_50.iter().cycle().take(2000).cloned().collect();
    row("opens 50 files", &folder, "cat", &opens_50, rounds);
    row("opens files 2,000 times", &folder, "cat", &opens_2000, rounds / 4);
    let script = "for i in 1 2 3 4 5 6 7 8 9 10; do cat $i; done";
    row(
        "a script that starts 10 programs",
        &folder,
        "sh",
        &["-c".into(), script.into()],
        rounds / 4,
    );
    let busy = "my $n = 0; $n += $_ for 1..3000000";
    row("computes", &folder, "perl", &["-e".into(), busy.into()], rounds / 10);
    let _ = fs::remove_dir_all(folder);
}

/// The medians of both, and of the differences.
fn row(name: &str, folder: &Path, program: &str, arguments: &[String], rounds: usize) {
    let how =
        Watch { memory: Arc::new(Remembers::default()), inherits_input: false, ..Watch::default() };
    let command = || {
        let mut command = Command::new(program);
        command.args(arguments).current_dir(folder).stdin(Stdio::null()).stdout(Stdio::null());
        command
    };
    let (mut plain, mut watched, mut ratios, mut more) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for round in 0..rounds.max(5) + 1 {
        let start = Instant::now();
        command().status().expect("the command runs");
        let without = start.elapsed().as_secs_f64() * 1e3;
        let start = Instant::now();
        watch(command(), &how).expect("the command can be watched");
        let with = start.elapsed().as_secs_f64() * 1e3;
        if round > 0 {
            plain.push(without);
            watched.push(with);
            ratios.push(with / without);
            more.push(with - without);
        }
    }
    let [plain, watched, ratio, more] = [plain, watched, ratios, more].map(median);
    println!("| {name} | {plain:.2} ms | {watched:.2} ms | {ratio:.2} | {more:.2} ms |");
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
