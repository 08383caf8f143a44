//! What symbols mean in a binary. In: a symbol that an atom names. Out: the node behind it: the
//! atom that the linker chose, or what else the name stands for: something of another module, a
//! common symbol, a range, a boundary, a number.

use super::specials::LAYOUT_SYMBOLS;
use super::{Builder, GraphError, chosen};
use crate::elf::dynamic::DynamicSymbol;
use crate::link::sections::has_own_place;
use crate::link::symbols::{Definition, Final};
use crate::model::manifest::Edge;
use crate::model::{AtomKind, Hash, Symbol, SymbolKind};

/// The dynamic loader's function behind thread-local variables. Static programs need none: linkers
/// rewrite the code that calls it (`libstdc++.a` is such code), and then nobody defines it.
const REWRITTEN_CALLS: [&str; 2] = ["__tls_get_addr", "___tls_get_addr"];

/// What the start-up code calls if it is there: for profiling and transactional memory. Linkers
/// differ in whether they leave such a symbol to the loader when nobody defines it.
const HOOKS: [&str; 3] =
    ["_ITM_deregisterTMCloneTable", "_ITM_registerTMCloneTable", "__gmon_start__"];

/// Libraries that define none of those.
const WITHOUT_HOOKS: [&str; 8] =
    ["ld-linux", "libc.", "libdl.", "libgcc_s.", "libm.", "libpthread.", "librt.", "libstdc++."];

/// Boundaries that linkers define: whoever names one may measure or read everything on this side of
/// it.
const BOUNDARIES: [&str; 9] = [
    "__bss_start",
    "__etext",
    "__executable_start",
    "_edata",
    "_end",
    "_etext",
    "edata",
    "end",
    "etext",
];

/// The start-up code.
const START_UP: &str = "crt1.o";

/// The boundary at the front, which the start-up code defines: an ordinary variable, if it were not
/// for its name.
const FRONT: [&str; 2] = ["__data_start", "data_start"];

impl<'a> Builder<'a> {
    /// `--wrap foo`: an undefined `foo` means `__wrap_foo`, and `__real_foo` means `foo`.
    pub(super) fn meant(&mut self, number: u32, symbol: &Symbol<'a>) -> Result<Edge, GraphError> {
        let Symbol { name, name_hash, weak, kind } = *symbol;
        if self.options.wrapped.is_empty() {
            return self.numbered(number, name_hash, name, weak);
        }
        let is_undefined = kind == SymbolKind::Undefined;
        let wrapper = format!("__wrap_{name}");
        let wrapper_hash = Symbol::hash_of(&wrapper);
        match name.strip_prefix("__real_") {
            Some(real) if is_undefined && self.options.wrapped.contains(real) => {
                self.named(Symbol::hash_of(real), real, weak)
            }
            _ if !self.options.wrapped.contains(name) => self.named(name_hash, name, weak),
            _ if is_undefined => self.named(wrapper_hash, &wrapper, weak),
            _ if self.options.wraps_own_references => {
                let plain = self.named(name_hash, name, weak)?;
                let wrapped = self.named(wrapper_hash, &wrapper, true)?;
                Ok(self.either(name, plain, wrapped))
            }
            _ => self.named(name_hash, name, weak),
        }
    }

    /// What a name means in this binary.
    pub(super) fn named(&mut self, hash: Hash, name: &str, weak: bool) -> Result<Edge, GraphError> {
        match self.definitions.number(hash) {
            Some(number) => self.numbered(number, hash, name, weak),
            None => self.resolve(None, hash, name, weak),
        }
    }

    /// The same for a name whose number is known.
    fn numbered(
        &mut self,
        number: u32,
        hash: Hash,
        name: &str,
        weak: bool,
    ) -> Result<Edge, GraphError> {
        if let Some(edge) = self.known[number as usize] {
            return Ok(edge);
        }
        let edge = self.resolve(self.definitions.best(number), hash, name, weak)?;
        self.known[number as usize] = Some(edge);
        Ok(edge)
    }

    fn resolve(
        &mut self,
        definition: Option<Definition>,
        hash: Hash,
        name: &str,
        weak: bool,
    ) -> Result<Edge, GraphError> {
        let name = name.split_once("@@").map_or(name, |(name, _)| name);
        if self.options.assigned.contains_key(name) && self.symbols.get(hash).is_none() {
            return Err(GraphError::Assigned { symbol: name.to_owned() });
        }
        match definition {
            Some(definition) if self.is_front(name, definition) => Ok(self.image()),
            Some(_) if self.is_preemptible(name) => Ok(self.import(name)),
            Some(definition) => self.defined(hash, name, definition),
            None => self.undefined(name, weak),
        }
    }

    /// Notes what most names mean, all at once and in the order in which things lie: a definition
    /// without a rival, at the address that the symbol table gives. What `resolve` would treat in
    /// any other way is left to it.
    pub(super) fn resolve_unique_names(&mut self) {
        if self.is_library || !self.options.assigned.is_empty() {
            return;
        }
        for number in 0..self.known.len() as u32 {
            let Some(definition) =
                self.definitions.best(number).filter(|definition| !definition.is_contested)
            else {
                continue;
            };
            let SymbolKind::Defined { atom, offset } = definition.kind else { continue };
            let input = &self.inputs[definition.input as usize];
            let Some(start) = input.addresses[atom as usize] else { continue };
            let found = self.symbols.get(self.definitions.name(number));
            if found == Some(Final::Address(start.wrapping_add(offset)))
                && !input.label.ends_with(START_UP)
            {
                let node = self.node_of[definition.input as usize][atom as usize];
                self.known[number as usize] =
                    Some(Edge { node, offset: offset as i64, takes_address: false });
            }
        }
    }

    /// The start-up code's own variable at the front of the data.
    pub(super) fn is_front(&self, name: &str, definition: Definition) -> bool {
        FRONT.contains(&name) && self.inputs[definition.input as usize].label.ends_with(START_UP)
    }

    /// Another module may define the symbol instead of this shared library.
    pub(super) fn is_preemptible(&self, name: &str) -> bool {
        self.is_library && self.dynamic_symbols(name).any(|symbol| symbol.is_bound_by_loader)
    }

    /// The dynamic symbols that a name can mean: `foo`, or `foo@VERSION`.
    pub(super) fn dynamic_symbols(
        &self,
        name: &str,
    ) -> impl Iterator<Item = &'a DynamicSymbol<'a>> {
        let (name, version) =
            name.split_once('@').map_or((name, None), |(name, version)| (name, Some(version)));
        let version = version.map(|version| version.trim_start_matches('@').as_bytes().to_vec());
        let named = self.dynamic.get(name.as_bytes()).map(Vec::as_slice).unwrap_or_default();
        named
            .iter()
            .copied()
            .filter(move |symbol| version.is_none() || symbol.version == version.as_deref())
    }

    /// A symbol that an object defines.
    pub(super) fn defined(
        &mut self,
        hash: Hash,
        name: &str,
        definition: Definition,
    ) -> Result<Edge, GraphError> {
        let (atom, offset) = match definition.kind {
            SymbolKind::Defined { atom, offset } | SymbolKind::Indirect { atom, offset } => {
                (atom, offset)
            }
            SymbolKind::Absolute { .. } | SymbolKind::Common { .. } => {
                return self.without_section(hash, name, definition);
            }
            SymbolKind::Undefined => return self.undefined(name, false),
        };
        let is_indirect = matches!(definition.kind, SymbolKind::Indirect { .. });
        let input = &self.inputs[definition.input as usize];
        let described = &input.record.atoms[atom as usize];
        let address = input.addresses[atom as usize].map(|start| start.wrapping_add(offset));
        let by_rule = |builder: &mut Self| {
            let edge = Edge {
                node: builder.node_of_atom(definition.input, atom),
                offset: offset as i64,
                takes_address: false,
            };
            if is_indirect { chosen(edge) } else { edge }
        };
        let has_address =
            matches!(described.kind, AtomKind::Function | AtomKind::Data | AtomKind::Zeroed)
                && has_own_place(described)
                && described.size > 0;
        match self.symbols.get(hash) {
            Some(Final::Absolute(value)) => self.value(name, value),
            Some(Final::Address(found)) if has_address && address != Some(found) => self
                .at_address(found)
                .ok_or_else(|| GraphError::Elsewhere { symbol: name.to_owned() }),
            Some(Final::Address(_)) if has_address => Ok(by_rule(self)),
            _ if definition.is_contested => Err(GraphError::Contested { symbol: name.to_owned() }),
            _ => Ok(by_rule(self)),
        }
    }

    /// A number, or a common symbol, unless the linker gave the name to something else.
    pub(super) fn without_section(
        &mut self,
        hash: Hash,
        name: &str,
        definition: Definition,
    ) -> Result<Edge, GraphError> {
        match (self.symbols.get(hash), definition.kind) {
            (Some(Final::Absolute(value)), _) => self.value(name, value),
            (Some(Final::Address(address)), SymbolKind::Common { .. }) => {
                Ok(self.at_address(address).unwrap_or_else(|| self.common(name)))
            }
            (Some(Final::Address(address)), _) => self.scripted(name, address),
            (Some(Final::Ambiguous) | None, _) if definition.is_contested => {
                Err(GraphError::Contested { symbol: name.to_owned() })
            }
            (_, SymbolKind::Absolute { value }) => self.value(name, value),
            _ => Ok(self.common(name)),
        }
    }

    /// A symbol that no object defines.
    pub(super) fn undefined(&mut self, name: &str, weak: bool) -> Result<Edge, GraphError> {
        if weak && HOOKS.contains(&name) && self.has_no_hooks() {
            return Ok(self.nothing());
        }
        if self.dynamic_symbols(name).any(|symbol| !symbol.is_defined || symbol.is_bound_by_loader)
        {
            return Ok(self.import(name));
        }
        if BOUNDARIES.contains(&name) {
            return Ok(self.image());
        }
        if LAYOUT_SYMBOLS.contains(&name) || REWRITTEN_CALLS.contains(&name) {
            return Ok(self.layout(name));
        }
        let bound = name
            .strip_prefix("__start_")
            .map(|section| (section, 0))
            .or_else(|| name.strip_prefix("__stop_").map(|section| (section, 1)));
        if let Some((section, side)) = bound
            && let Some(edge) = self.range(section, side)
        {
            return Ok(edge);
        }
        match self.symbols.global(Symbol::hash_of(name)) {
            Some(Final::Absolute(value)) => self.value(name, value),
            Some(Final::Address(address)) => self.scripted(name, address),
            Some(Final::Ambiguous) => Err(GraphError::Contested { symbol: name.to_owned() }),
            // A local symbol of the name is a static of some object, unless a script defined and
            // hid it.
            None if weak
                && !(self.options.has_scripts && self.symbols.has_local(Symbol::hash_of(name))) =>
            {
                Ok(self.nothing())
            }
            None => Err(GraphError::Elsewhere { symbol: name.to_owned() }),
        }
    }

    /// No library is needed that could define what the start-up code asks for.
    fn has_no_hooks(&self) -> bool {
        let is_known =
            |name: &&[u8]| WITHOUT_HOOKS.iter().any(|start| name.starts_with(start.as_bytes()));
        self.binary.dynamic.needed.iter().all(is_known)
    }
}
