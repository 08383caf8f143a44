//! Tests of the store in one process: entries come back as they were written, and damaged files
//! never do.

use super::*;
use crate::model::{Base, Dependency, DependencyKind, Exit, Origin, PortablePath};
use crate::store::MOST_DEPENDENCY_SETS;
use proptest::prelude::*;
use std::fs::FileTimes;

fn store(limit: u64) -> (tempfile::TempDir, FileStore) {
    let folder = tempfile::tempdir().unwrap();
    let store = FileStore::new(folder.path(), Options { limit, read_only: false });
    (folder, store)
}

fn hash(kind: &str, number: usize) -> Hash {
    Hash::of(format!("{kind} {number}").as_bytes())
}

fn dependency_set(number: usize) -> DependencySet {
    let place = PortablePath { base: Base::Root, path: format!("data/{number}").into_bytes() };
    DependencySet { dependencies: vec![Dependency::on(DependencyKind::File, place)] }
}

fn outcome(text: impl Into<Vec<u8>>) -> Outcome {
    let duration = Duration::from_millis(5);
    let (stderr, turns, files, origin) = (b"!".to_vec(), vec![1, 1], Vec::new(), Origin::default());
    Outcome {
        exit: Exit::Code(0),
        stdout: text.into(),
        stderr,
        turns,
        duration,
        files,
        input_end: None,
        origin,
        checkout_specific: false,
    }
}

/// Bytes that do not pack.
fn noise(length: usize, seed: usize) -> Vec<u8> {
    (0..length.div_ceil(16))
        .flat_map(|at| hash("noise", at + seed * 1_000_000).0)
        .take(length)
        .collect()
}

fn age(path: &Path, hours: u64) {
    let time = SystemTime::now() - Duration::from_secs(hours * 3600);
    fs::File::options()
        .write(true)
        .open(path)
        .unwrap()
        .set_times(FileTimes::new().set_modified(time))
        .unwrap();
}

#[test]
fn a_look_up_in_two_steps() {
    let (folder, store) = store(DEFAULT_LIMIT);
    let (test, key) = (hash("test", 1), hash("key", 1));
    assert!(
        store.dependency_sets(test).unwrap().is_empty() && store.outcome(key).unwrap().is_none()
    );
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "asking writes nothing");
    store.put(test, &dependency_set(1), key, &outcome("ok")).unwrap();
    assert_eq!(store.dependency_sets(test).unwrap(), [dependency_set(1)]);
    assert_eq!(store.outcome(key).unwrap(), Some(outcome("ok")));
    assert_eq!(store.volume().unwrap(), Volume { dependency_sets: 1, outcomes: 1, bytes: 8192 });
    assert!(store.drop_outcome(key).unwrap() && !store.drop_outcome(key).unwrap());
    assert!(store.outcome(key).unwrap().is_none());
}

#[test]
fn dependency_sets_are_unique_and_newest_first() {
    let (_folder, store) = store(DEFAULT_LIMIT);
    let test = hash("test", 1);
    for number in [1, 2, 3, 1] {
        store.put(test, &dependency_set(number), hash("key", number), &outcome("ok")).unwrap();
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(
        store.dependency_sets(test).unwrap(),
        [dependency_set(1), dependency_set(3), dependency_set(2)]
    );
}

#[test]
fn the_newest_dependency_sets_of_a_test_stay() {
    let (_folder, store) = store(DEFAULT_LIMIT);
    let test = hash("test", 1);
    for number in 0..2 * MOST_DEPENDENCY_SETS {
        store.put(test, &dependency_set(number), hash("key", number), &outcome("ok")).unwrap();
        std::thread::sleep(Duration::from_millis(5));
    }
    let kept = store.dependency_sets(test).unwrap();
    assert_eq!(
        (kept.len(), &kept[0]),
        (MOST_DEPENDENCY_SETS, &dependency_set(2 * MOST_DEPENDENCY_SETS - 1))
    );
    assert!(
        kept.contains(&dependency_set(MOST_DEPENDENCY_SETS))
            && !kept.contains(&dependency_set(MOST_DEPENDENCY_SETS - 1))
    );
}

#[test]
fn use_is_noted_for_outcome_and_dependency_set() {
    let (_folder, store) = store(DEFAULT_LIMIT);
    let test = hash("test", 1);
    (0..2).for_each(|number| {
        store.put(test, &dependency_set(number), hash("key", number), &outcome("ok")).unwrap()
    });
    let dependency_sets = [store.stem(test).file(".s0"), store.stem(test).file(".s1")];
    age(&dependency_sets[0], 9);
    age(&dependency_sets[1], 8);
    age(&store.outcome_path(hash("key", 0)), 9);
    assert_eq!(store.dependency_sets(test).unwrap()[0], dependency_set(1));
    store.used(test, &dependency_set(0), hash("key", 0));
    assert_eq!(store.dependency_sets(test).unwrap()[0], dependency_set(0));
    store.used(test, &dependency_set(0), hash("key", 99));
}

#[test]
fn a_damaged_dependency_set_is_skipped_and_replaced() {
    let (_folder, store) = store(DEFAULT_LIMIT);
    let test = hash("test", 1);
    (0..2).for_each(|number| {
        store.put(test, &dependency_set(number), hash("key", number), &outcome("ok")).unwrap()
    });
    fs::write(store.stem(test).file(".s0"), b"garbage").unwrap();
    assert_eq!(store.dependency_sets(test).unwrap(), [dependency_set(1)]);
    fs::write(store.stem(test).file(".s1"), b"").unwrap();
    assert!(matches!(store.dependency_sets(test), Err(StoreError::Damaged { .. })));
    for number in 0..MOST_DEPENDENCY_SETS {
        store.put(test, &dependency_set(number), hash("key", number), &outcome("ok")).unwrap();
    }
    assert_eq!(store.dependency_sets(test).unwrap().len(), MOST_DEPENDENCY_SETS);
}

#[test]
fn retention_keeps_the_most_recently_used() {
    let limit = 4 << 20;
    let (_folder, store) = store(limit);
    let favourite = (hash("test", 0), hash("key", 0));
    store.put(favourite.0, &dependency_set(0), favourite.1, &outcome("ok")).unwrap();
    for number in 1..300 {
        store
            .put(
                hash("test", number),
                &dependency_set(number),
                hash("key", number),
                &outcome(noise(50_000, number)),
            )
            .unwrap();
        age(&store.outcome_path(favourite.1), 2);
        store.used(favourite.0, &dependency_set(0), favourite.1);
    }
    let bytes = store.volume().unwrap().bytes;
    assert!(bytes <= limit + limit / 4, "{bytes} bytes");
    assert!(bytes >= limit / 2, "{bytes} bytes");
    assert_eq!(store.outcome(favourite.1).unwrap(), Some(outcome("ok")));
    assert_eq!(store.outcome(hash("key", 299)).unwrap(), Some(outcome(noise(50_000, 299))));
    assert!(store.outcome(hash("key", 1)).unwrap().is_none());
}

#[test]
fn wrong_sizes_are_put_right() {
    let (_folder, store) = store(1 << 20);
    for (number, table) in [&[0xff; 2048][..], &[0; 3], &[]].into_iter().enumerate() {
        fs::create_dir_all(&store.root).unwrap();
        fs::write(store.root.join("sizes"), table).unwrap();
        for entry in 0..100 {
            let name = 1000 * number + entry;
            store
                .put(
                    hash("test", name),
                    &dependency_set(name),
                    hash("key", name),
                    &outcome(noise(20_000, name)),
                )
                .unwrap();
        }
        assert_eq!(
            store.outcome(hash("key", 1000 * number + 99)).unwrap().unwrap().stdout.len(),
            20_000
        );
    }
    assert!(store.volume().unwrap().bytes < 2 << 20);
}

#[test]
fn cleaning_removes_the_oldest_and_clearing_removes_all() {
    let (_folder, store) = store(DEFAULT_LIMIT);
    for number in 0..20 {
        store
            .put(hash("test", 0), &dependency_set(0), hash("key", number), &outcome("ok"))
            .unwrap();
        age(&store.outcome_path(hash("key", number)), 40 - number as u64);
    }
    assert_eq!(store.clean(10 * 4096).unwrap(), 11 * 4096);
    let left: Vec<usize> =
        (0..20).filter(|number| store.outcome(hash("key", *number)).unwrap().is_some()).collect();
    assert_eq!(left, (11..20).collect::<Vec<_>>());
    assert_eq!(store.dependency_sets(hash("test", 0)).unwrap().len(), 1);
    store.clear().unwrap();
    assert_eq!(store.volume().unwrap(), Volume::default());
}

#[test]
fn half_written_files_are_removed() {
    let (_folder, store) = store(DEFAULT_LIMIT);
    store.put(hash("test", 0), &dependency_set(0), hash("key", 0), &outcome("ok")).unwrap();
    let folder = retention::folder(&store.root, hash("key", 0).0[0]);
    let (old, new) = (folder.join("1.tmp"), folder.join("2.tmp"));
    fs::write(&old, "x").unwrap();
    fs::write(&new, "x").unwrap();
    age(&old, 1);
    store.clean(DEFAULT_LIMIT).unwrap();
    assert!(!old.exists() && new.exists());
    assert!(store.outcome(hash("key", 0)).unwrap().is_some());
}

#[test]
fn a_read_only_store_is_never_written() {
    let (folder, store) = store(DEFAULT_LIMIT);
    store.put(hash("test", 0), &dependency_set(0), hash("key", 0), &outcome("ok")).unwrap();
    let reader = FileStore::new(folder.path(), Options { read_only: true, ..Options::default() });
    assert_eq!(reader.dependency_sets(hash("test", 0)).unwrap(), [dependency_set(0)]);
    assert_eq!(reader.outcome(hash("key", 0)).unwrap(), Some(outcome("ok")));
    let refused = reader.put(hash("test", 1), &dependency_set(1), hash("key", 1), &outcome("ok"));
    assert!(matches!(refused, Err(StoreError::ReadOnly)));
    assert!(
        reader.clear().is_err()
            && reader.zero_stats().is_err()
            && reader.drop_outcome(hash("key", 0)).is_err()
    );
    assert_eq!(store.volume().unwrap().outcomes, 1);
}

#[test]
fn a_file_in_place_of_the_folder_fails() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join(FOLDER), "no folder").unwrap();
    let store = FileStore::new(folder.path(), Options::default());
    assert!(store.dependency_sets(hash("test", 0)).is_err());
    assert!(store.outcome(hash("key", 0)).is_err());
    assert!(
        store.put(hash("test", 0), &dependency_set(0), hash("key", 0), &outcome("ok")).is_err()
    );
    assert!(store.mark_of(hash("test", 0)).is_err());
    assert!(store.recall(hash("file", 0)).is_none() && store.blob(hash("blob", 0)).is_err());
}

#[test]
fn remembered_values_are_found() {
    let (folder, store) = store(DEFAULT_LIMIT);
    assert_eq!(store.recall(hash("file", 1)), None);
    store.remember(hash("file", 1), hash("content", 1));
    let later = FileStore::new(folder.path(), Options { read_only: true, ..Options::default() });
    assert_eq!(later.recall(hash("file", 1)), Some(hash("content", 1)));
    later.remember(hash("file", 2), hash("content", 2));
    assert_eq!(store.recall(hash("file", 2)), None);
}

#[test]
fn the_latest_bytes_under_a_name_are_kept() {
    let (folder, store) = store(DEFAULT_LIMIT);
    assert!(!store.has_blob(hash("blob", 1)) && store.blob(hash("blob", 1)).unwrap().is_none());
    store.put_blob(hash("blob", 1), b"one").unwrap();
    store.put_blob(hash("blob", 1), &[b'x'; 5000]).unwrap();
    assert!(store.has_blob(hash("blob", 1)));
    assert_eq!(store.blob(hash("blob", 1)).unwrap().unwrap(), [b'x'; 5000]);
    let reader = FileStore::new(folder.path(), Options { read_only: true, ..Options::default() });
    assert!(reader.put_blob(hash("blob", 2), b"").is_err());
}

#[test]
fn too_much_output_is_refused() {
    let (_folder, store) = store(DEFAULT_LIMIT);
    let refused =
        store.put(hash("test", 0), &dependency_set(0), hash("key", 0), &outcome(vec![0; LARGEST]));
    assert!(matches!(refused, Err(StoreError::TooLarge { .. })));
    assert!(store.dependency_sets(hash("test", 0)).unwrap().is_empty());
}

/// Something that can happen to a file.
#[derive(Clone, Debug)]
enum Damage {
    Flip(prop::sample::Index, u8),
    Cut(prop::sample::Index),
    Append(Vec<u8>),
    Replace(Vec<u8>),
}

fn damage() -> impl Strategy<Value = Damage> {
    let bytes = || prop::collection::vec(any::<u8>(), 1..200);
    prop_oneof![
        (any::<prop::sample::Index>(), 1u8..).prop_map(|(at, with)| Damage::Flip(at, with)),
        any::<prop::sample::Index>().prop_map(Damage::Cut),
        bytes().prop_map(Damage::Append),
        bytes().prop_map(Damage::Replace),
    ]
}

fn hurt(path: &Path, damage: &Damage) {
    let mut bytes = fs::read(path).unwrap();
    match damage {
        Damage::Flip(at, with) => {
            let at = at.index(bytes.len());
            bytes[at] ^= with;
        }
        Damage::Cut(at) => bytes.truncate(at.index(bytes.len())),
        Damage::Append(more) => bytes.extend(more),
        Damage::Replace(other) => bytes.clone_from(other),
    }
    fs::write(path, bytes).unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn damage_is_a_miss_with_a_reason(damage in damage(), length in 0usize..5000) {
        let (_folder, store) = store(DEFAULT_LIMIT);
        let (test, key) = (hash("test", 0), hash("key", 0));
        store.put(test, &dependency_set(0), key, &outcome(vec![b'a'; length])).unwrap();
        hurt(&store.outcome_path(key), &damage);
        hurt(&store.stem(test).file(".s0"), &damage);
        prop_assert!(store.outcome(key).is_err());
        prop_assert!(store.dependency_sets(test).is_err());
        store.put(test, &dependency_set(0), key, &outcome("again")).unwrap();
        prop_assert_eq!(store.outcome(key).unwrap(), Some(outcome("again")));
        prop_assert_eq!(store.dependency_sets(test).unwrap(), [dependency_set(0)]);
    }
}
