//! What hashing costs: BLAKE3, which names results, against XXH3, which anybody can collide on
//! purpose. Prints a table of processor times and their ratios, each the least of several attempts
//! in turns.

use std::hint::black_box;
use std::time::Duration;
use tasting::model::{Hash, Hasher};
use xxhash_rust::xxh3::{Xxh3, xxh3_128};

const ATTEMPTS: usize = 15;

fn main() {
    let content: Vec<u8> =
        (0..16u32 << 20).map(|number| (number.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    println!("| what is hashed | BLAKE3 | XXH3 | ratio |\n|---|---|---|---|");
    for (size, name) in [
        (16 << 20, "16 MiB at once"),
        (64 << 10, "64 KiB at once"),
        (1 << 10, "1 KiB at once"),
        (48, "48 bytes at once"),
    ] {
        let times = ((16 << 20) / size).clamp(1, 20_000);
        let parts = || content.chunks_exact(size).cycle().take(times);
        let ours = || parts().for_each(|part| _ = black_box(Hash::of(part)));
        let fast = || parts().for_each(|part| _ = black_box(xxh3_128(part)));
        row(name, times, ours, fast);
    }
    row(
        "an atom: 200 bytes and 8 references",
        20_000,
        || streams(&content),
        || fast_streams(&content),
    );
}

fn streams(content: &[u8]) {
    for atom in content.chunks_exact(200).take(20_000) {
        let mut hasher = Hasher::new("atom");
        hasher.bytes(atom);
        (0..8).for_each(|number| _ = hasher.pair(number, number));
        black_box(hasher.finish());
    }
}

fn fast_streams(content: &[u8]) {
    for atom in content.chunks_exact(200).take(20_000) {
        let mut hasher = Xxh3::new();
        hasher.update(&4u64.to_le_bytes());
        hasher.update(b"atom");
        hasher.update(&200u64.to_le_bytes());
        hasher.update(atom);
        (0..8u128).for_each(|number| hasher.update(&(number | number << 64).to_le_bytes()));
        black_box(hasher.digest128());
    }
}

/// What this process has used of the processor: waiting for others does not count.
fn processor_time() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}

/// Measures two ways in turns.
fn row(name: &str, times: usize, ours: impl Fn(), fast: impl Fn()) {
    let time = |work: &dyn Fn()| {
        let start = processor_time();
        work();
        processor_time() - start
    };
    let mut least = [Duration::MAX; 2];
    for _ in 0..ATTEMPTS {
        least = [least[0].min(time(&ours)), least[1].min(time(&fast))];
    }
    let [ours, fast] = least.map(|time| time.as_secs_f64() * 1e6 / times as f64);
    println!("| {name} | {ours:.3} µs | {fast:.3} µs | {:.1} |", ours / fast);
}
