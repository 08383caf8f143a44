//! What each candidate is put through: `fill FOLDER COUNT`, `hit FOLDER NUMBER`, `hit-and-log FOLDER NUMBER`,
//! `work FOLDER FROM COUNT` (prints the number of each entry that is stored), `verify FOLDER` (numbers on standard input).

use std::io::Write;
use std::time::Instant;
use xxhash_rust::xxh3::xxh3_128;

pub type Name = [u8; 16];

pub trait Candidate: Sized {
    fn open(folder: &str) -> Result<Self, String>;
    fn shape(&self, test: &Name) -> Option<Vec<u8>>;
    fn outcome(&self, key: &Name) -> Option<Vec<u8>>;
    fn put(&self, test: &Name, shape: &[u8], key: &Name, outcome: &[u8]) -> Result<(), String>;
    fn log(&self, line: &[u8]) -> Result<(), String>;
}

pub fn main<C: Candidate>() -> Result<(), String> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize| words.get(at).and_then(|word| word.parse::<u64>().ok()).unwrap_or(0);
    let folder = &words[1];
    match words[0].as_str() {
        "fill" => fill(&C::open(folder)?, number(2)),
        "hit" => hit(&C::open(folder)?, number(2)),
        "hit-and-log" => {
            let store = C::open(folder)?;
            hit(&store, number(2))?;
            store.log(&[b'x'; 300])
        }
        "work" => {
            (number(2)..number(2) + number(3)).for_each(|entry| work::<C>(folder, entry));
            Ok(())
        }
        _ => verify(&C::open(folder)?),
    }
}

fn name(kind: &str, number: u64) -> Name {
    xxh3_128(format!("{kind}{number}").as_bytes()).to_be_bytes()
}

/// 50 paths.
fn shape(number: u64) -> Vec<u8> {
    let path = |at: u64| format!("src/module{:02}/data/input-{:05}.txt\0", at % 7, at * 31 + number % 1000);
    (0..50).map(path).collect::<String>().into_bytes()
}

/// 600 bytes of output.
fn outcome(number: u64) -> Vec<u8> {
    let line = |at| format!("test {number}: {:032x} ok\n", u128::from_be_bytes(name("line", number + at)));
    (0..13).map(line).collect::<String>().into_bytes()
}

fn put(store: &impl Candidate, entry: u64) -> Result<(), String> {
    store.put(&name("test", entry), &shape(entry), &name("key", entry), &outcome(entry))
}

fn is_whole(store: &impl Candidate, entry: u64) -> bool {
    store.shape(&name("test", entry)) == Some(shape(entry))
        && store.outcome(&name("key", entry)) == Some(outcome(entry))
}

fn fill(store: &impl Candidate, count: u64) -> Result<(), String> {
    let start = Instant::now();
    (0..count).try_for_each(|entry| put(store, entry))?;
    println!("{:?} a put", start.elapsed() / count as u32);
    Ok(())
}

fn hit(store: &impl Candidate, entry: u64) -> Result<(), String> {
    if is_whole(store, entry) { Ok(()) } else { Err("a miss".into()) }
}

/// As a process of its own would do it: open, look, store.
fn work<C: Candidate>(folder: &str, entry: u64) {
    let stored = C::open(folder).and_then(|store| {
        store.shape(&name("test", entry));
        put(&store, entry)
    });
    match stored {
        Ok(()) => println!("{entry}"),
        Err(error) => eprintln!("{error}"),
    }
    let _ = std::io::stdout().flush();
}

fn verify(store: &impl Candidate) -> Result<(), String> {
    let entries = std::io::stdin().lines().filter_map(|line| line.ok()?.parse::<u64>().ok());
    let (whole, lost): (Vec<u64>, Vec<u64>) = entries.partition(|entry| is_whole(store, *entry));
    println!("{} whole, {} lost", whole.len(), lost.len());
    Ok(())
}
