//! The value of one dependency, as a hash of what was observed. The same functions serve for what
//! was observed while a test ran and for what is found now.

use crate::model::{Hash, Hasher};
use crate::observe::{Input, What};

pub(super) fn file_value(content: Hash) -> Hash {
    Hasher::new("file").hash(content).finish()
}

pub(super) fn program_value(content: Hash) -> Hash {
    Hasher::new("program").hash(content).finish()
}

pub(super) fn listing_value(listing: Hash) -> Hash {
    Hasher::new("folder").hash(listing).finish()
}

pub(super) fn attributes_value(what: What) -> Hash {
    let mut hasher = Hasher::new("attributes");
    hasher.code(what.kind);
    if let Some(details) = what.details {
        hasher.number(details.size).number(details.executable.into());
        if let Some((seconds, rest)) = details.modified {
            hasher.pair(seconds as u64, rest as u64);
        }
    }
    hasher.finish()
}

pub(super) fn input_value(input: &Input) -> Hash {
    let mut hasher = Hasher::new("input");
    match input {
        Input::Empty => hasher.number(0),
        Input::File { content, position, .. } => hasher.number(1).hash(*content).number(*position),
        // What is used of these makes a run impossible to reuse. That there is a terminal can be
        // asked without using it.
        Input::Terminal => hasher.number(2),
        Input::Pipe | Input::Given => hasher.number(3),
        Input::Socket => hasher.number(4),
        Input::Other => hasher.number(5),
    };
    hasher.finish()
}
