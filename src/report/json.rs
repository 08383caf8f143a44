//! JSON for machines.

use serde::Serialize;
use std::io::{self, Write};

/// Writes one JSON object and a line end.
pub fn write(out: &mut impl Write, shown: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, shown)?;
    out.write_all(b"\n")
}

/// Writes one JSON object on a line of its own.
pub fn write_line(out: &mut impl Write, shown: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer(&mut *out, shown)?;
    out.write_all(b"\n")
}
