//! A record: the atoms of one object file, with their local hashes and references. It travels
//! inside the object in the section `.tasting`, and borrows its names from wherever it was read.

use super::envelope::{Format, FormatError};
use super::hash::as_bytes;
use super::{Hash, Refusal};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// The section that carries the record. Its flag SHF_EXCLUDE makes every linker drop it.
pub const SECTION: &str = ".tasting";

const FORMAT: Format = Format { magic: *b"TASTEREC", version: 10 };

/// What one object file is made of.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record<'a> {
    /// The digest of the object that was hashed. A record whose digest does not fit the object
    /// around it (after `objcopy`, `strip` or `ld -r`) is void.
    pub digest: Hash,
    #[serde(borrow)]
    pub atoms: Vec<Atom<'a>>,
    /// The references of all atoms, one atom after the other; `Atom::references` says how many are
    /// whose.
    pub references: Vec<Reference>,
    /// Where the addresses of merged literals can be read once they are linked, in the order of the
    /// references.
    pub sites: Vec<Site>,
    /// The symbols by which objects see each other: defined here, or named by a reference.
    #[serde(borrow)]
    pub symbols: Vec<Symbol<'a>>,
    /// The source files that `Atom::line` speaks of.
    #[serde(borrow)]
    pub files: Vec<Cow<'a, str>>,
    #[serde(borrow)]
    pub refusals: Vec<Refusal<'a>>,
    /// The object holds an intermediate language; where it is linked as that, none of the atoms has
    /// a place.
    pub bitcode: bool,
}

/// The unit of change: one function or one piece of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Atom<'a> {
    /// The name of the symbol at its front, else of its section. For people only: names are not
    /// hashed.
    pub name: &'a str,
    pub kind: AtomKind,
    pub level: Level,
    /// The local hash: what the atom itself is, with every reference left symbolic.
    #[serde(with = "as_bytes")]
    pub hash: Hash,
    /// The input section that holds it: index and name in the object.
    pub section: u32,
    pub section_name: &'a str,
    /// The section group (COMDAT) that it belongs to, which is linked or left out as a whole; 0 for
    /// none.
    pub group: u32,
    pub size: u64,
    /// How many of the record's references are this atom's.
    pub references: u32,
    /// It is one function and nothing else, so that breakpoints in its place see every execution
    /// and disturb nothing.
    pub traceable: bool,
    /// What is at its end, if it is code.
    pub ending: Ending,
    /// If it is code: whether it may return to its caller.
    pub returns: bool,
    /// Index into `Record::files`, and line; line 0 where there is no debug information.
    pub file: u32,
    pub line: u32,
}

/// Whether control can run past the end of an atom, into what the linker has put behind it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ending {
    /// It cannot.
    #[default]
    Leaves,
    /// It can if one of these returns, which are called last.
    Calls([Option<Target>; 4]),
    /// It can.
    Falls,
}

impl Ending {
    pub const NO_CALLS: [Option<Target>; 4] = [None; 4];
}

/// What an atom is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum AtomKind {
    /// Machine code.
    Function,
    /// Machine code that decides, when the program starts, what a symbol means (an ifunc resolver).
    Resolver,
    /// Initialised data, writable or not.
    Data,
    /// Data that starts as zeros.
    Zeroed,
    /// The initial image of a thread-local variable.
    ThreadLocal,
    /// A piece of a mergeable section: a string or a constant, which is the same thing wherever its
    /// content is the same.
    Literal,
    /// A common symbol (`-fcommon`), whose size is decided by all objects together.
    Common,
    /// The members of an output section that somebody names by `__start_X` or `__stop_X`.
    Range,
    /// A symbol of another module, bound by the dynamic loader.
    Import,
    /// A symbol with a value that is not an address of any atom: `--defsym`, linker scripts,
    /// absolute.
    Value,
    /// Bytes of the binary that no input explains.
    Residue,
}

impl AtomKind {
    /// All of them, each at its number.
    pub const ALL: [AtomKind; 11] = [
        AtomKind::Function,
        AtomKind::Resolver,
        AtomKind::Data,
        AtomKind::Zeroed,
        AtomKind::ThreadLocal,
        AtomKind::Literal,
        AtomKind::Common,
        AtomKind::Range,
        AtomKind::Import,
        AtomKind::Value,
        AtomKind::Residue,
    ];
}

/// How finely something was hashed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Level {
    /// Machine code and relocations, one atom per section.
    #[default]
    Code,
    /// The syntax tree.
    Ast,
    /// A whole file.
    File,
}

/// An atom's use of another. The order of the references is the order of the relocations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reference {
    pub target: Target,
    /// Where in the target the symbol stands; the relocation's own addend is in the local hash.
    pub offset: i64,
    pub usage: Usage,
}

/// A relocated field that holds the address of a merged literal, or a part of it. Linkers merge
/// literals without saying where they put them, so the field says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Site {
    /// Index into `Record::references`.
    pub reference: u32,
    /// Where the field is in the atom that refers.
    pub offset: u64,
    /// The relocation's type and addend.
    pub kind: u32,
    pub addend: i64,
}

/// How an atom uses the place of another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Usage {
    /// It calls it, jumps there, reads or writes it: where it lies cannot be seen.
    #[default]
    Access,
    /// It has its address as a value, which may be compared with others.
    Address,
    /// It has the distance between the two as a value.
    Distance,
}

/// In an offset: not the resolver that stands there is meant, but the function that it chooses when
/// the program starts.
pub const CHOSEN: i64 = 1 << 62;

/// What a reference points at, before linking.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Target {
    /// An atom of the same object that no other object can stand in for.
    Atom(u32),
    /// A symbol that the linker resolves: an index into `Record::symbols`.
    Symbol(u32),
}

/// A symbol that is visible beyond its object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Symbol<'a> {
    pub name: &'a str,
    /// The hash of the name by which objects find each other: `foo` for `foo@@VERSION` too.
    #[serde(with = "as_bytes")]
    pub name_hash: Hash,
    pub weak: bool,
    pub kind: SymbolKind,
}

/// Where a symbol stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SymbolKind {
    Undefined,
    Defined {
        atom: u32,
        offset: u64,
    },
    /// Defined by a resolver function that runs when the program starts.
    Indirect {
        atom: u32,
        offset: u64,
    },
    Common {
        size: u64,
        align: u64,
    },
    Absolute {
        value: u64,
    },
}

impl<'a> Symbol<'a> {
    /// A symbol of an object.
    pub fn new(name: &'a str, weak: bool, kind: SymbolKind) -> Self {
        Symbol { name, name_hash: Self::hash_of(name), weak, kind }
    }

    /// The hash by which a name is found.
    pub fn hash_of(name: &str) -> Hash {
        Self::hash_of_bytes(name.as_bytes())
    }

    /// The same for a name as bytes.
    pub fn hash_of_bytes(name: &[u8]) -> Hash {
        let version =
            name.iter().position(|&byte| byte == b'@').filter(|&at| name[at..].starts_with(b"@@"));
        Hash::of(version.map_or(name, |at| &name[..at]))
    }
}

impl<'a> Record<'a> {
    /// The record as bytes for its section.
    pub fn encode(&self) -> Result<Vec<u8>, FormatError> {
        FORMAT.encode(self)
    }

    /// The one among the concatenated records in `bytes` that was made of the object with this
    /// digest. Records of other versions and of other objects are passed over.
    pub fn find(mut bytes: &'a [u8], digest: Hash) -> Result<Self, FormatError> {
        let mut problem = FormatError::Truncated;
        while !bytes.is_empty() {
            match FORMAT.decode::<Record>(bytes) {
                Ok((record, _)) if record.digest == digest => {
                    record.check()?;
                    return Ok(record);
                }
                Ok(_) => problem = FormatError::Checksum,
                Err(error) => problem = error,
            }
            bytes = FORMAT.skip(bytes)?;
        }
        Err(problem)
    }

    /// A single record that is known to fit its object.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, FormatError> {
        let (record, _) = FORMAT.decode::<Record>(bytes)?;
        record.check()?;
        Ok(record)
    }

    /// Every index points at something.
    fn check(&self) -> Result<(), FormatError> {
        let atom_exists = |atom: u32| (atom as usize) < self.atoms.len();
        let references = self.atoms.iter().map(|atom| atom.references as usize).sum::<usize>();
        let target_exists = |target: Target| match target {
            Target::Atom(atom) => atom_exists(atom),
            Target::Symbol(symbol) => (symbol as usize) < self.symbols.len(),
        };
        let targets = self.references.iter().all(|reference| target_exists(reference.target));
        let endings = self.atoms.iter().all(|atom| match atom.ending {
            Ending::Calls(called) => called.into_iter().flatten().all(target_exists),
            Ending::Leaves | Ending::Falls => true,
        });
        let symbols = self.symbols.iter().all(|symbol| match symbol.kind {
            SymbolKind::Defined { atom, .. } | SymbolKind::Indirect { atom, .. } => {
                atom_exists(atom)
            }
            _ => true,
        });
        let files =
            self.atoms.iter().all(|atom| atom.line == 0 || (atom.file as usize) < self.files.len());
        let sites = self.sites.iter().all(|site| (site.reference as usize) < self.references.len());
        let whole =
            references == self.references.len() && targets && endings && symbols && files && sites;
        if whole { Ok(()) } else { Err(FormatError::Malformed) }
    }

    /// Each atom with its references.
    pub fn atoms_with_references(&self) -> impl Iterator<Item = (&Atom<'a>, &[Reference])> {
        let mut from = 0;
        self.atoms.iter().map(move |atom| {
            let to = from + atom.references as usize;
            let references = self.references.get(from..to).unwrap_or_default();
            from = to;
            (atom, references)
        })
    }
}

#[cfg(test)]
#[path = "record_tests.rs"]
pub(super) mod tests;
