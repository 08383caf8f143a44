//! A program of the laboratory: its files, and how they are built and linked.

use serde::{Deserialize, Serialize};

/// A program as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// What kind of generator it is from.
    pub sort: &'static str,
    pub language: Language,
    /// Files that units include, by name.
    pub headers: Vec<File>,
    pub units: Vec<Unit>,
    /// Functions that can stand in each other's places, wherever they are defined.
    pub alike: Vec<String>,
    /// Options of the compiler that the program needs.
    pub flags: Vec<String>,
    /// Loops count their turns: no mutation makes the program run for ever.
    pub has_fuel: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    pub name: String,
    pub text: String,
}

/// One source file, and where its object goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unit {
    pub file: File,
    pub place: Place,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Linked as it is.
    Object,
    /// A member of an archive.
    Archive,
    /// Part of a shared library.
    Library,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Language {
    C,
    Cxx,
}

impl Program {
    /// The names of the units' objects.
    pub fn object(index: usize) -> String {
        format!("u{index}.o")
    }

    pub fn has(&self, place: Place) -> bool {
        self.units.iter().any(|unit| unit.place == place)
    }
}
