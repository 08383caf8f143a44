//! (being written)

pub mod map;
