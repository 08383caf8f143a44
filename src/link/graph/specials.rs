//! Nodes for what is no atom: imports, values, ranges, commons, the image as a whole. In: what they
//! stand for. Out: a node for each, made once.

use super::{Builder, GraphError, Origin};
use crate::elf::binary::Section;
use crate::link::symbols::Final;
use crate::model::manifest::{Edge, Node, WHOLE_BINARY};
use crate::model::{AtomKind, Hash, Hasher, Level, Symbol};
use std::borrow::Cow;

impl<'a> Builder<'a> {
    /// A symbol that nobody defines, and need not.
    pub(super) fn nothing(&mut self) -> Edge {
        self.special(AtomKind::Value, "(undefined)", Hash::default(), Origin::Leaf)
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

/// Symbols that linkers define and that say nothing of any atom's content.
pub(super) const LAYOUT_SYMBOLS: [&str; 16] = [
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
