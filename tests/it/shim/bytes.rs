//! Binaries, byte for byte: with every compiler and linker, the shims make what the real tools
//! make.

use super::cases::{CXX, MAIN, PART, PART_H};
use super::twins::{Scene, Twins};
use crate::edits::matrix::{COMPILERS, Compiler, LINKERS, compilers, linkers};

const OBJECTS: &str = "$CC -O2 -fPIC -c main.c -o main.o && $CC -O2 -fPIC -c part.c -o part.o && ar rcs libpart.a part.o";

/// Objects, and one line for each linker, which ends with the binary's name.
fn project(scene: Scene, line: impl Fn(&str) -> String) -> Twins {
    let linkers = linkers();
    let links =
        linkers.map(|linker| line(&format!("-fuse-ld={} -Wl,--build-id=none", linker.name)));
    let lines: Vec<String> = [OBJECTS.to_owned()].into_iter().chain(links).collect();
    scene.file("main.c", MAIN).file("part.c", PART).file("part.h", PART_H).run(&lines)
}

fn programs(compiler: Compiler) -> Twins {
    project(Scene::new(compiler), |with| {
        let name = with.split(['=', ' ']).nth(1).expect("the linker's name");
        format!(
            "$CC {with} -o {name}.prog main.o libpart.a && ./{name}.prog &&
             $CC {with} -shared -Wl,-soname,libx.so -o {name}.so part.o &&
             $CC {with} -static -no-pie -o {name}.static main.o part.o && ./{name}.static &&
             $CC {with} -pie -Wl,--gc-sections -Wl,-z,now -o {name}.gc main.o part.o && ./{name}.gc"
        )
    })
}

#[test]
#[ignore = "needs every linker"]
fn programs_and_libraries_of_gcc_are_byte_identical() {
    manifests_everywhere(programs(COMPILERS[0]));
}

#[test]
#[ignore = "needs clang"]
fn programs_and_libraries_of_clang_are_byte_identical() {
    manifests_everywhere(programs(COMPILERS[1]));
}

fn manifests_everywhere(twins: Twins) {
    let twins = twins.same_and_well();
    assert_eq!(twins.with_record(), ["main.o", "part.o"]);
    let binaries = LINKERS.iter().flat_map(|linker| {
        ["gc", "prog", "so", "static"].map(|kind| format!("{}.{kind}.tasting", linker.name))
    });
    assert_eq!(twins.manifests(), binaries.collect::<Vec<_>>());
    for binary in twins.manifests() {
        twins.fingerprint(binary.strip_suffix(".tasting").expect("a manifest"));
    }
}

#[test]
#[ignore = "needs every linker"]
fn without_sections_binaries_are_byte_identical() {
    for (variable, value) in
        [("TASTING_NOSPLIT", "1"), ("TASTING_LEVEL", "file"), ("TASTING_LEVEL", "ast")]
    {
        for compiler in compilers() {
            let scene = Scene::bare(compiler).env(variable, value);
            let twins = project(scene, |with| {
                let name = with.split(['=', ' ']).nth(1).expect("the linker's name");
                format!("$CC {with} -o {name}.prog main.o libpart.a && ./{name}.prog")
            });
            let twins = twins.same_and_well();
            assert_eq!(twins.manifests().len(), LINKERS.len(), "{variable}, {}", compiler.name);
        }
    }
}

#[test]
#[ignore = "needs every linker"]
fn cxx_binaries_are_byte_identical() {
    for compiler in compilers() {
        let links = LINKERS.iter().map(|linker| {
            format!(
                "$CXX -fuse-ld={0} -Wl,--build-id=none -o {0}.prog x.o && ./{0}.prog",
                linker.name
            )
        });
        let lines: Vec<String> =
            ["$CXX -O1 -g -c x.cc".to_owned()].into_iter().chain(links).collect();
        let twins = Scene::new(compiler).file("x.cc", CXX).run(&lines).same_and_well();
        assert_eq!(twins.manifests().len(), LINKERS.len(), "{}", compiler.name);
    }
}

#[test]
fn a_linker_called_directly_makes_the_same() {
    let start =
        "int value = 3;\n__attribute__((noreturn)) void _start(void) { for (;;) value++; }\n";
    for linker in linkers() {
        let scene = Scene::new(COMPILERS[0])
            .linker(linker.program)
            .file("x.c", start)
            .file("y.c", "int other = 4;\n");
        let twins = scene.run(&[
            "$CC -c x.c y.c",
            "$LD -o prog x.o y.o",
            "$LD -shared -o y.so y.o",
            "$LD -o fails x.o missing.o",
            "$LD --version",
        ]);
        let twins = twins.same();
        assert_eq!(twins.manifests(), ["prog.tasting", "y.so.tasting"], "{}", linker.name);
        assert_eq!(twins.with_record(), ["x.o", "y.o"], "{}", linker.name);
    }
}
