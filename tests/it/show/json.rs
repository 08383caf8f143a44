//! The JSON of `tasting show`: the fields that programs rely on, and the agreement with what `nm`
//! says.

use super::{Site, atom, atoms, refs};
use crate::edits::matrix::compilers;
use serde_json::Value;
use std::collections::BTreeMap;

const KINDS: [&str; 11] = [
    "function",
    "resolver",
    "data",
    "zeroed",
    "thread-local",
    "literal",
    "common",
    "range",
    "import",
    "value",
    "residue",
];

/// The fields that others rely on are in every atom, with values of the promised kind.
fn keeps_the_contract(shown: &Value, kind: &str) {
    assert_eq!(shown["kind"], kind);
    assert!(shown["file"].is_string() && shown["refusals"].is_array(), "{shown}");
    assert!(!atoms(shown).is_empty());
    for atom in atoms(shown) {
        assert!(atom["name"].is_string(), "{atom}");
        assert!(KINDS.iter().any(|kind| atom["kind"] == *kind), "{atom}");
        assert!(["code", "ast", "file"].iter().any(|level| atom["level"] == *level), "{atom}");
        let hash = atom["hash"].as_str().expect("a hash");
        assert!(hash.len() == 32 && hash.bytes().all(|digit| digit.is_ascii_hexdigit()), "{atom}");
        assert!(
            atom["refs"].as_array().is_some_and(|refs| refs.iter().all(Value::is_string)),
            "{atom}"
        );
        assert!(atom["traceable"].is_boolean() && atom["size"].is_u64(), "{atom}");
    }
}

#[test]
fn json_of_an_object() {
    for compiler in compilers() {
        let site = Site::new(compiler);
        site.well("tasting-cc -O1 -fno-inline -c x.c");
        let shown = site.shown("x.o");
        keeps_the_contract(&shown, "object");
        for (name, kind) in [
            ("main", "function"),
            ("data", "data"),
            ("zeroed", "zeroed"),
            ("local", "thread-local"),
        ] {
            assert_eq!(atom(&shown, name)["kind"], kind, "{}: {name}", compiler.name);
            assert_eq!(atom(&shown, name)["level"], "code");
        }
        assert_eq!(atom(&shown, "data")["size"], 4);
        assert_eq!(atom(&shown, "zeroed")["size"], 40);
        let reached = refs(&shown, "reached");
        assert!(
            ["callee", "data", "zeroed"].iter().all(|name| reached.contains(name)),
            "{reached:?}"
        );
        assert!(
            refs(&shown, "main").contains(&"reached") && refs(&shown, "main").contains(&"printf")
        );
        assert!(atoms(&shown).iter().any(|atom| atom["kind"] == "literal"), "{shown}");
        assert_eq!(atom(&shown, "main")["traceable"], true);
        assert_eq!(atom(&shown, "data")["traceable"], false);
        // Nobody enters an object: it has no addresses and no roots.
        assert!(
            shown.get("roots").is_none()
                && atoms(&shown).iter().all(|atom| atom.get("address").is_none())
        );
    }
}

#[test]
fn json_of_an_archive_names_the_members() {
    for compiler in compilers() {
        let site = Site::new(compiler);
        site.well("tasting-cc -c x.c && tasting-c++ -c y.cc && echo text >note.txt && ar rcs lib.a x.o y.o note.txt");
        let shown = site.shown("lib.a");
        keeps_the_contract(&shown, "archive");
        assert_eq!(atom(&shown, "reached")["object"], "x.o");
        assert_eq!(atom(&shown, "_ZNK5space5Thing6methodEi")["object"], "y.o");
        let refusals = shown["refusals"].as_array().expect("a list");
        assert!(refusals.iter().any(|refusal| refusal["subject"] == "note.txt"), "{refusals:?}");
        site.well("rm -f empty.a && ar rcs empty.a && tasting show empty.a");
    }
}

#[test]
fn json_of_a_binary() {
    for compiler in compilers() {
        let site = Site::new(compiler);
        site.well(
            "tasting-cc -O1 -fno-inline x.c -o prog && tasting-cc -shared -fPIC -O1 x.c -o libx.so",
        );
        let shown = site.shown("prog");
        keeps_the_contract(&shown, "binary");
        assert!(
            shown["roots"]
                .as_array()
                .is_some_and(|roots| roots.iter().any(|root| root == "_start")),
            "{shown}"
        );
        assert!(
            shown["needed"]
                .as_array()
                .is_some_and(|needed| needed.iter().any(|name| name == "libc.so.6"))
        );
        assert!(
            atoms(&shown)
                .iter()
                .all(|atom| atom["global"].as_str().is_some_and(|hash| hash.len() == 32))
        );
        assert!(refs(&shown, "reached").contains(&"callee"), "{shown}");
        assert!(
            atoms(&shown).iter().any(|atom| atom["kind"] == "import"
                && atom["name"].as_str().is_some_and(|name| name.starts_with("printf"))),
            "{shown}"
        );
        let library = site.shown("libx.so");
        keeps_the_contract(&library, "binary");
        let exports = library["exports"].as_array().expect("a list of exports");
        assert!(
            ["data", "main", "reached", "unreached"]
                .iter()
                .all(|name| exports.iter().any(|export| export == name)),
            "{exports:?}"
        );
        assert!(!exports.iter().any(|export| export == "callee"), "{exports:?}");
    }
}

/// Name → address and size, as `nm` has them.
fn symbols(site: &Site, file: &str) -> BTreeMap<String, (u64, u64)> {
    let text = site.well(&format!("nm -S --defined-only {file}"));
    let line = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        let [address, size, _, name] = words[..] else { return None };
        let number = |text| u64::from_str_radix(text, 16).expect("a number");
        Some((name.to_owned(), (number(address), number(size))))
    };
    text.lines().filter_map(line).collect()
}

#[test]
#[ignore = "needs gold"]
fn addresses_agree_with_nm() {
    for compiler in compilers() {
        for linker in ["bfd", "gold", "lld", "mold"] {
            let site = Site::new(compiler);
            site.well(&format!("tasting-cc -fuse-ld={linker} -O1 -fno-inline x.c -o prog"));
            let (shown, symbols) = (site.shown("prog"), symbols(&site, "prog"));
            for name in ["main", "reached", "callee", "unreached", "data", "zeroed"] {
                let shown = atom(&shown, name);
                let place = (
                    shown["address"].as_u64().expect("an address"),
                    shown["size"].as_u64().expect("a size"),
                );
                let (address, size) = symbols[name];
                assert_eq!(place.0, address, "{} {linker} {name}", compiler.name);
                // A section may be padded beyond its symbol.
                assert!(
                    place.1 >= size && place.1 < size + 16,
                    "{} {linker} {name}: {place:?}",
                    compiler.name
                );
            }
            for name in ["main", "reached", "callee"] {
                assert_eq!(
                    atom(&shown, name)["traceable"],
                    true,
                    "{} {linker} {name}",
                    compiler.name
                );
            }
            let overlaps = overlapping(&shown);
            assert!(overlaps.is_empty(), "{} {linker}: {overlaps:?}", compiler.name);
        }
    }
}

/// Functions that share bytes.
fn overlapping(shown: &Value) -> Vec<String> {
    let mut places: Vec<(u64, u64, &str)> = atoms(shown)
        .iter()
        .filter(|atom| atom["kind"] == "function" && atom["size"] != 0)
        .filter_map(|atom| {
            Some((atom["address"].as_u64()?, atom["size"].as_u64()?, atom["name"].as_str()?))
        })
        .collect();
    places.sort();
    let pairs = places.windows(2).filter(|pair| pair[0].0 + pair[0].1 > pair[1].0);
    pairs.map(|pair| format!("{pair:?}")).collect()
}
