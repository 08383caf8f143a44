//! Other machines than this one: AArch64 through its own tools, and objects for further machines by
//! Clang.

use serde_json::Value;

use crate::workshop::{Outcome, TASTING, Workshop, shims, succeed, tool};

const C: &str = r#"#include <stdio.h>
static int callee(int x) { return x * 3; }
int (*const table[])(int) = {callee, 0};
static const char *const word = "string";
int data = 5;
int unreached(int x) { return x + 1000; }
int main(int argc, char **argv) { (void)argv; printf("%s %d\n", word, table[argc - 1](argc) + data); return 0; }
"#;

const CXX: &str = r#"struct A { int value; };
struct B { int value; };
int thrower(int x) { if (x > 5) throw A{x}; return x; }
int main(int argc, char **) { try { return thrower(argc); } catch (const A &) { return 1; } catch (...) { return 2; } }
"#;

struct Site {
    workshop: Workshop,
}

impl Site {
    fn new() -> Site {
        Site { workshop: Workshop::new() }
    }

    fn well(&self, line: &str) -> Outcome {
        let mut command = self.workshop.command("sh");
        let path = std::env::var("PATH").expect("PATH is set");
        command.env("PATH", format!("{}:{path}", shims().display())).args(["-c", line]);
        succeed(&mut command).unwrap_or_else(|error| panic!("{error}"))
    }

    /// The fingerprint of a program of this source, made by `driver`.
    fn fingerprint(&self, driver: &str, file: &str, text: &str) -> String {
        self.workshop.write(file, text);
        self.well(&format!("{driver} -O1 -c {file} -o x.o && {driver} x.o -o prog"));
        let line = self.well(&format!("{TASTING} fingerprint prog")).stdout_text();
        line.split_once("  ").expect("a fingerprint and a path").0.to_owned()
    }

    fn shown(&self, file: &str) -> Value {
        let outcome = self.well(&format!("{TASTING} show --json {file}"));
        serde_json::from_slice(&outcome.stdout).expect("JSON")
    }
}

/// The text of a program with one edit that is really there.
fn edited(text: &str, from: &str, to: &str) -> String {
    assert!(text.contains(from), "{from}");
    text.replace(from, to)
}

#[test]
#[ignore = "needs a cross compiler"]
fn edits_on_aarch64() {
    tool("aarch64-linux-gnu-gcc");
    let site = Site::new();
    for options in ["", "-static", "-O2 -no-pie", "-fuse-ld=gold"] {
        let driver = format!("tasting-cc aarch64-linux-gnu-gcc {options}");
        let original = site.fingerprint(&driver, "x.c", C);
        for (from, to) in [
            ("x * 3", "x * 5"),
            ("\"string\"", "\"strings\""),
            ("data = 5", "data = 6"),
            ("{callee, 0}", "{callee, callee}"),
            ("[argc - 1](argc)", "[argc - 1](argc + 1)"),
        ] {
            assert_ne!(
                site.fingerprint(&driver, "x.c", &edited(C, from, to)),
                original,
                "{options}: {from} → {to}"
            );
        }
        // gold's map has no addresses of the sections that it looks through for errors of the
        // processor.
        let finely = !options.contains("gold");
        for (from, to) in [
            ("x + 1000", "x + 1001"),
            ("#include <stdio.h>", "/* A comment. */\n\n#include <stdio.h>"),
        ] {
            let same = site.fingerprint(&driver, "x.c", &edited(C, from, to)) == original;
            assert!(same || !finely, "{options}: {from} → {to}");
        }
    }
}

#[test]
#[ignore = "needs a cross compiler"]
fn exceptions_on_aarch64() {
    tool("aarch64-linux-gnu-g++");
    let site = Site::new();
    let driver = "tasting-c++ aarch64-linux-gnu-g++";
    let original = site.fingerprint(driver, "x.cc", CXX);
    for (from, to) in [
        ("catch (const A &)", "catch (const B &)"),
        ("throw A{x}", "throw B{x}"),
        ("return 2", "return 3"),
    ] {
        assert_ne!(
            site.fingerprint(driver, "x.cc", &edited(CXX, from, to)),
            original,
            "{from} → {to}"
        );
    }
    let longer = format!("{CXX}int unreached(int x) {{ if (x) throw B{{x}}; return 1; }}\n");
    assert_eq!(site.fingerprint(driver, "x.cc", &longer), original, "an unreached function");
}

/// What the cross compiler makes is untouched as well, and it is the cross linker that runs.
#[test]
#[ignore = "needs a cross compiler"]
fn binaries_of_the_cross_compiler_are_the_same() {
    tool("aarch64-linux-gnu-gcc");
    let site = Site::new();
    site.workshop.write("x.c", C);
    site.workshop.write("y.c", "int y(void) { return 3; }\n");
    let flags = "-ffunction-sections -fdata-sections -Wl,--build-id=none -O2";
    for (number, options) in
        ["x.c", "-static x.c", "-shared -fPIC y.c", "-fuse-ld=gold x.c"].iter().enumerate()
    {
        site.well(&format!("aarch64-linux-gnu-gcc {flags} {options} -o plain.{number}"));
        site.well(&format!(
            "tasting-cc aarch64-linux-gnu-gcc -Wl,--build-id=none -O2 {options} -o shim.{number}"
        ));
        site.well(&format!(
            "cmp plain.{number} shim.{number} && {TASTING} fingerprint shim.{number}"
        ));
        let finely = site.shown(&format!("shim.{number}"))["refusals"] == serde_json::json!([]);
        assert!(finely || options.contains("gold"), "{options}");
    }
    let machine = site.well("readelf -h shim.0").stdout_text();
    assert!(machine.contains("AArch64"), "{machine}");
}

/// Functions with a callee, a table, a string and a thread-local variable, without any header.
const FREESTANDING: &str = r#"int callee(int x) { return x + 7; }
_Thread_local int local = 3;
static const char text[] = "some text";
const char *const pointers[] = {text, text + 1};
int (*const table[])(int) = {callee};
int user(int x) { return callee(x) + local + pointers[x & 1][0] + table[0](x); }
int divide(int x) { switch (x) { case 1: return 10; case 2: return 5; case 3: return 77; case 4: return 2; case 5: return 81; } return 0; }
"#;

fn hash_of<'a>(shown: &'a Value, name: &str) -> &'a str {
    let atoms = shown["atoms"].as_array().expect("a list of atoms");
    // Where a function's symbol stands for its descriptor (64-bit PowerPC), the code has its
    // section's name alone.
    let code = format!(".text.{name}");
    let named = |wanted: &str| atoms.iter().find(|atom| atom["name"] == wanted);
    let atom = named(&code)
        .or_else(|| named(name))
        .unwrap_or_else(|| panic!("{name} is not in {atoms:?}"));
    atom["hash"].as_str().expect("a hash")
}

/// Objects of every machine can be shown, and their hashes tell edits apart.
#[test]
#[ignore = "needs clang"]
fn objects_for_other_machines() {
    tool("clang");
    let targets = [
        "-m32",
        "--target=aarch64-linux-gnu",
        "--target=aarch64_be-linux-gnu",
        "--target=armv7-linux-gnueabihf",
        "--target=powerpc64-linux-gnu",
        "--target=powerpc64le-linux-gnu",
        "--target=riscv64-linux-gnu",
        "--target=s390x-linux-gnu",
        "--target=mips64-linux-gnuabi64",
        "--target=mips-linux-gnu",
    ];
    let site = Site::new();
    site.workshop.write("x.c", FREESTANDING);
    site.workshop.write("y.c", edited(FREESTANDING, "x + 7", "x + 8"));
    site.workshop.write("z.c", format!("int added(int x) {{ return x * 9; }}\n{FREESTANDING}"));
    for target in targets {
        for options in ["-O0", "-O2 -fPIC", "-O1 -g -fexceptions -fasynchronous-unwind-tables"] {
            let compile = |name: &str| {
                site.well(&format!(
                    "tasting-cc clang {target} {options} -fno-inline -c {name}.c -o {name}.o"
                ));
                site.well(&format!(
                    "clang {target} {options} -ffunction-sections -fdata-sections -fno-inline -c {name}.c -o bare.o"
                ));
                let (shown, bare) = (site.shown(&format!("{name}.o")), site.shown("bare.o"));
                assert_eq!(
                    shown["atoms"], bare["atoms"],
                    "{target} {options}: the record says something else"
                );
                shown
            };
            let [x, y, z] = ["x", "y", "z"].map(compile);
            assert_ne!(hash_of(&x, "callee"), hash_of(&y, "callee"), "{target} {options}");
            for name in ["user", "divide", "table"] {
                assert_eq!(
                    hash_of(&x, name),
                    hash_of(&y, name),
                    "{target} {options}: {name}, whose callee changed"
                );
                assert_eq!(
                    hash_of(&x, name),
                    hash_of(&z, name),
                    "{target} {options}: {name}, below an added function"
                );
            }
        }
    }
}
