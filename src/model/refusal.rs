//! A refusal: a sound reason not to split, not to narrow or not to reuse. It is a value, stored in
//! records and manifests and shown by `tasting explain`; it is never an error.

use super::codes;
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
    /// Which of `codes` it is. Records and manifests have refusals of one kind only, and keep none.
    #[serde(skip, default = "of_builds")]
    pub code: &'static str,
}

fn of_builds() -> &'static str {
    codes::WHOLE
}

/// A reason and its code. Words alone say that something is not watched.
pub struct Why {
    pub code: &'static str,
    pub text: String,
}

impl From<&str> for Why {
    fn from(text: &str) -> Why {
        Why { code: codes::UNWATCHED, text: text.to_owned() }
    }
}

impl From<String> for Why {
    fn from(text: String) -> Why {
        Why { code: codes::UNWATCHED, text }
    }
}

impl<T: Into<String>> From<(&'static str, T)> for Why {
    fn from((code, text): (&'static str, T)) -> Why {
        Why { code, text: text.into() }
    }
}

impl<'a> Refusal<'a> {
    /// A refusal of a build, about `subject`.
    pub fn new(subject: impl Into<Cow<'a, str>>, reason: impl Into<Cow<'a, str>>) -> Self {
        Refusal { subject: subject.into(), reason: reason.into(), code: codes::WHOLE }
    }

    /// A refusal to keep a run.
    pub fn of_run(subject: impl Into<Cow<'a, str>>, why: impl Into<Why>) -> Self {
        let Why { code, text } = why.into();
        debug_assert!(codes::REFUSALS.contains(&code), "{code} is in no list");
        Refusal { subject: subject.into(), reason: Cow::Owned(text), code }
    }

    /// The same refusal, holding its own text.
    pub fn into_owned(self) -> Refusal<'static> {
        let (subject, reason) = (self.subject.into_owned().into(), self.reason.into_owned().into());
        Refusal { subject, reason, code: self.code }
    }

    /// With its code, by which `tasting help` says what to do.
    pub fn with_code(&self) -> String {
        format!("{self} [{}]", self.code)
    }
}

impl fmt::Display for Refusal<'_> {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        write!(out, "{}: {}", self.subject, self.reason)
    }
}
