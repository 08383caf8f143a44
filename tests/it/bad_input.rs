//! Files that are truncated, random, damaged or of another kind: a clear line and exit code 1 from
//! `tasting`, never a panic or a hang; and never a failed build, or another fingerprint, because of
//! a damaged record.

mod mismatched;

use std::path::Path;
use std::process::Command;

use object::{Object, ObjectSection};

use crate::workshop::{Outcome, TASTING, TASTING_CC, Workshop};

const MAIN: &str = "#include <stdio.h>\nint part(int);\nstatic int table[] = {1, 2, 3};\n\
    int main(int argc, char **argv) { (void)argv; printf(\"%d\\n\", part(table[argc % 3])); return 0; }\n";
const PART: &str = "int shared_value = 5;\nint part(int x) { return x + shared_value; }\n";

/// `main.o`, `part.o`, `libpart.a` and `prog`, built with the shims.
struct Site {
    workshop: Workshop,
}

impl Site {
    fn new() -> Site {
        let site = Site { workshop: Workshop::new() };
        site.workshop.write("main.c", MAIN);
        site.workshop.write("part.c", PART);
        site.well(&[TASTING_CC, "-g", "-O1", "-c", "main.c", "part.c"]);
        site.well(&["ar", "rcs", "libpart.a", "part.o"]);
        site.well(&[TASTING_CC, "main.o", "libpart.a", "-o", "prog"]);
        site
    }

    fn run(&self, words: &[&str]) -> Outcome {
        Outcome::of(self.workshop.command("timeout").arg("20").args(words).env("TASTING_CC", "gcc"))
    }

    fn well(&self, words: &[&str]) -> String {
        let outcome = self.run(words);
        assert!(outcome.success(), "{words:?}: {outcome:?}");
        outcome.stdout_text()
    }

    fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.workshop.path(name)).expect("a file of the site")
    }

    fn write(&self, name: &str, content: &[u8]) {
        self.workshop.write(name, content);
    }

    fn fingerprint(&self, name: &str) -> String {
        let line = self.well(&[TASTING, "fingerprint", name]);
        line.split_once("  ").expect("a fingerprint and a path").0.to_owned()
    }

    /// Whatever is in the file, the command ends by itself, and says in one line what is wrong if
    /// anything is.
    fn is_civil(&self, words: &[&str], what: &str) -> Outcome {
        let outcome = self.run(words);
        let complaint = outcome.stderr_text();
        assert!(!complaint.contains("panicked"), "{what}: {words:?}: {outcome:?}");
        match outcome.code {
            Some(0) => assert!(complaint.is_empty(), "{what}: {words:?}: {outcome:?}"),
            Some(1) => assert_eq!(complaint.lines().count(), 1, "{what}: {words:?}: {outcome:?}"),
            _ => panic!("{what}: {words:?}: {outcome:?}"),
        }
        outcome
    }

    fn is_refused(&self, words: &[&str], what: &str, reason: &str) {
        let outcome = self.is_civil(words, what);
        assert_eq!(outcome.code, Some(1), "{what}: {words:?} is not refused: {outcome:?}");
        assert!(outcome.stderr_text().contains(reason), "{what}: {words:?}: {outcome:?}");
    }
}

/// Numbers that look random and are the same in every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }
}

/// Lengths over the whole file, dense where the headers are.
fn lengths(whole: usize) -> Vec<usize> {
    let near_both_ends =
        (0..80).step_by(9).chain((1..200).step_by(23).map(|less| whole.saturating_sub(less)));
    near_both_ends
        .chain((0..30).map(|part| whole * part / 30))
        .filter(|length| *length < whole)
        .collect()
}

#[test]
fn truncated_files() {
    let site = Site::new();
    for name in ["part.o", "libpart.a", "prog"] {
        let whole = site.read(name);
        for length in lengths(whole.len()) {
            site.write("cut", &whole[..length]);
            let what = format!("{name} cut to {length} of {}", whole.len());
            let shown = site.is_civil(&[TASTING, "show", "cut"], &what);
            // Only the symbols for the linker and what lies behind the last member can be missed in
            // an archive.
            assert!(name == "libpart.a" || shown.code == Some(1), "{what}: {shown:?}");
            site.is_refused(&[TASTING, "fingerprint", "cut"], &what, "cut");
        }
    }
}

#[test]
fn truncated_manifests() {
    let site = Site::new();
    let whole = site.read("prog.tasting");
    for length in lengths(whole.len()) {
        site.write("prog.tasting", &whole[..length]);
        for command in ["show", "fingerprint"] {
            site.is_refused(&[TASTING, command, "prog"], &format!("cut to {length}"), "manifest");
        }
    }
    let longer = [&whole[..], b"more"].concat();
    site.write("prog.tasting", &longer);
    site.is_refused(&[TASTING, "show", "prog"], "longer than it says", "manifest");
}

#[test]
fn flipped_bits_of_manifests_are_noticed() {
    let site = Site::new();
    let whole = site.read("prog.tasting");
    let mut random = Random(7);
    for _ in 0..60 {
        let (at, bit) = (random.below(whole.len()), random.below(8));
        let mut damaged = whole.clone();
        damaged[at] ^= 1 << bit;
        site.write("prog.tasting", &damaged);
        site.is_refused(
            &[TASTING, "fingerprint", "prog"],
            &format!("bit {bit} of byte {at}"),
            "manifest",
        );
    }
}

/// A flipped bit may leave a good object; it must not crash the reader.
#[test]
fn flipped_bits_of_objects_archives_and_binaries() {
    let site = Site::new();
    let mut random = Random(99);
    for name in ["part.o", "libpart.a", "prog"] {
        let whole = site.read(name);
        // Section headers lie at the end, the file's header at the front: most of the flips go
        // there.
        for round in 0..120 {
            let mut damaged = whole.clone();
            let at = match round % 3 {
                0 => random.below(64),
                1 => whole.len() - 1 - random.below(whole.len().min(1500)),
                _ => random.below(whole.len()),
            };
            damaged[at] ^= 1 << random.below(8);
            site.write("flipped", &damaged);
            site.is_civil(&[TASTING, "show", "flipped"], &format!("{name}, byte {at}"));
        }
    }
}

#[test]
fn random_files() {
    let site = Site::new();
    let mut random = Random(12345);
    let starts: [&[u8]; 7] = [
        b"",
        b"\x7fELF",
        b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x01\0\x3e\0\x01\0\0\0",
        b"\x7fELF\x01\x02\x01\0\0\0\0\0\0\0\0\0\0\x01\0\x14\0\0\0\x01",
        b"!<arch>\n",
        b"!<thin>\n",
        b"BC\xc0\xde",
    ];
    for start in starts {
        for length in [0, 1, 40, 700, 5000] {
            let noise: Vec<u8> = (0..length).map(|_| random.next() as u8).collect();
            site.write("noise", &[start, &noise].concat());
            let what = format!("{start:?} and {length} random bytes");
            site.is_civil(&[TASTING, "show", "noise"], &what);
            site.is_refused(&[TASTING, "fingerprint", "noise"], &what, "noise");
        }
    }
    for text in ["", "hello\n", "#!/bin/sh\necho\n"] {
        site.write("text", text.as_bytes());
        site.is_refused(&[TASTING, "show", "text"], text, "text");
        site.is_refused(&[TASTING, "fingerprint", "text"], text, "text");
    }
}

#[test]
fn paths_that_are_no_files() {
    let site = Site::new();
    std::fs::create_dir(site.workshop.path("folder")).expect("a folder can be made");
    site.well(&["mkfifo", "pipe"]);
    for name in ["folder", "pipe", "missing", "missing/deeper"] {
        for command in ["show", "fingerprint"] {
            site.is_refused(&[TASTING, command, name], name, name);
        }
    }
    // A pipe for a manifest, and for a member of a thin archive.
    std::fs::remove_file(site.workshop.path("prog.tasting")).expect("the manifest can be removed");
    site.well(&["mkfifo", "prog.tasting"]);
    site.is_refused(&[TASTING, "fingerprint", "prog"], "a pipe for a manifest", "prog");
    site.well(&["ar", "rcsT", "thin.a", "part.o"]);
    std::fs::remove_file(site.workshop.path("part.o")).expect("the member can be removed");
    site.is_refused(&[TASTING, "show", "thin.a"], "a thin archive's lost member", "part.o");
    site.well(&["mkfifo", "part.o"]);
    site.is_refused(&[TASTING, "show", "thin.a"], "a pipe for a member", "part.o");
}

/// Where the record's section lies in an object.
fn record_range(object: &[u8]) -> std::ops::Range<usize> {
    let file = object::File::parse(object).expect("an object");
    let section = file.section_by_name(".tasting").expect("a record");
    let (start, size) = section.file_range().expect("a place in the file");
    start as usize..(start + size) as usize
}

/// Every damage to a record: the link succeeds, and the fingerprint is that of an object without
/// any.
#[test]
fn damaged_records_do_not_count() {
    let site = Site::new();
    let expected = site.fingerprint("prog");
    let plain =
        ["-ffunction-sections", "-fdata-sections", "-g", "-O1", "-c", "part.c", "-o", "plain.o"];
    site.well(&[&["gcc"][..], &plain].concat());
    site.well(&[TASTING_CC, "main.o", "plain.o", "-o", "without"]);
    assert_eq!(site.fingerprint("without"), expected);
    let object = site.read("part.o");
    let range = record_range(&object);
    let mut random = Random(3);
    for round in 0..24 {
        let mut damaged = object.clone();
        let record = &mut damaged[range.clone()];
        match round {
            0 => record.fill(0),
            1 => record.fill(0xff),
            2 => record[..8].copy_from_slice(b"TASTEMAN"),
            // Another format version.
            3 => record[8..12].copy_from_slice(&999u32.to_le_bytes()),
            // A length far beyond the end.
            4 => record[12..20].copy_from_slice(&u64::MAX.to_le_bytes()),
            5 => record[12..20].copy_from_slice(&0u64.to_le_bytes()),
            _ => {
                let at = random.below(record.len());
                record[at] ^= 1 << random.below(8);
            }
        }
        site.write("damaged.o", &damaged);
        let link = site.run(&[TASTING_CC, "main.o", "damaged.o", "-o", "linked"]);
        assert!(link.success() && link.stderr.is_empty(), "round {round}: {link:?}");
        assert_eq!(site.fingerprint("linked"), expected, "round {round}");
        assert_eq!(
            site.is_civil(&[TASTING, "show", "damaged.o"], "a damaged record").code,
            Some(0),
            "round {round}"
        );
    }
}

/// A linker is given damaged inputs: it says so, and so does the shim, with the same status.
#[test]
fn damaged_inputs_link_as_without_the_shim() {
    let site = Site::new();
    let object = site.read("part.o");
    for (name, content) in
        [("empty.o", &b""[..]), ("half.o", &object[..object.len() / 2]), ("text.o", b"hello")]
    {
        site.write(name, content);
        let with = site.run(&[TASTING_CC, "main.o", name, "-o", "x"]);
        let without = site.run(&["gcc", "main.o", name, "-o", "x"]);
        assert_eq!(with, without, "{name}");
        assert!(!with.success() && !Path::new(&site.workshop.path("x.tasting")).exists(), "{name}");
    }
}

/// The answers that the shims remember in their store may be damaged as well.
#[test]
fn a_damaged_store_is_a_miss() {
    let site = Site::new();
    let expected = site.fingerprint("prog");
    let mut folders = vec![site.workshop.path(".store")];
    let mut damaged = 0;
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("the store is readable") {
            let path = entry.expect("an entry").path();
            let kind = std::fs::symlink_metadata(&path).expect("an entry");
            if kind.is_dir() {
                folders.push(path);
            } else if kind.is_file() {
                damaged += 1;
                std::fs::write(path, [b'x', damaged]).expect("a file of the store can be written");
            }
        }
    }
    assert!(damaged > 0, "nothing is stored");
    let link = site.run(&[TASTING_CC, "main.o", "libpart.a", "-o", "prog"]);
    assert!(link.success() && link.stderr.is_empty(), "{link:?}");
    assert_eq!(site.fingerprint("prog"), expected);
}

#[test]
fn a_wrong_command_line_is_told_apart() {
    for words in [
        &[][..],
        &["no-such-command"],
        &["fingerprint"],
        &["show"],
        &["show", "--no-such-option", "x"],
    ] {
        let outcome = Outcome::of(Command::new(TASTING).args(words));
        assert_eq!(outcome.code, Some(2), "{words:?}: {outcome:?}");
        assert!(!outcome.stderr.is_empty() && outcome.stdout.is_empty(), "{words:?}: {outcome:?}");
    }
}
