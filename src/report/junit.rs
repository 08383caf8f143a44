//! A suite as a JUnit file: each test with its end, whether it was reused, and why it ran.
//!
//! In: what is shown of a suite. Out: XML.

use super::suite::{ShownSuite, ShownTest};
use std::io::{self, Write};

/// Writes a suite. `harness` is the class of all tests.
pub fn write(out: &mut impl Write, suite: &ShownSuite, harness: &str) -> io::Result<()> {
    let time: u64 = suite.tests.iter().map(|test| test.duration_ms).sum();
    let count = |end: &str| suite.tests.iter().filter(|test| test.end == Some(end)).count();
    let counts = format!(
        "tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\" time=\"{}\"",
        suite.tests.len(),
        count("failed"),
        count("not run"),
        count("skipped"),
        seconds(time)
    );
    let class = escaped(harness.as_bytes());
    writeln!(
        out,
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites {counts}>\n<testsuite name=\"{class}\" {counts}>"
    )?;
    suite.tests.iter().try_for_each(|test| write_test(out, test, &class))?;
    writeln!(out, "</testsuite>\n</testsuites>")
}

fn write_test(out: &mut impl Write, test: &ShownTest, class: &str) -> io::Result<()> {
    let name = escaped(test.name.as_bytes());
    writeln!(
        out,
        "<testcase name=\"{name}\" classname=\"{class}\" time=\"{}\">",
        seconds(test.duration_ms)
    )?;
    let property = |out: &mut dyn Write, name: &str, value: &str| {
        writeln!(out, "<property name=\"tasting.{name}\" value=\"{}\"/>", escaped(value.as_bytes()))
    };
    writeln!(out, "<properties>")?;
    property(out, "reused", if test.decision == "reused" { "true" } else { "false" })?;
    property(out, "reason", &test.reason)?;
    property(out, "saved_ms", &test.saved_ms.to_string())?;
    writeln!(out, "</properties>")?;
    let exit =
        test.exit_code.map_or_else(|| "failed".to_owned(), |code| format!("exit status {code}"));
    match test.end {
        Some("failed") => writeln!(out, "<failure message=\"{}\"/>", escaped(exit.as_bytes()))?,
        Some("not run") => writeln!(out, "<error message=\"not run\"/>")?,
        Some("skipped") => writeln!(out, "<skipped/>")?,
        _ => {}
    }
    if !test.output.is_empty() {
        writeln!(out, "<system-out>{}</system-out>", escaped(&test.output))?;
    }
    writeln!(out, "</testcase>")
}

fn seconds(milliseconds: u64) -> String {
    format!("{}.{:03}", milliseconds / 1000, milliseconds % 1000)
}

/// A text as XML has it. What XML cannot say is left out.
fn escaped(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    let mut xml = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => xml.push_str("&amp;"),
            '<' => xml.push_str("&lt;"),
            '>' => xml.push_str("&gt;"),
            '"' => xml.push_str("&quot;"),
            '\n' => xml.push_str("&#10;"),
            '\t' => xml.push('\t'),
            '\0'..='\x1f' | '\u{fffe}' | '\u{ffff}' => {}
            letter => xml.push(letter),
        }
    }
    xml
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_output_are_escaped() {
        assert_eq!(escaped(b"a<b>&\"\x1b[1m\n"), "a&lt;b&gt;&amp;&quot;[1m&#10;");
        assert_eq!((seconds(0), seconds(1234)), ("0.000".to_owned(), "1.234".to_owned()));
    }
}
