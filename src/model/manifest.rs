//! A manifest: the reference graph of one linked binary, in the file `BINARY.tasting`. It is all that the
//! stages after linking know of the binary's inside.

use super::envelope::{Format, FormatError};
use super::{AtomKind, Hash, Level, Refusal};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// What is put behind the binary's name.
pub const SUFFIX: &str = ".tasting";

const FORMAT: Format = Format { magic: *b"TASTEMAN", version: 2 };

/// One linked binary.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Manifest<'a> {
    /// The digest of the binary's loaded bytes, which `strip` does not change. A manifest whose digest does
    /// not fit the binary beside it is void.
    pub digest: Hash,
    /// The fingerprint of the binary by itself, with everything that libraries bring left symbolic.
    pub fingerprint: Hash,
    pub shared_library: bool,
    /// What applies to the binary as a whole: machine, kind, interpreter, the options that matter.
    pub frame: Hash,
    /// The objects and archive members that were linked, as the linker named them. For people only.
    #[serde(borrow)]
    pub inputs: Vec<Cow<'a, str>>,
    #[serde(borrow)]
    pub nodes: Vec<Node<'a>>,
    /// The references of all nodes, one node after the other; `Node::references` says how many are whose.
    pub edges: Vec<Edge>,
    /// Where execution starts, in order: the entry (of a program), constructors, destructors, resolvers.
    pub roots: Vec<Edge>,
    /// What the dynamic loader can find in this binary, sorted by name.
    #[serde(borrow)]
    pub exports: Vec<Export<'a>>,
    /// The libraries that the binary asks the dynamic loader for, in order.
    #[serde(borrow)]
    pub needed: Vec<&'a str>,
    #[serde(borrow)]
    pub files: Vec<Cow<'a, str>>,
    #[serde(borrow)]
    pub refusals: Vec<Refusal<'a>>,
}

/// An atom in its place, or one of the things that stand in for atoms.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Node<'a> {
    #[serde(borrow)]
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

/// A reference, resolved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Edge {
    pub node: u32,
    pub offset: i64,
}

/// A symbol that other modules can bind to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Export<'a> {
    pub name: &'a str,
    pub version: &'a str,
    pub edge: Edge,
}

impl<'a> Manifest<'a> {
    /// The manifest as the bytes of its file.
    pub fn encode(&self) -> Result<Vec<u8>, FormatError> {
        FORMAT.encode(self)
    }

    /// Reads a manifest's file.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, FormatError> {
        let (manifest, rest) = FORMAT.decode::<Manifest>(bytes)?;
        if !rest.is_empty() {
            return Err(FormatError::Malformed);
        }
        manifest.check()?;
        Ok(manifest)
    }

    /// Every index points at something.
    fn check(&self) -> Result<(), FormatError> {
        let exists = |edge: &Edge| (edge.node as usize) < self.nodes.len();
        let edges = self.nodes.iter().map(|node| node.references as usize).sum::<usize>();
        let nodes = self.nodes.iter().all(|node| {
            node.input as usize <= self.inputs.len() && (node.line == 0 || (node.file as usize) < self.files.len())
        });
        let whole = edges == self.edges.len()
            && nodes
            && self.edges.iter().all(exists)
            && self.roots.iter().all(exists)
            && self.exports.iter().all(|export| exists(&export.edge));
        if whole { Ok(()) } else { Err(FormatError::Malformed) }
    }

    /// Where each node's edges start in `edges`, with the end as the last entry.
    pub fn edge_starts(&self) -> Vec<u32> {
        let mut starts = Vec::with_capacity(self.nodes.len() + 1);
        let mut at = 0;
        starts.push(at);
        starts.extend(self.nodes.iter().map(|node| {
            at += node.references;
            at
        }));
        starts
    }
}
