//! The envelope of everything that we write to disk: magic, format version, length, checksum, then
//! the payload. It is self-delimiting, because `ld -r` concatenates the record sections of its
//! inputs. What is truncated, damaged or of another version is an error with a reason, never a
//! guess.

use serde::{Deserialize, Serialize};
use thiserror::Error;
use xxhash_rust::xxh3::xxh3_64;

/// Magic (8) + version (4) + payload length (8) + checksum (8).
const HEADER: usize = 28;

/// What can be wrong with bytes that claim to be ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum FormatError {
    #[error("it does not start with the magic of this format")]
    Magic,
    #[error("it has format version {found}, and this Tasting reads version {expected}")]
    Version { found: u32, expected: u32 },
    #[error("it is truncated")]
    Truncated,
    #[error("its checksum does not fit its content")]
    Checksum,
    #[error("its content is malformed")]
    Malformed,
}

/// One kind of file: its magic and the version that this build reads and writes.
#[derive(Clone, Copy, Debug)]
pub struct Format {
    pub magic: [u8; 8],
    pub version: u32,
}

/// A value as bytes, with room for what will be put in front.
pub struct Payload(Vec<u8>);

impl Payload {
    pub fn content(&mut self) -> &mut [u8] {
        &mut self.0[HEADER..]
    }
}

/// Takes what is encoded. (postcard's own takes it byte by byte.)
struct Growing(Vec<u8>);

impl postcard::ser_flavors::Flavor for Growing {
    type Output = Vec<u8>;

    #[inline]
    fn try_push(&mut self, byte: u8) -> postcard::Result<()> {
        self.0.push(byte);
        Ok(())
    }

    #[inline]
    fn try_extend(&mut self, bytes: &[u8]) -> postcard::Result<()> {
        // Most are numbers of a few bytes, for which a call to copy them is too much.
        match *bytes {
            [one] => self.0.push(one),
            [one, two] => self.0.extend_from_slice(&[one, two]),
            [one, two, three] => self.0.extend_from_slice(&[one, two, three]),
            _ => self.0.extend_from_slice(bytes),
        }
        Ok(())
    }

    fn finalize(self) -> postcard::Result<Vec<u8>> {
        Ok(self.0)
    }
}

impl Format {
    /// Wraps a value.
    pub fn encode<T: Serialize>(&self, value: &T) -> Result<Vec<u8>, FormatError> {
        Ok(self.seal(self.payload(value, 0)?))
    }

    /// A value as it will be wrapped. It is expected to take about so many bytes.
    pub fn payload<T: Serialize>(&self, value: &T, size: usize) -> Result<Payload, FormatError> {
        let mut bytes = Vec::with_capacity(HEADER + size);
        bytes.resize(HEADER, 0);
        let bytes = postcard::serialize_with_flavor(value, Growing(bytes))
            .map_err(|_| FormatError::Malformed)?;
        Ok(Payload(bytes))
    }

    /// Wraps a payload.
    pub fn seal(&self, Payload(mut bytes): Payload) -> Vec<u8> {
        let (header, payload) = bytes.split_at_mut(HEADER);
        header[..8].copy_from_slice(&self.magic);
        header[8..12].copy_from_slice(&self.version.to_le_bytes());
        header[12..20].copy_from_slice(&(payload.len() as u64).to_le_bytes());
        header[20..28].copy_from_slice(&xxh3_64(payload).to_le_bytes());
        bytes
    }

    /// The value at the front of `bytes`, and what follows it.
    pub fn decode<'a, T: Deserialize<'a>>(
        &self,
        bytes: &'a [u8],
    ) -> Result<(T, &'a [u8]), FormatError> {
        let (payload, rest) = self.open(bytes)?;
        let (value, left) =
            postcard::take_from_bytes(payload).map_err(|_| FormatError::Malformed)?;
        if left.is_empty() { Ok((value, rest)) } else { Err(FormatError::Malformed) }
    }

    /// The checked payload at the front of `bytes`, and what follows it.
    fn open<'a>(&self, bytes: &'a [u8]) -> Result<(&'a [u8], &'a [u8]), FormatError> {
        let (payload, rest) = self.delimit(bytes)?;
        let version = u32::from_le_bytes(word(bytes, 8));
        if version != self.version {
            return Err(FormatError::Version { found: version, expected: self.version });
        }
        if xxh3_64(payload) != u64::from_le_bytes(word(bytes, 20)) {
            return Err(FormatError::Checksum);
        }
        Ok((payload, rest))
    }

    /// Skips over the envelope at the front of `bytes`, whatever its version and content.
    pub fn skip<'a>(&self, bytes: &'a [u8]) -> Result<&'a [u8], FormatError> {
        Ok(self.delimit(bytes)?.1)
    }

    fn delimit<'a>(&self, bytes: &'a [u8]) -> Result<(&'a [u8], &'a [u8]), FormatError> {
        if bytes.len() < HEADER {
            return Err(FormatError::Truncated);
        }
        if bytes[..8] != self.magic {
            return Err(FormatError::Magic);
        }
        let length = usize::try_from(u64::from_le_bytes(word(bytes, 12)))
            .map_err(|_| FormatError::Truncated)?;
        bytes[HEADER..].split_at_checked(length).ok_or(FormatError::Truncated)
    }
}

/// A fixed-width field; the caller has checked the length.
fn word<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let mut word = [0; N];
    word.copy_from_slice(&bytes[at..at + N]);
    word
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const FORMAT: Format = Format { magic: *b"TESTTEST", version: 3 };

    #[test]
    fn concatenated_envelopes_are_read_in_order() {
        let mut bytes = FORMAT.encode(&"one").unwrap();
        bytes.extend(FORMAT.encode(&"two").unwrap());
        let (one, rest) = FORMAT.decode::<&str>(&bytes).unwrap();
        let (two, rest) = FORMAT.decode::<&str>(rest).unwrap();
        assert_eq!((one, two, rest.len()), ("one", "two", 0));
    }

    #[test]
    fn another_version_is_refused_and_can_be_skipped() {
        let bytes = Format { version: 4, ..FORMAT }.encode(&"later").unwrap();
        assert_eq!(
            FORMAT.decode::<&str>(&bytes),
            Err(FormatError::Version { found: 4, expected: 3 })
        );
        assert_eq!(FORMAT.skip(&bytes), Ok(&[][..]));
    }

    proptest! {
        #[test]
        fn any_flipped_byte_is_noticed(text in ".{0,40}", at in any::<prop::sample::Index>(), with in 1u8..) {
            let mut bytes = FORMAT.encode(&text).unwrap();
            let at = at.index(bytes.len());
            bytes[at] ^= with;
            prop_assert!(FORMAT.decode::<String>(&bytes).is_err());
        }

        #[test]
        fn any_truncation_is_noticed(text in ".{0,40}", keep in any::<prop::sample::Index>()) {
            let bytes = FORMAT.encode(&text).unwrap();
            let keep = keep.index(bytes.len());
            prop_assert!(FORMAT.decode::<String>(&bytes[..keep]).is_err());
        }
    }
}
