//! A program of the laboratory: its files, and how they are built and linked.

/// A program as text. It holds several tests, each with code of its own, so that one build answers
/// for many mutations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// What kind of generator it is from.
    pub sort: &'static str,
    pub language: Language,
    /// Files that units include, by name.
    pub headers: Vec<File>,
    pub units: Vec<Unit>,
    pub tests: Vec<Test>,
    /// Options of the compiler that the program needs.
    pub flags: Vec<String>,
    /// Loops count their turns: no mutation makes the program run for ever.
    pub has_fuel: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Test {
    /// What the program is called with.
    pub argument: Option<String>,
    /// The function that it starts in, if it is not the whole program.
    pub entry: Option<String>,
    /// What the names of its own functions and variables hold.
    pub mark: String,
    /// Functions of its own that can stand in each other's places.
    pub alike: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    pub name: String,
    pub text: String,
}

/// One source file, and where its object goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unit {
    pub name: String,
    pub segments: Vec<Segment>,
    pub place: Packaging,
}

/// A part of a source file that belongs to one test, or to none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    pub owner: Option<usize>,
    pub text: String,
}

impl Unit {
    pub fn text(&self) -> String {
        self.segments.iter().map(|segment| segment.text.as_str()).collect()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packaging {
    /// Linked as it is.
    Object,
    /// A member of an archive.
    Archive,
    /// Part of a shared library.
    Library,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    C,
    Cxx,
}

impl Program {
    /// The names of the units' objects.
    pub fn object(index: usize) -> String {
        format!("u{index}.o")
    }

    pub fn has(&self, place: Packaging) -> bool {
        self.units.iter().any(|unit| unit.place == place)
    }

    /// All files, headers first.
    pub fn files(&self) -> Vec<File> {
        let units =
            self.units.iter().map(|unit| File { name: unit.name.clone(), text: unit.text() });
        self.headers.iter().cloned().chain(units).collect()
    }
}
