//! Why a unit was not understood.

use crate::model::Refusal;
use std::fmt;

/// The place and the reason. The unit is then hashed at another level.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The file and line by the preprocessor's own account.
    pub file: String,
    pub line: u32,
    pub reason: String,
}

impl Problem {
    /// The same as a refusal.
    pub fn refusal(&self) -> Refusal<'static> {
        Refusal::new(
            format!("{}:{}", self.file, self.line),
            format!("its syntax is not understood: {}", self.reason),
        )
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        write!(out, "{}:{}: {}", self.file, self.line, self.reason)
    }
}

impl std::error::Error for Problem {}
