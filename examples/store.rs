//! The store on its own, to measure it: `store fill FOLDER COUNT`, `store hit FOLDER NUMBER`,
//! `store churn FOLDER COUNT LIMIT`.
//!
//! A hit is what `tasting run` asks of the store to reuse a result: quarantine, dependency sets, 50
//! remembered contents, outcome, use, log.

use std::path::Path;
use std::time::{Duration, Instant};
use tasting::model::{
    Base, Decision, Dependency, DependencyKind, DependencySet, Exit, FileIdentity, Hash, Origin,
    Outcome, PortablePath, Step, Verdict,
};
use tasting::store::{FileStore, Journal, Memo, Options, Quarantine, Results, Store, StoreError};

fn main() -> Result<(), StoreError> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize| words.get(at).and_then(|word| word.parse::<u64>().ok()).unwrap_or(0);
    let (Some(mode), Some(folder)) = (words.first(), words.get(1)) else {
        eprintln!("store fill|hit|churn FOLDER NUMBER [LIMIT]");
        return Ok(());
    };
    let limit = if number(3) == 0 { Options::default().limit } else { number(3) };
    let store = FileStore::new(Path::new(folder), Options { limit, read_only: false });
    match mode.as_str() {
        "hit" => hit(&store, number(2)),
        _ => fill(&store, number(2)),
    }
}

fn name(kind: &str, number: u64) -> Hash {
    Hash::of(format!("{kind} {number}").as_bytes())
}

fn dependency_set(number: u64) -> DependencySet {
    let path = |at: u64| {
        format!("src/module{:02}/data/input-{:05}.txt", at % 7, at * 31 + number % 1000)
            .into_bytes()
    };
    let place = |at| PortablePath { base: Base::Root, path: path(at) };
    let dependency = |at| Dependency::on(DependencyKind::File, place(at));
    DependencySet { dependencies: (0..50).map(dependency).collect() }
}

fn outcome(number: u64) -> Outcome {
    Outcome {
        exit: Exit::Code(0),
        stdout: (0..12)
            .map(|line| format!("test {number}: {} ok\n", name("line", line)))
            .collect::<String>()
            .into(),
        stderr: Vec::new(),
        turns: Vec::new(),
        duration: Duration::from_millis(40),
        files: Vec::new(),
        input_end: None,
        origin: Origin::default(),
        checkout_specific: false,
    }
}

/// Stores entries one after the other, and tells how long that took.
fn fill(store: &FileStore, count: u64) -> Result<(), StoreError> {
    let mut times = Vec::new();
    for number in 0..count {
        let start = Instant::now();
        store.put(
            name("test", number),
            &dependency_set(number),
            name("key", number),
            &outcome(number),
        )?;
        times.push(start.elapsed());
    }
    times.sort_unstable();
    let at = |share: usize| times.get(times.len() * share / 1000).copied().unwrap_or_default();
    println!(
        "a put: median {:?}, 99 % {:?}, 99.9 % {:?}, longest {:?}",
        at(500),
        at(990),
        at(999),
        times.last()
    );
    println!("{:?}", store.volume()?);
    Ok(())
}

fn hit(store: &FileStore, number: u64) -> Result<(), StoreError> {
    let test = name("test", number);
    store.mark_of(test)?;
    let dependency_sets = store.dependency_sets(test)?;
    if let Ok(metadata) = Path::new("/bin/sh").metadata() {
        let file = FileIdentity::of(&metadata);
        dependency_sets.iter().flat_map(|dependency_set| &dependency_set.dependencies).for_each(
            |_| {
                store.recall(file.hash());
            },
        );
    }
    let found = store.outcome(name("key", number))?;
    for dependency_set in &dependency_sets {
        store.used(test, dependency_set, name("key", number));
    }
    let verdict = if found.is_some() { Verdict::Reused } else { Verdict::Executed };
    store.log(&Decision {
        time: 0,
        argv: vec!["./test".into(), number.to_string()],
        cwd: "/".into(),
        decision: verdict,
        step: Some(Step::Static),
        reason: "nothing has changed".into(),
        sort: "same".into(),
        exit_code: 0,
        told_failure: false,
        duration_ms: 1,
        saved_ms: 40,
        audit: None,
        shared: false,
        not_kept: None,
        disturbed: None,
        shadow: None,
    })
}
