//! The code of a binary as ranges of functions, as far as their execution can be traced.

/// Whole pages of code, and the functions in them; none in a binary that cannot be traced.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Code {
    /// The pages in memory, and where they are in the file.
    pub start: u64,
    pub length: u64,
    pub offset: u64,
    /// Sorted, and none in another.
    pub functions: Vec<Function>,
}

/// One function of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Function {
    pub place: u32,
    pub size: u32,
    /// It is entered by a call, or by a jump that stands for one: below the stack pointer there is
    /// nothing of value.
    pub is_called: bool,
}

impl Function {
    /// Where it ends.
    pub fn end(&self) -> u64 {
        u64::from(self.place) + u64::from(self.size)
    }
}
