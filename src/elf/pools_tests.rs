//! The rules on hand-made pools, and gcc's own objects.

use super::*;
use crate::elf::{self, Labels, atoms};
use crate::model::{Hash, Hasher, Level, Record, Target};
use ::object::elf::{SHT_GROUP, SHT_RELA, SHT_STRTAB, SHT_SYMTAB};
use std::process::Command;

use Operand::{Access, AccessNear, Address};

fn pool(starts: &[u64], size: u64, operands: &[Operand]) -> Option<Pool> {
    let counts = vec![0; starts.len()];
    let mut pool =
        Pool { starts: starts.to_vec(), inside: counts.clone(), at_start: counts, at_end: 0, size };
    operands.iter().try_for_each(|&operand| pool.note(operand))?;
    Some(pool)
}

fn ends(starts: &[u64], size: u64, operands: &[Operand]) -> Option<Vec<bool>> {
    pool(starts, size, operands)?.may_be_end()
}

#[test]
fn a_single_reference_means_its_entry() {
    assert_eq!(ends(&[0, 4, 8], 12, &[Address(0), Address(4), Address(8)]), Some(vec![false; 3]));
}

#[test]
fn one_of_two_references_may_mean_an_end() {
    let two = [Address(0), Address(4), Address(4), Address(8)];
    assert_eq!(ends(&[0, 4, 8], 12, &two), Some(vec![false, true, false]));
    let with_access = [Address(0), Address(4), Access(5), Address(8)];
    assert_eq!(ends(&[0, 4, 8], 12, &with_access), Some(vec![false, true, false]));
}

#[test]
fn a_redundant_reference_makes_earlier_ones_ambiguous() {
    let redundant = [Address(0), Address(4), Address(8), Address(8)];
    assert_eq!(ends(&[0, 4, 8], 12, &redundant), Some(vec![false, true, true]));
    // `"abc" + 4` and `"xyz" + 4`: the only reference into "xyz" is the end of "abc".
    assert_eq!(ends(&[0, 4], 8, &[Address(4), Address(8)]), Some(vec![false, true]));
    // An entry that is only accessed ends the chain: its address was never taken.
    let accessed = [Address(0), Address(4), Access(8), Address(16), Address(16)];
    assert_eq!(ends(&[0, 4, 8, 16], 24, &accessed), Some(vec![false, false, false, true]));
}

#[test]
fn unreferenced_entries_are_not_understood() {
    assert_eq!(ends(&[0, 4], 8, &[Address(0)]), None);
    assert_eq!(ends(&[0, 4], 8, &[Address(4)]), None, "it is needed for the second");
    assert_eq!(ends(&[0, 4], 8, &[Address(4), Address(4)]), Some(vec![false, true]));
}

#[test]
fn references_outside_are_not_understood() {
    assert_eq!(ends(&[0], 8, &[Address(-1)]), None);
    assert_eq!(ends(&[0], 8, &[Address(9)]), None);
    assert_eq!(ends(&[0], 8, &[Access(8)]), None);
    assert_eq!(ends(&[0], 8, &[AccessNear(4)]), Some(vec![false]), "one of its places is inside");
    assert_eq!(ends(&[0], 8, &[Address(8)]), Some(vec![false]));
}

#[test]
fn alignments() {
    let section = Section { align: 16, ..Section::default() };
    assert_eq!(alignment(&section, 0, b"text that may lie anywhere\0"), 1);
    assert_eq!(alignment(&section, 16, b"text that gcc aligns because it is so long\0"), 8);
    assert_eq!(alignment(&section, 5, b"x\0\0\0"), 1, "with padding");
    assert_eq!(alignment(&section, 0, &[1; 16]), 16);
    assert_eq!(alignment(&section, 8, &[1; 16]), 8, "it has lost its alignment");
    assert_eq!(alignment(&section, 16, &[1; 8]), 8);
    assert_eq!(alignment(&section, 32, &[1; 40]), 16);
}

/// What gcc makes of a source, with labels, or `None` on another processor than x86-64.
fn compiled(source: &str, options: &[&str]) -> Option<Vec<u8>> {
    if !cfg!(target_arch = "x86_64") {
        return None;
    }
    let folder = tempfile::tempdir().unwrap();
    let (input, output) = (folder.path().join("x.c"), folder.path().join("x.o"));
    std::fs::write(&input, source).unwrap();
    let flags = ["-w", "-ffunction-sections", "-fdata-sections", "-c", "-o"];
    let status = Command::new("gcc")
        .args(options)
        .args(flags)
        .arg(&output)
        .arg(&input)
        .status()
        .expect("gcc is installed");
    assert!(status.success(), "{source}");
    Some(std::fs::read(output).unwrap())
}

/// The hash of a function with all that it reaches in its object.
fn closure(record: &Record, name: &str) -> Hash {
    let atoms: Vec<_> = record.atoms_with_references().collect();
    let first = atoms.iter().position(|(atom, _)| atom.name == name).unwrap();
    let mut hasher = Hasher::new("test");
    let mut order = vec![first];
    let mut at = 0;
    while let Some(&index) = order.get(at) {
        let (atom, references) = atoms[index];
        hasher.hash(atom.hash);
        for reference in references {
            hasher.number(reference.offset as u64);
            match reference.target {
                Target::Symbol(symbol) => {
                    hasher.bytes(record.symbols[symbol as usize].name.as_bytes())
                }
                Target::Atom(atom) => {
                    let known = order.iter().position(|&known| known == atom as usize);
                    hasher.number(known.unwrap_or(order.len()) as u64);
                    order.extend(known.is_none().then_some(atom as usize));
                    &mut hasher
                }
            };
        }
        at += 1;
    }
    hasher.finish()
}

/// Which of the functions differ between two sources. `None` without gcc.
fn differing<'n>(
    sources: [&str; 2],
    functions: &[&'n str],
    options: &[&str],
) -> Option<Vec<&'n str>> {
    let objects = sources.map(|source| compiled(source, &[options, &["-O0", "-Wa,-L"]].concat()));
    let [Some(one), Some(other)] = &objects else { return None };
    let objects = [one, other].map(|bytes| ObjectFile::parse(bytes).unwrap());
    let records =
        objects.each_ref().map(|object| atoms::record(object, Level::Code, true).unwrap());
    for (object, record) in objects.iter().zip(&records) {
        let is_divided = |section: &Section| {
            record.atoms.iter().filter(|atom| atom.section_name == section.name).count() > 1
        };
        assert!(
            object.sections.iter().any(|section| section.name == ".rodata" && is_divided(section)),
            "not divided"
        );
    }
    let differs = |name: &&&str| closure(&records[0], name) != closure(&records[1], name);
    Some(functions.iter().filter(differs).copied().collect())
}

#[track_caller]
fn check(old: &str, new: &str, functions: &[&str], expected: &[&str]) {
    for options in [&["-fpie"][..], &["-fno-pie"], &["-fPIC", "-g"], &["-mavx"]] {
        if let Some(found) = differing([old, new], functions, options) {
            assert_eq!(found, expected, "{options:?}");
        }
    }
}

const STRINGS: &str = "int puts(const char *);
    void f(void) { puts(\"first\"); }
    void unreached(void) { puts(\"old\"); }
    void g(void) { puts(\"second\"); }
    void h(void) { puts(\"third\"); }";

#[test]
fn a_string_more_changes_nobody_else() {
    let functions = ["f", "unreached", "g", "h"];
    check(
        STRINGS,
        &STRINGS.replace("puts(\"old\")", "puts(\"old\"); puts(\"new\")"),
        &functions,
        &["unreached"],
    );
    check(
        STRINGS,
        &STRINGS.replace("puts(\"old\")", "puts(\"longer\")"),
        &functions,
        &["unreached"],
    );
    let behind = format!("{STRINGS} void last(void) {{ puts(\"last\"); }}");
    check(STRINGS, &behind, &functions, &[]);
    let before = STRINGS.replace("void f", "void zeroth(void) { puts(\"zeroth\"); } void f");
    check(STRINGS, &before, &functions, &[]);
}

#[test]
fn an_edited_string_changes_its_users() {
    let functions = ["f", "unreached", "g", "h"];
    check(STRINGS, &STRINGS.replace("second", "2econd"), &functions, &["g"]);
    check(STRINGS, &STRINGS.replace("first", "firs"), &functions, &["f"]);
    // Of two references to "third" one may be the end of "second".
    check(STRINGS, &STRINGS.replace("old", "third"), &functions, &["unreached", "h"]);
}

#[test]
fn strings_with_zeros() {
    let source = "const char *h(void) { return \"other\"; }
        const char *f(void) { return \"ab\\0cd\"; }
        const char *g(void) { return \"ab\\0cd\" + 3; }";
    let functions = ["f", "g", "h"];
    check(source, &source.replace("ab\\0", "aX\\0"), &functions, &["f", "g"]);
    check(source, &source.replace("\\0cd", "\\0cX"), &functions, &["f", "g"]);
    // With a literal of its own, `f` cannot mean the end of "other" any more.
    check(source, &source.replace("cd\" + 3", "ce\" + 3"), &functions, &["f", "g"]);
    // A list that ends with an empty string, and then does not any more.
    let list = source.replace("other", "A=1\\0");
    assert_ne!(list, source);
    check(&list, &list.replace("A=1\\0", "A=1"), &functions, &["f", "h"]);
}

#[test]
fn a_string_known_only_by_its_end() {
    let source = "const char *f(void) { return \"abc\" + 4; }
        const char *g(void) { return \"xyz\" + 4; }
        const char *h(void) { return \"next\"; }";
    let functions = ["f", "g", "h"];
    for (old, new, user) in [("abc", "abd", "f"), ("xyz", "xyy", "g"), ("next", "text", "h")] {
        for options in ["-fpie", "-fno-pie"] {
            let Some(found) =
                differing([source, &source.replace(old, new)], &functions, &[options])
            else {
                return;
            };
            assert!(found.contains(&user), "{old}: {found:?}");
        }
    }
}

#[test]
fn a_string_delimited_by_its_predecessor() {
    let source = "const char *e(void) { return \"before\"; }
        const char *f(void) { const char *p = \"SunMonTue\" - 1; return p; }
        const char *g(void) { return \"next\"; }";
    check(source, &source.replace("SunMon", "sunMon"), &["e", "f", "g"], &["f"]);
    check(source, &source.replace("next", "text"), &["e", "f", "g"], &["g"]);
}

#[test]
fn numbers() {
    let source = "double f(double x) { return x * 2.5; }
        float g(float x) { return x * 1.5f; }
        long double h(long double x) { return x + 3.25L; }
        double i(double x) { return x + 7.75; }
        __complex__ double j(void) { return 1.5 + 2.25i; }";
    let functions = ["f", "g", "h", "i", "j"];
    check(source, &source.replace("2.5;", "2.25;"), &functions, &["f"]);
    check(source, &source.replace("3.25L", "3.5L"), &functions, &["h"]);
    check(source, &source.replace("7.75", "7.5"), &functions, &["i"]);
}

#[test]
fn wide_strings_and_tables() {
    let source = "const void *f(void) { return L\"wide\"; }
        static const char *const names[] = {\"one\", \"two\"};
        const char *g(int i) { return names[i]; }
        const char *h(void) { return \"plain\"; }";
    let functions = ["f", "g", "h"];
    check(source, &source.replace("wide", "wade"), &functions, &["f"]);
    check(source, &source.replace("one", "ONE"), &functions, &["g"]);
    check(source, &source.replace("two", "tw"), &functions, &["g"]);
    check(source, &source.replace("plain", "plane"), &functions, &["h"]);
}

#[test]
fn one_entry_pools_need_no_labels() {
    for text in ["short", "a text that gcc aligns because it is so long", "a\\0b"] {
        let source = format!(
            "const char *f(void) {{ return \"{text}\"; }} const char *g(void) {{ return \"{text}\"; }}"
        );
        let Some(plain) = compiled(&source, &["-O0"]) else { return };
        let plain = elf::record_of(&plain).unwrap();
        let labelled = compiled(&source, &["-O0", "-Wa,-L"]).unwrap();
        let object = ObjectFile::parse(&labelled).unwrap();
        let labelled = atoms::record(&object, Level::Code, true).unwrap();
        let hashes =
            |record: &Record| record.atoms.iter().map(|atom| atom.hash).collect::<Vec<_>>();
        assert_eq!(hashes(&plain), hashes(&labelled), "{text}");
    }
}

/// `"ab\0cdef"[i - 3]` is `lea .LC0-3(%rip)` when it is optimised: the entry before.
#[test]
fn an_optimised_function_makes_a_pool_whole() {
    let source = "const char *g(void) { return \"aa\"; }
        __attribute__((optimize(\"O2\"))) int f(int i) { return \"ab\\0cdef\"[i - 3]; }";
    let Some(bytes) = compiled(source, &["-O0", "-Wa,-L"]) else { return };
    let object = ObjectFile::parse(&bytes).unwrap();
    let record = atoms::record(&object, Level::Code, true).unwrap();
    assert_eq!(record.atoms.iter().filter(|atom| atom.section_name == ".rodata").count(), 1);
}

/// What a linker sees of an object: sections, symbols, and relocations with what they name.
fn seen(bytes: &[u8]) -> (Vec<String>, Vec<String>) {
    let object = ObjectFile::parse(bytes).unwrap();
    let name = |index: u32| format!("{:?}", object.symbols[index as usize]);
    let sections = object
        .sections
        .iter()
        .filter(|section| section.name != ".tasting" && section.kind != SHT_STRTAB.0);
    let described = sections.map(|section| {
        let is_symbols = section.kind == SHT_SYMTAB.0;
        let is_bytes = ![SHT_SYMTAB.0, SHT_RELA.0].contains(&section.kind);
        let info =
            if section.kind == SHT_GROUP.0 { name(section.info) } else { section.info.to_string() };
        let data = if is_bytes { section.data } else { &[] };
        let size = if is_symbols { 0 } else { section.size };
        let relocations: Vec<_> = section
            .relocations
            .iter()
            .map(|relocation| {
                (relocation.offset, relocation.kind, relocation.addend, name(relocation.symbol))
            })
            .collect();
        let shape = (
            section.name,
            section.kind,
            section.flags,
            section.align,
            section.entry_size,
            section.link,
        );
        format!("{shape:?} {info} {size} {data:?} {relocations:?}")
    });
    let mut symbols: Vec<String> =
        object.symbols.iter().map(|symbol| format!("{symbol:?}")).collect();
    symbols.sort();
    (described.collect(), symbols)
}

/// The object with its record, put together.
fn attached(bytes: &[u8]) -> Vec<u8> {
    let with_record = elf::with_record(bytes, Level::Code, Labels::Kept).unwrap().unwrap();
    let base = with_record.object.as_deref().unwrap_or(bytes);
    let elf::append::Appended { head, tail } = with_record.record;
    [&head[..], &base[head.len()..], &tail].concat()
}

const UNITS: [&str; 3] = [
    STRINGS,
    "int s(int i) { switch (i) { case 0: return 5; case 1: return 7; case 2: return 1; case 3: return 9; case 4: return 4; }
        static __thread int t; asm volatile(\"1: jmp 2f\\n2: .Lmine%=: nop\" :::); return t++; }
        double d(double x) { return x * 2.5; } const char *e(void) { return __func__; }",
    "#include <stdexcept>\n#include <string>\n#include <vector>
        template <class T> T t(T x) { try { if (x == T()) throw std::runtime_error(\"zero\"); } catch (std::exception &e) {
        return T(std::string(e.what()).size()); } return x; }
        thread_local std::string s = \"tls\"; int main() { std::vector<double> v{1.5, 2.5}; return t(1) + t(v.size()) + s.size(); }",
];

#[test]
fn a_tidied_object_is_what_plain_assembling_makes() {
    for (unit, language) in UNITS.iter().zip(["-xc", "-xc", "-xc++"]) {
        for options in [&["-O0"][..], &["-O0", "-g"], &["-O2", "-g", "-fPIC"], &["-O0", "-fno-pie"]]
        {
            let options = [options, &[language]].concat();
            let Some(plain) = compiled(unit, &options) else { return };
            let labelled = compiled(unit, &[&options[..], &["-Wa,-L"]].concat()).unwrap();
            let tidied = attached(&labelled);
            if !options.contains(&"-g") {
                assert!(labelled.len() > plain.len(), "no label was kept");
                assert_eq!(seen(&plain), seen(&tidied), "{options:?}");
            } else {
                // The name of the temporary folder is in the debug information.
                assert_eq!(seen(&plain).1, seen(&tidied).1, "{options:?}");
            }
            let object = ObjectFile::parse(&labelled).unwrap();
            let made = atoms::record(&object, Level::Code, true).unwrap();
            assert_eq!(
                elf::record_of(&tidied).unwrap().atoms,
                made.atoms,
                "{options:?}: the record does not fit"
            );
            let undivided = atoms::record(&object, Level::Code, false).unwrap();
            let hashes =
                |record: &Record| record.atoms.iter().map(|atom| atom.hash).collect::<Vec<_>>();
            assert_eq!(
                hashes(&undivided),
                hashes(&elf::record_of(&plain).unwrap()),
                "{options:?}: labels count"
            );
        }
    }
}

#[test]
fn a_tidied_object_is_not_tidied_again() {
    let Some(labelled) = compiled(STRINGS, &["-O0", "-Wa,-L"]) else { return };
    let tidied = elf::tidy::tidy(&labelled).unwrap();
    assert!(elf::tidy::tidy(&tidied).is_none());
    for length in 0..labelled.len() {
        // Whatever is cut off: no panic.
        let _ = elf::tidy::tidy(&labelled[..length]);
    }
}
