//! The bytes of a map: in comes its text, out come lines, numbers, `file:(section)` and
//! `archive(member)`. Everything is a slice of the text; nothing here can panic or allocate.

use super::MapError;
use super::feed::{Feed, Piece};

/// The lines of a map, numbered from 1. Cloning is free, and is the way to look ahead.
#[derive(Clone, Copy)]
pub(super) struct Lines<'a> {
    rest: &'a [u8],
    number: usize,
    /// Where more comes from, and the piece that came last.
    feed: Option<&'a Feed<'a>>,
    piece: Option<&'a Piece>,
}

impl<'a> Lines<'a> {
    /// Refuses a text whose last line has no end: the linker had more to say.
    pub fn new(text: &'a [u8]) -> Result<Self, MapError> {
        match text.last() {
            Some(b'\n') => Ok(Self { rest: text, number: 0, feed: None, piece: None }),
            Some(_) => Err(MapError::Truncated),
            None => Err(MapError::Unknown),
        }
    }

    /// The lines of a text that may still be written.
    pub fn of(feed: &'a Feed<'a>) -> Self {
        Self { rest: b"", number: 0, feed: Some(feed), piece: None }
    }

    /// The number of the line that was returned last.
    pub fn malformed<T>(&self) -> Result<T, MapError> {
        Err(MapError::Malformed { line: self.number })
    }
}

impl<'a> Iterator for Lines<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let end = loop {
            match memchr::memchr(b'\n', self.rest) {
                Some(end) => break end,
                None => {
                    let piece = self.feed?.after(self.piece)?;
                    (self.rest, self.piece) = (piece, Some(piece));
                }
            }
        };
        let (line, rest) = self.rest.split_at_checked(end)?;
        self.rest = rest.get(1..)?;
        self.number += 1;
        Some(line)
    }
}

/// The text behind its leading spaces.
pub(super) fn skip_spaces(text: &[u8]) -> &[u8] {
    let spaces = text.iter().take_while(|byte| **byte == b' ').count();
    text.get(spaces..).unwrap_or_default()
}

/// A hexadecimal number without `0x` and what follows it.
pub(super) fn hex(text: &[u8]) -> Option<(u64, &[u8])> {
    let mut value = 0u64;
    let mut digits = 0;
    for byte in text {
        let digit = match byte {
            b'0'..=b'9' => byte - b'0',
            b'a'..=b'f' => byte - b'a' + 10,
            _ => break,
        };
        if value >> 60 != 0 {
            return None;
        }
        value = value << 4 | u64::from(digit);
        digits += 1;
    }
    if digits == 0 { None } else { Some((value, text.get(digits..)?)) }
}

/// A hexadecimal number with its `0x`.
pub(super) fn prefixed_hex(text: &[u8]) -> Option<(u64, &[u8])> {
    hex(text.strip_prefix(b"0x")?)
}

/// A decimal number and what follows it.
pub(super) fn decimal(text: &[u8]) -> Option<(u64, &[u8])> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (number, rest) = text.split_at_checked(digits)?;
    let step = |value: u64, byte: &u8| value.checked_mul(10)?.checked_add(u64::from(byte - b'0'));
    if digits == 0 { None } else { Some((number.iter().try_fold(0, step)?, rest)) }
}

/// `libx.a(m.o)` as file and member.
///
/// Any part may hold parentheses: an object may be called `copy (1)`, an archive `lib(x).a`, a
/// member `m(2)).o`. So `.a(` decides where there is one; without it (`libx.rlib(m.o)`) the member
/// has to be called like an object.
pub(super) fn split_member(path: &[u8]) -> (&[u8], Option<&[u8]>) {
    let Some(inner) = path.strip_suffix(b")") else { return (path, None) };
    let at = match inner.windows(3).rposition(|window| window == b".a(") {
        Some(dot) => Some(dot + 2),
        None if inner.ends_with(b".o") || inner.ends_with(b".obj") => opening(inner),
        None => None,
    };
    let split = at.and_then(|at| Some((inner.get(..at)?, inner.get(at + 1..)?)));
    match split {
        Some((archive, member)) if !archive.is_empty() && !member.is_empty() => {
            (archive, Some(member))
        }
        _ => (path, None),
    }
}

/// Where the parenthesis opens that would be closed right behind `inner`; the first one when they
/// do not balance.
fn opening(inner: &[u8]) -> Option<usize> {
    let mut depth = 1usize;
    for (at, byte) in inner.iter().enumerate().rev() {
        match byte {
            b')' => depth += 1,
            b'(' if depth == 1 => return Some(at),
            b'(' => depth -= 1,
            _ => {}
        }
    }
    inner.iter().position(|byte| *byte == b'(')
}

/// `file:(section)` as file and section, the spelling of lld and mold.
///
/// When `:(` is there more than once, in a folder's or a section's name, the file is the part that
/// ends as an object or a member does; when that does not decide, nobody can, and the answer is
/// `None`.
pub(super) fn split_input(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let inner = text.strip_suffix(b")")?;
    let mut marks = marks(inner);
    let first = marks.next()?;
    let at = match marks.next() {
        None => first,
        Some(second) => {
            let all = [first, second].into_iter().chain(marks);
            let mut likely = all.filter(|at| inner.get(..*at).is_some_and(is_object));
            let only = likely.next()?;
            if likely.next().is_some() {
                return None;
            }
            only
        }
    };
    let (file, section) = (inner.get(..at)?, inner.get(at + 2..)?);
    if file.is_empty() { None } else { Some((file, section)) }
}

/// Where a `:(` stands.
pub(super) fn marks(text: &[u8]) -> impl Iterator<Item = usize> {
    memchr::memchr_iter(b':', text).filter(|at| text.get(at + 1) == Some(&b'('))
}

fn is_object(file: &[u8]) -> bool {
    file.ends_with(b".o") || file.ends_with(b".o)") || file == super::INTERNAL
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_of_odd_archives() {
        let cases = [
            ("main.o", "main.o", None),
            ("libx.a(m.o)", "libx.a", Some("m.o")),
            ("odd dir (x)/lib d(u)p.a(dup.o)", "odd dir (x)/lib d(u)p.a", Some("dup.o")),
            ("odd dir (x)/odd obj (1).o", "odd dir (x)/odd obj (1).o", None),
            ("paren(1)", "paren(1)", None),
            ("arch.ive(m(2)).o)", "arch.ive", Some("m(2)).o")),
            ("libstd.rlib(a.b.o)", "libstd.rlib", Some("a.b.o")),
            ("sub/thin.a(../a:b/tw.o)", "sub/thin.a", Some("../a:b/tw.o")),
            ("(m.o)", "(m.o)", None),
            (".a()", ".a()", None),
        ];
        for (path, file, member) in cases {
            assert_eq!(
                split_member(path.as_bytes()),
                (file.as_bytes(), member.map(str::as_bytes)),
                "{path}"
            );
        }
    }

    #[test]
    fn inputs_with_several_marks() {
        let cases = [
            ("main.o:(.text)", Some(("main.o", ".text"))),
            ("main.o:(.text.par(en):x)", Some(("main.o", ".text.par(en):x"))),
            ("a:(b/l.a(m.o):(.text)", Some(("a:(b/l.a(m.o)", ".text"))),
            ("main.o:(.text:(x)", Some(("main.o", ".text:(x"))),
            ("a.o:(b.o:(.text)", None),
            (":(.text)", None),
            ("etext = .", None),
        ];
        for (text, expected) in cases {
            let expected = expected.map(|(file, section)| (file.as_bytes(), section.as_bytes()));
            assert_eq!(split_input(text.as_bytes()), expected, "{text}");
        }
    }

    #[test]
    fn numbers_do_not_overflow() {
        assert_eq!(hex(b"ffffffffffffffff "), Some((u64::MAX, b" ".as_slice())));
        assert_eq!(hex(b"10000000000000000"), None);
        assert_eq!(hex(b"x"), None);
        assert_eq!(prefixed_hex(b"0x1cz"), Some((0x1c, b"z".as_slice())));
        assert_eq!(decimal(b"18446744073709551616"), None);
        assert_eq!(decimal(b"42)"), Some((42, b")".as_slice())));
    }
}
