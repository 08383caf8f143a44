//! Reads preprocessed C units, as `tasting-cc` does at the AST level.
//!
//! `cargo run --release --example ast -- read FILE…`: how many are understood, why others are not, and how fast it is.

use std::time::Duration;
use tasting::ast;

/// So much text is read at the least to measure the speed.
const MEASURED: usize = 200_000_000;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    read(&words[1..]);
}

/// How many units are understood, and how fast.
fn read(paths: &[String]) {
    let mut understood = 0;
    let mut bytes = 0;
    let mut spent = Duration::ZERO;
    for batch in paths.chunks(100) {
        let texts: Vec<Vec<u8>> = batch.iter().map(|path| std::fs::read(path).expect("a file")).collect();
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
        "{understood} of {} understood; {megabytes:.1} MB, {:.0} MB/s",
        paths.len(),
        megabytes / spent.as_secs_f64()
    );
}

/// The time that this process has had a processor, whoever else wants one.
fn processor_time() -> Duration {
    let text = std::fs::read_to_string("/proc/self/schedstat").expect("the scheduler's account of this process");
    Duration::from_nanos(text.split(' ').next().and_then(|word| word.parse().ok()).expect("a number of nanoseconds"))
}
