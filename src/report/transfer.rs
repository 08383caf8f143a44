//! What was moved between stores, and what a remote store holds: for `tasting push`, `tasting pull`
//! and `tasting stats --remote`.

use super::style::Style;
use super::units::{counted, size, visible};
use serde::Serialize;
use std::io::{self, Write};

/// What was moved.
#[derive(Serialize)]
pub struct ShownTransfer {
    pub remote: String,
    pub outcomes: u64,
    pub tests: u64,
    /// Compiled objects.
    pub objects: u64,
    pub bytes: u64,
    /// How many were left, and some of the reasons.
    pub left: u64,
    pub reasons: Vec<String>,
}

/// A remote store.
#[derive(Serialize)]
pub struct ShownRemote {
    pub url: String,
    /// Who shares with whom: the one that was given, and what the processor can do.
    pub namespace: String,
    /// Why nothing is written to it.
    pub read_only: Option<&'static str>,
    /// Why it cannot be asked.
    pub problem: Option<String>,
    /// Why it is left alone just now, by `tasting run` and by what sends results.
    pub reading_failed: Option<String>,
    pub writing_failed: Option<String>,
    /// How much waits to be sent.
    pub waiting: u64,
    pub results: Option<u64>,
    pub tests: Option<u64>,
    pub objects: Option<u64>,
    pub bytes: Option<u64>,
    /// How many results of other machines were reused here.
    pub reused: u64,
    pub reused_objects: u64,
    /// Where objects are shared: how many wait to be sent, and why none are asked for just now.
    pub waiting_objects: Option<u64>,
    pub objects_failed: Option<String>,
}

/// Writes what was sent, for people.
pub fn write_pushed(out: &mut impl Write, shown: &ShownTransfer, colour: bool) -> io::Result<()> {
    write(out, shown, colour, "sent", "to")
}

/// Writes what was fetched, for people.
pub fn write_pulled(out: &mut impl Write, shown: &ShownTransfer, colour: bool) -> io::Result<()> {
    write(out, shown, colour, "fetched", "from")
}

fn write(
    out: &mut impl Write,
    shown: &ShownTransfer,
    colour: bool,
    done: &str,
    way: &str,
) -> io::Result<()> {
    let Style { bold, dim, plain, .. } = Style::new(colour);
    let ShownTransfer { remote, outcomes, tests, objects, bytes, left, reasons } = shown;
    let objects =
        if *objects > 0 { format!(", {},", counted(*objects, "object")) } else { String::new() };
    let (results, tests) = (counted(*outcomes, "result"), counted(*tests, "test"));
    writeln!(
        out,
        "{bold}{done}{plain} {results} and {tests}{objects} ({}) {way} {}",
        size(*bytes),
        visible(remote)
    )?;
    if *left > 0 {
        writeln!(out, "{bold}left{plain} {}", counted(*left, "value"))?;
    }
    reasons.iter().try_for_each(|reason| writeln!(out, "  {dim}{}{plain}", visible(reason)))
}

/// Writes what is known of a remote store, for people.
pub fn write_remote(out: &mut impl Write, shown: &ShownRemote, colour: bool) -> io::Result<()> {
    let Style { bold, red, plain, .. } = Style::new(colour);
    writeln!(out, "{bold}remote{plain}      {}", visible(&shown.url))?;
    writeln!(out, "            namespace {}", visible(&shown.namespace))?;
    if let Some(reason) = shown.read_only {
        writeln!(out, "            read only: {reason}")?;
    }
    if let (Some(results), Some(tests), Some(bytes)) = (shown.results, shown.tests, shown.bytes) {
        let (results, tests) = (counted(results, "result"), counted(tests, "test"));
        let objects = shown.objects.filter(|count| *count > 0);
        let objects =
            objects.map_or(String::new(), |count| format!("{}, ", counted(count, "object")));
        writeln!(out, "{bold}holds{plain}       {results} of {tests}, {objects}{}", size(bytes))?;
    }
    writeln!(
        out,
        "{bold}reused{plain}      {} of other machines",
        counted(shown.reused, "result")
    )?;
    writeln!(out, "{bold}waiting{plain}     {} to be sent", counted(shown.waiting, "result"))?;
    if let Some(waiting) = shown.waiting_objects {
        let (reused, waiting) =
            (counted(shown.reused_objects, "object"), counted(waiting, "object"));
        writeln!(
            out,
            "{bold}objects{plain}     {reused} of other machines reused; {waiting} to be sent"
        )?;
    }
    let problems = [
        ("problem", &shown.problem),
        ("reading has failed, and is not tried for a while", &shown.reading_failed),
        ("reading objects has failed, and is not tried for a while", &shown.objects_failed),
        ("sending has failed, and is not tried for a while", &shown.writing_failed),
    ];
    for (what, reason) in problems {
        if let Some(reason) = reason {
            writeln!(out, "{red}{what}:{plain} {}", visible(reason))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_for_people() {
        let reasons = vec!["it is a failure".to_owned()];
        let moved = ShownTransfer {
            remote: "redis://h".into(),
            outcomes: 2,
            tests: 1,
            objects: 0,
            bytes: 2048,
            left: 1,
            reasons,
        };
        let mut text = Vec::new();
        write_pushed(&mut text, &moved, false).unwrap();
        let expected =
            "sent 2 results and 1 test (2.0 KiB) to redis://h\nleft 1 value\n  it is a failure\n";
        assert_eq!(String::from_utf8(text).unwrap(), expected);
        let remote = ShownRemote {
            url: "file:/x".into(),
            namespace: "n".into(),
            read_only: Some("why"),
            problem: None,
            reading_failed: Some("it is away".into()),
            writing_failed: None,
            waiting: 3,
            results: Some(1),
            tests: Some(1),
            objects: Some(2),
            bytes: Some(1024),
            reused: 0,
            reused_objects: 1,
            waiting_objects: Some(0),
            objects_failed: None,
        };
        let mut text = Vec::new();
        write_remote(&mut text, &remote, false).unwrap();
        let expected = "remote      file:/x\n            namespace n\n            read only: why\nholds       1 result of 1 test, 2 objects, 1.0 KiB\n\
                        reused      0 results of other machines\nwaiting     3 results to be sent\n\
                        objects     1 object of other machines reused; 0 objects to be sent\n\
                        reading has failed, and is not tried for a while: it is away\n";
        assert_eq!(String::from_utf8(text).unwrap(), expected);
    }
}
