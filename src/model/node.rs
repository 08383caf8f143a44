//! Nodes and edges of a manifest's reference graph.

use super::{AtomKind, Hash, Level};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// The domain under which the rights to an atom's memory are mixed into its hash.
pub const RIGHTS: &str = "rights";

/// An atom in its place, or one of the things that stand in for atoms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node<'a> {
    pub name: Cow<'a, str>,
    pub kind: AtomKind,
    pub level: Level,
    /// The local hash.
    pub hash: Hash,
    /// Index into `Manifest::inputs`, plus one; 0 where no single input holds it.
    pub input: u32,
    /// Where it lies in the binary; 0 where it has no place of its own.
    pub address: u64,
    pub size: u64,
    /// A breakpoint at its first byte sees every execution.
    pub traceable: bool,
    /// Index into `Manifest::files`, and line; line 0 where there is no debug information.
    pub file: u32,
    pub line: u32,
    /// How many of the manifest's edges are this node's.
    pub references: u32,
}

/// The name of the node that stands for everything that is loaded of a binary, and for the same
/// with its build ID.
pub const WHOLE_BINARY: &str = "(the whole binary)";
pub const WHOLE_BINARY_WITH_ID: &str = "(the whole binary, with its build ID)";

impl Node<'_> {
    /// Whether it stands for the whole binary: who refers to it can read all of it, the code too.
    pub fn is_whole_binary(&self) -> bool {
        self.kind == AtomKind::Residue
            && [WHOLE_BINARY, WHOLE_BINARY_WITH_ID].contains(&&*self.name)
    }
}

/// A reference, resolved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Edge {
    pub node: u32,
    pub offset: i64,
    /// The address is used as a value: the order in memory of all nodes of which that is so counts.
    pub takes_address: bool,
}
