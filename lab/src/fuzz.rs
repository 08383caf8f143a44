//! Damaged inputs for every reader of bytes from outside: seeds of real files, changed at random,
//! fed to the same functions as the fuzz targets (`fuzz/readers.rs`). It knows nothing of coverage,
//! and needs no build of its own; `make fuzz` does both.

#[path = "../../fuzz/readers.rs"]
mod readers;

use crate::dice::Dice;
use crate::progress::Progress;
use crate::report::Fuzzed;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::panic;
use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// What a reader may take for one small input.
const LONGEST: Duration = Duration::from_secs(10);
/// As large as small real files are.
const LARGEST: usize = 1 << 16;

pub use readers::{ALL, Reader};

/// Seeds by reader.
pub type Seeds = BTreeMap<String, Vec<Vec<u8>>>;

thread_local! {
    /// Where the last panic was.
    static PANIC: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Feeds the readers for a while. A failure is told once, whatever number of inputs lead to it.
/// The first of these is kept in `folder`.
pub fn run(
    readers: &[Reader],
    seeds: &Seeds,
    seed: u64,
    workers: usize,
    time: Duration,
    folder: &Path,
) -> io::Result<Fuzzed> {
    fs::create_dir_all(folder)?;
    // A panic is a finding, and is told once, with its input.
    panic::set_hook(Box::new(|info| {
        let place = info.location().map(ToString::to_string).unwrap_or_default();
        PANIC.with_borrow_mut(|told| *told = place);
    }));
    let progress = Progress::new("fuzz", time);
    let all = Mutex::new(Fuzzed::default());
    std::thread::scope(|scope| {
        for worker in 0..workers {
            let (all, progress) = (&all, &progress);
            scope.spawn(move || {
                let feed = Feed { readers, seeds, time, folder };
                feed.run(Dice::new(seed, &format!("fuzz {worker}")), all, progress)
            });
        }
    });
    progress.end();
    let _ = panic::take_hook();
    Ok(all.into_inner().expect("no worker panics while it counts"))
}

/// What one worker does.
struct Feed<'f> {
    readers: &'f [Reader],
    seeds: &'f Seeds,
    time: Duration,
    folder: &'f Path,
}

impl Feed<'_> {
    fn run(&self, mut dice: Dice, all: &Mutex<Fuzzed>, progress: &Progress) {
        let start = Instant::now();
        while start.elapsed() < self.time {
            let (name, reader) = *dice.pick(self.readers);
            let Some(own) = self.seeds.get(name).filter(|own| !own.is_empty()) else { continue };
            let mut failures = Vec::new();
            let turns = 32;
            for _ in 0..turns {
                let input = damaged(&mut dice, own);
                let started = Instant::now();
                let harmed = panic::catch_unwind(|| reader(&input)).is_err();
                if harmed || started.elapsed() > LONGEST {
                    let what = if harmed {
                        format!("panics at {}", PANIC.with_borrow(String::clone))
                    } else {
                        "takes too long".to_owned()
                    };
                    failures.push((format!("the reader `{name}` {what}"), input));
                }
            }
            let mut all = all.lock().expect("no worker panics while it counts");
            *all.inputs.entry(name.to_owned()).or_default() += turns;
            for (what, input) in failures {
                if all.failures.iter().any(|known| known.starts_with(&what)) {
                    continue;
                }
                let file =
                    self.folder.join(format!("{name}-{:016x}", xxhash_rust::xxh3::xxh3_64(&input)));
                let kept = fs::write(&file, &input)
                    .map_or_else(|error| error.to_string(), |()| file.display().to_string());
                all.failures.push(format!("{what}: {kept}"));
            }
            progress.tell(&format!(
                "{} inputs, {} failures",
                all.inputs.values().sum::<u64>(),
                all.failures.len()
            ));
        }
    }
}

/// A seed with some damage, or two of them in one.
fn damaged(dice: &mut Dice, seeds: &[Vec<u8>]) -> Vec<u8> {
    let mut input = dice.pick(seeds).clone();
    for _ in 0..dice.between(1, 6) {
        damage(dice, &mut input, seeds);
    }
    input.truncate(LARGEST);
    input
}

/// Numbers that readers stumble over.
const NUMBERS: [u64; 12] = [
    0,
    1,
    7,
    0x7f,
    0x80,
    0xff,
    0xffff,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
    u64::MAX >> 1,
    u64::MAX,
];

fn damage(dice: &mut Dice, input: &mut Vec<u8>, seeds: &[Vec<u8>]) {
    if input.is_empty() {
        input.push(dice.number() as u8);
        return;
    }
    let at = dice.below(input.len());
    match dice.below(9) {
        0 => input[at] ^= 1 << dice.below(8),
        1 => input[at] = dice.number() as u8,
        2 => {
            let (number, size) = (dice.pick(&NUMBERS).to_le_bytes(), *dice.pick(&[2, 4, 8]));
            let end = (at + size).min(input.len());
            input[at..end].copy_from_slice(&number[..end - at]);
        }
        3 => input.truncate(at),
        4 => {
            let end = (at + dice.between(1, 64)).min(input.len());
            input.drain(at..end);
        }
        5 => {
            let bytes: Vec<u8> = (0..dice.between(1, 16)).map(|_| dice.number() as u8).collect();
            input.splice(at..at, bytes);
        }
        6 => {
            // A piece of the input, once more elsewhere.
            let end = (at + dice.between(1, 128)).min(input.len());
            let piece = input[at..end].to_vec();
            let to = dice.below(input.len());
            input.splice(to..to, piece);
        }
        7 => {
            let other = dice.pick(seeds);
            let from = dice.below(other.len().max(1)).min(other.len());
            input.truncate(at);
            input.extend_from_slice(&other[from..]);
        }
        // Nearly right: a length or an index that is one off.
        _ => input[at] = input[at].wrapping_add(if dice.percent(50) { 1 } else { 255 }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_are_damaged_and_stay_small() {
        let mut dice = Dice::new(1, "");
        let seeds = vec![b"abcdef".to_vec()];
        let all: Vec<Vec<u8>> = (0..200).map(|_| damaged(&mut dice, &seeds)).collect();
        assert!(all.iter().filter(|input| **input != seeds[0]).count() > 190);
        assert!(all.iter().all(|input| input.len() <= LARGEST));
    }

    #[test]
    fn a_panic_is_reported_once_with_its_input() {
        fn picky(bytes: &[u8]) {
            assert!(bytes.starts_with(b"abc"), "the beginning is wrong");
        }
        let folder = std::env::temp_dir().join(format!("tasting-lab-fuzz-{}", std::process::id()));
        let seeds = Seeds::from([("picky".to_owned(), vec![b"abcdef".to_vec()])]);
        let found =
            run(&[("picky", picky)], &seeds, 1, 1, Duration::from_millis(200), &folder).unwrap();
        assert!(found.inputs["picky"] > 100);
        assert_eq!(found.failures.len(), 1, "{:?}", found.failures);
        let kept: Vec<_> = fs::read_dir(&folder)
            .unwrap()
            .map(|file| fs::read(file.unwrap().path()).unwrap())
            .collect();
        assert!(kept.len() == 1 && !kept[0].starts_with(b"abc"));
        fs::remove_dir_all(folder).unwrap();
    }
}
