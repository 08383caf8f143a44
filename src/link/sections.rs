//! The sections of an object by name, to be matched with the lines of a map. In: records. Out: the
//! atoms that a name may mean.

use crate::model::{Atom, AtomKind, Level, Record};
use rustc_hash::FxHashMap;

/// The first atom of a section that a line of the map may mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Candidate {
    pub input: u32,
    pub atom: u32,
}

/// One or more of the same name, in order. Mostly it is one, and there are many such names: so it
/// is kept small.
pub struct Alike<T> {
    first: T,
    #[expect(
        clippy::box_collection,
        reason = "a vector is three times as large, and nearly always empty"
    )]
    others: Option<Box<Vec<T>>>,
}

impl<T: Copy> Alike<T> {
    pub fn new(first: T) -> Self {
        Alike { first, others: None }
    }

    pub fn push(&mut self, other: T) {
        self.others.get_or_insert_default().push(other);
    }

    pub fn only(&self) -> Option<T> {
        self.others.is_none().then_some(self.first)
    }

    pub fn all(&self) -> Vec<T> {
        [self.first]
            .into_iter()
            .chain(self.others.iter().flat_map(|others| others.iter().copied()))
            .collect()
    }
}

/// The sections of an object (of several, when an archive has members of the same name).
#[derive(Default)]
pub struct Sections<'a> {
    /// For each name its place in `named`.
    pub numbers: FxHashMap<&'a [u8], u32>,
    pub named: Vec<Alike<Candidate>>,
}

impl<'a> Sections<'a> {
    pub fn new<'r>(records: impl Iterator<Item = &'r Record<'a>>) -> Self
    where
        'a: 'r,
    {
        let mut sections = Sections::default();
        for (input, record) in records.enumerate() {
            sections.numbers.reserve(record.atoms.len());
            let mut last = None;
            for (atom, described) in record.atoms.iter().enumerate() {
                let is_first = last.replace(described.section) != Some(described.section);
                if is_first && has_own_place(described) {
                    let candidate = Candidate { input: input as u32, atom: atom as u32 };
                    sections.add(described.section_name.as_bytes(), candidate);
                }
            }
        }
        sections
    }

    fn add(&mut self, name: &'a [u8], candidate: Candidate) {
        let next = self.named.len() as u32;
        match *self.numbers.entry(name).or_insert(next) {
            number if number == next => self.named.push(Alike::new(candidate)),
            number => self.named[number as usize].push(candidate),
        }
    }

    pub fn get(&self, name: &[u8]) -> Option<&Alike<Candidate>> {
        Some(&self.named[*self.numbers.get(name)? as usize])
    }
}

/// Whether the map gives this atom a place of its own. A definition that left no code or data has
/// no section.
pub fn has_own_place(atom: &Atom) -> bool {
    let has_section = atom.section != 0 || atom.level != Level::Ast;
    atom.kind != AtomKind::Literal && atom.level != Level::File && has_section
}
