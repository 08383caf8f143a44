//! Assembler text that may take in another file, which the preprocessor does not see. In: the
//! tokens of a unit. Out: a problem where a piece of inline assembler has `.incbin` or `.include`
//! in it, or could put such a word together.

use super::kinds::TokenKind;
use super::lexer::Tokens;
use super::problem::Problem;

/// What gives the assembler another file, in lower case. No directive but `.incbin` and `.include`
/// starts with `.inc`; macros and operands of the assembler can make any word.
const SUSPICIOUS: [&str; 9] =
    [".inc", "incbin", ".macro", ".altmacro", ".irp", ".mri", ".%", ".i%", ".in%"];

/// Refuses a unit whose assembler may take in another file.
pub fn check(all: &Tokens) -> Result<(), Problem> {
    for (index, _) in
        all.tokens.iter().enumerate().filter(|(_, token)| token.kind == TokenKind::Asm)
    {
        let text = text_behind(all, index);
        if SUSPICIOUS.iter().any(|word| memchr::memmem::find(&text, word.as_bytes()).is_some()) {
            return Err(
                all.problem(index, "its assembler may take in another file (.incbin, .include)")
            );
        }
    }
    Ok(())
}

/// The literals of an `asm(…)`, put together, in lower case.
fn text_behind(all: &Tokens, index: usize) -> Vec<u8> {
    let mut text = Vec::new();
    let mut depth = 0;
    for token in &all.tokens[index + 1..] {
        match token.kind {
            TokenKind::OpenParen => depth += 1,
            TokenKind::CloseParen => depth -= 1,
            TokenKind::Text if depth > 0 => add_literal(&mut text, all.spelling(token)),
            TokenKind::Colon => text.push(b':'),
            TokenKind::Semicolon | TokenKind::OpenBrace | TokenKind::End => break,
            _ => {}
        }
        if depth == 0 && token.kind == TokenKind::CloseParen {
            break;
        }
    }
    text
}

/// What a literal stands for, in lower case.
fn add_literal(text: &mut Vec<u8>, spelling: &[u8]) {
    let from = spelling.iter().position(|&byte| byte == b'"').map_or(0, |quote| quote + 1);
    let mut rest = &spelling[from..spelling.len().saturating_sub(1).max(from)];
    while let [byte, behind @ ..] = rest {
        rest = behind;
        let byte = if *byte == b'\\' { escaped(&mut rest) } else { *byte };
        text.push(byte.to_ascii_lowercase());
    }
}

/// The byte that an escape sequence stands for, behind its backslash.
fn escaped(rest: &mut &[u8]) -> u8 {
    let number = |rest: &mut &[u8], base: u32, most: usize| {
        let digits =
            rest.iter().take(most).take_while(|byte| char::from(**byte).is_digit(base)).count();
        let (digits, behind) = rest.split_at(digits);
        *rest = behind;
        digits.iter().fold(0u32, |value, byte| {
            value.wrapping_mul(base) + char::from(*byte).to_digit(base).unwrap_or(0)
        }) as u8
    };
    let Some((&first, behind)) = rest.split_first() else { return b'\\' };
    if (b'0'..=b'7').contains(&first) {
        return number(rest, 8, 3);
    }
    *rest = behind;
    match first {
        b'x' => number(rest, 16, usize::MAX),
        b'u' => number(rest, 16, 4),
        b'U' => number(rest, 16, 8),
        b'n' => b'\n',
        b't' => b'\t',
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::super::read;

    #[test]
    fn another_file_however_it_is_written() {
        for text in [
            r#"asm(".incbin \"x\"");"#,
            r#"asm(".inc" "bin \"x\"");"#,
            r#"asm(".INCLUDE \"x\"");"#,
            r#"asm("\056inc\x62in \"x\"");"#,
            r#"void f(int bin) { __asm__ volatile (".inc%c0 \"x\"" :: "i"(bin)); }"#,
            r#"asm(".macro take what\n.in\\what \"x\"\n.endm\ntake cbin");"#,
        ] {
            assert!(read(text.as_bytes()).is_err(), "{text}");
        }
        for text in [
            r#"int f(void) asm("including");"#,
            r#"void f(void) { asm volatile("incl %0" : : "m"(*(int *)0)); }"#,
            r#"const char *name = ".incbin";"#,
        ] {
            assert!(read(text.as_bytes()).is_ok(), "{text}");
        }
    }
}
