//! The code of a binary, as far as its execution can be watched.

/// Whole pages of code, and the functions in them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Code {
    /// The pages in memory, and where they are in the file.
    pub start: u64,
    pub length: u64,
    pub offset: u64,
    /// Place and size of each function: sorted, and none in another.
    pub functions: Vec<(u32, u32)>,
}
