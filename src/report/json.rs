//! JSON for machines.

use super::shown::Shown;
use std::io::{self, Write};

/// Writes one JSON object and a line end.
pub fn write(out: &mut impl Write, shown: &Shown) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, shown)?;
    out.write_all(b"\n")
}
