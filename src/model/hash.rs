//! The 128-bit hash that everything is named by: the first half of BLAKE3, written as 32 hex
//! digits.
//!
//! Names of results cross a boundary of trust: what a stranger's branch contains is hashed on the
//! machines of a team, and its results are shared. So two things of the same hash must be hard to
//! find on purpose (SECURITY.md), and faster functions such as XXH3 are for checksums only.

use serde::{Deserialize, Serialize};
use std::fmt;

/// A finished hash.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Hash(pub [u8; 16]);

/// A hash on disk as one run of bytes, for where there are many: `#[serde(with = "as_bytes")]`.
/// (Field by field, each of the 16 bytes is a number of its own.)
pub mod as_bytes {
    use super::Hash;
    use serde::de::{Error, Visitor};
    use serde::{Deserializer, Serializer};
    use std::fmt;

    pub fn serialize<S: Serializer>(hash: &Hash, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&hash.0)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Hash, D::Error> {
        deserializer.deserialize_bytes(SixteenBytes)
    }

    struct SixteenBytes;

    impl Visitor<'_> for SixteenBytes {
        type Value = Hash;

        fn expecting(&self, out: &mut fmt::Formatter) -> fmt::Result {
            out.write_str("16 bytes")
        }

        fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Hash, E> {
            bytes.try_into().map(Hash).map_err(|_| E::invalid_length(bytes.len(), &self))
        }
    }
}

/// In a table, half of it is enough to find the right place.
impl std::hash::Hash for Hash {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        state.write_u64(u64::from_le_bytes(std::array::from_fn(|index| self.0[index])));
    }
}

impl Hash {
    /// The hash of one run of bytes.
    pub fn of(bytes: &[u8]) -> Self {
        first_half(blake3::hash(bytes))
    }

    /// What `Hasher::new(domain).hash(self).number(number)` makes, at once: for where there are
    /// many. The domain's name is short.
    pub fn with_number(self, domain: &str, number: u64) -> Self {
        let mut bytes = [0; 64];
        let mut end = 0;
        for part in [
            &(domain.len() as u64).to_le_bytes()[..],
            domain.as_bytes(),
            &self.0,
            &number.to_le_bytes(),
        ] {
            bytes[end..end + part.len()].copy_from_slice(part);
            end += part.len();
        }
        Self::of(&bytes[..end])
    }

    /// The hash that 32 small hex digits show.
    pub fn from_text(text: &str) -> Option<Self> {
        let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        let is_hash = text.len() == 32 && text.bytes().all(is_digit);
        u128::from_str_radix(text, 16)
            .ok()
            .filter(|_| is_hash)
            .map(|number| Hash(number.to_be_bytes()))
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        write!(out, "{:032x}", u128::from_be_bytes(self.0))
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        write!(out, "{self}")
    }
}

/// A hash in the making. What is fed is always either of fixed width or led by its length, so that
/// two different sequences never feed the same bytes.
#[derive(Clone, Default)]
pub struct Hasher(blake3::Hasher);

impl Hasher {
    /// A hasher for one kind of thing: equal content of two kinds must not hash alike.
    pub fn new(domain: &str) -> Self {
        let mut hasher = Hasher(blake3::Hasher::new());
        hasher.bytes(domain.as_bytes());
        hasher
    }

    /// A run of bytes, led by its length.
    pub fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        self.number(bytes.len() as u64);
        self.0.update(bytes);
        self
    }

    /// A number, or anything that fits into one.
    pub fn number(&mut self, number: u64) -> &mut Self {
        self.0.update(&number.to_le_bytes());
        self
    }

    /// A part of a content that is hashed as one run of bytes: what [`Hash::of`] makes of all parts
    /// together.
    pub fn part_of_content(&mut self, bytes: &[u8]) -> &mut Self {
        self.0.update(bytes);
        self
    }

    /// Two numbers at once.
    pub fn pair(&mut self, one: u64, other: u64) -> &mut Self {
        self.0.update(&(u128::from(one) | u128::from(other) << 64).to_le_bytes());
        self
    }

    /// Another hash.
    pub fn hash(&mut self, hash: Hash) -> &mut Self {
        self.0.update(&hash.0);
        self
    }

    /// The finished hash.
    pub fn finish(&self) -> Hash {
        first_half(self.0.finalize())
    }
}

fn first_half(hash: blake3::Hash) -> Hash {
    Hash(std::array::from_fn(|index| hash.as_bytes()[index]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boundaries_count() {
        let hash = |parts: [&str; 2]| {
            let mut hasher = Hasher::new("test");
            for part in parts {
                hasher.bytes(part.as_bytes());
            }
            hasher.finish()
        };
        assert_ne!(hash(["ab", "c"]), hash(["a", "bc"]));
    }

    #[test]
    fn the_short_way_leads_to_the_same_hash() {
        for (content, number) in [(&b"x"[..], 0), (b"y", 5), (b"", u64::MAX)] {
            let hash = Hash::of(content);
            assert_eq!(
                hash.with_number("rights", number),
                Hasher::new("rights").hash(hash).number(number).finish()
            );
        }
    }

    /// What others can choose the bytes of has to resist collisions that are made on purpose: the
    /// published vector of BLAKE3 for an empty input.
    #[test]
    fn a_hash_is_the_first_half_of_blake3() {
        assert_eq!(Hash::of(b"").to_string(), "af1349b9f5f9a1a6a0404dea36dcc949");
    }

    #[test]
    fn shown_as_32_hex_digits() {
        assert_eq!(Hash([0; 16]).to_string(), "0".repeat(32));
        assert_eq!(Hash::of(b"x").to_string().len(), 32);
    }
}
