//! What has changed between two builds of a program, and how the program reaches it.
//!
//! In: the manifests of a program and its libraries, then and now. `graph` makes one graph of each,
//! `matching` finds out which atom of the one is which of the other, `atoms` says which of those
//! that are reached differ. Out: the changed atoms, each with the chain of references that leads to
//! it.

pub mod atoms;
pub mod control_flow;
pub mod graph;
pub mod matching;

pub use atoms::{AtomChange, AtomFate, Comparison, compare};
