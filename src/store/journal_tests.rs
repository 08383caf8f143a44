//! Tests of the log: order, bounds, torn lines, and sums that survive the segments that they are
//! of.

use super::*;
use crate::model::Verdict;

fn decision(time: u64) -> Decision {
    Decision {
        time,
        argv: vec!["./test".into(), "--filter=a".into()],
        cwd: "/w".into(),
        decision: if time.is_multiple_of(2) { Verdict::Reused } else { Verdict::Executed },
        step: None,
        reason: "because".into(),
        sort: "sort".into(),
        exit_code: 0,
        told_failure: false,
        duration_ms: 1,
        saved_ms: 2,
        audit: None,
        shared: false,
        not_kept: None,
        disturbed: None,
        shadow: None,
    }
}

fn journal() -> (tempfile::TempDir, Log) {
    let folder = tempfile::tempdir().unwrap();
    let journal = Log::new(folder.path());
    (folder, journal)
}

#[test]
fn the_last_ones_come_in_order() {
    let (_folder, journal) = journal();
    assert!(journal.last(3).unwrap().is_empty());
    (0..10).for_each(|time| journal.append(&decision(time)).unwrap());
    let times: Vec<u64> = journal.last(3).unwrap().iter().map(|decision| decision.time).collect();
    assert_eq!(times, [7, 8, 9]);
    assert_eq!(journal.last(100).unwrap().len(), 10);
    assert_eq!(journal.last(10).unwrap()[4], decision(4));
}

#[test]
fn a_torn_line_costs_only_itself() {
    let (_folder, journal) = journal();
    journal.append(&decision(1)).unwrap();
    let whole = line(&decision(2));
    journal.append_to(&journal.segment(0), &whole[..whole.len() / 2]).unwrap();
    journal.append(&decision(3)).unwrap();
    journal.append_to(&journal.segment(0), b"\xff\0[[[[{}\n\n{\"time\":1}\n").unwrap();
    journal.append(&decision(4)).unwrap();
    let times: Vec<u64> = journal.last(9).unwrap().iter().map(|decision| decision.time).collect();
    assert_eq!(times, [1, 3, 4]);
}

#[test]
fn sums_include_dropped_segments() {
    let (_folder, journal) = journal();
    let large = |time| Decision { reason: "x".repeat(LONGEST_TEXT), ..decision(time) };
    let count = (KEPT + 4) * SEGMENT / LONGEST_TEXT as u64;
    (0..count).for_each(|time| journal.append(&large(time)).unwrap());
    assert!(journal.segments().len() as u64 <= KEPT);
    let stats = journal.stats().unwrap();
    assert_eq!(stats.reused + stats.executed, count);
    assert!((journal.last(usize::MAX).unwrap().len() as u64) < count);
}

#[test]
fn zero_is_zero_and_counting_goes_on() {
    let (_folder, journal) = journal();
    journal.append(&decision(1)).unwrap();
    journal.zero().unwrap();
    assert_eq!(journal.stats().unwrap(), Stats::default());
    journal.append(&decision(2)).unwrap();
    assert_eq!((journal.stats().unwrap().reused, journal.stats().unwrap().executed), (1, 0));
    assert_eq!(journal.last(9).unwrap().len(), 2);
}

#[test]
fn long_texts_are_cut() {
    let mut long = decision(1);
    long.argv = vec!["ä".repeat(1 << 20); 50];
    long.argv.extend(vec![String::new(); 100_000]);
    assert!(line(&long).len() < 4 * LONGEST_TEXT);
}

#[test]
fn damaged_sums_are_none() {
    let (_folder, journal) = journal();
    journal.append(&decision(1)).unwrap();
    fs::write(journal.folder.join("sums"), b"nonsense").unwrap();
    assert_eq!(journal.stats().unwrap().executed, 1);
}
