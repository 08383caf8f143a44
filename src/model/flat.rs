//! The two long lists of a manifest on disk, as entries of a fixed size. They are read whenever a
//! test ends or may be reused; decoding them field by field took longer than many tests.

use super::Hash;
use super::node::{Edge, Node};
use super::record::{AtomKind, Level};
use serde::de::{Error, Visitor};
use serde::{Deserializer, Serializer};
use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

/// `#[serde(with = "flat::nodes")]`
pub mod nodes {
    use super::*;

    pub fn serialize<S: Serializer>(nodes: &[Node], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&super::encode_nodes(nodes))
    }

    pub fn deserialize<'de: 'a, 'a, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<Node<'a>>, D::Error> {
        deserializer.deserialize_bytes(Flat {
            decode: super::decode_nodes,
            wanted: "nodes",
            life: PhantomData,
        })
    }
}

/// `#[serde(with = "flat::edges")]`
pub mod edges {
    use super::*;

    pub fn serialize<S: Serializer>(edges: &[Edge], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&super::encode_edges(edges))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Edge>, D::Error> {
        deserializer.deserialize_bytes(Flat {
            decode: super::decode_edges,
            wanted: "edges",
            life: PhantomData,
        })
    }
}

/// Reads a list from bytes that live as long as what is read.
struct Flat<'de, T> {
    decode: fn(&'de [u8]) -> Option<Vec<T>>,
    wanted: &'static str,
    life: PhantomData<&'de ()>,
}

impl<'de, T> Visitor<'de> for Flat<'de, T> {
    type Value = Vec<T>;

    fn expecting(&self, out: &mut fmt::Formatter) -> fmt::Result {
        out.write_str(self.wanted)
    }

    fn visit_borrowed_bytes<E: Error>(self, bytes: &'de [u8]) -> Result<Vec<T>, E> {
        (self.decode)(bytes).ok_or_else(|| E::custom("malformed"))
    }
}

const LEVELS: [Level; 3] = [Level::Code, Level::Ast, Level::File];

/// Hash, address, size; the length of the name, input, file, line, references; kind, level, whether
/// it is traceable, nothing.
const NODE: usize = 16 + 2 * 8 + 5 * 4 + 4;

/// Their number, the nodes, then their names.
fn encode_nodes(nodes: &[Node]) -> Vec<u8> {
    let names = nodes.iter().map(|node| node.name.len()).sum::<usize>();
    let mut bytes = Vec::with_capacity(4 + nodes.len() * NODE + names);
    bytes.extend((nodes.len() as u32).to_le_bytes());
    for node in nodes {
        bytes.extend(encode_node(node));
    }
    nodes.iter().for_each(|node| bytes.extend_from_slice(node.name.as_bytes()));
    bytes
}

fn encode_node(node: &Node) -> [u8; NODE] {
    let mut bytes = [0; NODE];
    bytes[..16].copy_from_slice(&node.hash.0);
    bytes[16..24].copy_from_slice(&node.address.to_le_bytes());
    bytes[24..32].copy_from_slice(&node.size.to_le_bytes());
    let numbers = [node.name.len() as u32, node.input, node.file, node.line, node.references];
    for (at, number) in numbers.into_iter().enumerate() {
        bytes[32 + 4 * at..36 + 4 * at].copy_from_slice(&number.to_le_bytes());
    }
    bytes[52..55].copy_from_slice(&[node.kind as u8, node.level as u8, node.traceable.into()]);
    bytes
}

fn decode_nodes(bytes: &[u8]) -> Option<Vec<Node<'_>>> {
    let (count, bytes) = bytes.split_first_chunk()?;
    let size = (u32::from_le_bytes(*count) as usize).checked_mul(NODE)?;
    let (entries, names) = bytes.split_at_checked(size)?;
    let mut names = std::str::from_utf8(names).ok()?;
    let mut nodes = Vec::with_capacity(entries.len() / NODE);
    for entry in entries.as_chunks().0 {
        nodes.push(decode_node(entry, &mut names)?);
    }
    names.is_empty().then_some(nodes)
}

/// Takes the node's name from the front of the names that are left.
fn decode_node<'a>(entry: &[u8; NODE], names: &mut &'a str) -> Option<Node<'a>> {
    let number = |at: usize| u32::from_le_bytes(std::array::from_fn(|index| entry[at + index]));
    let long = |at: usize| u64::from_le_bytes(std::array::from_fn(|index| entry[at + index]));
    let (name, rest) = names.split_at_checked(number(32) as usize)?;
    *names = rest;
    Some(Node {
        name: Cow::Borrowed(name),
        kind: *AtomKind::ALL.get(usize::from(entry[52]))?,
        level: *LEVELS.get(usize::from(entry[53]))?,
        hash: Hash(std::array::from_fn(|index| entry[index])),
        input: number(36),
        address: long(16),
        size: long(24),
        traceable: match entry[54..] {
            [0, 0] => false,
            [1, 0] => true,
            _ => return None,
        },
        file: number(40),
        line: number(44),
        references: number(48),
    })
}

/// An edge that leads elsewhere than to the start of a node: which one, and where.
const OFFSET: usize = 4 + 8;

/// In the number of the node that an edge leads to: its address is used as a value. No binary has
/// as many nodes.
const TAKES_ADDRESS: u32 = 1 << 31;

/// Their number, the nodes that they lead to, then what few offsets there are.
fn encode_edges(edges: &[Edge]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(4 + edges.len() * 6);
    bytes.extend((edges.len() as u32).to_le_bytes());
    let taken = |edge: &Edge| if edge.takes_address { TAKES_ADDRESS } else { 0 };
    edges.iter().for_each(|edge| bytes.extend((edge.node | taken(edge)).to_le_bytes()));
    for (index, edge) in edges.iter().enumerate().filter(|(_, edge)| edge.offset != 0) {
        bytes.extend((index as u32).to_le_bytes());
        bytes.extend(edge.offset.to_le_bytes());
    }
    bytes
}

fn decode_edges(bytes: &[u8]) -> Option<Vec<Edge>> {
    let (count, bytes) = bytes.split_first_chunk()?;
    let (nodes, offsets) =
        bytes.split_at_checked((u32::from_le_bytes(*count) as usize).checked_mul(4)?)?;
    let edge = |node: u32| Edge {
        node: node & !TAKES_ADDRESS,
        offset: 0,
        takes_address: node & TAKES_ADDRESS != 0,
    };
    let mut edges: Vec<Edge> =
        nodes.as_chunks().0.iter().map(|node| edge(u32::from_le_bytes(*node))).collect();
    let (offsets, []) = offsets.as_chunks::<OFFSET>() else { return None };
    for offset in offsets {
        let (index, offset) = offset.split_first_chunk()?;
        let edge = edges.get_mut(u32::from_le_bytes(*index) as usize)?;
        edge.offset = i64::from_le_bytes(offset.try_into().ok()?);
    }
    Some(edges)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is kept as a number is found again by it.
    #[test]
    fn kinds_and_levels_are_at_their_numbers() {
        assert!(AtomKind::ALL.iter().enumerate().all(|(number, kind)| *kind as usize == number));
        assert!(LEVELS.iter().enumerate().all(|(number, level)| *level as usize == number));
        assert_eq!(AtomKind::ALL.last(), Some(&AtomKind::Residue));
        assert_eq!(LEVELS.last(), Some(&Level::File));
    }

    #[test]
    fn damaged_lists_are_refused() {
        let node = Node {
            name: Cow::Borrowed("nämé"),
            kind: AtomKind::Data,
            level: Level::File,
            hash: Hash([7; 16]),
            input: 1,
            address: 1 << 40,
            size: 3,
            traceable: true,
            file: 4,
            line: 5,
            references: 6,
        };
        let whole = encode_nodes(&[node.clone(), node.clone()]);
        assert_eq!(decode_nodes(&whole), Some(vec![node.clone(), node]));
        assert!((0..whole.len()).all(|end| decode_nodes(&whole[..end]).is_none()));
        // The kind, the level, whether it is traceable, nothing; the length of the first name,
        // which would end in a letter.
        for at in [52, 53, 54, 55].map(|at| 4 + at) {
            let mut damaged = whole.clone();
            damaged[at] = 99;
            assert_eq!(decode_nodes(&damaged), None, "{at}");
        }
        let mut damaged = whole.clone();
        damaged[4 + 32] = 2;
        assert_eq!(decode_nodes(&damaged), None);

        let edges = [
            Edge { node: 1, offset: 0, takes_address: true },
            Edge { node: 2, offset: -1, takes_address: false },
        ];
        let whole = encode_edges(&edges);
        assert_eq!(decode_edges(&whole), Some(edges.to_vec()));
        let without_offsets = whole.len() - OFFSET;
        assert!(
            (0..whole.len())
                .all(|end| decode_edges(&whole[..end]).is_none() || end == without_offsets)
        );
    }
}
