//! What `tasting show` and `tasting fingerprint` print: the JSON that programs read, and the text
//! for people.

mod json;

use serde_json::Value;

use crate::edits::matrix::{COMPILERS, Compiler, compilers};
use crate::workshop::{Outcome, TASTING, Workshop, shims, succeed};

const C: &str = r#"#include <stdio.h>

int data = 5;
int zeroed[10];
_Thread_local int local = 3;

static int callee(int x)
{
    return x * 3;
}

__attribute__((noinline)) int reached(int x)
{
    return callee(x) + data + zeroed[1] + local;
}

int unreached(int x) { return x; }

int main(int argc, char **argv)
{
    (void)argv;
    printf("some text %d\n", reached(argc));
    return 0;
}
"#;

const CXX: &str = r#"namespace space { struct Thing { virtual int method(int) const; virtual ~Thing() {} }; }
int space::Thing::method(int x) const { return x + 1; }
template <class T> T twice(T x) { return x + x; }
int main() { space::Thing thing; return thing.method(-1) + twice<long>(0); }
"#;

struct Site {
    workshop: Workshop,
    compiler: Compiler,
}

impl Site {
    fn new(compiler: Compiler) -> Site {
        let site = Site { workshop: Workshop::new(), compiler };
        site.workshop.write("x.c", C);
        site.workshop.write("y.cc", CXX);
        site
    }

    fn run(&self, line: &str) -> Outcome {
        let mut command = self.workshop.command("sh");
        let path = std::env::var("PATH").expect("PATH is set");
        command.env("PATH", format!("{}:{path}", shims().display()));
        command.env("TASTING_CC", self.compiler.c).env("TASTING_CXX", self.compiler.cxx);
        Outcome::of(command.args(["-c", line]))
    }

    fn well(&self, line: &str) -> String {
        let outcome = self.run(line);
        assert!(outcome.success(), "{}: {line}: {outcome:?}", self.compiler.name);
        outcome.stdout_text()
    }

    fn shown(&self, file: &str) -> Value {
        serde_json::from_str(&self.well(&format!("tasting show --json {file}"))).expect("JSON")
    }
}

fn atoms(shown: &Value) -> &Vec<Value> {
    shown["atoms"].as_array().expect("a list of atoms")
}

fn atom<'a>(shown: &'a Value, name: &str) -> &'a Value {
    let found = atoms(shown).iter().find(|atom| atom["name"] == name);
    found.unwrap_or_else(|| panic!("{name} is not in {shown}"))
}

fn refs<'a>(shown: &'a Value, name: &str) -> Vec<&'a str> {
    let refs = atom(shown, name)["refs"].as_array().expect("a list of references");
    refs.iter().map(|name| name.as_str().expect("a name")).collect()
}

#[test]
fn names_are_demangled() {
    for compiler in compilers() {
        let site = Site::new(compiler);
        site.well("tasting-c++ -O0 -c y.cc && tasting-c++ y.o -o prog");
        for file in ["y.o", "prog"] {
            let shown = site.shown(file);
            let method = atom(&shown, "_ZNK5space5Thing6methodEi");
            assert_eq!(
                method["demangled"], "space::Thing::method(int) const",
                "{} {file}",
                compiler.name
            );
            assert_eq!(atom(&shown, "_Z5twiceIlET_S0_")["demangled"], "long twice<long>(long)");
            assert!(atom(&shown, "main").get("demangled").is_none());
            assert!(
                site.well(&format!("tasting show {file}"))
                    .contains("  space::Thing::method(int) const"),
                "{file}"
            );
        }
    }
}

/// Line numbers of the functions' first instructions and of variables, from every form of debug
/// information.
#[test]
fn source_lines_from_debug_information() {
    let line_of = |start: &str| {
        C.lines().position(|line| line.starts_with(start)).expect("it is there") as u64 + 1
    };
    for compiler in compilers() {
        let site = Site::new(compiler);
        site.workshop.write("sub/z.c", "int deeper(void)\n{\n    return 1;\n}\n");
        for options in [
            "-g",
            "-gdwarf-4",
            "-gdwarf-5",
            "-gdwarf-4 -gsplit-dwarf",
            "-gdwarf-5 -gsplit-dwarf",
            "-g3 -O2 -fno-inline",
        ] {
            site.well(&format!(
                "tasting-cc {options} -c x.c && tasting-cc {options} -c sub/z.c && tasting-cc x.o z.o -o prog"
            ));
            for (file, shown) in [("x.o", site.shown("x.o")), ("prog", site.shown("prog"))] {
                for (name, start) in [
                    ("main", "int main"),
                    ("callee", "static int callee"),
                    ("unreached", "int unreached"),
                ] {
                    let source = atom(&shown, name)["source"].as_str().unwrap_or_else(|| {
                        panic!("{} {options} {file}: no source of {name}", compiler.name);
                    });
                    let (path, line) = source.rsplit_once(':').expect("file:line");
                    assert!(path.ends_with("x.c"), "{} {options} {file}: {source}", compiler.name);
                    // Some take the line of the name, some that of the brace below it.
                    let line: u64 = line.parse().expect("a number");
                    let at = line_of(start);
                    assert!(
                        (at..=at + 1).contains(&line),
                        "{} {options} {file}: {source}, not {at}",
                        compiler.name
                    );
                }
                // With split debug information it is in a file of its own.
                for (name, start) in [("data", "int data"), ("zeroed", "int zeroed")] {
                    let expected =
                        (!options.contains("split")).then(|| format!("x.c:{}", line_of(start)));
                    let source =
                        atom(&shown, name).get("source").and_then(|source| source.as_str());
                    assert_eq!(
                        source,
                        expected.as_deref(),
                        "{} {options} {file}: {name}",
                        compiler.name
                    );
                }
            }
            let deeper = site.shown("z.o");
            let source = atom(&deeper, "deeper")["source"].as_str().expect("a source").to_owned();
            assert!(
                source.ends_with("sub/z.c:2") || source.ends_with("sub/z.c:1"),
                "{} {options}: {source}",
                compiler.name
            );
        }
        site.well("tasting-cc -c x.c");
        assert!(
            atom(&site.shown("x.o"), "main").get("source").is_none(),
            "{}: without -g",
            compiler.name
        );
    }
}

#[test]
fn text_for_people() {
    let site = Site::new(COMPILERS[0]);
    site.well("tasting-cc -g -O1 -fno-inline -c x.c && tasting-cc x.o -o prog");
    let text = site.well("tasting show x.o");
    assert!(!text.contains('\x1b'), "colour without a terminal");
    let first = text.lines().next().expect("a first line");
    let count = atoms(&site.shown("x.o")).len();
    assert_eq!(first, format!("x.o (object): {count} atoms"));
    assert_eq!(text.lines().count(), count + 1, "{text}");
    let main = text
        .lines()
        .find(|line| line.contains("  main  "))
        .unwrap_or_else(|| panic!("no main in {text}"));
    assert!(main.starts_with("function     ") && main.contains("x.c:"), "{main}");
    assert!(main.contains("→ ") && main.contains("reached"), "{main}");
    let hash = atom(&site.shown("x.o"), "main")["hash"].as_str().expect("a hash").to_owned();
    assert!(main.contains(&hash[..12]) && !main.contains(&hash), "{main}");
    assert!(text.contains("some text %d\\n"), "a literal is shown escaped: {text}");
    let text = site.well("tasting show prog");
    for start in ["prog (binary): ", "roots: ", "needed: libc.so.6"] {
        assert!(text.lines().any(|line| line.starts_with(start)), "no {start:?} in {text}");
    }
    // A reader that has seen enough is no error.
    assert_eq!(site.well("tasting show prog | head -n 1").lines().count(), 1);
}

/// On a terminal there is colour, and only there.
#[test]
fn colour_on_a_terminal() {
    let site = Site::new(COMPILERS[0]);
    site.well("tasting-cc -c x.c");
    assert!(site.well("script -qec 'tasting show x.o' typescript").contains('\x1b'));
    assert!(!site.run("tasting show missing").stderr_text().contains('\x1b'));
}

#[test]
fn fingerprints_of_several_files() {
    let site = Site::new(COMPILERS[0]);
    site.well("tasting-cc x.c -o one && cp one two && cp one.tasting two.tasting && tasting-c++ y.cc -o three");
    let text = site.well("tasting fingerprint one two ./three");
    let lines: Vec<(&str, &str)> =
        text.lines().map(|line| line.split_once("  ").expect("two spaces")).collect();
    assert_eq!(lines.iter().map(|line| line.1).collect::<Vec<_>>(), ["one", "two", "./three"]);
    assert!(lines[0].0 == lines[1].0 && lines[0].0 != lines[2].0, "{text}");
    let outcome = site.run("tasting fingerprint one missing x.c two");
    assert_eq!(outcome.code, Some(1), "{outcome:?}");
    assert_eq!(outcome.stdout_text(), format!("{0}  one\n{0}  two\n", lines[0].0));
    let complaints = outcome.stderr_text();
    assert_eq!(complaints.lines().count(), 2, "{outcome:?}");
    assert!(complaints.contains("missing") && complaints.contains("x.c"), "{outcome:?}");
}

#[test]
fn an_entry_can_be_named() {
    let site = Site::new(COMPILERS[0]);
    let of = |entry: &str| {
        site.well(&format!(
            "tasting-cc -O1 -fno-inline x.c -o prog && tasting fingerprint --entry {entry} prog"
        ))
    };
    let before = ["reached", "unreached", "main"].map(of);
    site.workshop.write("x.c", C.replace("x * 3", "x * 4"));
    let after = ["reached", "unreached", "main"].map(of);
    assert!(
        before[0] != after[0] && before[1] == after[1] && before[2] != after[2],
        "{before:?} {after:?}"
    );
    let outcome = site.run("tasting fingerprint --entry no_such_function prog");
    assert!(
        outcome.code == Some(1) && outcome.stderr_text().contains("no_such_function"),
        "{outcome:?}"
    );
}

#[test]
fn help_and_version() {
    for words in ["--help", "fingerprint --help", "show --help", "--version"] {
        let mut command = std::process::Command::new(TASTING);
        let outcome =
            succeed(command.args(words.split(' '))).unwrap_or_else(|error| panic!("{error}"));
        assert!(!outcome.stdout.is_empty() && outcome.stderr.is_empty(), "{words}: {outcome:?}");
    }
}
