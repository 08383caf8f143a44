//! Objects that are kept and found again, damage, shared objects, the limit.

use super::*;
use proptest::prelude::*;
use std::fs::OpenOptions;

fn objects(folder: &Path, limit: Option<u64>) -> Objects {
    let settings =
        Settings { dir: Some(folder.to_owned()), max_objects: limit, ..Settings::default() };
    Objects::new(&settings).unwrap()
}

fn digest(text: Hash) -> TextDigest {
    TextDigest { text, ..TextDigest::default() }
}

#[test]
fn declarations_are_noted() {
    let folder = tempfile::tempdir().unwrap();
    let objects = objects(folder.path(), None);
    let declaration = Hash::of(b"int f(int);");
    assert!(!objects.is_clean_declaration(declaration));
    objects.note_clean_declaration(declaration).unwrap();
    assert!(objects.is_clean_declaration(declaration) && objects.find(declaration).is_none());
    assert_eq!(objects.volume().unwrap().0, 0);
}

#[test]
fn objects_round_trip_and_damage_is_a_miss() {
    let folder = tempfile::tempdir().unwrap();
    let objects = objects(folder.path(), None);
    let (made, taken) = (folder.path().join("made.o"), folder.path().join("taken.o"));
    fs::write(&made, "an object").unwrap();
    let (key, text) = (Hash::of(b"key"), Hash::of(b"text"));
    assert!(objects.find(key).is_none());
    objects.keep(key, &made, &digest(text)).unwrap();
    let found = objects.find(key).unwrap();
    assert_eq!(found.notes.clean_texts, [text]);
    objects.take(&found, &taken).unwrap();
    assert_eq!(fs::read(&taken).unwrap(), b"an object");
    // What is done to the taken one is not done to the kept one.
    OpenOptions::new().append(true).open(&taken).unwrap().write_all(b" changed").unwrap();
    assert!(objects.find(key).is_some());
    fs::write(objects.file(key, "o"), "an objecT").unwrap();
    assert!(objects.find(key).is_none());
}

#[test]
fn texts_are_noted_and_look_ups_counted() {
    let folder = tempfile::tempdir().unwrap();
    let objects = objects(folder.path(), None);
    let made = folder.path().join("made.o");
    fs::write(&made, "an object").unwrap();
    let key = Hash::of(b"key");
    objects.keep(key, &made, &digest(Hash::of(b"0"))).unwrap();
    for number in 1..100u8 {
        let notes = objects.find(key).unwrap().notes;
        objects.note_clean_text(key, notes, &digest(Hash::of(&[number]))).unwrap();
    }
    let clean_texts = objects.find(key).unwrap().notes.clean_texts;
    assert_eq!((clean_texts.len(), clean_texts.last()), (MOST_TEXTS, Some(&Hash::of(&[99]))));
    [ObjectLookup::Reused, ObjectLookup::Compiled, ObjectLookup::Shared]
        .into_iter()
        .for_each(|look| objects.count(look));
    assert_eq!(objects.counts(), Counts { reused: 2, shared: 1, compiled: 1 });
    objects.forget_counts();
    assert_eq!(objects.counts(), Counts::default());
}

#[test]
fn shared_objects_are_validated() {
    let folder = tempfile::tempdir().unwrap();
    let (ours, theirs) =
        (objects(&folder.path().join("a"), None), objects(&folder.path().join("b"), None));
    let made = folder.path().join("made.o");
    let object = [b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x01\0", &[7; 50][..]].concat();
    fs::write(&made, &object).unwrap();
    let (key, text) = (Hash::of(b"key"), Hash::of(b"text"));
    assert_eq!(theirs.give(key, 1000), Ok(None));
    theirs.keep(key, &made, &digest(text)).unwrap();
    let given = theirs.give(key, 1000).unwrap().unwrap();
    assert!(
        theirs.give(key, object.len() - 1).is_err()
            && ours.accept(key, &given, object.len() - 1).is_err()
    );
    let raw = |clean_texts: usize, object: &[u8]| {
        postcard::to_stdvec(&SharedObject { clean_texts: vec![text; clean_texts], object })
    };
    for bad in [
        raw(1, b"a script").unwrap(),
        raw(100, &object).unwrap(),
        [&given[..], b"x"].concat(),
        vec![9; 9],
    ] {
        assert!(ours.accept(key, &bad, 1000).is_err() && ours.find(key).is_none());
    }
    ours.accept(key, &given, 1000).unwrap();
    let found = ours.find(key).unwrap();
    assert_eq!((&*found.content, found.notes.clean_texts), (&object[..], vec![text]));
}

#[test]
fn the_limit_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let objects = objects(folder.path(), Some(1 << 20));
    let made = folder.path().join("made.o");
    fs::write(&made, vec![7; 60 << 10]).unwrap();
    for number in 0..60u8 {
        objects.keep(Hash::of(&[number]), &made, &TextDigest::default()).unwrap();
    }
    objects.clean().unwrap();
    let (count, bytes) = objects.volume().unwrap();
    assert!(count > 0 && bytes <= 1 << 20, "{count} objects, {bytes} bytes");
    objects.clear().unwrap();
    assert_eq!(objects.volume().unwrap(), (0, 0));
}

proptest! {
    #[test]
    fn shared_objects_are_stored_whole_or_not(bytes: Vec<u8>, object: Vec<u8>) {
        let folder = tempfile::tempdir().unwrap();
        let objects = objects(folder.path(), None);
        let object = [b"\x7fELF", &object[..]].concat();
        let key = Hash::of(b"key");
        for bytes in [bytes, postcard::to_stdvec(&SharedObject { clean_texts: Vec::new(), object: &object }).unwrap()] {
            let is_kept = objects.accept(key, &bytes, 1000).is_ok();
            prop_assert_eq!(objects.find(key).is_some(), is_kept);
        }
    }
}
