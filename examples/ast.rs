//! Reads preprocessed C units, as `tasting-cc` does at the AST level.
//!
//! `cargo run --release --example ast -- read FILE…`: how many are understood, why others are not, and how fast it is.

use std::time::{Duration, Instant};
use tasting::ast;

const ROUNDS: u32 = 5;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let texts: Vec<(String, Vec<u8>)> =
        words[1..].iter().map(|path| (path.clone(), std::fs::read(path).expect("a file"))).collect();
    let mut understood = 0;
    for (path, text) in &texts {
        match ast::read(text) {
            Ok(_) => understood += 1,
            Err(problem) => println!("{path}: {problem}"),
        }
    }
    let bytes: usize = texts.iter().map(|(_, text)| text.len()).sum();
    let mut best = Duration::MAX;
    for _ in 0..ROUNDS {
        let start = Instant::now();
        for (_, text) in &texts {
            std::hint::black_box(ast::read(text).is_ok());
        }
        best = best.min(start.elapsed());
    }
    println!("{understood} of {} understood; {:.1} MB, {:.0} MB/s", texts.len(), bytes as f64 / 1e6, bytes as f64 / 1e6 / best.as_secs_f64());
}
