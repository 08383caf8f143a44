//! Parsed declarations → the hashes of definitions, and of the whole unit.
//!
//! What is emitted anyway (functions that are not inline, variables, assembler) counts, and so does
//! everything that it uses. The order of definitions counts, that of declarations does not.

mod reached;
mod references;

use self::reached::{Reached, is_library};
use super::closure::Closure;
use super::declarations::{Definition, EntityId, NOTHING, Part, Sort};
use super::hashing::Hashing;
use super::lexer::{Tokens, readable};
use super::parser::Parsed;
use super::{DefinitionKind, Unit, inlining, prototypes};
use crate::model::{Hash, Hasher};

/// Everything about a unit that was parsed.
pub fn unit(all: &Tokens, parsed: &Parsed, wants_prototypes: bool) -> Unit {
    let hashing = Hashing::new(all, parsed);
    let entities = parsed.declarations.entities.len();
    let library: Vec<bool> = (0..entities).map(|id| is_library(all, parsed, id)).collect();
    let reached = Reached::new(parsed, &library);
    let own = vec![None; parsed.declarations.definitions.len()];
    let mut maker = Maker {
        hashing,
        closure: Closure::new(entities),
        reached,
        own,
        used: vec![0; entities],
        library: Hash::default(),
    };
    maker.library = maker.library_hash(&library);
    let meaning = maker.meaning();
    let with_lines = Hasher::new("unit with lines").hash(meaning).hash(Hash::of(all.text)).finish();
    let definitions = maker.definitions();
    let removable_prototypes = if wants_prototypes {
        prototypes::find(&mut maker.hashing, &mut maker.closure)
    } else {
        Vec::new()
    };
    let depends_on_inlining = inlining::construct(all, maker.reached_tokens().into_iter());
    Unit { definitions, meaning, with_lines, depends_on_inlining, removable_prototypes }
}

struct Maker<'t, 'a> {
    hashing: Hashing<'t, 'a>,
    closure: Closure,
    reached: Reached,
    /// By the number of the definition: what is its own, body and initialiser.
    own: Vec<Option<Hash>>,
    /// By the number of the entity: the last definition that was seen to use it, plus one.
    used: Vec<u32>,
    /// The declarations of functions that compilers call on their own account.
    library: Hash,
}

impl<'t, 'a> Maker<'t, 'a> {
    fn all(&self) -> &'t Tokens<'a> {
        self.hashing.all
    }

    fn parsed(&self) -> &'t Parsed {
        self.hashing.parsed
    }

    /// The entities, in the order of their names.
    fn sorted(&self, mut ids: Vec<EntityId>) -> Vec<EntityId> {
        let entities = &self.parsed().declarations.entities;
        ids.sort_by_cached_key(|&id| {
            (
                entities[id as usize].role as u8,
                self.all().names.spelling(entities[id as usize].name),
            )
        });
        ids
    }

    fn library_hash(&mut self, library: &[bool]) -> Hash {
        let known = (0..library.len()).filter(|&id| library[id]).map(|id| id as EntityId).collect();
        let mut hasher = Hasher::new("library");
        for id in self.sorted(known) {
            hasher.hash(self.closure.of(&mut self.hashing, id));
        }
        hasher.finish()
    }

    /// What decides the object.
    fn meaning(&mut self) -> Hash {
        let mut hasher = Hasher::new("unit");
        hasher.bytes(main_file(self.all())).hash(self.parsed().pragmas.lasting());
        for pragma in self.all().pragmas.iter().filter(|pragma| !pragma.text.starts_with(b"pragma"))
        {
            hasher.bytes(pragma.text);
        }
        let declarations = &self.parsed().declarations;
        for (index, definition) in self.reached_definitions() {
            let state = self.parsed().pragmas.states[definition.state as usize].1;
            hasher.code(definition.sort).hash(state);
            if definition.entity != NOTHING {
                let piece = declarations.pieces[definition.piece as usize];
                for part in [piece.specifiers, piece.own] {
                    hasher.hash(self.hashing.part(part));
                }
            }
            hasher.hash(self.own(index));
        }
        let ids = (0..declarations.entities.len() as EntityId)
            .filter(|&id| self.reached.entities[id as usize])
            .collect();
        for id in self.sorted(ids) {
            hasher.hash(self.hashing.entity(id, false));
        }
        hasher.finish()
    }

    /// The hash of a definition's body and initialiser, without what they refer to.
    fn own(&mut self, index: usize) -> Hash {
        if let Some(hash) = self.own[index] {
            return hash;
        }
        let [body, initialiser] = self.own_parts(index).map(|part| self.hashing.part(part));
        *self.own[index].insert(Hash::of([body.0, initialiser.0].as_flattened()))
    }

    fn own_parts(&self, index: usize) -> [Part; 2] {
        let declarations = &self.parsed().declarations;
        let definition = &declarations.definitions[index];
        let piece = declarations.pieces.get(definition.piece as usize);
        [without_end(definition.body), piece.map_or(Part::default(), |piece| piece.initialiser)]
    }

    fn reached_definitions(&self) -> Vec<(usize, &'t Definition)> {
        let definitions = self.parsed().declarations.definitions.iter().enumerate();
        definitions.filter(|(index, _)| self.reached.definitions[*index]).collect()
    }

    /// The tokens of all definitions and declarations that count.
    fn reached_tokens(&self) -> Vec<(u32, u32)> {
        let declarations = &self.parsed().declarations;
        let definitions = self.reached_definitions();
        let bodies = definitions.iter().flat_map(|(index, _)| self.own_parts(*index));
        let entities = (0..declarations.entities.len() as EntityId)
            .filter(|&id| self.reached.entities[id as usize]);
        let pieces = entities.flat_map(|id| {
            declarations.pieces_of(id).flat_map(|piece| [piece.specifiers, piece.own])
        });
        bodies.chain(pieces).map(|part| part.tokens).collect()
    }

    fn definitions(&mut self) -> Vec<super::Definition> {
        let mut found: Vec<super::Definition> = Vec::new();
        for (index, definition) in self.reached_definitions() {
            let is_symbol =
                definition.sort != Sort::Assertion && !definition.traits.is_weak_reference;
            if is_symbol {
                let definition = self.definition(index, definition);
                found.push(definition);
            }
        }
        merged(found)
    }

    fn definition(&mut self, index: usize, definition: &Definition) -> super::Definition {
        let declarations = &self.parsed().declarations;
        let mut hasher = Hasher::new("definition");
        let pragmas = &self.parsed().pragmas;
        hasher
            .hash(self.library)
            .hash(pragmas.lasting())
            .hash(pragmas.states[definition.state as usize].0);
        hasher.hash(self.own(index));
        let mut first = definition.body.tokens.0;
        if definition.entity != NOTHING {
            first = declarations.pieces[definition.piece as usize].specifiers.tokens.0;
            hasher.hash(self.closure.of(&mut self.hashing, definition.entity));
        }
        let mut references = Vec::new();
        for used in self.own_parts(index).iter().flat_map(|&part| declarations.uses_of(part)) {
            if self.is_first(index, used.entity) {
                hasher.hash(self.closure.of(&mut self.hashing, used.entity));
                self.refer(&mut references, used.entity, definition.entity);
            }
        }
        if definition.sort != Sort::Assembler {
            self.refer_by_head(&mut references, index, definition);
        }
        super::Definition {
            name: self.symbol(definition.entity),
            kind: kind(definition.sort),
            linkage: self.linkage(definition.entity),
            hash: hasher.finish(),
            references,
            has_assembler: definition.has_assembler,
            file: readable(self.all().file(first as usize)),
            line: self.all().tokens[first as usize].line,
        }
    }

    /// Whether a definition's use of an entity is its first.
    fn is_first(&mut self, index: usize, entity: EntityId) -> bool {
        let stamp = index as u32 + 1;
        std::mem::replace(&mut self.used[entity as usize], stamp) != stamp
    }
}

fn kind(sort: Sort) -> DefinitionKind {
    match sort {
        Sort::Function => DefinitionKind::Function,
        Sort::Variable => DefinitionKind::Variable,
        Sort::Alias => DefinitionKind::Alias,
        Sort::Assembler | Sort::Assertion => DefinitionKind::Assembler,
    }
}

/// A body without its last brace, behind which pragmas stand that are not its own.
fn without_end(body: Part) -> Part {
    let (from, to) = body.tokens;
    Part { tokens: (from, to.saturating_sub(1).max(from)), ..body }
}

/// Several definitions of the same thing (`int x; int x = 5;`, an inline function and its real
/// definition) as one.
fn merged(found: Vec<super::Definition>) -> Vec<super::Definition> {
    let mut merged: Vec<super::Definition> = Vec::with_capacity(found.len());
    let mut places = rustc_hash::FxHashMap::default();
    for definition in found {
        if definition.name.is_empty() {
            merged.push(definition);
            continue;
        }
        match places.entry(definition.name.clone()) {
            std::collections::hash_map::Entry::Vacant(place) => {
                place.insert(merged.len());
                merged.push(definition);
            }
            std::collections::hash_map::Entry::Occupied(place) => {
                let earlier = &mut merged[*place.get()];
                earlier.hash =
                    Hasher::new("definitions").hash(earlier.hash).hash(definition.hash).finish();
                earlier.has_assembler |= definition.has_assembler;
                earlier.references.extend(definition.references);
            }
        }
    }
    merged
}

/// The name of the file that was compiled, which objects have in their symbol tables.
fn main_file<'a>(all: &Tokens<'a>) -> &'a [u8] {
    let path = all.sources.first().map_or(&b""[..], |source| source.file);
    path.rsplit(|&byte| byte == b'/').next().unwrap_or(path)
}
