//! A progress line on standard error if that is a terminal. It is cleared before anything else is
//! printed.
//!
//! In: a text. Out: the line.

use std::io::{self, IsTerminal, Write};
use std::sync::OnceLock;

fn is_wanted() -> bool {
    static WANTED: OnceLock<bool> = OnceLock::new();
    *WANTED.get_or_init(|| {
        io::stderr().is_terminal() && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
    })
}

/// Shows a line in place of the last one.
pub fn show(text: &str) {
    const WIDTH: usize = 76;
    if is_wanted() {
        let line: String = text.chars().filter(|letter| !letter.is_control()).take(WIDTH).collect();
        // Who cannot read it goes without.
        let _ = write!(io::stderr(), "\r\x1b[2K{line}");
    }
}

/// Takes the line away.
pub fn clear() {
    if is_wanted() {
        let _ = write!(io::stderr(), "\r\x1b[2K");
    }
}
