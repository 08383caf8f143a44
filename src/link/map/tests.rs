//! Maps that the linkers of this machine write for a program made to be awkward, against the truth
//! of its symbol table; and damaged maps, which may be refused but must neither panic nor lose a
//! section.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use object::{Object, ObjectSection, ObjectSymbol, SectionFlags, SymbolKind, SymbolSection};
use proptest::prelude::*;

use super::zoo::{INPUTS, link, link_script, run, zoo};
use super::*;
use crate::model::PlacedSection;

const FIXTURES: [&[u8]; 7] = [
    include_bytes!("../../../fixtures/maps/zoo-bfd.map"),
    include_bytes!("../../../fixtures/maps/zoo-gold.map"),
    include_bytes!("../../../fixtures/maps/zoo-lld.map"),
    include_bytes!("../../../fixtures/maps/zoo-mold.map"),
    include_bytes!("../../../fixtures/maps/script-bfd.map"),
    include_bytes!("../../../fixtures/maps/script-gold.map"),
    include_bytes!("../../../fixtures/maps/script-lld.map"),
];
/// Where each function and each object of our own objects is defined: the file's name and the
/// section.
fn definitions(root: &Path, objects: &[&str]) -> HashMap<String, (String, String)> {
    let mut all = HashMap::new();
    for path in objects {
        let data = fs::read(root.join(path)).unwrap();
        let file = object::File::parse(&*data).unwrap();
        for symbol in file.symbols().filter(is_placed) {
            let section = match symbol.section() {
                SymbolSection::Section(index) => {
                    file.section_by_index(index).unwrap().name().unwrap().to_string()
                }
                SymbolSection::Common => "COMMON".to_string(),
                _ => continue,
            };
            let place = (path.rsplit('/').next().unwrap().to_string(), section);
            all.entry(symbol.name().unwrap().to_string()).or_insert(place);
        }
    }
    all
}

fn is_placed<'a>(symbol: &impl ObjectSymbol<'a>) -> bool {
    matches!(symbol.kind(), SymbolKind::Text | SymbolKind::Data | SymbolKind::Tls)
        && !symbol.is_undefined()
}

fn is_allocated<'a>(section: &impl ObjectSection<'a>) -> bool {
    let SectionFlags::Elf { sh_flags, .. } = section.flags() else { return false };
    sh_flags.contains(object::elf::SHF_ALLOC)
}

fn holds(section: &PlacedSection, address: u64) -> bool {
    section.address <= address && address - section.address < section.size
}

/// Every sized symbol of the binary is in some placed section; those of our objects are in the
/// right one, unless `folded` allows that an identical function stands for it.
fn check_truth(root: &Path, map: &[u8], binary: &[u8], objects: &[&str], folded: &[&str]) {
    let placement = parse(map).unwrap();
    let file = object::File::parse(binary).unwrap();
    let expected = definitions(root, objects);
    let thread_locals =
        file.sections().filter(|section| matches!(section.name(), Ok(".tdata" | ".tbss")));
    let tls_base = thread_locals.map(|section| section.address()).min().unwrap_or(0);
    let mut found = 0;
    for symbol in file.symbols().filter(is_placed).filter(|symbol| symbol.size() > 0) {
        let name = symbol.name().unwrap();
        let section = symbol.section_index().and_then(|index| file.section_by_index(index).ok());
        // glibc has symbols in `.gnu.warning.*`, which are never loaded.
        if !section.is_some_and(|section| is_allocated(&section)) {
            continue;
        }
        let address =
            symbol.address() + if symbol.kind() == SymbolKind::Tls { tls_base } else { 0 };
        let holders: Vec<_> =
            placement.sections.iter().filter(|section| holds(section, address)).collect();
        assert!(!holders.is_empty(), "{name} at {address:#x} is nowhere");
        let Some((object, section)) = expected.get(name).filter(|_| !folded.contains(&name)) else {
            continue;
        };
        let is_right = |placed: &&&PlacedSection| {
            let path = String::from_utf8_lossy(placed.member.unwrap_or(placed.file));
            let common = section == "COMMON" && (placed.file == INTERNAL || path.ends_with(".o"));
            placed.name == section.as_bytes() && (common || path.rsplit('/').next() == Some(object))
        };
        assert!(
            holders.iter().any(|placed| is_right(&placed)),
            "{name} of {object} {section}: {holders:?}"
        );
        found += 1;
    }
    assert!(found > 0, "no symbol of ours was compared");
}

const OBJECTS: [&str; 6] =
    ["main.o", "odd dir (x)/odd obj (1).o", "d1/dup.o", "d2/dup.o", "sub/helper.o", "sub/twin.o"];

fn check_links(linker: &str) {
    let root = zoo();
    let icf = if linker == "bfd" { "-Wl,--gc-sections" } else { "-Wl,--gc-sections,--icf=all" };
    let modes: [(&str, &[&str], &[&str]); 6] = [
        ("pie", &["-pie"], &[]),
        ("no-pie", &["-no-pie", "-Wl,--emit-relocs"], &[]),
        ("static", &["-static"], &[]),
        ("gc", &["-static", "-Wl,--gc-sections"], &[]),
        ("icf", &[icf], &["twin1", "twin2"]),
        ("shared", &["-shared"], &[]),
    ];
    for (name, flags, folded) in modes {
        let (map, binary) = link(root, "gcc", linker, name, &[flags, &INPUTS].concat());
        check_truth(root, &map, &binary, &OBJECTS, folded);
    }
    for (name, flags) in [("cxx-static", &["-static", "cxx.o"]), ("cxx", &["-pie", "cxx.o"])] {
        let (map, binary) = link(root, "g++", linker, name, flags);
        check_truth(root, &map, &binary, &["cxx.o"], &[]);
    }
}

#[test]
fn links_of_gnu_ld() {
    check_links("bfd");
}

#[test]
#[ignore = "needs gold"]
fn links_of_gold() {
    check_links("gold");
}

#[test]
#[ignore = "needs lld"]
fn links_of_lld() {
    check_links("lld");
}

#[test]
#[ignore = "needs mold"]
fn links_of_mold() {
    check_links("mold");
}

#[test]
#[ignore = "needs gold and lld"]
fn scripts_and_cross_references() {
    let root = zoo();
    for linker in ["bfd", "gold", "lld"] {
        let (map, binary) = link_script(root, linker);
        check_truth(root, &map, &binary, &["bare.o"], &[]);
    }
}

/// `-r` leaves every section at address 0, and gold then lists none of those that matter.
#[test]
#[ignore = "needs gold, lld and mold"]
fn relocatable_links() {
    let root = zoo();
    for linker in ["bfd", "gold", "lld", "mold"] {
        let flags = ["-r", "-nostdlib", "main.o", "sub/helper.o"];
        let (map, _) = link(root, "gcc", linker, "relocatable", &flags);
        let placement = parse(&map);
        if linker == "gold" {
            assert_eq!(placement, Err(MapError::Unplaced));
            continue;
        }
        let sections = placement.unwrap().sections;
        let has = |name: &[u8], file: &[u8]| {
            sections.iter().any(|placed| placed.name == name && placed.file == file)
        };
        assert!(
            has(b".text.main", b"main.o") && has(b".text.helper", b"sub/helper.o"),
            "{linker}: {sections:?}"
        );
        assert!(!sections.iter().any(|placed| placed.output == b".comment"));
    }
}

/// The objects of LTO are temporary, but are listed as any other.
#[test]
#[ignore = "needs gold and mold"]
fn link_time_optimisation() {
    let root = zoo();
    fs::write(root.join("lto.c"), "int main(int c, char **v) { return c; }").unwrap();
    for linker in ["bfd", "gold", "mold"] {
        let (map, _) = link(root, "gcc", linker, "lto", &["-flto", "lto.c"]);
        let sections = parse(&map).unwrap().sections;
        assert!(
            sections.iter().any(|placed| placed.file.ends_with(b".ltrans.o") && placed.size > 0),
            "{linker}"
        );
    }
}

#[test]
fn the_text_tells_the_linker() {
    use LinkerKind::{GnuLd as Gnu, Gold, Lld, Mold};
    assert_eq!(FIXTURES.map(kind), [Gnu, Gold, Lld, Mold, Gnu, Gold, Lld].map(Some));
    assert_eq!(parse(b""), Err(MapError::Unknown));
    assert_eq!(parse(b"no map\n"), Err(MapError::Unknown));
    assert_eq!(parse(b"Memory map"), Err(MapError::Truncated));
}

/// Paths that look like members, hold colons, or are no text.
#[test]
fn titles_may_be_translated() {
    let english = include_bytes!("../../../fixtures/maps/zoo-bfd.map");
    let text = String::from_utf8_lossy(english)
        .replace("Linker script and memory map", "Linker-Skript und Speicherzuordnung");
    assert_eq!(super::parse(text.as_bytes()), super::parse(english));
}

#[test]
#[ignore = "needs gold, lld and mold"]
fn odd_paths() {
    let root = zoo();
    let bytes = OsStr::from_bytes(b"n\xffn.o");
    fs::create_dir_all(root.join("a:b")).unwrap();
    fs::copy(root.join("odd dir (x)/odd obj (1).o"), root.join("a:b").join(bytes)).unwrap();
    fs::copy(root.join("d1/dup.o"), root.join("paren(1)")).unwrap();
    fs::copy(root.join("d2/dup.o"), root.join("m(2)).o")).unwrap();
    run(root, "ar", &["qc", "arch.ive", "m(2)).o"]).unwrap();
    for linker in ["bfd", "gold", "lld", "mold"] {
        let inputs = ["main.o", "@odd-paths", "paren(1)", "arch.ive", "sub/libthin.a"];
        fs::write(root.join("odd-paths"), b"a:b/n\xffn.o").unwrap();
        let (map, _) = link(root, "gcc", linker, "odd", &inputs);
        let sections = parse(&map).unwrap().sections;
        let find = |name: &[u8]| {
            sections.iter().find(|placed| placed.name == name).map(|it| (it.file, it.member))
        };
        assert_eq!(find(b".text.odd"), Some((b"a:b/n\xffn.o".as_slice(), None)), "{linker}");
        assert_eq!(find(b".text.dup_a"), Some((b"paren(1)".as_slice(), None)), "{linker}");
        assert_eq!(
            find(b".text.dup_b"),
            Some((b"arch.ive".as_slice(), Some(b"m(2)).o".as_slice()))),
            "{linker}"
        );
    }
}

fn kind(map: &[u8]) -> Option<LinkerKind> {
    Some(locate(Lines::new(map).ok()?).ok()?.0)
}

/// However much of the end is missing, the answer is an error or the whole placement.
#[test]
fn a_prefix_loses_no_section() {
    for map in FIXTURES {
        let whole = parse(map).unwrap();
        for end in 0..map.len() {
            if let Ok(placement) = parse(&map[..end]) {
                assert_eq!(placement, whole, "{:?} cut at {end}", kind(map));
            }
        }
    }
}

/// Changes to a map: lines deleted, doubled and swapped, bytes changed, the end cut off.
fn damage(map: &[u8], steps: &[(u8, prop::sample::Index, u8)]) -> Vec<u8> {
    let mut lines: Vec<Vec<u8>> =
        map.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
    for (kind, index, byte) in steps.iter().filter(|_| !map.is_empty()) {
        let at = index.index(lines.len().max(1)).min(lines.len().saturating_sub(1));
        match kind % 5 {
            0 if lines.len() > 1 => drop(lines.remove(at)),
            1 => lines.insert(at, lines[at].clone()),
            2 => lines.swap(at, 0),
            3 => lines.truncate(at + 1),
            _ => {
                let place = index.index(lines[at].len());
                lines[at][place] = *byte;
            }
        }
    }
    lines.concat()
}

proptest! {
    #[test]
    fn random_bytes_do_not_panic(bytes: Vec<u8>, title in 0usize..5) {
        let titles: [&[u8]; 5] = [b"", b"Memory map\n\n", b"Linker script and memory map\n\n",
            b"VMA LMA Size Align Out In Symbol\n", b"VMA Size Align Out In Symbol\n"];
        let _ = parse(&[titles[title], &bytes, b"\n"].concat());
    }

    #[test]
    fn damaged_maps_do_not_panic(which in 0..FIXTURES.len(),
                                 steps: [(u8, prop::sample::Index, u8); 6], used in 0usize..6) {
        let _ = parse(&damage(FIXTURES[which], &steps[..=used.min(5)]));
    }
}
