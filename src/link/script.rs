//! What a linker script says about layout. In: the script's text. Out: which sections it gathers by
//! patterns, and whether it sets addresses as numbers.

use super::graph::{DATA, is_usual};

/// The patterns by which linker scripts gather sections that start like those of compilers, but are
/// not all of their kind.
pub fn gathered(script: &[u8]) -> Vec<glob::Pattern> {
    let script = String::from_utf8_lossy(script);
    let is_letter = |letter: char| letter.is_ascii_alphanumeric() || "._$*?[]-".contains(letter);
    let words = script
        .split(|letter| !is_letter(letter))
        .filter(|word| word.starts_with('.') && is_usual(word));
    let is_narrow = |word: &&str| {
        let stem = word.trim_end_matches(['*', '.']);
        !DATA.contains(&stem) && DATA.iter().any(|start| stem.starts_with(start))
    };
    words.filter(is_narrow).filter_map(|word| glob::Pattern::new(word).ok()).collect()
}

/// Whether a script says at which address anything lies: `. = 0x400000;`, `.text 0x400000 : { … }`,
/// or regions of memory.
pub fn has_addresses(script: &[u8]) -> bool {
    let script = String::from_utf8_lossy(script).replace([';', '{', '}', '(', ')'], " ");
    let script = script.replace('=', " = ").replace(':', " : ");
    let words: Vec<&str> = script.split_whitespace().collect();
    let is_number = |word: &str| word.starts_with(|letter: char| letter.is_ascii_digit());
    let is_address = |words: &[&str]| match words {
        [".", "=", number] => is_number(number) && !number.chars().all(|digit| digit == '0'),
        [_, number, ":"] => is_number(number),
        _ => false,
    };
    words.contains(&"MEMORY") || words.windows(3).any(is_address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_gather_by_narrow_patterns() {
        let script =
            b"SECTIONS { .data : { *(SORT(.data.tbl.*)) KEEP(*(.rodata.set)) *(.data .data.*) *(.text.hot*) } }";
        let patterns: Vec<_> =
            gathered(script).iter().map(|pattern| pattern.as_str().to_owned()).collect();
        assert_eq!(patterns, [".data.tbl.*", ".rodata.set"]);
    }

    #[test]
    fn addresses_are_numbers() {
        assert!(has_addresses(b"SECTIONS { . = 0x400000; .text : { *(.text) } }"));
        assert!(has_addresses(b"SECTIONS { .fixed 0x8000000 : { *(.fixed) } }"));
        assert!(!has_addresses(
            b"SECTIONS { .fixed : { *(.fixed) } } INSERT AFTER .data; answer = 42;"
        ));
        assert!(!has_addresses(b"GROUP ( /lib/libc.so.6 AS_NEEDED ( ld.so ) )"));
    }
}
