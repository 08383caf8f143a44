//! Why a test runs: a few words for statistics, and a sentence for people.

use crate::model::codes;

/// Why a test runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason {
    /// Its code, which many reasons share.
    pub sort: &'static str,
    pub text: String,
}

impl Reason {
    pub fn new(sort: &'static str, text: impl Into<String>) -> Self {
        debug_assert!(codes::REASONS.contains(&sort), "{sort} is in no list");
        Reason { sort, text: text.into() }
    }

    /// Something is wrong with us.
    pub fn failure() -> Self {
        Reason::new("failure", "Tasting failed; TASTING_LOGFILE tells more, please report it")
    }
}
