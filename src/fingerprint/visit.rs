//! What a walk went into, by the places that nodes have in their manifests. A `NodeSet` says the
//! same by numbers that only another walk can read; this is held against a comparison of two builds
//! without a walk.

use serde::{Deserialize, Serialize};

/// A bit for each node of all known modules, one module behind the other.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeBits(#[serde(with = "crate::model::bytes")] Vec<u8>);

impl NodeBits {
    pub fn none(count: usize) -> Self {
        NodeBits(vec![0; count.div_ceil(8)])
    }

    pub fn insert(&mut self, position: usize) {
        self.0[position / 8] |= 1 << (position % 8);
    }

    /// Whether the two are of the same nodes, and have none in common.
    pub fn is_apart_from(&self, other: &NodeBits) -> bool {
        self.0.len() == other.0.len()
            && self.0.iter().zip(&other.0).all(|(one, other)| one & other == 0)
    }
}

/// What a walk went into.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Visit {
    pub nodes: NodeBits,
    /// All that modules export counted.
    pub finds_by_name: bool,
    /// All that is loaded counted.
    pub finds_images: bool,
}
