//! Matching, compared with a plain implementation of the same rules that does not care about time.

use super::*;
use crate::link::input::Read;
use crate::model::{AtomKind, Hash, Symbol};
use proptest::prelude::*;
use proptest::sample::select;
use std::collections::HashMap;
use std::time::{Duration, Instant};

struct Table(HashMap<Hash, u64>);

impl SymbolAddresses for Table {
    fn address(&self, name: Hash) -> Option<u64> {
        self.0.get(&name).copied()
    }
}

fn atom(section_name: &'static str, size: u64, group: u32) -> Atom<'static> {
    Atom {
        name: "",
        kind: AtomKind::Function,
        level: Level::Code,
        hash: Hash::default(),
        section: 0,
        section_name,
        group,
        size,
        references: 0,
        traceable: false,
        ending: Default::default(),
        returns: false,
        file: 0,
        line: 0,
    }
}

fn in_sections_of_their_own(mut atoms: Vec<Atom<'static>>) -> Vec<Atom<'static>> {
    for (section, atom) in atoms.iter_mut().enumerate() {
        atom.section = section as u32;
    }
    atoms
}

fn input(record: Record<'static>) -> Input<'static> {
    Input::new("x.o".to_owned(), Read::new((record, false)), None)
}

fn line(name: &'static str, address: u64, size: u64) -> PlacedSection<'static> {
    PlacedSection {
        output: b".text",
        name: name.as_bytes(),
        address,
        size,
        file: b"x.o",
        member: None,
    }
}

const SECTIONS: [&str; 3] = [".text", ".text.f", ".data"];

fn record() -> impl Strategy<Value = Record<'static>> {
    let atom = (select(&SECTIONS[..]), 0u64..3, 0u32..3)
        .prop_map(|(name, size, group)| atom(name, size, group));
    prop::collection::vec(atom, 1..7).prop_flat_map(|atoms| {
        let atoms = in_sections_of_their_own(atoms);
        let count = atoms.len() as u32;
        let symbol = (select(&["f", "g", "h", "i"][..]), 0..count, 0u64..2).prop_map(
            |(name, atom, offset)| Symbol::new(name, false, SymbolKind::Defined { atom, offset }),
        );
        let symbols = prop::collection::vec(symbol, 0..5);
        symbols.prop_map(move |symbols| Record {
            atoms: atoms.clone(),
            symbols,
            ..Record::default()
        })
    })
}

fn lines() -> impl Strategy<Value = Vec<PlacedSection<'static>>> {
    let line = (select(&SECTIONS[..]), 0u64..6, 0u64..3);
    prop::collection::vec(
        line.prop_map(|(name, address, size)| self::line(name, address, size)),
        0..6,
    )
}

/// The address of each atom, or `None` where the lines are ambiguous.
fn plainly(record: &Record, lines: &[PlacedSection], symbols: &Table) -> Option<Vec<Option<u64>>> {
    let mut addresses = vec![None; record.atoms.len()];
    for name in SECTIONS {
        let mut open: Vec<usize> =
            (0..record.atoms.len()).filter(|&at| is_called(record, at, name)).collect();
        let named: Vec<_> =
            lines.iter().filter(|line| line.name == name.as_bytes() && line.size > 0).collect();
        if open.is_empty() || named.is_empty() {
            continue;
        }
        if let ([only], [line]) = (&open[..], &named[..]) {
            if record.atoms[*only].size != line.size {
                return None;
            }
            addresses[*only] = Some(line.address);
            continue;
        }
        let mut left = Vec::new();
        for line in named {
            match open.iter().position(|&at| symbol_says(record, at, line.address, symbols)) {
                Some(at) => addresses[open.remove(at)] = Some(line.address),
                None => left.push(line),
            }
        }
        open.retain(|&at| record.atoms[at].size > 0 && group_is_linked(record, at, lines));
        if open.len() != left.len()
            || open.iter().zip(&left).any(|(&at, line)| record.atoms[at].size != line.size)
        {
            return None;
        }
        open.into_iter().zip(left).for_each(|(at, line)| addresses[at] = Some(line.address));
    }
    Some(addresses)
}

fn is_called(record: &Record, at: usize, name: &str) -> bool {
    record.atoms[at].section_name == name
}

fn symbol_says(record: &Record, at: usize, address: u64, symbols: &Table) -> bool {
    record.symbols.iter().any(|symbol| match symbol.kind {
        SymbolKind::Defined { atom, offset } => {
            atom as usize == at && symbols.address(symbol.name_hash) == Some(address + offset)
        }
        _ => false,
    })
}

/// A member of the group with a section name of its own was placed, or there is no such member.
fn group_is_linked(record: &Record, at: usize, lines: &[PlacedSection]) -> bool {
    let group = record.atoms[at].group;
    let is_alone =
        |name: &str| (0..record.atoms.len()).filter(|&at| is_called(record, at, name)).count() == 1;
    let members = record.atoms.iter().filter(|atom| atom.group == group && atom.size > 0);
    let witnesses: Vec<&str> =
        members.map(|atom| atom.section_name).filter(|name| is_alone(name)).collect();
    let is_placed = |name: &&str| lines.iter().any(|line| line.name == name.as_bytes());
    group == 0 || witnesses.is_empty() || witnesses.iter().any(is_placed)
}

proptest! {
    #[test]
    fn the_plain_rules_hold(record in record(), lines in lines(), places in prop::collection::vec(0u64..7, 4)) {
        let symbols = Table(["f", "g", "h", "i"].map(Symbol::hash_of).into_iter().zip(places).collect());
        let expected = plainly(&record, &lines, &symbols);
        let found = place(vec![input(record)], &lines, &symbols).ok().map(|inputs| inputs[0].addresses.clone());
        prop_assert_eq!(found, expected);
    }
}

/// `-fno-unique-section-names`: every function of an object is in a section called `.text`.
#[test]
fn many_sections_of_one_name_take_no_time() {
    let count = 20_000;
    let names: Vec<String> = (0..count).map(|number| format!("f{number}")).collect();
    let symbol = |(atom, name): (usize, &'static str)| {
        Symbol::new(name, false, SymbolKind::Defined { atom: atom as u32, offset: 0 })
    };
    let addresses = names
        .iter()
        .enumerate()
        .map(|(at, name)| (Symbol::hash_of(name), 16 * at as u64))
        .collect();
    let leaked: Vec<&'static str> = names.into_iter().map(|name| &*name.leak()).collect();
    let record = Record {
        atoms: in_sections_of_their_own(vec![atom(".text", 16, 0); count]),
        symbols: leaked.into_iter().enumerate().map(symbol).collect(),
        ..Record::default()
    };
    let lines: Vec<PlacedSection> =
        (0..count).rev().map(|at| line(".text", 16 * at as u64, 16)).collect();
    let start = Instant::now();
    let inputs = place(vec![input(record)], &lines, &Table(addresses)).unwrap();
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
    assert!(
        inputs[0]
            .addresses
            .iter()
            .enumerate()
            .all(|(at, address)| *address == Some(16 * at as u64))
    );
}
