//! The pragmas in force at a place.
//!
//! Those that can be set and taken back have a stack each; of all others the whole sequence counts
//! from there on. What a pragma outside of a declaration means is not known here: that it is the
//! same is what counts.

use crate::model::{Hash, Hasher};
use rustc_hash::FxHashMap;

/// The pragmas in force, as one of the states that a unit goes through.
pub struct Pragmas {
    families: [Family; FAMILIES],
    /// Every state: without, and with the pragmas that only concern warnings.
    pub states: Vec<(Hash, Hash)>,
    numbers: FxHashMap<(Hash, Hash), u32>,
    now: u32,
}

const FAMILIES: usize = 6;

/// Pragmas that are set and taken back together.
#[derive(Default)]
struct Family {
    now: Hash,
    saved: Vec<Hash>,
}

/// What a pragma does to its family.
enum Change {
    Save,
    /// Save, and set.
    SaveAndSet,
    Restore,
    Set,
    /// Set, whatever there was before.
    Replace,
}

/// Pragmas that end with the block, statement or loop that they stand in or before.
const FOR_BLOCKS: &[&[u8]] = &[
    b"STDC",
    b"omp",
    b"acc",
    b"unroll",
    b"nounroll",
    b"unroll_and_jam",
    b"ivdep",
    b"novector",
    b"loop",
    b"fp",
];

const PACK: usize = 0;
const VISIBILITY: usize = 1;
const OPTIONS: usize = 2;
const ATTRIBUTE: usize = 3;
const OTHER: usize = 4;
const WARNINGS: usize = 5;

impl Pragmas {
    /// The state at the beginning of a unit.
    pub fn new() -> Self {
        let mut pragmas = Pragmas {
            families: Default::default(),
            states: Vec::new(),
            numbers: FxHashMap::default(),
            now: 0,
        };
        pragmas.note();
        pragmas
    }

    /// The number of the state in force.
    pub fn state(&self) -> u32 {
        self.now
    }

    /// A pragma is met, as the text behind the `#`. One within a declaration may end with the block
    /// or loop that it is for.
    pub fn meet(&mut self, text: &[u8], is_within: bool) {
        let words = words(text);
        let Some((family, change)) = classify(&words) else { return };
        if is_within && words.iter().take(3).any(|word| FOR_BLOCKS.contains(word)) {
            return;
        }
        let family = &mut self.families[family];
        let after = |before: Hash| {
            let mut hasher = Hasher::new("pragma");
            hasher.hash(before);
            words.iter().for_each(|word| {
                hasher.bytes(word);
            });
            hasher.finish()
        };
        match change {
            Change::Save => family.saved.push(family.now),
            Change::SaveAndSet => {
                family.saved.push(family.now);
                family.now = after(family.now);
            }
            // One that was never saved counts like any other.
            Change::Restore => family.now = family.saved.pop().unwrap_or_else(|| after(family.now)),
            Change::Set => family.now = after(family.now),
            Change::Replace => family.now = after(Hash::default()),
        }
        self.note();
    }

    /// All pragmas of the unit that are not set and taken back: `#pragma weak` concerns what stands
    /// before it as well.
    pub fn lasting(&self) -> Hash {
        self.families[OTHER].now
    }

    /// A declaration that concerns all code behind it, as a pragma would.
    pub fn meet_declaration(&mut self, hash: Hash) {
        self.families[OTHER].now =
            Hasher::new("declaration").hash(self.families[OTHER].now).hash(hash).finish();
        self.note();
    }

    fn note(&mut self) {
        let mut hasher = Hasher::new("pragmas");
        for family in &self.families[..WARNINGS] {
            hasher.hash(family.now);
        }
        let without = hasher.finish();
        let state = (without, hasher.hash(self.families[WARNINGS].now).finish());
        // One that comes back keeps its number.
        self.now = *self.numbers.entry(state).or_insert_with(|| {
            self.states.push(state);
            self.states.len() as u32 - 1
        });
    }
}

/// The words of a pragma, brackets among them.
fn words(text: &[u8]) -> Vec<&[u8]> {
    let mut words = Vec::new();
    let mut rest = text.trim_ascii_start();
    while let Some(&byte) = rest.first() {
        let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        let length = match byte {
            b'"' => {
                rest[1..].iter().position(|&byte| byte == b'"').map_or(rest.len(), |end| end + 2)
            }
            _ if is_word(byte) => {
                rest.iter().position(|&byte| !is_word(byte)).unwrap_or(rest.len())
            }
            _ => 1,
        };
        words.push(&rest[..length]);
        rest = rest[length..].trim_ascii_start();
    }
    words
}

/// The family of a pragma and what it does to it; `None` for those without any effect behind the
/// preprocessor.
fn classify(words: &[&[u8]]) -> Option<(usize, Change)> {
    let word = |index: usize| words.get(index).copied().unwrap_or(b"");
    if word(0) != b"pragma" {
        return None;
    }
    let second = match word(1) {
        b"GCC" | b"clang" => word(2),
        _ => word(1),
    };
    let argument = word(if second == word(1) { 3 } else { 4 });
    Some(match second {
        b"once" | b"push_macro" | b"pop_macro" | b"poison" | b"system_header" | b"dependency"
        | b"message" | b"mark" | b"region" | b"endregion" => return None,
        b"diagnostic" => match word(3) {
            b"push" => (WARNINGS, Change::Save),
            b"pop" => (WARNINGS, Change::Restore),
            _ => (WARNINGS, Change::Set),
        },
        b"warning" | b"error" => (WARNINGS, Change::Set),
        b"pack" => match argument {
            b"push" if words.contains(&&b","[..]) => (PACK, Change::SaveAndSet),
            b"push" => (PACK, Change::Save),
            // With the name of a place or a number behind, it does more than to go back one step.
            b"pop" if words.contains(&&b","[..]) => (PACK, Change::Set),
            b"pop" => (PACK, Change::Restore),
            b")" | b"" => (PACK, Change::Replace),
            _ => (PACK, Change::Replace),
        },
        b"visibility" => match word(3) {
            b"push" => (VISIBILITY, Change::SaveAndSet),
            b"pop" => (VISIBILITY, Change::Restore),
            _ => (VISIBILITY, Change::Set),
        },
        b"push_options" => (OPTIONS, Change::Save),
        b"pop_options" => (OPTIONS, Change::Restore),
        b"optimize" | b"target" | b"reset_options" => (OPTIONS, Change::Set),
        b"attribute" => match word(3) {
            b"push" => (ATTRIBUTE, Change::SaveAndSet),
            b"pop" => (ATTRIBUTE, Change::Restore),
            _ => (ATTRIBUTE, Change::Set),
        },
        _ => (OTHER, Change::Set),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(lines: &[&str]) -> (Hash, Hash) {
        let mut pragmas = Pragmas::new();
        for line in lines {
            pragmas.meet(format!("pragma {line}").as_bytes(), false);
        }
        pragmas.states[pragmas.state() as usize]
    }

    #[test]
    fn popped_pragmas_have_no_effect() {
        let nothing = state(&[]);
        assert_eq!(state(&["pack(push, 1)", "pack( pop )"]), nothing);
        assert_eq!(state(&["pack(push)", "pack(2)", "pack(pop)"]), nothing);
        assert_eq!(state(&["GCC visibility push(hidden)", "GCC visibility pop"]), nothing);
        assert_eq!(
            state(&["GCC push_options", "GCC optimize (\"O3\")", "GCC pop_options"]),
            nothing
        );
        assert_eq!(state(&["once", "GCC poison x", "GCC system_header"]), nothing);
    }

    #[test]
    fn active_pragmas_count() {
        let one_each = [
            "pack(1)",
            "pack(2)",
            "pack(push, 1)",
            "GCC visibility push(hidden)",
            "GCC optimize (\"O3\")",
            "weak f",
            "omp declare simd",
            "clang attribute push(x)",
            "STDC FP_CONTRACT ON",
            "GCC target (\"avx\")",
        ];
        let mut states: Vec<Hash> = one_each.iter().map(|line| state(&[line]).0).collect();
        states.push(state(&[]).0);
        let count = states.len();
        states.sort();
        states.dedup();
        assert_eq!(states.len(), count);
        assert_ne!(state(&["pack(pop)"]).0, state(&[]).0);
    }

    #[test]
    fn warnings_are_kept_apart() {
        let (code, all) = state(&["GCC diagnostic ignored \"-Wall\""]);
        assert_eq!(code, state(&[]).0);
        assert_ne!(all, state(&[]).1);
        assert_eq!(
            state(&[
                "GCC diagnostic push",
                "GCC diagnostic ignored \"-Wall\"",
                "GCC diagnostic pop"
            ]),
            state(&[])
        );
    }
}
