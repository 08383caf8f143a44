//! The record in an object: where it is, what becomes of it when other tools touch the object, and
//! that a fingerprint never trusts one that does not fit.

use object::elf::SHF_EXCLUDE;
use object::{Object, ObjectSection};

use super::cases::{MAIN, PART, PART_H};
use super::twins::{record_section, shell};
use crate::edits::matrix::{COMPILERS, Compiler, compilers, linkers};
use crate::workshop::{Outcome, Workshop};

struct Site {
    workshop: Workshop,
    compiler: Compiler,
}

impl Site {
    /// `main.o` and `part.o` with records, `main.plain.o` and `part.plain.o` without.
    fn new(compiler: Compiler) -> Site {
        let workshop = Workshop::new();
        for (file, text) in [("main.c", MAIN), ("part.c", PART), ("part.h", PART_H)] {
            workshop.write(format!("work/{file}"), text);
        }
        let site = Site { workshop, compiler };
        site.well("$CC -O1 -c main.c part.c");
        site.well("for f in main part; do TASTING_DISABLE=1 $CC -O1 -ffunction-sections -fdata-sections -c $f.c -o $f.plain.o; done");
        site
    }

    fn run(&self, line: &str) -> Outcome {
        Outcome::of(shell(&self.workshop, self.compiler).arg(line))
    }

    fn well(&self, line: &str) -> Outcome {
        let outcome = self.run(line);
        assert!(outcome.success(), "{}: {line}: {outcome:?}", self.compiler.name);
        outcome
    }

    fn record(&self, name: &str) -> Option<(u64, Vec<u8>)> {
        record_section(&std::fs::read(self.workshop.path("work").join(name)).expect("a file"))
    }

    /// How many of an object's records were made of it as it is now: GNU ld puts those of its
    /// inputs into the output.
    fn valid_records(&self, name: &str) -> usize {
        let bytes = std::fs::read(self.workshop.path("work").join(name)).expect("an object");
        let digest = tasting::elf::digest::of_object(
            &tasting::elf::object_file::ObjectFile::parse(&bytes).expect("ELF"),
        );
        let file = object::File::parse(&*bytes).expect("ELF");
        let sections = file.sections().filter(|section| section.name() == Ok(".tasting"));
        let valid = |section: &object::Section| {
            section.data().is_ok_and(|data| tasting::model::Record::find(data, digest).is_ok())
        };
        sections.filter(valid).count()
    }

    /// The fingerprint of a program that is linked of these.
    fn fingerprint(&self, link: &str) -> String {
        self.well(&format!("$CC {link} -o linked"));
        let line = self.well("tasting fingerprint linked").stdout_text();
        line.split_once("  ").expect("a fingerprint and a path").0.to_owned()
    }

    /// What is shown of an object or archive, less its name.
    fn atoms(&self, name: &str) -> serde_json::Value {
        let outcome = self.well(&format!("tasting show --json {name}"));
        let mut shown: serde_json::Value = serde_json::from_slice(&outcome.stdout).expect("JSON");
        shown["atoms"].take()
    }
}

#[test]
fn objects_have_a_record_binaries_do_not() {
    for compiler in compilers() {
        let site = Site::new(compiler);
        let (flags, content) = site.record("main.o").expect("a record");
        assert_eq!(flags, SHF_EXCLUDE.0, "nothing but SHF_EXCLUDE");
        assert!(content.starts_with(b"TASTEREC"));
        assert!(site.record("main.plain.o").is_none());
        assert_eq!(
            site.atoms("main.o"),
            site.atoms("main.plain.o"),
            "the record says what hashing says"
        );
        for linker in linkers() {
            let with = format!("-fuse-ld={} main.o part.o", linker.name);
            site.well(&format!("$CC {with} -o prog && $CC {with} -static -o static"));
            assert!(
                site.record("prog").is_none() && site.record("static").is_none(),
                "{}",
                linker.name
            );
            let without = format!("-fuse-ld={} main.plain.o part.plain.o", linker.name);
            assert_eq!(
                site.fingerprint(&with),
                site.fingerprint(&without),
                "{} {}",
                compiler.name,
                linker.name
            );
        }
    }
}

/// A changed object is told by a fingerprint, a record that does not fit any more by nothing.
#[test]
#[ignore = "needs llvm"]
fn other_tools_void_it() {
    for compiler in compilers() {
        let site = Site::new(compiler);
        let original = site.fingerprint("main.o part.o");
        for (tool, changes) in [
            ("strip --strip-debug", false),
            ("strip --strip-unneeded", false),
            ("llvm-strip --strip-debug", false),
            ("objcopy --redefine-sym unused_part=renamed_part", false),
            ("objcopy --weaken-symbol=part", false),
            ("objcopy --redefine-sym shared_value=other_value --globalize-symbol=help", false),
            ("objcopy --update-section .data.shared_value=nine", true),
            ("llvm-objcopy --update-section .data.shared_value=nine", true),
            ("objcopy --set-section-alignment .bss.buffer=4096", true),
        ] {
            site.well("printf '\\011\\0\\0\\0' > nine");
            site.well(&format!(
                "{tool} part.o touched.o 2>/dev/null || {tool} -o touched.o part.o"
            ));
            site.well(&format!(
                "{tool} part.plain.o plain.o 2>/dev/null || {tool} -o plain.o part.plain.o"
            ));
            let (with, without) =
                (site.fingerprint("main.o touched.o"), site.fingerprint("main.o plain.o"));
            assert_eq!(with, without, "{}: {tool}: with and without a record", compiler.name);
            assert_eq!(with != original, changes, "{}: {tool}: another fingerprint", compiler.name);
        }
    }
}

/// Renaming a function that is called makes another program, although no byte of code changes.
#[test]
#[ignore = "needs llvm"]
fn a_redirected_call_is_noticed() {
    for compiler in compilers() {
        let site = Site::new(compiler);
        site.workshop.write("work/other.c", "int part(int x) { return x; }\nint shared_value;\n");
        site.well("$CC -O1 -c other.c");
        let original = site.fingerprint("main.o part.o other.o -Wl,--allow-multiple-definition");
        let tools = [
            "objcopy --redefine-sym part=renamed",
            "objcopy --weaken",
            "objcopy --localize-symbol=part",
            "llvm-objcopy --weaken-symbol=part",
        ];
        for tool in tools {
            site.well(&format!("{tool} part.o touched.o && {tool} part.plain.o plain.o"));
            let link = |object: &str| {
                site.fingerprint(&format!(
                    "main.o {object} other.o -Wl,--allow-multiple-definition"
                ))
            };
            let (with, without) = (link("touched.o"), link("plain.o"));
            assert_eq!(with, without, "{}: {tool}: with and without a record", compiler.name);
            assert_ne!(with, original, "{}: {tool}: part() is another now", compiler.name);
        }
    }
}

#[test]
fn ld_r_leaves_one_valid_record() {
    for linker in linkers() {
        let site = Site::new(COMPILERS[0]);
        let name = linker.name;
        site.well(&format!("$CC -fuse-ld={name} -r -nostdlib main.o part.o -o both.o"));
        site.well(&format!(
            "TASTING_LD={} tasting-ld -r main.o part.o -o direct.o",
            linker.program
        ));
        site.well(&format!("TASTING_DISABLE=1 $CC -fuse-ld={name} -r -nostdlib main.plain.o part.plain.o -o plain.o"));
        for object in ["both.o", "direct.o"] {
            assert_eq!(site.valid_records(object), 1, "{name}: {object}");
            assert_eq!(site.atoms(object), site.atoms("plain.o"), "{name}: {object}");
            assert_eq!(site.fingerprint(object), site.fingerprint("plain.o"), "{name}: {object}");
        }
    }
}

/// Without our shim in between, a linker may concatenate the records of its inputs: none of them
/// fits.
#[test]
fn concatenated_records_do_not_count() {
    for linker in linkers() {
        let site = Site::new(COMPILERS[0]);
        for (from, to) in [("main.o part.o", "with.o"), ("main.plain.o part.plain.o", "without.o")]
        {
            site.well(&format!("{} -r {from} -o {to}", linker.program));
        }
        assert_eq!(site.atoms("with.o"), site.atoms("without.o"), "{}", linker.name);
        assert_eq!(site.fingerprint("with.o"), site.fingerprint("without.o"), "{}", linker.name);
    }
}

#[test]
#[ignore = "needs llvm"]
fn archives_thin_and_thick() {
    for compiler in compilers() {
        let site = Site::new(compiler);
        site.well("mkdir sub && cp part.o sub/ && ar rcs thick.a part.o && ar rcsT thin.a sub/part.o && ar rcs plain.a part.plain.o");
        site.well("llvm-ar rcs llvm.a part.o && llvm-ar rcsT sub/llvm-thin.a sub/part.o && llvm-ar --format=gnu rcs gnu.a part.o");
        for linker in linkers() {
            let of = |archive: &str| {
                site.fingerprint(&format!("-fuse-ld={} main.o {archive}", linker.name))
            };
            let expected = of("plain.a");
            for archive in ["thick.a", "thin.a", "llvm.a", "sub/llvm-thin.a", "gnu.a"] {
                assert_eq!(of(archive), expected, "{} {} {archive}", compiler.name, linker.name);
            }
        }
        for archive in ["thick.a", "thin.a", "sub/llvm-thin.a"] {
            let atoms = site.atoms(archive);
            assert!(
                atoms
                    .as_array()
                    .is_some_and(|atoms| atoms.iter().any(|atom| atom["name"] == "part")),
                "{archive}"
            );
        }
    }
}

/// Compiled again by the same shim, an object is the same, byte for byte.
#[test]
fn records_are_reproducible() {
    for compiler in compilers() {
        let site = Site::new(compiler);
        site.well("cp main.o first.o && rm main.o && sleep 0.01 && $CC -O1 -c main.c && cmp first.o main.o");
        site.well(
            "$CC main.o part.o -o prog && cp prog.tasting first && $CC main.o part.o -o prog && cmp first prog.tasting",
        );
    }
}
