//! The blocks of `sh` in the documentation are executed, as they stand there, in a small project.

use super::{read, source};
use crate::workshop::{Outcome, TASTING, Workshop, succeed};
use std::path::{Path, PathBuf};

/// What a block needs.
enum Scene {
    /// A project, in which this line has been run before.
    After(&'static str),
    /// It is not executed here, because of this.
    Not(&'static str),
}

use Scene::{After, Not};

const BUILT: &str =
    "make -s CC=tasting-cc && mkdir -p build && cp app parser.o build/ && cp app.tasting build/";
const CONFIGURED: &str = "cmake -B build -DCMAKE_PROJECT_TOP_LEVEL_INCLUDES=PREFIX/share/tasting/cmake/tasting.cmake && cmake --build build";

/// The page, how the block begins, and what it needs. Each block has a row.
const BLOCKS: [(&str, &str, Scene); 20] = [
    ("README.md", "make install", Not("installed.rs and `make packages-test` install")),
    ("README.md", "tasting log", After(BUILT)),
    ("docs/build-systems.md", "cmake -B build", After("true")),
    ("docs/build-systems.md", "meson setup", After("true")),
    (
        "docs/build-systems.md",
        "./configure",
        Not("tests/it/run/autotools.rs does, with a configure of autoconf's"),
    ),
    ("docs/build-systems.md", "export CARGO", Not("tests/it/run/cargo.rs does")),
    ("docs/five-minutes.md", "tasting init", After("true")),
    ("docs/five-minutes.md", "cmake -B build", After("true")),
    ("docs/five-minutes.md", "echo", After(CONFIGURED)),
    (
        "docs/history.md",
        "tasting history",
        After("git init -q && COMMIT && git tag v1.0 && touch new && COMMIT && git tag v1.1"),
    ),
    ("docs/lab.md", "make lab", Not("it takes hours")),
    ("docs/lab.md", "BUILT=", Not("it builds real projects")),
    ("docs/reference.md", "tasting fingerprint", After(BUILT)),
    ("docs/reuse.md", "export TASTING_LEVEL", After("true")),
    ("docs/reuse.md", "export TASTING_REUSE_OBJECTS", After("true")),
    ("docs/reuse.md", "export TASTING_REMOTE", After("true")),
    ("docs/sharing.md", "export TASTING_REMOTE", After(BUILT)),
    (
        "docs/sharing.md",
        "tasting push",
        After(
            "make -s CC=tasting-cc && tasting run -- ./test && export TASTING_REMOTE=redis://other:6379",
        ),
    ),
    ("docs/suite.md", "tasting suite", After(CONFIGURED)),
    ("docs/editors.md", "clangd", After(CONFIGURED)),
];

const CMAKE: &str = "cmake_minimum_required(VERSION 3.21)\nproject(sample C)\nset(CMAKE_EXPORT_COMPILE_COMMANDS ON)\nenable_testing()\n\
    add_executable(app app.c parser.c)\nadd_test(NAME empty COMMAND app)\nadd_test(NAME word COMMAND app word)\n";
const MESON: &str =
    "project('sample', 'c')\ntest('empty', executable('app', 'app.c', 'parser.c'))\n";
const MAKEFILE: &str = "all: test app\napp: app.o parser.o\n\t$(CC) -o $@ $^\ntest: app\n\tcp app.tasting test.tasting; cp app $@\n";
const APP: &str = "int parse(const char *);\nint main(int n, char **words) { return n > 1 ? parse(words[1]) - 4 : 0; }\n";
const PARSER: &str = "int parse(const char *word)\n{\n    int n = 0;\n    while (word[n])\n        n++;\n    return n;\n}\n";
const SETTINGS: &str =
    "[history]\nbuild = 'make -s CC=tasting-cc'\ntest = 'tasting run -- ./test'\n";

struct Block {
    page: String,
    text: String,
}

fn blocks() -> Vec<Block> {
    let docs = std::fs::read_dir(source("docs")).expect("a folder of ours").flatten();
    let docs = docs
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| name.ends_with(".md"));
    let pages = docs.map(|name| format!("docs/{name}")).chain(["README.md".to_owned()]);
    let mut found = Vec::new();
    for page in pages {
        let text = read(&page);
        let parts = text.split("\n```sh\n").skip(1).filter_map(|part| part.split_once("\n```"));
        found.extend(parts.map(|(text, _)| Block { page: page.clone(), text: text.to_owned() }));
    }
    found
}

fn sample() -> Workshop {
    let shop = Workshop::new();
    let files =
        [("CMakeLists.txt", CMAKE), ("meson.build", MESON), ("Makefile", MAKEFILE), ("app.c", APP)];
    files.iter().for_each(|(name, content)| _ = shop.write(format!("project/{name}"), content));
    shop.write("project/src/parser.c", PARSER);
    shop.write("project/parser.c", "#include \"src/parser.c\"\n");
    shop.write("project/tasting.toml", SETTINGS);
    shop.write("project/.gitignore", "*.o\napp\ntest\nbuild\n*.tasting\n");
    shop.write("project/tests.jsonl", "{\"name\": \"empty\", \"argv\": [\"build/app\"]}\n");
    std::fs::create_dir(shop.path("shared")).expect("a folder can be made");
    shop
}

/// Places and servers of the reader's are replaced by those that are there.
fn here(text: &str, shop: &Workshop, prefix: &Path) -> String {
    let shared = format!("file://{}", shop.path("shared").display());
    let commit =
        "git add -A && git -c user.name=N -c user.email=n@example.org commit -q -m 'A change'";
    let text = text.replace("PREFIX", &prefix.display().to_string()).replace("COMMIT", commit);
    text.replace("redis://cache.example.com:6379", &shared).replace("redis://other:6379", &shared)
}

fn installed(shop: &Workshop) -> PathBuf {
    let prefix = shop.path("home/.local");
    let mut command = shop.command(source("scripts/install.sh"));
    command
        .arg(&prefix)
        .env("BUILT", Path::new(TASTING).parent().expect("binaries lie in a folder"));
    succeed(&mut command).unwrap_or_else(|error| panic!("{error}"));
    prefix
}

fn execute(block: &Block, before: &str, prefix: &Path) -> Outcome {
    let shop = sample();
    // Each line by itself may fail no more than the whole.
    let lines = format!("{}\n{}", here(before, &shop, prefix), here(&block.text, &shop, prefix));
    let path = std::env::join_paths(
        [prefix.join("bin")]
            .into_iter()
            .chain(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())),
    );
    let mut command = shop.command("bash");
    command
        .current_dir(shop.path("project"))
        .env("PATH", path.expect("a path"))
        .env("HOME", shop.path("home"));
    command.env("GIT_CEILING_DIRECTORIES", shop.path("")).env("TASTING_ROOT", shop.path("project"));
    Outcome::of(command.args(["-euxc", &lines]))
}

#[test]
#[ignore = "needs cmake, meson and clangd"]
fn every_block_of_sh_does_what_it_says() {
    let shop = Workshop::new();
    let prefix = installed(&shop);
    let mut wrong = Vec::new();
    let mut used = std::collections::BTreeSet::new();
    for block in blocks() {
        let row = BLOCKS
            .iter()
            .position(|(page, begin, _)| *page == block.page && block.text.starts_with(begin));
        let Some(row) = row else {
            wrong.push(format!("{}: a block has no row in this test: {}", block.page, block.text));
            continue;
        };
        used.insert(row);
        let After(before) = &BLOCKS[row].2 else { continue };
        let ran = execute(&block, before, &prefix);
        if !ran.success() {
            wrong.push(format!(
                "{}: {}\n{}{}",
                block.page,
                block.text,
                ran.stdout_text(),
                ran.stderr_text()
            ));
        }
    }
    let unused = (0..BLOCKS.len()).filter(|row| !used.contains(row)).map(|row| BLOCKS[row].1);
    wrong.extend(unused.map(|begin| format!("there is no block that begins with {begin}")));
    let reasons = BLOCKS
        .iter()
        .filter_map(|(_, _, scene)| if let Not(why) = scene { Some(why) } else { None });
    assert!(
        wrong.is_empty(),
        "{}\nnot executed: {:?}",
        wrong.join("\n"),
        reasons.collect::<Vec<_>>()
    );
}

/// Every page is in the book and in the list of pages.
#[test]
fn every_page_can_be_found() {
    let [book, list] = ["docs/SUMMARY.md", "docs/README.md"].map(read);
    for entry in std::fs::read_dir(source("docs")).expect("a folder of ours").flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if !name.ends_with(".md") || ["README.md", "SUMMARY.md"].contains(&name.as_str()) {
            continue;
        }
        let link = format!("]({name})");
        assert!(
            book.contains(&link) && list.contains(&link),
            "{name} is not in docs/SUMMARY.md and docs/README.md"
        );
    }
}

/// What the picture shows is what the demo says, but for times.
#[test]
fn the_picture_of_the_demo_is_of_today() {
    let shop = Workshop::new();
    let mut command = shop.command("python3");
    command.arg(source("scripts/record.py")).arg("--check");
    command.env("BUILT", Path::new(TASTING).parent().expect("binaries lie in a folder"));
    succeed(&mut command).unwrap_or_else(|error| panic!("{error}"));
}
