//! Names as numbers: each spelling of an identifier or word has one number in a unit.

use super::kinds::{GIVEN, WORDS};

/// The number of a name.
pub type Name = u32;

/// The numbers below this are words of C; then come the names with a given meaning, then those of
/// the unit.
pub const FIRST_GIVEN: Name = WORDS.len() as Name;
pub const FIRST_OWN: Name = FIRST_GIVEN + GIVEN.len() as Name;

const SMALLEST: usize = 1 << 12;

/// The names of a unit.
pub struct Names<'a> {
    spellings: Vec<&'a [u8]>,
    /// Open addressing: the number of a name plus one, and bits of its hash to compare first; 0
    /// where nothing is.
    places: Vec<u64>,
}

impl<'a> Names<'a> {
    /// The words and the given names.
    pub fn new() -> Self {
        let mut names =
            Names { spellings: Vec::with_capacity(SMALLEST), places: vec![0; SMALLEST] };
        let given = GIVEN.iter().map(|(spelling, _)| *spelling);
        for spelling in WORDS.iter().map(|(spelling, _)| *spelling).chain(given) {
            names.number(spelling.as_bytes());
        }
        names
    }

    /// The number of a name, which may be new.
    #[inline]
    pub fn number(&mut self, spelling: &'a [u8]) -> Name {
        let hash = hash(spelling);
        let mask = self.places.len() - 1;
        let mut at = hash as usize & mask;
        let tag = hash & 0xffff_ffff_0000_0000;
        loop {
            let place = self.places[at];
            if place == 0 {
                return self.add(at, tag, spelling);
            }
            let name = place as u32 - 1;
            if place & 0xffff_ffff_0000_0000 == tag && same(self.spellings[name as usize], spelling)
            {
                return name;
            }
            at = (at + 1) & mask;
        }
    }

    /// The number of a name that is known already.
    pub fn find(&self, spelling: &[u8]) -> Option<Name> {
        let hash = hash(spelling);
        let mask = self.places.len() - 1;
        let mut at = hash as usize & mask;
        loop {
            let name = (self.places[at] as u32).checked_sub(1)?;
            if self.spellings[name as usize] == spelling {
                return Some(name).filter(|&name| name >= FIRST_OWN);
            }
            at = (at + 1) & mask;
        }
    }

    #[cold]
    fn add(&mut self, at: usize, tag: u64, spelling: &'a [u8]) -> Name {
        self.spellings.push(spelling);
        let number = self.spellings.len() as u64;
        self.places[at] = tag | number;
        if self.spellings.len() * 2 > self.places.len() {
            self.grow();
        }
        number as u32 - 1
    }

    fn grow(&mut self) {
        let mut places = vec![0; self.places.len() * 4];
        let mask = places.len() - 1;
        for (index, spelling) in self.spellings.iter().enumerate() {
            let hash = hash(spelling);
            let mut at = hash as usize & mask;
            while places[at] != 0 {
                at = (at + 1) & mask;
            }
            places[at] = hash & 0xffff_ffff_0000_0000 | (index as u64 + 1);
        }
        self.places = places;
    }

    /// How a name is written.
    pub fn spelling(&self, name: Name) -> &'a [u8] {
        self.spellings[name as usize]
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.spellings.len()
    }
}

/// A quick hash for the table only: what it confuses is compared.
#[inline]
fn hash(spelling: &[u8]) -> u64 {
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut hash = spelling.len() as u64;
    let mut mix = |word: u64| hash = (hash.rotate_left(23) ^ word).wrapping_mul(FACTOR);
    match (spelling.first_chunk::<8>(), spelling.last_chunk::<8>()) {
        (Some(&first), Some(&last)) => {
            mix(u64::from_le_bytes(first));
            if spelling.len() > 16 {
                spelling[8..].chunks_exact(8).for_each(|chunk| {
                    mix(chunk.iter().fold(0, |word, &byte| word << 8 | u64::from(byte)))
                });
            }
            mix(u64::from_le_bytes(last));
        }
        _ => {
            match (spelling.first_chunk::<4>(), spelling.last_chunk::<4>()) {
                (Some(&first), Some(&last)) => mix(u64::from(u32::from_le_bytes(first))
                    | u64::from(u32::from_le_bytes(last)) << 32),
                _ => mix(spelling.iter().fold(0, |word, &byte| word << 8 | u64::from(byte))),
            }
        }
    }
    hash ^ hash >> 29
}

/// Whether two spellings are equal. Most are short, and then a call would take longer than the
/// comparison.
#[inline]
fn same(one: &[u8], other: &[u8]) -> bool {
    if one.len() != other.len() {
        return false;
    }
    let ends_eight = |text: &[u8]| Some((*text.first_chunk::<8>()?, *text.last_chunk::<8>()?));
    let ends_four = |text: &[u8]| Some((*text.first_chunk::<4>()?, *text.last_chunk::<4>()?));
    match one.len() {
        0..4 => one.iter().eq(other),
        4..8 => ends_four(one) == ends_four(other),
        8..=16 => ends_eight(one) == ends_eight(other),
        _ => one == other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ast::kinds::TokenKind;

    #[test]
    fn each_spelling_has_one_number() {
        let spellings: Vec<String> = (0..20_000).map(|index| format!("name_{index}")).collect();
        let mut names = Names::new();
        let numbers: Vec<Name> =
            spellings.iter().map(|spelling| names.number(spelling.as_bytes())).collect();
        for (spelling, number) in spellings.iter().zip(numbers) {
            assert_eq!(names.number(spelling.as_bytes()), number);
            assert_eq!(names.spelling(number), spelling.as_bytes());
            assert!(number >= FIRST_OWN);
        }
    }

    #[test]
    fn words_come_first() {
        let mut names = Names::new();
        assert_eq!(WORDS[names.number(b"__inline__") as usize].1, TokenKind::Inline);
        assert_eq!(names.number(b"bool"), FIRST_GIVEN);
    }
}
