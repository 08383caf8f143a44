//! What symbols mean in a binary. In: a symbol that an atom names. Out: the node behind it: the
//! atom that the linker chose, or what else the name stands for: something of another module, a
//! common symbol, a range, a boundary, a number.

use super::{Builder, GraphError, Origin, chosen};
use crate::elf::binary::Section;
use crate::elf::dynamic::DynamicSymbol;
use crate::link::sections::has_own_place;
use crate::link::symbols::{Definition, Final};
use crate::model::manifest::{Edge, Node, WHOLE_BINARY};
use crate::model::{AtomKind, Hash, Hasher, Level, Symbol, SymbolKind};
use std::borrow::Cow;

/// Symbols that linkers define and that say nothing of any atom's content.
const LAYOUT_SYMBOLS: [&str; 16] = [
    "_DYNAMIC",
    "_GLOBAL_OFFSET_TABLE_",
    "_PROCEDURE_LINKAGE_TABLE_",
    "_TLS_MODULE_BASE_",
    "__GNU_EH_FRAME_HDR",
    "__TMC_END__",
    "__dso_handle",
    "__ehdr_start",
    "__fini_array_end",
    "__fini_array_start",
    "__init_array_end",
    "__init_array_start",
    "__preinit_array_end",
    "__preinit_array_start",
    "__rela_iplt_end",
    "__rela_iplt_start",
];

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

    /// A symbol that nobody defines, and need not.
    fn nothing(&mut self) -> Edge {
        self.special(AtomKind::Value, "(undefined)", Hash::default(), Origin::Leaf)
    }

    /// No library is needed that could define what the start-up code asks for.
    fn has_no_hooks(&self) -> bool {
        let is_known =
            |name: &&[u8]| WITHOUT_HOOKS.iter().any(|start| name.starts_with(start.as_bytes()));
        self.binary.dynamic.needed.iter().all(is_known)
    }

    /// A symbol that says where something lies, and nothing of what it is.
    pub(super) fn layout(&mut self, name: &str) -> Edge {
        self.special(AtomKind::Value, name, Hash::of(name.as_bytes()), Origin::Leaf)
    }

    /// Everything that is loaded.
    pub(super) fn image(&mut self) -> Edge {
        self.special(AtomKind::Residue, WHOLE_BINARY, self.binary.behaviour_digest(), Origin::Leaf)
    }

    /// The bytes of an output section.
    pub(super) fn residue(&mut self, section: &Section) -> Edge {
        let hash = Hasher::new("residue").number(section.size).bytes(section.data).finish();
        self.special(AtomKind::Residue, &String::from_utf8_lossy(section.name), hash, Origin::Leaf)
    }

    /// A symbol that a command line or a script places: another name of an atom, or a place in an
    /// output section, from where code may go on to all of its members.
    pub(super) fn scripted(&mut self, name: &str, address: u64) -> Result<Edge, GraphError> {
        let is_alias = self.options.assigned.get(name).copied().unwrap_or(false);
        if let Some(edge) = self.at_address(address)
            && (is_alias
                || (edge.offset == 0 && self.nodes[edge.node as usize].kind == AtomKind::Function))
        {
            return Ok(edge);
        }
        let binary = self.binary;
        let Some(section) = binary.section_at(address).or_else(|| binary.section_until(address))
        else {
            return self.value(name, address);
        };
        let output = String::from_utf8_lossy(section.name);
        let node = self.range(&output, 0).unwrap_or_else(|| self.residue(section)).node;
        Ok(Edge { node, offset: (address - section.address) as i64, takes_address: false })
    }

    /// A symbol that means one of two things, and it cannot be told which.
    pub(super) fn either(&mut self, name: &str, one: Edge, other: Edge) -> Edge {
        let key = (AtomKind::Value, Hasher::new("either").bytes(name.as_bytes()).finish());
        if let Some(&node) = self.specials.get(&key) {
            return Edge { node, offset: 0, takes_address: false };
        }
        let hash = Hasher::new("either").finish();
        let edge = self.new_special(AtomKind::Value, name, hash, Origin::Either(one, other));
        self.specials.insert(key, edge.node);
        edge
    }

    /// A symbol with a value of its own.
    pub(super) fn value(&mut self, name: &str, value: u64) -> Result<Edge, GraphError> {
        let hash = Hasher::new("value").number(value).finish();
        Ok(self.special(AtomKind::Value, name, hash, Origin::Leaf))
    }

    /// A symbol that the dynamic loader binds.
    pub(super) fn import(&mut self, name: &str) -> Edge {
        let plain = name.split('@').next().unwrap_or(name);
        let mut hasher = Hasher::new("import");
        hasher.bytes(plain.as_bytes());
        for symbol in self.dynamic_symbols(name) {
            hasher.bytes(symbol.version.unwrap_or_default());
        }
        let edge = self.special(AtomKind::Import, plain, hasher.finish(), Origin::Leaf);
        // A copy of a variable, or a function whose address is that of its entry in the procedure
        // linkage table.
        let address =
            self.dynamic_symbols(name).map(|symbol| symbol.value).find(|value| *value != 0);
        self.nodes[edge.node as usize].address = address.unwrap_or(0);
        edge
    }

    pub(super) fn common(&mut self, name: &str) -> Edge {
        let (size, align) = self.definitions.common(Symbol::hash_of(name));
        // Each common symbol is a thing of its own, however alike two of them are.
        let identity = Hasher::new("common").bytes(name.as_bytes()).finish();
        let key = (AtomKind::Common, identity);
        if let Some(&node) = self.specials.get(&key) {
            return Edge { node, offset: 0, takes_address: false };
        }
        let hash = Hasher::new("common").number(size).number(align).finish();
        let edge = self.new_special(AtomKind::Common, name, hash, Origin::Leaf);
        if let Some(Final::Address(address)) = self.symbols.get(Symbol::hash_of(name)) {
            self.nodes[edge.node as usize].address = address;
        }
        self.specials.insert(key, edge.node);
        edge
    }

    /// The members of an output section.
    pub(super) fn range(&mut self, output: &str, side: i64) -> Option<Edge> {
        let first = *self.first_member.get(output.as_bytes())?;
        let hash = Hasher::new("range").bytes(output.as_bytes()).finish();
        let edge = self.special(AtomKind::Range, output, hash, Origin::Members(first));
        let section = self.binary.sections.iter().find(|section| section.name == output.as_bytes());
        self.nodes[edge.node as usize].address = section.map_or(0, |section| section.address);
        Some(Edge { node: edge.node, offset: side, takes_address: false })
    }

    /// A node for something that is no atom, made once.
    pub(super) fn special(
        &mut self,
        kind: AtomKind,
        name: &str,
        hash: Hash,
        origin: Origin,
    ) -> Edge {
        let key = (kind, hash);
        if let Some(&node) = self.specials.get(&key) {
            return Edge { node, offset: 0, takes_address: false };
        }
        let edge = self.new_special(kind, name, hash, origin);
        self.specials.insert(key, edge.node);
        edge
    }

    pub(super) fn new_special(
        &mut self,
        kind: AtomKind,
        name: &str,
        hash: Hash,
        origin: Origin,
    ) -> Edge {
        let node = Node {
            name: Cow::Owned(name.to_owned()),
            kind,
            level: Level::Code,
            hash,
            input: 0,
            address: 0,
            size: 0,
            traceable: false,
            file: 0,
            line: 0,
            references: 0,
        };
        Edge { node: self.add(node, origin), offset: 0, takes_address: false }
    }
}
