//! A refusal: a sound reason not to split, not to narrow or not to reuse. It is a value, kept in records and
//! manifests and shown to whoever asks why; it is never an error.

use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;

/// Why something finer was not done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal<'a> {
    /// What it is about: a file, a section, a symbol, an option.
    #[serde(borrow)]
    pub subject: Cow<'a, str>,
    /// Why, in words for people.
    #[serde(borrow)]
    pub reason: Cow<'a, str>,
}

impl<'a> Refusal<'a> {
    /// A refusal about `subject`.
    pub fn new(subject: impl Into<Cow<'a, str>>, reason: impl Into<Cow<'a, str>>) -> Self {
        Refusal { subject: subject.into(), reason: reason.into() }
    }

    /// The same refusal, holding its own text.
    pub fn into_owned(self) -> Refusal<'static> {
        Refusal { subject: Cow::Owned(self.subject.into_owned()), reason: Cow::Owned(self.reason.into_owned()) }
    }
}

impl fmt::Display for Refusal<'_> {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        write!(out, "{}: {}", self.subject, self.reason)
    }
}
