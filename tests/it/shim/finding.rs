//! How the real tools are found: variables, launchers, links under the compilers' names; and what
//! is written where.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use super::cases::ONE;
use super::twins::{record_section, shell};
use crate::edits::matrix::COMPILERS;
use crate::workshop::{Outcome, TASTING_CC, TASTING_CXX, TASTING_LD, Workshop};

fn workshop() -> Workshop {
    let workshop = Workshop::new();
    workshop.write("work/one.c", ONE);
    workshop.write("work/x.cc", "struct A { ~A(); }; A::~A() {} int main() { A a; return 0; }\n");
    workshop
}

fn run(workshop: &Workshop, line: &str) -> Outcome {
    Outcome::of(
        shell(workshop, COMPILERS[0]).env_remove("TASTING_CC").env_remove("TASTING_CXX").arg(line),
    )
}

fn well(workshop: &Workshop, line: &str) -> String {
    let outcome = run(workshop, line);
    assert!(outcome.success(), "{line}: {outcome:?}");
    outcome.stdout_text()
}

fn has_record(workshop: &Workshop, name: &str) -> bool {
    record_section(&std::fs::read(workshop.path("work").join(name)).expect("an object")).is_some()
}

fn exists(workshop: &Workshop, name: &str) -> bool {
    workshop.path("work").join(name).exists()
}

/// The folder that `make install` makes, first on PATH: no build knows of the shims.
#[test]
#[ignore = "needs clang"]
fn links_under_the_tools_names() {
    let workshop = workshop();
    let folder = workshop.path("masquerade");
    std::fs::create_dir(&folder).expect("a folder can be made");
    let tools =
        [("cc", TASTING_CC), ("gcc", TASTING_CC), ("clang", TASTING_CC), ("g++", TASTING_CXX)];
    for (name, target) in tools.into_iter().chain([
        ("clang++", TASTING_CXX),
        ("ld", TASTING_LD),
        ("ld.lld", TASTING_LD),
    ]) {
        symlink(target, folder.join(name)).expect("a link can be made");
    }
    let on_path = format!("export PATH={}:$PATH;", folder.display());
    for (name, source) in [
        ("cc", "one.c"),
        ("gcc", "one.c"),
        ("clang", "one.c"),
        ("g++", "x.cc"),
        ("clang++", "x.cc"),
    ] {
        well(
            &workshop,
            &format!(
                "{on_path} {name} -c {source} -o {name}.o && {name} {name}.o -o {name}.prog && ./{name}.prog"
            ),
        );
        assert!(has_record(&workshop, &format!("{name}.o")), "{name}");
        well(&workshop, &format!("tasting fingerprint {name}.prog"));
        let versions = [format!("{on_path} {name} --version"), format!("{name} --version")];
        assert_eq!(well(&workshop, &versions[0]), well(&workshop, &versions[1]), "{name}");
    }
    well(
        &workshop,
        &format!(
            "{on_path} clang -fuse-ld=lld clang.o -o lld.prog && tasting fingerprint lld.prog"
        ),
    );
    well(&workshop, &format!("{on_path} ld -r cc.o -o r.o && ld.lld -r cc.o -o lld-r.o"));
    assert!(has_record(&workshop, "r.o") && has_record(&workshop, "lld-r.o"));
    // A shim whose compiler is a link to a shim does its work once.
    well(
        &workshop,
        &format!(
            "{on_path} tasting-cc gcc -c one.c -o twice.o && tasting-cc tasting-cc gcc -c one.c -o thrice.o"
        ),
    );
    assert!(has_record(&workshop, "twice.o") && has_record(&workshop, "thrice.o"));
}

#[test]
#[ignore = "needs clang"]
fn a_launcher_a_variable_or_the_default() {
    let workshop = workshop();
    let comment = |name: &str| well(&workshop, &format!("readelf -p .comment {name}"));
    well(
        &workshop,
        "tasting-cc clang -c one.c -o launched.o && TASTING_CC=clang tasting-cc -c one.c -o named.o",
    );
    assert!(comment("launched.o").contains("clang") && comment("named.o").contains("clang"));
    well(
        &workshop,
        "TASTING_CC=clang tasting-cc gcc -c one.c -o both.o && tasting-cc -c one.c -o default.o",
    );
    assert!(
        !comment("both.o").contains("clang"),
        "the command line counts more than the environment"
    );
    well(&workshop, "tasting-c++ /usr/bin/g++ -c x.cc -o path.o");
    for object in ["launched.o", "named.o", "both.o", "default.o", "path.o"] {
        assert!(has_record(&workshop, object), "{object}");
    }
    well(
        &workshop,
        "tasting-cc clang launched.o -o launched && ./launched && tasting fingerprint launched",
    );
    // The C shim with a C++ compiler, as CMake's launchers may have it.
    well(&workshop, "tasting-cc g++ x.cc -o mixed && ./mixed && tasting fingerprint mixed");
}

#[test]
fn without_a_compiler_one_line_says_so() {
    let workshop = workshop();
    std::fs::create_dir(workshop.path("empty")).expect("a folder can be made");
    let shims = crate::workshop::shims().display();
    let lines = [
        format!("PATH={shims}:../empty; tasting-cc -c one.c"),
        format!("PATH={shims}:../empty; tasting-c++ -c x.cc"),
        format!("PATH={shims}:../empty; tasting-ld one.o"),
        format!("PATH={shims}:../empty; tasting-cc gcc -c one.c"),
        "TASTING_CC=/no/such/compiler tasting-cc -c one.c".to_owned(),
        "TASTING_CC=tasting-cc tasting-cc -c one.c".to_owned(),
        "TASTING_LD=no-such-linker tasting-ld -o x one.o".to_owned(),
        "tasting-cc no-such-machine-gcc -c one.c".to_owned(),
    ];
    for line in lines {
        let outcome = run(&workshop, &line);
        assert_eq!(outcome.code, Some(127), "{line}: {outcome:?}");
        assert_eq!(outcome.stderr_text().lines().count(), 1, "{line}: {outcome:?}");
        assert!(outcome.stderr_text().starts_with("tasting-"), "{line}: {outcome:?}");
    }
    workshop.write("work/no-program", "text");
    let outcome =
        run(&workshop, "chmod +x no-program; TASTING_CC=./no-program tasting-cc --version");
    assert!(
        outcome.code.is_some_and(|code| code == 126 || code == 127)
            && outcome.stderr_text().lines().count() == 1,
        "{outcome:?}"
    );
}

#[test]
fn disabled_shims_do_nothing() {
    let workshop = workshop();
    well(
        &workshop,
        "export TASTING_DISABLE=1; tasting-cc -c one.c && tasting-cc one.o -o prog && tasting-ld -r one.o -o r.o",
    );
    assert!(
        !has_record(&workshop, "one.o")
            && !has_record(&workshop, "r.o")
            && !exists(&workshop, "prog.tasting")
    );
    let plain = well(&workshop, "cc -c one.c -o plain.o && cmp one.o plain.o && echo same");
    assert_eq!(plain, "same\n", "without sections, as the real compiler writes it");
}

#[test]
fn manifests_in_a_folder_of_their_own() {
    let workshop = workshop();
    well(
        &workshop,
        "mkdir ../manifests bin; export TASTING_MANIFEST_DIR=$PWD/../manifests; tasting-cc one.c -o bin/prog && tasting fingerprint bin/prog",
    );
    assert!(
        workshop.path("manifests/prog.tasting").exists() && !exists(&workshop, "bin/prog.tasting")
    );
    let outcome = run(&workshop, "tasting fingerprint bin/prog");
    assert_eq!(outcome.code, Some(1), "{outcome:?}");
    // Where it cannot be made, the build goes on.
    let outcome = run(
        &workshop,
        "TASTING_MANIFEST_DIR=/proc/no/such/folder tasting-cc one.c -o bin/other && ./bin/other",
    );
    assert!(outcome.success() && outcome.stderr.is_empty(), "{outcome:?}");
}

/// Nowhere to write: the build goes on, and the manifest is made all the same.
#[test]
fn a_store_that_cannot_be_written() {
    let workshop = workshop();
    workshop.write("file", "a file where the store's folder should be");
    let homeless = "unset HOME XDG_CACHE_HOME XDG_RUNTIME_DIR TASTING_DIR;";
    let file = format!("export TASTING_DIR={}/store;", workshop.path("file").display());
    let readonly = "export TASTING_READONLY=1;".to_owned();
    for (number, setting) in
        [homeless, &file, "export TASTING_DIR=/proc/store;", &readonly].iter().enumerate()
    {
        let outcome = run(
            &workshop,
            &format!(
                "{setting} tasting-cc -c one.c -o {number}.o && tasting-cc {number}.o -o {number} && ./{number} && tasting-cc -static {number}.o -o {number}.static"
            ),
        );
        assert!(outcome.success() && outcome.stderr.is_empty(), "{setting} {outcome:?}");
        assert!(has_record(&workshop, &format!("{number}.o")), "{setting}");
        well(&workshop, &format!("{setting} tasting fingerprint {number}"));
    }
    let store = workshop.path(".store");
    assert!(
        !store.exists()
            || std::fs::read_dir(&store).is_ok_and(|mut entries| entries.next().is_none()),
        "TASTING_READONLY"
    );
}

#[test]
fn settings_that_make_no_sense_fail_no_build() {
    let workshop = workshop();
    for setting in [
        "TASTING_LEVEL=nonsense",
        "TASTING_LOGFILE=/proc/no/such/folder/log",
        "TASTING_MANIFEST_DIR=one.c",
        "TASTING_DIR=''",
    ] {
        let outcome = run(
            &workshop,
            &format!("export {setting}; tasting-cc -c one.c && tasting-cc one.o -o prog && ./prog"),
        );
        assert!(outcome.success() && outcome.stderr.is_empty(), "{setting}: {outcome:?}");
    }
}

/// The real tool sees nothing of us in its environment but the mark that stops a second shim.
#[test]
fn the_real_tools_environment_is_the_users() {
    let workshop = workshop();
    let script = workshop.write("compiler", "#!/bin/sh\nenv | sort > \"$OUT\"\nexec gcc \"$@\"\n");
    std::fs::set_permissions(&script, PermissionsExt::from_mode(0o755))
        .expect("a script can be made executable");
    let variables = |name: &str| {
        let text =
            std::fs::read_to_string(workshop.path("work").join(name)).expect("the script ran");
        let lines =
            text.lines().filter(|line| !line.starts_with("_=") && !line.starts_with("OUT="));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    let script = Path::new(&script).display();
    well(
        &workshop,
        &format!(
            "export TASTING_CC={script}; OUT=plain $TASTING_CC -c one.c; OUT=shim tasting-cc -c one.c; OUT=passed tasting-cc -E one.c >/dev/null"
        ),
    );
    assert_eq!(variables("plain"), variables("passed"));
    let added: Vec<_> =
        variables("shim").into_iter().filter(|line| !variables("plain").contains(line)).collect();
    assert!(added.iter().all(|line| line.starts_with("TASTING_INSIDE_")), "{added:?}");
}
