//! Where the functions of two versions of an object differ.

use super::demangle::demangle;
use serde::Serialize;
use std::io::{self, Write};

/// What `tasting explain --old` shows.
#[derive(Serialize)]
pub struct ShownFunctions {
    pub functions: Vec<ShownFunction>,
}

/// A function that is different.
#[derive(Serialize)]
pub struct ShownFunction {
    pub name: String,
    /// The lines of the blocks that are different, as first and last ones; none without debug
    /// information.
    pub lines: Vec<(u32, u32)>,
    /// How many blocks are different, and how many there are.
    pub changed: usize,
    pub blocks: usize,
    /// Why no more can be told.
    pub refusal: Option<String>,
}

/// Sorted lines as ranges.
pub fn ranges(lines: impl IntoIterator<Item = u32>) -> Vec<(u32, u32)> {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for line in lines {
        match ranges.last_mut() {
            Some((_, last)) if line <= *last + 1 => *last = line,
            _ => ranges.push((line, line)),
        }
    }
    ranges
}

pub fn write(out: &mut impl Write, shown: &ShownFunctions) -> io::Result<()> {
    if shown.functions.is_empty() {
        writeln!(out, "no function differs")?;
    }
    for function in &shown.functions {
        let name = demangle(&function.name);
        let count = format!("{} of {} blocks", function.changed, function.blocks);
        let range = |(first, last): &(u32, u32)| match first == last {
            true => first.to_string(),
            false => format!("{first}–{last}"),
        };
        let lines: Vec<String> = function.lines.iter().map(range).collect();
        match (&function.refusal, &function.lines[..]) {
            (Some(reason), _) => {
                writeln!(out, "`{name}` has changed and is taken as a whole: {reason}")?
            }
            (None, []) => writeln!(out, "in `{name}`, the change is in {count}")?,
            (None, [(first, last)]) if first == last => {
                writeln!(out, "in `{name}`, the change is in line {first} ({count})")?;
            }
            (None, _) => {
                writeln!(out, "in `{name}`, the change is in lines {} ({count})", lines.join(", "))?
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbouring_lines_are_a_range() {
        assert_eq!(ranges([3, 4, 4, 5, 9, 11, 12]), [(3, 5), (9, 9), (11, 12)]);
        assert!(ranges([]).is_empty());
    }
}
