//! Records and manifests that do not belong to the file in which, or beside which, they are.

use super::{PART, Site, record_range};
use crate::workshop::{TASTING, TASTING_CC, tool};
use object::{Object, ObjectSection};

/// The record of one object in another: it does not describe it.
#[test]
fn a_record_of_another_object_does_not_count() {
    let site = Site::new();
    site.write("other.c", PART.replace('5', "6").as_bytes());
    site.well(&[TASTING_CC, "-O1", "-c", "other.c"]);
    let (part, other) = (site.read("part.o"), site.read("other.o"));
    site.write("record", &part[record_range(&part)]);
    site.well(&["objcopy", "-R", ".tasting", "other.o", "bare.o"]);
    site.well(&["objcopy", "--update-section", ".tasting=record", "other.o", "forged.o"]);
    assert_eq!(
        site.read("forged.o")[record_range(&site.read("forged.o"))],
        part[record_range(&part)]
    );
    assert_ne!(part[record_range(&part)], other[record_range(&other)]);
    for (object, binary) in [("bare.o", "bare"), ("forged.o", "forged")] {
        site.well(&[TASTING_CC, "main.o", object, "-o", binary]);
    }
    assert_eq!(site.fingerprint("forged"), site.fingerprint("bare"));
    assert_ne!(site.fingerprint("forged"), site.fingerprint("prog"));
}

#[test]
fn a_manifest_of_another_version_says_so() {
    let site = Site::new();
    let mut manifest = site.read("prog.tasting");
    manifest[8..12].copy_from_slice(&999u32.to_le_bytes());
    site.write("prog.tasting", &manifest);
    for command in ["show", "fingerprint"] {
        site.is_refused(&[TASTING, command, "prog"], "another version", "version 999");
    }
}

#[test]
fn a_manifest_of_another_binary_is_refused() {
    let site = Site::new();
    site.write("other.c", b"int main(void) { return 0; }\n");
    site.well(&[TASTING_CC, "other.c", "-o", "other"]);
    site.well(&["cp", "other.tasting", "prog.tasting"]);
    site.is_refused(
        &[TASTING, "fingerprint", "prog"],
        "another binary's manifest",
        "link it again",
    );
    std::fs::remove_file(site.workshop.path("prog.tasting")).expect("the manifest can be removed");
    site.is_refused(&[TASTING, "fingerprint", "prog"], "no manifest", "tasting-cc");
}

#[test]
#[ignore = "needs llvm"]
fn stripping_keeps_the_manifest_valid() {
    let site = Site::new();
    let expected = site.fingerprint("prog");
    let tools: [&[&str]; 6] = [
        &["strip", "-o", "stripped", "prog"],
        &["strip", "--strip-debug", "-o", "stripped", "prog"],
        &["llvm-strip", "-o", "stripped", "prog"],
        &["objcopy", "--only-keep-debug", "prog", "symbols"],
        &["objcopy", "--add-gnu-debuglink=symbols", "prog", "stripped"],
        &["objcopy", "--compress-debug-sections", "prog", "stripped"],
    ];
    for words in tools {
        tool(words[0]);
        site.well(words);
        if !words.contains(&"symbols") {
            site.well(&["cp", "prog.tasting", "stripped.tasting"]);
            assert_eq!(site.fingerprint("stripped"), expected, "{words:?}");
        }
    }
}

/// Any change to what is loaded makes the manifest refuse: one byte of code, of data, of the
/// dynamic section.
#[test]
fn a_changed_binary_is_refused() {
    let site = Site::new();
    let whole = site.read("prog");
    for name in [".text", ".data", ".rodata", ".dynamic", ".interp", ".dynstr", ".got", ".eh_frame"]
    {
        let file = object::File::parse(&*whole).expect("a binary");
        let Some((start, size)) =
            file.section_by_name(name).and_then(|section| section.file_range())
        else {
            assert_eq!(name, ".got", "{name} is missing");
            continue;
        };
        for at in [start, start + size / 2, start + size - 1] {
            let mut changed = whole.clone();
            changed[at as usize] ^= 0x10;
            site.write("prog", &changed);
            site.is_refused(&[TASTING, "fingerprint", "prog"], &format!("{name} at {at}"), "prog");
        }
    }
    // The entry point and a segment's flags, in the headers.
    for at in [24, 64 + 4] {
        let mut changed = whole.clone();
        changed[at] ^= 0x10;
        site.write("prog", &changed);
        site.is_refused(&[TASTING, "fingerprint", "prog"], &format!("the header at {at}"), "prog");
    }
    site.write("prog", &whole);
    site.fingerprint("prog");
    site.well(&["objcopy", "--update-section", ".interp=main.c", "prog", "patched"]);
    site.well(&["cp", "prog.tasting", "patched.tasting"]);
    site.is_refused(&[TASTING, "fingerprint", "patched"], "another interpreter", "link it again");
}
