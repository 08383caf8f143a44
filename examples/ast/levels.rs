//! The same edits seen by the AST level and by the code level: a table.
//!
//! Each edit is made to a small unit. At the AST level a function has changed if its hash has; at
//! the code level, if its atom's hash or the names of its references have, in objects of gcc.

use std::collections::BTreeMap;
use std::process::Command;
use tasting::{ast, elf};

const UNIT: &str = r#"
enum color { RED, GREEN, BLUE };
struct point { int x, y; };
typedef unsigned int number;
int helper(struct point *p);
int other(struct point *p);
extern int shared;
static const int limit = 10;
static inline int twice(int a) { return a + a; }
static int table[4] = { 1, 2, 3, 4 };
int f(struct point *p) { int sum = helper(p); if (sum > limit) sum += p->y; return sum + GREEN; }
int g(int a) { return twice(a) + shared + table[a & 3]; }
"#;

const EDITS: &[(&str, &str, &str)] = &[
    ("a comment, blank lines", "int helper", "/* more */\n\n\nint helper"),
    (
        "an unused prototype, type or enumerator",
        "int helper",
        "typedef long unused; int another(unused); int helper",
    ),
    ("an enumerator behind those that are used", "BLUE }", "BLUE, BLACK }"),
    ("an enumerator before one that is used", "RED, ", "RED, ORANGE, "),
    ("a member behind those that are used", "int x, y;", "int x, y, z;"),
    ("a member before one that is used", "int x, y;", "int w, x, y;"),
    ("a parameter's name in a prototype", "helper(struct point *p)", "helper(struct point *q)"),
    (
        "`const` for a parameter's target",
        "helper(struct point *p)",
        "helper(const struct point *p)",
    ),
    (
        "an attribute of a called function (`pure`)",
        "int helper",
        "__attribute__((pure)) int helper",
    ),
    (
        "a local variable's name",
        "int sum = helper(p); if (sum > limit) sum += p->y; return sum",
        "int all = helper(p); if (all > limit) all += p->y; return all",
    ),
    ("a number spelled otherwise", "a & 3", "a & 0x3"),
    ("`a + a` for `a * 2`, inlined", "a + a", "a * 2"),
    ("another operator", "sum += p->y", "sum -= p->y"),
    ("another called function", "= helper(p)", "= other(p)"),
    ("a folded constant", "limit = 10", "limit = 11"),
    ("a table's content", "1, 2, 3, 4", "1, 2, 3, 5"),
    ("the type of an external variable", "extern int shared", "extern long shared"),
    ("a type name's type, not used", "typedef unsigned int number", "typedef unsigned long number"),
];

/// Prints the table.
pub fn table() -> bool {
    println!("| edit | AST level: changed | code level: changed |\n|---|---|---|");
    for (what, before, after) in EDITS {
        let edited = UNIT.replacen(before, after, 1);
        assert_ne!(edited, UNIT, "{what}");
        println!(
            "| {what} | {} | {} |",
            changed(&syntax(UNIT), &syntax(&edited)),
            changed(&code(UNIT), &code(&edited))
        );
    }
    true
}

type Seen = BTreeMap<String, String>;

fn changed(before: &Seen, after: &Seen) -> String {
    let names: Vec<String> = before
        .iter()
        .filter(|(name, what)| after.get(*name) != Some(what))
        .map(|(name, _)| format!("`{name}`"))
        .collect();
    if names.is_empty() { "–".to_owned() } else { names.join(", ") }
}

fn syntax(text: &str) -> Seen {
    let unit = ast::read(text.as_bytes()).expect("the unit is understood");
    unit.definitions.into_iter().map(|found| (found.name, found.hash.to_string())).collect()
}

fn code(text: &str) -> Seen {
    let folder = std::env::temp_dir().join(format!("tasting-levels-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder to compile in");
    std::fs::write(folder.join("unit.i"), text).expect("a unit can be written");
    let flags = ["-O2", "-w", "-ffunction-sections", "-fdata-sections", "-c", "unit.i"];
    let status =
        Command::new("gcc").args(flags).current_dir(&folder).status().expect("gcc can be run");
    assert!(status.success());
    let object = std::fs::read(folder.join("unit.o")).expect("an object");
    let _ = std::fs::remove_dir_all(&folder);
    let record = elf::record_of(&object).expect("a record");
    let atoms = record.atoms_with_references();
    atoms
        .map(|(atom, references)| {
            let targets: Vec<String> = references
                .iter()
                .map(|reference| match reference.target {
                    tasting::model::Target::Atom(atom) => {
                        record.atoms[atom as usize].name.to_owned()
                    }
                    tasting::model::Target::Symbol(symbol) => {
                        record.symbols[symbol as usize].name.to_owned()
                    }
                })
                .collect();
            (atom.name.to_owned(), format!("{} {targets:?}", atom.hash))
        })
        .collect()
}
