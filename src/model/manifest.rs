//! A manifest: the reference graph of one linked binary, in the file `BINARY.tasting`. It is all
//! that the stages after linking know of the binary's inside.

use super::envelope::{Format, FormatError, Payload};
pub use super::node::{Edge, Node, RIGHTS, WHOLE_BINARY, WHOLE_BINARY_WITH_ID};
use super::{Hash, Refusal, flat};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// What is put behind the binary's name.
pub const SUFFIX: &str = ".tasting";

/// The subject of the refusal to describe a binary more finely.
pub const WHOLE: &str = "the whole binary";

/// What nodes (beyond their names) and edges take in all but the strangest manifests.
const BYTES_PER_NODE: usize = 60;
const BYTES_PER_EDGE: usize = 8;

const FORMAT: Format = Format { magic: *b"TASTEMAN", version: 6 };

/// One linked binary.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Manifest<'a> {
    /// The digest of the binary's loaded bytes, which `strip` does not change. A manifest whose
    /// digest does not fit the binary beside it is void.
    pub digest: Hash,
    /// The fingerprint of the binary by itself, with everything that libraries bring left symbolic.
    pub fingerprint: Hash,
    pub shared_library: bool,
    /// What applies to the binary as a whole: machine, kind, interpreter, the options that matter.
    pub frame: Hash,
    /// The objects and archive members that were linked, as the linker named them. For people only.
    #[serde(borrow)]
    pub inputs: Vec<Cow<'a, str>>,
    #[serde(borrow, with = "flat::nodes")]
    pub nodes: Vec<Node<'a>>,
    /// The references of all nodes, one node after the other; `Node::references` says how many are
    /// whose.
    #[serde(with = "flat::edges")]
    pub edges: Vec<Edge>,
    /// Where execution starts, in order: the entry (of a program), constructors, destructors,
    /// resolvers.
    pub roots: Vec<Edge>,
    /// What the dynamic loader can find in this binary, sorted by name.
    #[serde(borrow)]
    pub exports: Vec<Export<'a>>,
    /// The libraries that the binary asks the dynamic loader for, in order.
    #[serde(borrow)]
    pub needed: Vec<&'a str>,
    /// Those of them that the project built, with the paths at which they were linked, relative to
    /// the binary's folder.
    #[serde(borrow)]
    pub libraries: Vec<(Cow<'a, str>, Cow<'a, str>)>,
    #[serde(borrow)]
    pub files: Vec<Cow<'a, str>>,
    #[serde(borrow)]
    pub refusals: Vec<Refusal<'a>>,
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

    /// The same before the fingerprint is known, which takes about as long to find out.
    pub fn encode_before_fingerprint(&self) -> Result<Unfinished, FormatError> {
        let names = self.nodes.iter().map(|node| node.name.len()).sum::<usize>();
        let size = names + BYTES_PER_NODE * self.nodes.len() + BYTES_PER_EDGE * self.edges.len();
        Ok(Unfinished(FORMAT.payload(self, size)?))
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
            node.input as usize <= self.inputs.len()
                && (node.line == 0 || (node.file as usize) < self.files.len())
        });
        let whole = edges == self.edges.len()
            && nodes
            && self.edges.iter().all(exists)
            && self.roots.iter().all(exists)
            && self.exports.iter().all(|export| exists(&export.edge));
        if whole { Ok(()) } else { Err(FormatError::Malformed) }
    }

    /// Why the binary is described as a whole, if it is.
    pub fn whole_reason(&self) -> Option<&str> {
        self.refusals
            .iter()
            .find(|refusal| refusal.subject == WHOLE)
            .map(|refusal| &*refusal.reason)
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

/// A manifest as bytes, whose fingerprint is still to come.
pub struct Unfinished(Payload);

impl Unfinished {
    /// The bytes of the file. The fingerprint is the second field, and hashes are encoded as they
    /// are.
    pub fn with_fingerprint(mut self, fingerprint: Hash) -> Vec<u8> {
        let size = fingerprint.0.len();
        self.0.content()[size..2 * size].copy_from_slice(&fingerprint.0);
        FORMAT.seal(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::super::record::tests::name;
    use super::super::{AtomKind, Level};
    use super::*;
    use proptest::prelude::*;

    fn edge(nodes: u32) -> impl Strategy<Value = Edge> {
        (any::<u32>(), any::<i64>(), any::<bool>()).prop_map(
            move |(node, offset, takes_address)| Edge { node: node % nodes, offset, takes_address },
        )
    }

    fn node(inputs: u32, files: u32) -> impl Strategy<Value = Node<'static>> {
        let numbers =
            (any::<u32>(), any::<u64>(), any::<u64>(), any::<bool>(), any::<u32>(), any::<u32>());
        (".{0,9}", any::<[u8; 16]>(), numbers).prop_map(
            move |(name, hash, (input, address, size, traceable, file, line))| Node {
                name: Cow::Owned(name),
                kind: AtomKind::Data,
                level: Level::Code,
                hash: Hash(hash),
                input: input % (inputs + 1),
                address,
                size,
                traceable,
                file: file % files.max(1),
                line: if files == 0 { 0 } else { line },
                references: 0,
            },
        )
    }

    /// Any manifest in which every index points at something.
    fn manifest() -> impl Strategy<Value = Manifest<'static>> {
        (1u32..5, 0u32..3, 0u32..3).prop_flat_map(|(nodes, inputs, files)| {
            let edges = move || prop::collection::vec(edge(nodes), 0..4);
            let export = (name(), name(), edge(nodes)).prop_map(|(name, version, edge)| Export {
                name,
                version,
                edge,
            });
            let texts =
                |count: u32| prop::collection::vec(".{0,9}".prop_map(Cow::Owned), count as usize);
            let nodes = prop::collection::vec((node(inputs, files), edges()), nodes as usize);
            let lists = (texts(inputs), texts(files), prop::collection::vec(name(), 0..3));
            (any::<[u8; 16]>(), nodes, edges(), prop::collection::vec(export, 0..3), lists)
                .prop_map(assemble)
        })
    }

    type Lists = (Vec<Cow<'static, str>>, Vec<Cow<'static, str>>, Vec<&'static str>);
    type Nodes = Vec<(Node<'static>, Vec<Edge>)>;
    type Parts = ([u8; 16], Nodes, Vec<Edge>, Vec<Export<'static>>, Lists);

    fn assemble(
        (hash, nodes, roots, exports, (inputs, files, needed)): Parts,
    ) -> Manifest<'static> {
        let mut manifest = Manifest {
            digest: Hash(hash),
            roots,
            exports,
            inputs,
            files,
            needed,
            ..Manifest::default()
        };
        for (node, edges) in nodes {
            manifest.nodes.push(Node { references: edges.len() as u32, ..node });
            manifest.edges.extend(edges);
        }
        manifest
    }

    /// Makes one index point past the end. `false` if the manifest has none of that kind.
    fn damage(manifest: &mut Manifest, kind: usize) -> bool {
        let past = Edge { node: manifest.nodes.len() as u32, ..Edge::default() };
        let (inputs, files) = (manifest.inputs.len() as u32, manifest.files.len() as u32);
        match kind {
            0 => manifest.edges.last_mut().map(|edge| *edge = past).is_some(),
            1 => manifest.roots.first_mut().map(|root| *root = past).is_some(),
            2 => manifest.exports.first_mut().map(|export| export.edge = past).is_some(),
            3 => manifest.nodes.last_mut().map(|node| node.input = inputs + 1).is_some(),
            4 => {
                manifest.nodes.first_mut().map(|node| (node.file, node.line) = (files, 1)).is_some()
            }
            5 => manifest.nodes.first_mut().map(|node| node.references += 1).is_some(),
            _ => manifest.edges.pop().is_some(),
        }
    }

    proptest! {
        #[test]
        fn any_manifest_comes_back(manifest in manifest()) {
            let bytes = manifest.encode().unwrap();
            prop_assert_eq!(Manifest::decode(&bytes), Ok(manifest));
        }

        #[test]
        fn the_fingerprint_can_come_later(manifest in manifest(), fingerprint in any::<[u8; 16]>()) {
            let bytes = manifest.encode_before_fingerprint().unwrap().with_fingerprint(Hash(fingerprint));
            prop_assert_eq!(bytes, Manifest { fingerprint: Hash(fingerprint), ..manifest }.encode().unwrap());
        }

        #[test]
        fn an_index_past_the_end_is_refused(manifest in manifest(), kind in 0usize..7) {
            let mut manifest = manifest;
            prop_assume!(damage(&mut manifest, kind));
            let bytes = manifest.encode().unwrap();
            prop_assert_eq!(Manifest::decode(&bytes), Err(FormatError::Malformed));
        }

        #[test]
        fn bytes_after_a_manifest_are_refused(manifest in manifest(), more in 0u8..) {
            let mut bytes = manifest.encode().unwrap();
            bytes.push(more);
            prop_assert_eq!(Manifest::decode(&bytes), Err(FormatError::Malformed));
        }
    }
}
