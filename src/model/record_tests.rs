//! Records of any content come back as they were written, and an index that points at nothing is
//! refused.

use super::*;
use proptest::prelude::*;
use proptest::sample::select;

pub fn name() -> impl Strategy<Value = &'static str> {
    select(vec!["", "main", "buf.0", ".text.f", "größer", "a\0b", "_ZN3foo3barEi"])
}

fn target(atoms: u32, symbols: u32) -> impl Strategy<Value = Target> {
    (any::<bool>(), any::<u32>()).prop_filter_map("nothing to refer to", move |(atom, index)| {
        match atom {
            true if atoms > 0 => Some(Target::Atom(index % atoms)),
            false if symbols > 0 => Some(Target::Symbol(index % symbols)),
            _ => None,
        }
    })
}

fn symbol_kind(atoms: u32) -> impl Strategy<Value = SymbolKind> {
    (0..5, any::<u32>(), any::<u64>(), any::<u64>()).prop_map(move |(kind, atom, offset, align)| {
        match kind {
            0 if atoms > 0 => SymbolKind::Defined { atom: atom % atoms, offset },
            1 if atoms > 0 => SymbolKind::Indirect { atom: atom % atoms, offset },
            2 => SymbolKind::Common { size: offset, align },
            3 => SymbolKind::Absolute { value: offset },
            _ => SymbolKind::Undefined,
        }
    })
}

fn symbol(atoms: u32) -> impl Strategy<Value = Symbol<'static>> {
    (name(), any::<bool>(), symbol_kind(atoms))
        .prop_map(|(name, weak, kind)| Symbol::new(name, weak, kind))
}

fn atom(files: u32) -> impl Strategy<Value = Atom<'static>> {
    let level = select(vec![Level::Code, Level::Ast, Level::File]);
    let place = (name(), any::<u32>(), any::<u32>(), any::<u64>(), any::<u32>(), any::<u32>());
    (name(), select(&AtomKind::ALL[..]), level, any::<[u8; 16]>(), place, any::<bool>()).prop_map(
        move |(
            name,
            kind,
            level,
            hash,
            (section_name, section, group, size, file, line),
            traceable,
        )| Atom {
            name,
            kind,
            level,
            hash: Hash(hash),
            section,
            section_name,
            group,
            size,
            references: 0,
            traceable,
            ending: if traceable { Ending::Leaves } else { Ending::Falls },
            returns: !traceable,
            file: file % files.max(1),
            line: if files == 0 { 0 } else { line },
        },
    )
}

/// Any record in which every index points at something.
fn record() -> impl Strategy<Value = Record<'static>> {
    (0u32..5, 0u32..4, 0u32..3).prop_flat_map(|(atoms, symbols, files)| {
        let has_targets = atoms + symbols > 0;
        let reference = (target(atoms, symbols), any::<i64>());
        let list = prop::collection::vec(reference, 0..if has_targets { 4 } else { 1 });
        let atoms_with_lists = prop::collection::vec((atom(files), list), atoms as usize);
        let text = prop::collection::vec(".{0,9}", files as usize);
        let refusals = prop::collection::vec((".{0,9}", ".{0,9}"), 0..3);
        let symbols = prop::collection::vec(symbol(atoms), symbols as usize);
        (any::<[u8; 16]>(), atoms_with_lists, symbols, text, refusals).prop_map(
            |(digest, atoms, symbols, files, refusals)| {
                let mut record = Record { digest: Hash(digest), symbols, ..Record::default() };
                for (atom, list) in atoms {
                    record.atoms.push(Atom { references: list.len() as u32, ..atom });
                    record.references.extend(list.into_iter().map(|(target, offset)| Reference {
                        target,
                        offset,
                        usage: Usage::Address,
                    }));
                }
                record.files = files.into_iter().map(Cow::Owned).collect();
                record.refusals = refusals
                    .into_iter()
                    .map(|(subject, reason)| Refusal::new(subject, reason))
                    .collect();
                record
            },
        )
    })
}

/// Makes one index point past the end. `false` if the record has none of that kind.
fn damage(record: &mut Record, kind: usize) -> bool {
    let (atoms, symbols, files) =
        (record.atoms.len() as u32, record.symbols.len() as u32, record.files.len() as u32);
    match kind {
        0 => record
            .references
            .first_mut()
            .map(|reference| reference.target = Target::Atom(atoms))
            .is_some(),
        1 => record
            .references
            .last_mut()
            .map(|reference| reference.target = Target::Symbol(symbols))
            .is_some(),
        2 => {
            let kind = SymbolKind::Defined { atom: atoms, offset: 0 };
            record.symbols.first_mut().map(|symbol| symbol.kind = kind).is_some()
        }
        3 => record.atoms.last_mut().map(|atom| (atom.file, atom.line) = (files, 1)).is_some(),
        4 => record.atoms.first_mut().map(|atom| atom.references += 1).is_some(),
        _ => record.references.pop().is_some(),
    }
}

proptest! {
    #[test]
    fn any_record_comes_back(record in record()) {
        let bytes = record.encode().unwrap();
        prop_assert_eq!(Record::find(&bytes, record.digest), Ok(record));
    }

    #[test]
    fn the_right_one_of_several_is_found(list in prop::collection::vec(record(), 1..4), wanted in any::<prop::sample::Index>()) {
        let mut bytes = Vec::new();
        let wanted = &list[wanted.index(list.len())];
        for record in &list {
            bytes.extend(record.encode().unwrap());
        }
        prop_assert_eq!(&Record::find(&bytes, wanted.digest).unwrap(), list.iter().find(|record| record.digest == wanted.digest).unwrap());
        prop_assert!(Record::find(&bytes, Hash([0xab; 16])).is_err());
    }

    #[test]
    fn an_index_past_the_end_is_refused(record in record(), kind in 0usize..6) {
        let mut record = record;
        prop_assume!(damage(&mut record, kind));
        let bytes = record.encode().unwrap();
        prop_assert_eq!(Record::find(&bytes, record.digest), Err(FormatError::Malformed));
    }
}
