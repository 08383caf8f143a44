//! The values of enumerators, where they are plain arithmetic on `int`.
//!
//! Whatever else there is (`sizeof`, casts, other types, overflow) gives no value, and then the
//! enumeration counts as a whole.

use super::kinds::TokenKind;
use super::lexer::Tokens;
use super::names::Name;

/// How deep brackets may be nested.
const DEEPEST: u32 = 100;

/// The value of the expression between two tokens.
pub fn evaluate(
    all: &Tokens,
    from: usize,
    to: usize,
    named: impl Fn(Name) -> Option<i32>,
) -> Option<i32> {
    let mut reader = Reader { all, at: from, end: to, named, depth: 0 };
    let value = reader.binary(0)?;
    (reader.at == to).then_some(value)
}

struct Reader<'t, 'a, F> {
    all: &'t Tokens<'a>,
    at: usize,
    end: usize,
    named: F,
    depth: u32,
}

impl<'a, F: Fn(Name) -> Option<i32>> Reader<'_, 'a, F> {
    fn spelling(&self) -> &'a [u8] {
        if self.at < self.end { self.all.spelling(&self.all.tokens[self.at]) } else { b"" }
    }

    fn binary(&mut self, least: u8) -> Option<i32> {
        let mut left = self.unary()?;
        loop {
            let operator = self.spelling();
            let Some(strength) = strength(operator).filter(|&strength| strength >= least) else {
                return Some(left);
            };
            self.at += 1;
            let right = self.deeper(|reader| reader.binary(strength + 1))?;
            left = apply(operator, left, right)?;
        }
    }

    fn unary(&mut self) -> Option<i32> {
        if self.at >= self.end {
            return None;
        }
        let token = self.all.tokens[self.at];
        self.at += 1;
        match (token.kind, self.all.spelling(&token)) {
            (TokenKind::Number, digits) => number(digits),
            (TokenKind::Character, [b'\'', byte @ 0x20..0x7f, b'\'']) if *byte != b'\\' => {
                Some(i32::from(*byte))
            }
            (TokenKind::Identifier, _) => (self.named)(token.name),
            (TokenKind::OpenParen, _) => {
                let value = self.deeper(|reader| reader.binary(0))?;
                (self.spelling() == b")").then(|| self.at += 1)?;
                Some(value)
            }
            (_, b"-") => self.deeper(Self::unary)?.checked_neg(),
            (_, b"+") => self.deeper(Self::unary),
            (_, b"~") => self.deeper(Self::unary).map(|value| !value),
            (_, b"!") => self.deeper(Self::unary).map(|value| i32::from(value == 0)),
            _ => None,
        }
    }

    fn deeper(&mut self, read: impl FnOnce(&mut Self) -> Option<i32>) -> Option<i32> {
        self.depth += 1;
        let value = (self.depth <= DEEPEST).then(|| read(self)).flatten();
        self.depth -= 1;
        value
    }
}

/// A number that is an `int` by its spelling.
fn number(digits: &[u8]) -> Option<i32> {
    let text = std::str::from_utf8(digits).ok()?;
    let (digits, base) = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(rest) => (rest, 16),
        None if text.starts_with('0') => (text, 8),
        None => (text, 10),
    };
    i32::from_str_radix(digits, base).ok().filter(|_| !digits.starts_with(['+', '-']))
}

fn strength(operator: &[u8]) -> Option<u8> {
    Some(match operator {
        b"||" => 0,
        b"&&" => 1,
        b"|" => 2,
        b"^" => 3,
        b"&" => 4,
        b"==" | b"!=" => 5,
        b"<" | b">" | b"<=" | b">=" => 6,
        b"<<" | b">>" => 7,
        b"+" | b"-" => 8,
        b"*" | b"/" | b"%" => 9,
        _ => return None,
    })
}

fn apply(operator: &[u8], left: i32, right: i32) -> Option<i32> {
    match operator {
        b"||" => Some(i32::from(left != 0 || right != 0)),
        b"&&" => Some(i32::from(left != 0 && right != 0)),
        b"|" => Some(left | right),
        b"^" => Some(left ^ right),
        b"&" => Some(left & right),
        b"==" => Some(i32::from(left == right)),
        b"!=" => Some(i32::from(left != right)),
        b"<" => Some(i32::from(left < right)),
        b">" => Some(i32::from(left > right)),
        b"<=" => Some(i32::from(left <= right)),
        b">=" => Some(i32::from(left >= right)),
        b"<<" => {
            let bits = u32::try_from(right).ok().filter(|&bits| bits < 31 && left >= 0)?;
            i32::try_from(i64::from(left) << bits).ok()
        }
        b">>" => u32::try_from(right)
            .ok()
            .filter(|&bits| bits < 32 && left >= 0)
            .map(|bits| left >> bits),
        b"+" => left.checked_add(right),
        b"-" => left.checked_sub(right),
        b"*" => left.checked_mul(right),
        b"/" => left.checked_div(right),
        b"%" => left.checked_rem(right),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ast::lexer;

    fn value(text: &str) -> Option<i32> {
        let all = lexer::tokens(text.as_bytes()).expect("the text is understood");
        evaluate(&all, 0, all.tokens.len() - 1, |_| Some(40))
    }

    #[test]
    fn plain_arithmetic() {
        assert_eq!(value("1 + 2 * 3 - (4 - 1)"), Some(4));
        assert_eq!(value("1 << 4 | 0x3 & ~1"), Some(18));
        assert_eq!(value("A + 'a' - 010"), Some(40 + 97 - 8));
        assert_eq!(value("-5 / 2 == -2 && !0"), Some(1));
        assert_eq!(value("10 - 3 - 2"), Some(5));
    }

    #[test]
    fn other_attributes_have_no_value() {
        for text in [
            "1u",
            "2147483648",
            "2147483647 + 1",
            "1 << 31",
            "sizeof(int)",
            "(int)1",
            "1 / 0",
            "'\\n'",
            "1 ? 2 : 3",
            "",
            "08",
            "1 +",
        ] {
            assert_eq!(value(text), None, "{text}");
        }
        assert_eq!(value(&"(".repeat(100_000)), None);
        assert_eq!(value(&"-".repeat(100_001)), None);
    }
}
