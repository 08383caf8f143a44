//! One file for each harness: which tests it has, and how to have it run some of them.

pub(super) mod automake;
pub(super) mod cargo;
pub(super) mod ctest;
mod junit;
pub(super) mod list;
pub(super) mod meson;
pub(super) mod nextest;
