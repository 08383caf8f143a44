//! The bytes of one entry: compressed if that makes them smaller, with the name under which they
//! are stored, in an envelope. Reading returns what was written under that name, or an error.

use super::{LARGEST, StoreError};
use crate::model::envelope::Format;
use crate::model::{FormatError, Hash};
use serde::{Deserialize, Serialize};

/// The format of an outcome's file.
pub const OUTCOME: Format = Format { magic: *b"TASTEOUT", version: 4 };

/// The format of a dependency set's file.
pub const DEPENDENCY_SET: Format = Format { magic: *b"TASTESHP", version: 2 };

/// The format of a blob's file.
pub const BLOB: Format = Format { magic: *b"TASTEBLB", version: 2 };

/// What is smaller fits into one block of the disk as it is.
const WORTH_PACKING: usize = 1024;

/// What LZ4 can make of one byte at the most.
const HIGHEST_RATIO: usize = 256;

/// The largest file that an entry can be: what cannot be packed is kept as it is.
pub const LARGEST_FILE: usize = LARGEST + 1024;

#[derive(Serialize, Deserialize)]
struct StoredEntry<'a> {
    /// The test or key that it belongs to: a file under a wrong name is not an answer.
    name: Hash,
    /// The length before packing; 0 if it is not packed.
    unpacked: u64,
    body: &'a [u8],
}

/// The file for `raw`.
pub fn encode(format: &Format, name: Hash, raw: &[u8]) -> Result<Vec<u8>, StoreError> {
    if raw.len() > LARGEST {
        return Err(StoreError::TooLarge { size: raw.len(), limit: LARGEST });
    }
    let packed = (raw.len() >= WORTH_PACKING).then(|| lz4_flex::block::compress(raw));
    let entry = match &packed {
        Some(packed) if packed.len() < raw.len() => {
            StoredEntry { name, unpacked: raw.len() as u64, body: packed }
        }
        _ => StoredEntry { name, unpacked: 0, body: raw },
    };
    // Numbers and bytes can always be written; a failure would be one of memory.
    format.encode(&entry).map_err(|_| StoreError::TooLarge { size: raw.len(), limit: LARGEST })
}

/// What `encode` was given, if the file is whole and belongs to that name.
pub fn decode(format: &Format, name: Hash, file: &[u8]) -> Result<Vec<u8>, FormatError> {
    let (entry, rest) = format.decode::<StoredEntry>(file)?;
    if entry.name != name || !rest.is_empty() {
        return Err(FormatError::Malformed);
    }
    if entry.unpacked == 0 {
        return Ok(entry.body.to_vec());
    }
    let unpacked = usize::try_from(entry.unpacked).unwrap_or(usize::MAX);
    if unpacked > LARGEST.min(entry.body.len().saturating_mul(HIGHEST_RATIO)) {
        return Err(FormatError::Malformed);
    }
    match lz4_flex::block::decompress(entry.body, unpacked) {
        Ok(raw) if raw.len() == unpacked => Ok(raw),
        _ => Err(FormatError::Malformed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn repetitive_content_is_compressed_large_content_refused() {
        let name = Hash::of(b"x");
        let file = encode(&OUTCOME, name, &vec![b'a'; 1 << 20]).unwrap();
        assert!(file.len() < 8192);
        assert_eq!(decode(&OUTCOME, name, &file).unwrap(), vec![b'a'; 1 << 20]);
        assert!(matches!(
            encode(&OUTCOME, name, &vec![0; LARGEST + 1]),
            Err(StoreError::TooLarge { .. })
        ));
    }

    #[test]
    fn another_name_or_kind_is_no_answer() {
        let file = encode(&OUTCOME, Hash::of(b"x"), b"raw").unwrap();
        assert_eq!(decode(&OUTCOME, Hash::of(b"y"), &file), Err(FormatError::Malformed));
        assert_eq!(decode(&DEPENDENCY_SET, Hash::of(b"x"), &file), Err(FormatError::Magic));
    }

    #[test]
    fn a_false_length_is_noticed() {
        let name = Hash::of(b"x");
        let body = lz4_flex::block::compress(&[b'a'; 5000]);
        for unpacked in [1, 4999, 5001, 1 << 40, u64::MAX] {
            let file = OUTCOME.encode(&StoredEntry { name, unpacked, body: &body }).unwrap();
            assert!(decode(&OUTCOME, name, &file).is_err(), "{unpacked}");
        }
    }

    proptest! {
        #[test]
        fn values_round_trip(raw in prop::collection::vec(any::<u8>(), 0..5000), byte: u8, times in 0usize..5000) {
            let raw = [raw, vec![byte; times]].concat();
            let file = encode(&DEPENDENCY_SET, Hash::of(b"n"), &raw).unwrap();
            prop_assert_eq!(decode(&DEPENDENCY_SET, Hash::of(b"n"), &file).unwrap(), raw);
        }

        #[test]
        fn a_hostile_body_is_an_error_or_bytes(body: Vec<u8>, unpacked: u64) {
            let file = OUTCOME.encode(&StoredEntry { name: Hash::default(), unpacked, body: &body }).unwrap();
            let _ = decode(&OUTCOME, Hash::default(), &file);
        }
    }
}
