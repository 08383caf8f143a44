//! Which parts of a text compilers may warn about. In: preprocessed text. Out: a hash of everything
//! that diagnostics can depend on, beyond what the text means: of two texts with the same hash,
//! either both have diagnostics or neither has.

use crate::model::{Hash, Hasher};
use std::borrow::Cow;
use std::ops::Range;

/// The text without line numbers and empty lines. Layout counts, since compilers warn of misleading
/// indentation; so does whether a header is the system's, since they do not warn of what is in one.
pub fn hash(text: &[u8]) -> Hash {
    let mut hasher = Hasher::new("messages");
    add(&mut hasher, text);
    hasher.finish()
}

/// The same without some of its lines.
pub fn hash_without<'p>(text: &[u8], places: impl Iterator<Item = &'p Range<usize>>) -> Hash {
    let mut hasher = Hasher::new("messages");
    let mut from = 0;
    for place in places {
        add(&mut hasher, &text[from..place.start]);
        from = place.end;
    }
    add(&mut hasher, &text[from..]);
    hasher.finish()
}

fn add(hasher: &mut Hasher, text: &[u8]) {
    for line in text.split(|&byte| byte == b'\n') {
        match line {
            [] => {}
            [b'#', b' ', rest @ ..] if rest.first().is_some_and(u8::is_ascii_digit) => {
                // `# 12 "file.h" 1 3`: what follows the name.
                let flags =
                    rest.iter().rposition(|&byte| byte == b'"').map(|quote| &rest[quote + 1..]);
                if let Some(flags) = flags.filter(|flags| !flags.is_empty()) {
                    hasher.bytes(flags);
                }
            }
            line if line.iter().all(u8::is_ascii_whitespace) => {}
            line => {
                hasher.bytes(line);
            }
        }
    }
}

/// How much of the code before a comment tells where it stands.
const NEIGHBOURHOOD: usize = 48;

/// GCC takes some comments for a statement that a case falls through to the next. Takes the
/// comments out of the text, and gives a hash of those.
pub fn without_comments(text: &[u8]) -> (Cow<'_, [u8]>, Hash) {
    let mut hasher = Hasher::new("fall through");
    if memchr::memmem::find(text, b"/*").is_none() && memchr::memmem::find(text, b"//").is_none() {
        return (Cow::Borrowed(text), hasher.finish());
    }
    let mut plain = Vec::with_capacity(text.len());
    let mut at = 0;
    while at < text.len() {
        let rest = &text[at..];
        let length = match rest {
            [b'/', b'*', ..] => {
                memchr::memmem::find(&rest[2..], b"*/").map_or(rest.len(), |end| end + 4)
            }
            [b'/', b'/', ..] => memchr::memchr(b'\n', rest).unwrap_or(rest.len()),
            [b'"' | b'\'', ..] => literal(rest),
            _ => 1,
        };
        let part = &rest[..length];
        if matches!(rest, [b'/', b'*' | b'/', ..]) {
            if part.to_ascii_lowercase().windows(4).any(|word| word == b"fall") {
                let before: Vec<u8> = plain
                    .iter()
                    .rev()
                    .filter(|byte: &&u8| !byte.is_ascii_whitespace())
                    .take(NEIGHBOURHOOD)
                    .copied()
                    .collect();
                hasher.bytes(part).bytes(&before);
            }
            // Lines keep their numbers.
            plain.push(b' ');
            plain.extend(part.iter().filter(|byte| **byte == b'\n'));
        } else {
            plain.extend_from_slice(part);
        }
        at += length;
    }
    (Cow::Owned(plain), hasher.finish())
}

/// How long the literal is that the text starts with.
fn literal(text: &[u8]) -> usize {
    let mut at = 1;
    while at < text.len() && text[at] != b'\n' {
        match text[at] {
            b'\\' => at += 1,
            byte if byte == text[0] => return at + 1,
            _ => {}
        }
        at += 1;
    }
    at.min(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_numbers_do_not_count_and_layout_does() {
        let plain = hash(b"# 1 \"x.c\"\nint x;\n");
        assert_eq!(plain, hash(b"# 7 \"y.c\"\n\n  \nint x;\n"));
        assert_ne!(plain, hash(b"# 1 \"x.c\"\n  int x;\n"));
        assert_ne!(plain, hash(b"# 1 \"x.c\"\nint x; int f();\n"));
        assert_ne!(hash(b"# 1 \"x.h\" 1\nint x;\n"), hash(b"# 1 \"x.h\" 1 3\nint x;\n"));
        assert_eq!(
            hash(b"a;\nc;\ne;\n"),
            hash_without(b"a;\nb;\nc;\nd;\ne;\n", [3..6, 9..12].iter())
        );
    }

    #[test]
    fn comments_are_taken_out_and_some_are_noted() {
        let (text, plain) =
            without_comments(b"a; /* one\ntwo */ b; // three\nc = \"/* no */\" '\\'';");
        assert_eq!(&*text, b"a;  \n b;  \nc = \"/* no */\" '\\'';");
        assert_eq!(plain, without_comments(b"a; /* other */ b;").1);
        let noted = without_comments(b"case 1: a; /* FALLTHRU */ case 2: b;").1;
        assert_ne!(plain, noted);
        assert_ne!(noted, without_comments(b"case 1: a; case 2: b; /* FALLTHRU */").1);
    }
}
