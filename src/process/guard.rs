//! Two shims in a row do the work once: the outer one marks the environment of what it starts, the
//! inner one sees the mark and passes through. It happens with a launcher and `CC=tasting-cc`
//! together, and with `tasting-cc ccache gcc` where `gcc` on `PATH` is a link to a shim.
//!
//! The mark names the process that set it and holds only below that process: an environment that
//! was handed on otherwise, by a build daemon or a saved shell, does not switch the shims off.
//! Compiler and linker have marks of their own, because a linker's shim below a compiler's is the
//! ordinary case.

use super::spawn::{Change, set};
use std::fs;

/// The mark of the compiler's shims.
pub const COMPILER: &str = "TASTING_INSIDE_CC";
/// The mark of the linker's shim.
pub const LINKER: &str = "TASTING_INSIDE_LD";

/// No real chain of launchers and drivers is as deep.
const MOST_PARENTS: usize = 32;

/// The change to the environment that marks what this process starts, or becomes.
pub fn mark(variable: &str) -> Change {
    set(variable, std::process::id().to_string())
}

/// Whether this process runs below (or is) a shim that set this mark.
pub fn is_inside(variable: &str) -> bool {
    let Some(outer) = std::env::var_os(variable) else { return false };
    let Some(outer) = outer.to_str().and_then(|outer| outer.parse::<u32>().ok()) else {
        return false;
    };
    let own = std::process::id();
    std::iter::successors(Some(own), |&process| parent(process))
        .take(MOST_PARENTS)
        .any(|process| process == outer)
}

/// The parent of a process: the second field behind the name, which stands in parentheses and may
/// itself contain anything.
fn parent(process: u32) -> Option<u32> {
    let text = fs::read(format!("/proc/{process}/stat")).ok()?;
    let behind_name = text.iter().rposition(|&byte| byte == b')')? + 1;
    let fields = std::str::from_utf8(&text[behind_name..]).ok()?;
    fields.split_ascii_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parent_is_found() {
        assert_eq!(parent(std::process::id()), Some(std::os::unix::process::parent_id()));
        assert_eq!(parent(u32::MAX), None);
    }
}
