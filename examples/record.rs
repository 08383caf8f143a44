//! A measurement: the record of an object of about 200 KB, in milliseconds (the least of 200
//! rounds): the object is read from its file and hashed, and the bytes are made that carry its
//! record. The objects are generated C and C++, compiled by the real tools with the section flags.
//!
//! `cargo run --release --example record`

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};
use tasting::elf::{self, Labels};
use tasting::model::Level;

const ROUNDS: usize = 200;
const WANTED: u64 = 200_000;

fn main() {
    let folder = tempfile::tempdir().expect("a folder");
    for (compiler, name, options) in
        [("gcc", "unit.c", "-O2"), ("gcc", "unit.c", "-O0"), ("g++", "unit.cc", "-O2")]
    {
        let object = object(folder.path(), compiler, name, options);
        let size = std::fs::metadata(&object).expect("an object").len();
        let least = (0..ROUNDS).map(|_| round(&object)).min().unwrap_or_default();
        let per_budget = least.as_secs_f64() * 1000.0 * WANTED as f64 / size as f64;
        let took = least.as_secs_f64() * 1000.0;
        println!(
            "{compiler} {options}: {size} bytes {took:.2} ms, so {per_budget:.2} ms for {WANTED} bytes"
        );
    }
}

fn round(object: &Path) -> Duration {
    let start = Instant::now();
    let bytes = std::fs::read(object).expect("an object");
    let made = elf::with_record(&bytes, Level::Code, Labels::Plain).expect("a record");
    assert!(made.is_some());
    start.elapsed()
}

/// Functions with calls, literals and data, as many as make the size that is wanted.
fn object(folder: &Path, compiler: &str, name: &str, options: &str) -> std::path::PathBuf {
    let [source, object] = [folder.join(name), folder.join("unit.o")];
    let mut functions = 100;
    loop {
        std::fs::write(&source, text(functions, name.ends_with(".cc"))).expect("a source");
        let mut command = Command::new(compiler);
        command
            .args([options, "-ffunction-sections", "-fdata-sections", "-c", "-o"])
            .arg(&object)
            .arg(&source);
        assert!(command.status().expect("a compiler").success());
        match std::fs::metadata(&object).expect("an object").len() {
            size if size >= WANTED => return object,
            size => functions = functions * (WANTED / size + 1) as usize * 11 / 10,
        }
    }
}

fn text(functions: usize, is_cxx: bool) -> String {
    let head = if is_cxx { "#include <vector>\n#include <string>\n" } else { "" };
    let mut text = format!("{head}int printf(const char *, ...);\n");
    for number in 0..functions {
        let other = number.saturating_sub(1);
        let call = if number == 0 { "x".to_owned() } else { format!("f{other}(x + 1, p)") };
        let _ = writeln!(
            text,
            "int table{number}[4] = {{{number}, 2, 3, 4}}; static int count{number};"
        );
        let _ = writeln!(text, "__attribute__((noinline)) int f{number}(int x, int *p) {{");
        let _ = writeln!(text, "  if (x > {number}) printf(\"more than %d in {number}\\n\", x);");
        if is_cxx && number % 8 == 0 {
            let _ = writeln!(
                text,
                "  std::vector<std::string> v(x, \"text {number}\"); v.push_back(\"end\"); x += v.size();"
            );
        }
        let _ = writeln!(
            text,
            "  count{number} += table{number}[x & 3] * *p; return {call} + count{number}; }}"
        );
    }
    text
}
