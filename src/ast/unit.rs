//! Parsed declarations → the hashes of definitions, and of the whole unit.
//!
//! What is emitted anyway (functions that are not inline, variables, assembler) counts, and so does
//! everything that it uses. The order of definitions counts, that of declarations does not.

use super::closure::Closure;
use super::declarations::{Definition, EntityId, NOTHING, Part, Role, Sort, Traits};
use super::hashing::Hashing;
use super::lexer::{Tokens, readable};
use super::parser::Parsed;
use super::{DefinitionKind, Linkage, Reference, Unit, inlining, library, prototypes};
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

/// What counts.
struct Reached {
    /// By the number of the definition.
    definitions: Vec<bool>,
    /// By the number of the entity.
    entities: Vec<bool>,
}

impl Reached {
    fn new(parsed: &Parsed, library: &[bool]) -> Self {
        let declarations = &parsed.declarations;
        let mut reached = Reached {
            definitions: vec![false; declarations.definitions.len()],
            entities: vec![false; declarations.entities.len()],
        };
        // The definitions that only count if somebody uses them.
        let mut waiting: Vec<(EntityId, usize)> = Vec::new();
        let mut parts: Vec<Part> = Vec::new();
        for (index, definition) in declarations.definitions.iter().enumerate() {
            if is_emitted(parsed, library, definition) {
                reached.definition(parsed, index, &mut parts);
            } else {
                waiting.push((definition.entity, index));
            }
        }
        waiting.sort_unstable();
        for (id, _) in library.iter().enumerate().filter(|(_, is_library)| **is_library) {
            reached.entity(parsed, id as EntityId, &waiting, &mut parts);
        }
        while let Some(part) = parts.pop() {
            for used in declarations.uses_of(part) {
                reached.entity(parsed, used.entity, &waiting, &mut parts);
            }
        }
        reached
    }

    fn definition(&mut self, parsed: &Parsed, index: usize, parts: &mut Vec<Part>) {
        if std::mem::replace(&mut self.definitions[index], true) {
            return;
        }
        let definition = &parsed.declarations.definitions[index];
        parts.push(definition.body);
        if definition.entity != NOTHING {
            parts.push(parsed.declarations.pieces[definition.piece as usize].initialiser);
            // Its own declarations count as those of anything that is used.
            self.entity(parsed, definition.entity, &[], parts);
        }
    }

    fn entity(
        &mut self,
        parsed: &Parsed,
        id: EntityId,
        waiting: &[(EntityId, usize)],
        parts: &mut Vec<Part>,
    ) {
        if !std::mem::replace(&mut self.entities[id as usize], true)
            && parsed.declarations.entities[id as usize].value.is_none()
        {
            parts.extend(
                parsed.declarations.pieces_of(id).flat_map(|piece| [piece.specifiers, piece.own]),
            );
        }
        let from = waiting.partition_point(|&(entity, _)| entity < id);
        for &(_, index) in waiting[from..].iter().take_while(|&&(entity, _)| entity == id) {
            self.definition(parsed, index, parts);
        }
    }
}

/// Whether a definition counts even where nothing uses it. Inline functions do not, unless they are
/// special or their text has effects of its own.
fn is_emitted(parsed: &Parsed, library: &[bool], definition: &Definition) -> bool {
    if definition.sort != Sort::Function {
        return true;
    }
    let entity = &parsed.declarations.entities[definition.entity as usize];
    let is_optional = definition.traits.is_inline
        && (entity.traits.is_static || definition.traits.gnu_inline && definition.traits.is_extern);
    !is_optional
        || entity.traits.is_special
        || definition.has_effects
        || library[definition.entity as usize]
}

fn is_library(all: &Tokens, parsed: &Parsed, id: usize) -> bool {
    let entity = &parsed.declarations.entities[id];
    entity.role == Role::Function
        && entity.first != NOTHING
        && library::is_known(all.names.spelling(entity.name))
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

    /// What a definition names before its body or initialiser: in sizes of arrays, types of
    /// expressions, attributes.
    fn refer_by_head(
        &mut self,
        references: &mut Vec<Reference>,
        index: usize,
        definition: &Definition,
    ) {
        let declarations = &self.parsed().declarations;
        let piece = &declarations.pieces[definition.piece as usize];
        for used in
            [piece.specifiers, piece.own].into_iter().flat_map(|part| declarations.uses_of(part))
        {
            if self.is_first(index, used.entity) {
                self.refer(references, used.entity, definition.entity);
            }
        }
    }

    fn refer(&self, references: &mut Vec<Reference>, entity: EntityId, from: EntityId) {
        let declared = &self.parsed().declarations.entities[entity as usize];
        if !self.hashing.is_linked(entity) {
            return;
        }
        if declared.traits.is_weak_reference && entity != from {
            return self.refer_to_targets(references, entity);
        }
        let name = self.symbol(entity);
        // What the compiler knows by itself may end in a call of the library's function.
        let name = match name.strip_prefix("__builtin_").filter(|_| declared.first == NOTHING) {
            Some(plain) if library::is_known(plain.as_bytes()) => plain.to_owned(),
            Some(_) => return,
            None => name,
        };
        references.push(Reference { name, linkage: self.linkage(entity) });
    }

    /// What the attributes of a declaration refer to.
    fn refer_to_targets(&self, references: &mut Vec<Reference>, entity: EntityId) {
        let declarations = &self.parsed().declarations;
        for piece in declarations.pieces_of(entity) {
            for used in
                declarations.uses_of(piece.specifiers).iter().chain(declarations.uses_of(piece.own))
            {
                if used.entity != entity && self.hashing.is_linked(used.entity) {
                    references.push(Reference {
                        name: self.symbol(used.entity),
                        linkage: self.linkage(used.entity),
                    });
                }
            }
        }
    }

    /// The name by which the object knows an entity.
    fn symbol(&self, entity: EntityId) -> String {
        let declarations = &self.parsed().declarations;
        let Some(declared) = declarations.entities.get(entity as usize) else {
            return String::new();
        };
        match declared.label {
            NOTHING => readable(self.all().names.spelling(declared.name)),
            label => self.label(label as usize),
        }
    }

    /// The symbol that `asm("symbol")` gives, from its first literal on.
    fn label(&self, first: usize) -> String {
        let texts = self.all().tokens[first..]
            .iter()
            .take_while(|token| token.kind == super::kinds::TokenKind::Text);
        texts
            .map(|token| readable(self.all().spelling(token)).trim_matches('"').to_owned())
            .collect()
    }

    fn linkage(&self, entity: EntityId) -> Linkage {
        let none = Traits::default();
        let traits = self
            .parsed()
            .declarations
            .entities
            .get(entity as usize)
            .map_or(&none, |entity| &entity.traits);
        match traits {
            Traits { is_static: true, .. } => Linkage::Static,
            Traits { is_inline: true, .. } => Linkage::Inline,
            _ => Linkage::Extern,
        }
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
