//! Matches lines of the map with sections of objects: the map identifies sections only by name and
//! size. In: the records of an object (of several, if an archive has members of the same name) and
//! its lines of the map. Out: the objects that were linked, with an address for each atom that was
//! placed.

use super::input::{Input, InputError, SymbolAddresses};
use super::sections::{Alike, Candidate, Sections};
use crate::model::{Atom, Level, PlacedSection, Record, SymbolKind};
use rustc_hash::{FxHashMap, FxHashSet};
use std::cell::OnceCell;
use std::mem;

/// Gives every atom its address.
pub fn place<'a>(
    mut inputs: Vec<Input<'a>>,
    placed: &[PlacedSection],
    symbols: &dyn SymbolAddresses,
) -> Result<Vec<Input<'a>>, InputError> {
    let label = inputs.first().map(|input| input.label.clone()).unwrap_or_default();
    if inputs.len() > 1 {
        let places: FxHashSet<(&[u8], u64)> =
            placed.iter().map(|section| (section.name, section.address)).collect();
        inputs.retain(|input| is_linked(&input.record, &places, symbols));
        if inputs.is_empty() {
            return Err(InputError::Ambiguous { object: label, section: "(any)".to_owned() });
        }
    }
    if is_whole_file(&inputs) {
        inputs[0].addresses[0] =
            placed.iter().find(|section| section.size > 0).map(|section| section.address);
        return Ok(inputs);
    }
    let index = match &mut inputs[..] {
        [only] => mem::take(&mut only.sections),
        several => Sections::new(several.iter().map(|input| &input.record)),
    };
    let (claims, groups) = (OnceCell::new(), OnceCell::new());
    let addresses =
        Matcher { label: &label, inputs: &inputs, placed, symbols, index, claims, groups }.run()?;
    for (Candidate { input, atom }, address) in addresses {
        give_place(&mut inputs[input as usize], atom as usize, address);
    }
    Ok(inputs)
}

/// Places a section: its only atom, or the entries of a constant pool one behind the other.
fn give_place(input: &mut Input, first: usize, mut address: u64) {
    for (atom, place) in entries(&input.record, first).iter().zip(&mut input.addresses[first..]) {
        *place = Some(address);
        address = address.wrapping_add(atom.size);
    }
}

/// The atoms of the section whose first atom is `first`.
fn entries<'r, 'a>(record: &'r Record<'a>, first: usize) -> &'r [Atom<'a>] {
    let rest = record.atoms.get(first..).unwrap_or_default();
    let section = rest.first().map(|atom| atom.section);
    let count = rest.iter().take_while(|atom| Some(atom.section) == section).count();
    &rest[..count]
}

/// Among members of the same name, those were linked whose symbols ended in sections that the map
/// lists.
fn is_linked(
    record: &Record,
    places: &FxHashSet<(&[u8], u64)>,
    symbols: &dyn SymbolAddresses,
) -> bool {
    record.symbols.iter().any(|symbol| {
        let SymbolKind::Defined { atom, offset } = symbol.kind else { return false };
        let (Some(atom), Some(address)) =
            (record.atoms.get(atom as usize), symbols.address(symbol.name_hash))
        else {
            return false;
        };
        places.contains(&(atom.section_name.as_bytes(), address.wrapping_sub(offset)))
    })
}

fn is_whole_file(inputs: &[Input]) -> bool {
    matches!(inputs, [input] if matches!(&input.record.atoms[..], [atom] if atom.level == Level::File))
}

struct Matcher<'i, 'a, 'p> {
    label: &'i str,
    inputs: &'i [Input<'a>],
    placed: &'i [PlacedSection<'p>],
    symbols: &'i dyn SymbolAddresses,
    index: Sections<'a>,
    /// Where the symbols of atoms say that the atoms are. Made when several sections bear one name,
    /// as all of them do with `-fno-unique-section-names`; to ask every symbol for every line would
    /// be cubic.
    claims: OnceCell<FxHashMap<u64, Vec<Candidate>>>,
    /// For each group of an input that has members with names of their own: whether one of them was
    /// placed.
    groups: OnceCell<FxHashMap<(usize, u32), bool>>,
}

/// Linkers drop entries of unwind tables. (AArch64's `crtbeginT.o` names its table, so that it is
/// an atom.)
fn is_condensed(line: &PlacedSection) -> bool {
    line.name == b".eh_frame"
}

impl Matcher<'_, '_, '_> {
    /// The address of every placed atom.
    fn run(&self) -> Result<Vec<(Candidate, u64)>, InputError> {
        let mut found = Vec::with_capacity(self.placed.len());
        for (lines, candidates) in self.lines().iter().zip(&self.index.named) {
            if let Some(lines) = lines {
                self.match_name(candidates, lines, &mut found)?;
            }
        }
        Ok(found)
    }

    /// The lines of each name in the index. Others are of sections without an atom: notes, unwind
    /// tables, merged strings, commons.
    fn lines(&self) -> Vec<Option<Alike<&PlacedSection<'_>>>> {
        let mut lines: Vec<Option<Alike<&PlacedSection>>> = Vec::new();
        lines.resize_with(self.index.named.len(), || None);
        for line in self.placed.iter().filter(|line| line.size > 0) {
            let Some(&number) = self.index.numbers.get(line.name) else { continue };
            match &mut lines[number as usize] {
                Some(known) => known.push(line),
                none => *none = Some(Alike::new(line)),
            }
        }
        lines
    }

    fn atom(&self, candidate: Candidate) -> &Atom<'_> {
        &self.inputs[candidate.input as usize].record.atoms[candidate.atom as usize]
    }

    /// The size of the whole section.
    fn size(&self, candidate: Candidate) -> u64 {
        entries(&self.inputs[candidate.input as usize].record, candidate.atom as usize)
            .iter()
            .map(|atom| atom.size)
            .sum()
    }

    /// Matches the lines of one section name.
    fn match_name(
        &self,
        candidates: &Alike<Candidate>,
        lines: &Alike<&PlacedSection>,
        found: &mut Vec<(Candidate, u64)>,
    ) -> Result<(), InputError> {
        match (candidates.only(), lines.only()) {
            (Some(candidate), Some(line))
                if self.size(candidate) == line.size || is_condensed(line) =>
            {
                found.push((candidate, line.address));
                Ok(())
            }
            (Some(_), Some(line)) => {
                let section = String::from_utf8_lossy(line.name).into_owned();
                Err(InputError::OtherSize { object: self.label.to_owned(), section })
            }
            _ => self.match_several(&candidates.all(), &lines.all(), found),
        }
    }

    /// Several sections bear the name. Symbols tell which line means which; what is left must be as
    /// many lines as sections that can have been linked, and then both are in the same order.
    fn match_several(
        &self,
        candidates: &[Candidate],
        lines: &[&PlacedSection],
        found: &mut Vec<(Candidate, u64)>,
    ) -> Result<(), InputError> {
        let mut open: FxHashSet<Candidate> = candidates.iter().copied().collect();
        let mut left = Vec::new();
        for line in lines {
            let claimed = self.claims().get(&line.address).map(Vec::as_slice).unwrap_or_default();
            match claimed.iter().find(|candidate| open.contains(candidate)) {
                Some(candidate) => {
                    open.remove(candidate);
                    found.push((*candidate, line.address));
                }
                None => left.push(*line),
            }
        }
        let is_left = |candidate: &Candidate| {
            open.contains(candidate)
                && self.size(*candidate) > 0
                && self.group_is_linked(*candidate)
        };
        let open: Vec<Candidate> = candidates.iter().copied().filter(is_left).collect();
        let fits =
            |&candidate: &Candidate, line: &&PlacedSection| self.size(candidate) == line.size;
        if open.len() != left.len()
            || !open.iter().zip(&left).all(|(candidate, line)| fits(candidate, line))
        {
            let section = String::from_utf8_lossy(lines[0].name).into_owned();
            return Err(InputError::Ambiguous { object: self.label.to_owned(), section });
        }
        found.extend(open.into_iter().zip(left).map(|(candidate, line)| (candidate, line.address)));
        Ok(())
    }

    /// For each address the atoms, in order, with a symbol whose own address says that they start
    /// there.
    fn claims(&self) -> &FxHashMap<u64, Vec<Candidate>> {
        self.claims.get_or_init(|| {
            let mut claims: FxHashMap<u64, Vec<Candidate>> = FxHashMap::default();
            for (input, object) in self.inputs.iter().enumerate() {
                for symbol in &object.record.symbols {
                    let (SymbolKind::Defined { atom, offset }
                    | SymbolKind::Indirect { atom, offset }) = symbol.kind
                    else {
                        continue;
                    };
                    if let Some(address) = self.symbols.address(symbol.name_hash) {
                        let candidate = Candidate { input: input as u32, atom };
                        claims.entry(address.wrapping_sub(offset)).or_default().push(candidate);
                    }
                }
            }
            claims.values_mut().for_each(|atoms| atoms.sort_unstable());
            claims
        })
    }

    /// A group is linked as a whole: a member with a name of its own tells it of the others.
    fn group_is_linked(&self, candidate: Candidate) -> bool {
        let group = self.atom(candidate).group;
        group == 0 || self.groups().get(&(candidate.input as usize, group)).copied().unwrap_or(true)
    }

    fn groups(&self) -> &FxHashMap<(usize, u32), bool> {
        self.groups.get_or_init(|| {
            let placed: FxHashSet<&[u8]> = self.placed.iter().map(|line| line.name).collect();
            let mut groups = FxHashMap::default();
            for (input, object) in self.inputs.iter().enumerate() {
                for atom in
                    object.record.atoms.iter().filter(|atom| atom.group != 0 && atom.size > 0)
                {
                    let name = atom.section_name.as_bytes();
                    if self.index.get(name).is_some_and(|named| named.only().is_some()) {
                        *groups.entry((input, atom.group)).or_default() |= placed.contains(name);
                    }
                }
            }
            groups
        })
    }
}

#[cfg(test)]
#[path = "matching_tests.rs"]
mod tests;
