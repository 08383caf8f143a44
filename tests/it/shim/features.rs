//! Options that change what a compiler leaves: the user's own map, `-save-temps`, `-pipe`, split
//! debug information, coverage, precompiled headers, link-time optimisation.

use super::cases::{MAIN, ONE, PART, PART_H};
use super::twins::{Scene, Twins};
use crate::edits::matrix::{COMPILERS, Compiler, LINKERS, compilers, linkers};

fn scene(compiler: Compiler) -> Scene {
    Scene::new(compiler).file("main.c", MAIN).file("part.c", PART).file("part.h", PART_H)
}

/// The user's map is what it would be, and good enough for us.
#[test]
fn a_users_own_map_is_the_same() {
    for compiler in compilers() {
        for linker in linkers() {
            let with = format!("-fuse-ld={} -Wl,--build-id=none main.o part.o", linker.name);
            let twins = scene(compiler).run(&[
                "$CC -c main.c part.c".to_owned(),
                format!("$CC {with} -Wl,-Map=joined.map -o joined"),
                format!("$CC {with} -Wl,-Map,separate.map -o separate"),
                format!("$CC {with} -Wl,--Map=long.map -Xlinker -Map -Xlinker last.map -o last"),
                format!("$CC {with} -o none"),
            ]);
            let twins = twins.same_and_well();
            let title = format!("{} {}", compiler.name, linker.name);
            assert!(twins.shim.files.contains_key(std::path::Path::new("separate.map")), "{title}");
            let fingerprints =
                ["joined", "separate", "last", "none"].map(|name| twins.fingerprint(name));
            assert!(
                fingerprints.iter().all(|other| *other == fingerprints[0]),
                "{title}: {fingerprints:?}"
            );
            assert_eq!(refusals(&twins, "joined"), "[]", "{title}");
        }
    }
}

/// Printed on standard output it is the user's alone; the binary is then taken whole.
#[test]
#[ignore = "needs lld"]
fn a_printed_map_is_the_same() {
    for linker in LINKERS.iter().filter(|linker| ["bfd", "lld"].contains(&linker.name)) {
        let twins = scene(COMPILERS[0]).run(&[
            "$CC -c main.c part.c".to_owned(),
            format!("$CC -fuse-ld={} -Wl,--build-id=none,-M main.o part.o -o prog", linker.name),
            format!(
                "$CC -fuse-ld={} -Wl,--build-id=none,--trace main.o part.o -o traced",
                linker.name
            ),
        ]);
        let twins = twins.same_and_well();
        assert!(!twins.plain.outcomes[1].stdout.is_empty(), "{}", linker.name);
        twins.fingerprint("prog");
    }
}

fn refusals(twins: &Twins, file: &str) -> String {
    let outcome = twins.line(&format!("tasting show --json {file}"));
    assert!(outcome.success(), "{file}: {outcome:?}");
    let shown: serde_json::Value = serde_json::from_slice(&outcome.stdout).expect("JSON");
    shown["refusals"].to_string()
}

#[test]
fn temporary_files_are_kept_when_asked_for() {
    for compiler in compilers() {
        let twins = scene(compiler).run(&[
            "$CC -save-temps -c part.c -o part.o",
            "mkdir obj && $CC -save-temps=obj -c part.c -o obj/part.o",
            "$CC -save-temps main.c part.o -Wl,--build-id=none -o prog && ./prog",
            "$CC -pipe -O2 -c main.c -o piped.o",
            "$CC -pipe main.c part.c -Wl,--build-id=none -o piped && ./piped",
        ]);
        let twins = twins.same_and_well();
        assert!(twins.shim.files.contains_key(std::path::Path::new("part.i")), "{}", compiler.name);
        assert_eq!(twins.manifests(), ["piped.tasting", "prog.tasting"], "{}", compiler.name);
        if compiler.name == "gcc" {
            // Clang chooses other instructions when it writes assembler in between.
            assert_eq!(twins.fingerprint("piped"), twins.fingerprint("prog"));
        }
    }
}

#[test]
fn split_debug_information() {
    for compiler in compilers() {
        let twins = scene(compiler).run(&[
            "$CC -g -gsplit-dwarf -c main.c && $CC -g -gsplit-dwarf -c part.c -o part.o",
            "$CC -g -gsplit-dwarf main.o part.o -Wl,--build-id=none -o prog && ./prog",
            "mkdir sub && $CC -g -gsplit-dwarf -c part.c -o sub/other.o",
        ]);
        let twins = twins.same_and_well();
        assert!(
            twins.shim.files.contains_key(std::path::Path::new("sub/other.dwo")),
            "{}",
            compiler.name
        );
        assert_eq!(twins.with_record().len(), 3, "{}", compiler.name);
    }
}

/// Counters are written when the program ends, beside the object as the compiler named it.
#[test]
fn coverage_works() {
    for compiler in compilers() {
        let twins = scene(compiler).run(&[
            "mkdir obj && for f in main part; do $CC --coverage -frandom-seed=$f -c $f.c -o obj/$f.o || exit; done",
            "$CC --coverage obj/main.o obj/part.o -Wl,--build-id=none -o prog && ./prog && ./prog",
        ]);
        let twins = twins.same_and_well();
        for counts in ["obj/main.gcno", "obj/main.gcda", "obj/part.gcda"] {
            assert!(
                twins.shim.files.contains_key(std::path::Path::new(counts)),
                "{}: {counts}",
                compiler.name
            );
        }
        assert_eq!(twins.manifests(), ["prog.tasting"]);
    }
}

#[test]
fn precompiled_headers_are_used() {
    for compiler in compilers() {
        let compiled = if compiler.name == "clang" { "all.h.pch" } else { "all.h.gch" };
        let scene = Scene::new(compiler)
            .file("all.h", "int from_header(void);\n#define VALUE 4\n")
            .file("x.c", "#include \"all.h\"\nint main(void) { return VALUE - 4; }\n");
        let include = if compiler.name == "clang" {
            "-include-pch all.h.pch"
        } else {
            "-Winvalid-pch -include all.h"
        };
        let twins = scene.run(&[
            format!("$CC -O1 -x c-header all.h -o {compiled}"),
            format!("$CC -O1 -H {include} -c x.c -o x.o 2>uses.txt"),
            "$CC x.o -Wl,--build-id=none -o prog && ./prog".to_owned(),
        ]);
        // The section flags are part of what gcc compares a header with: both calls get them, or
        // neither.
        let twins = twins.same_and_well();
        assert_eq!(twins.with_record(), ["x.o"], "{}", compiler.name);
        if compiler.name == "gcc" {
            let uses = twins.line("cat uses.txt").stdout_text();
            assert!(
                uses.starts_with("! ./all.h.gch"),
                "the precompiled header is not used: {uses}"
            );
        }
    }
}

/// Bitcode holds no atoms: the binary is taken whole, and the manifest says why.
#[test]
fn link_time_optimisation_builds_and_is_refused() {
    for compiler in compilers() {
        // Only lld reads what Clang writes.
        let linker = if compiler.name == "clang" { "lld" } else { "bfd" };
        let twins = Scene::bare(compiler).file("main.c", MAIN).file("part.c", PART).file("part.h", PART_H).run(&[
            "$CC -O2 -flto -frandom-seed=1 -c main.c && $CC -O2 -flto -frandom-seed=2 -c part.c".to_owned(),
            format!("$CC -O2 -flto -fuse-ld={linker} -Wl,--build-id=none main.o part.o -o prog && ./prog"),
        ]);
        for (plain, shim) in twins.plain.outcomes.iter().zip(&twins.shim.outcomes) {
            assert!(plain.success() && plain == shim, "{}: {plain:?}, {shim:?}", compiler.name);
        }
        assert!(twins.with_record().is_empty(), "{}: bitcode got a record", compiler.name);
        assert_eq!(twins.manifests(), ["prog.tasting"], "{}", compiler.name);
        assert_ne!(refusals(&twins, "prog"), "[]", "{}", compiler.name);
        twins.fingerprint("prog");
    }
}

/// A user's own wish counts: without sections the object is hashed as far as it can be.
#[test]
fn a_user_can_forbid_sections() {
    for compiler in compilers() {
        let twins = Scene::new(compiler).file("one.c", ONE).run(&[
            "$CC -fno-function-sections -fno-data-sections -c one.c",
            "$CC one.o -Wl,--build-id=none -o prog && ./prog",
            "$CC -g3 -O2 -fno-common -fstack-protector-all -c one.c -o guarded.o",
            "$CC -m64 -march=native -c one.c -o native.o",
        ]);
        let twins = twins.same_and_well();
        assert_eq!(twins.manifests(), ["prog.tasting"], "{}", compiler.name);
    }
}
