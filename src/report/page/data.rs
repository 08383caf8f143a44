//! The data of a page's matrix, small enough for millions of cells: each text once, each cell a
//! letter and two numbers. What is needed for chosen cells only is in texts, which browsers read
//! several times as fast as lists: the page is there sooner.
//!
//! In: a history. Out: JSON that can stand in a page.

use crate::model::{Audit, Verdict};
use crate::report::history::{Changed, Commit, History, Test, Text};
use serde::Serialize;
use std::collections::HashMap;
use std::fmt::{Display, Write};
use std::hash::Hash;
use std::io;

/// The first letter of the alphabet of cells; five levels of reuse for each state.
const FIRST: u8 = b'0';
const LEVELS: u8 = 5;

#[derive(Serialize)]
struct Data<'h> {
    tests: Vec<&'h str>,
    reasons: Vec<&'h str>,
    changes: Vec<&'h Changed>,
    commits: Vec<Column<'h>>,
}

/// One commit.
#[derive(Serialize)]
struct Column<'h> {
    sha: &'h str,
    subject: &'h str,
    built: bool,
    error: &'h str,
    /// The numbers of the tests; none if they are 0, 1, 2 and so on.
    tests: Vec<u32>,
    /// One letter for each.
    cells: String,
    /// A number for each, with spaces between them.
    reasons: String,
    times: String,
    /// By the number of the cell, where they are not 0.
    exits: Vec<(u32, i32)>,
    /// By the number of the cell: the numbers of changes.
    changes: Vec<(u32, Vec<u32>)>,
}

/// Things that are there once, with numbers.
struct Numbered<T>(Vec<T>, HashMap<T, u32>);

impl<T: Clone + Eq + Hash> Numbered<T> {
    fn number(&mut self, thing: T) -> u32 {
        let next = self.0.len() as u32;
        *self.1.entry(thing).or_insert_with_key(|thing| {
            self.0.push(thing.clone());
            next
        })
    }
}

/// The data as JSON. `<` is written in another way: nothing in it can end the element that it
/// stands in.
pub fn encode(history: &History) -> io::Result<String> {
    let mut tests = Numbered(Vec::new(), HashMap::new());
    let mut reasons = Numbered(Vec::new(), HashMap::new());
    let mut changes = Numbered(Vec::new(), HashMap::new());
    let mut commits = Vec::with_capacity(history.commits.len());
    for commit in &history.commits {
        let mut column = Column::of(commit);
        for (cell, test) in commit.tests.iter().enumerate() {
            let cell = cell as u32;
            column.tests.push(tests.number(&*test.name));
            column.cells.push(letter(test));
            add(&mut column.reasons, reasons.number(&*test.reason));
            add(&mut column.times, test.duration_ms);
            if test.exit_code != 0 {
                column.exits.push((cell, test.exit_code));
            }
            if !test.changed.is_empty() {
                let numbers =
                    test.changed.iter().map(|changed| changes.number(Same(changed))).collect();
                column.changes.push((cell, numbers));
            }
        }
        if column.tests.iter().enumerate().all(|(cell, test)| cell as u32 == *test) {
            column.tests.clear();
        }
        commits.push(column);
    }
    let changes = changes.0.into_iter().map(|Same(changed)| changed).collect();
    let data = Data { tests: tests.0, reasons: reasons.0, changes, commits };
    Ok(serde_json::to_string(&data)?.replace('<', "\\u003c"))
}

impl<'h> Column<'h> {
    fn of(commit: &'h Commit) -> Self {
        let size = commit.tests.len();
        Column {
            sha: &commit.sha,
            subject: &commit.subject,
            built: commit.built,
            error: commit
                .error
                .as_deref()
                .and_then(|error| error.lines().next())
                .unwrap_or_default(),
            tests: Vec::with_capacity(size),
            cells: String::with_capacity(size),
            reasons: String::new(),
            times: String::new(),
            exits: Vec::new(),
            changes: Vec::new(),
        }
    }
}

fn add(numbers: &mut String, number: impl Display) {
    let space = if numbers.is_empty() { "" } else { " " };
    // Texts take everything.
    let _ = write!(numbers, "{space}{number}");
}

/// A change, told from others by what it says.
#[derive(Clone, PartialEq, Eq)]
struct Same<'h>(&'h Changed);

impl Hash for Same<'_> {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        let Changed { name, source, what, .. } = self.0;
        (name, source.as_ref().map(|source: &Text| &**source), what).hash(state);
    }
}

/// The state of a cell, and at how many granularities it would have been reused.
fn letter(test: &Test) -> char {
    let state = match test.audit {
        Some(Audit::Missed) => 4,
        Some(Audit::Unstable) => 3,
        _ if test.has_failed() => 2,
        _ if &*test.sort == "new" => 1,
        _ => 0,
    };
    let level =
        test.decision.values().into_iter().filter(|verdict| **verdict == Verdict::Reused).count()
            as u8;
    char::from(FIRST + state * LEVELS + level)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::history::Commit;
    use crate::report::page::{self, PageContent};
    use proptest::prelude::*;

    fn history(name: &str, reason: &str) -> History {
        let changed = Changed {
            what: "changed".into(),
            name: name.into(),
            source: Some(reason.into()),
            object: None,
            chain: vec![name.into()],
        };
        let test = Test {
            name: name.into(),
            decision: Default::default(),
            exit_code: 1,
            failed: None,
            reason: reason.into(),
            sort: "new".into(),
            duration_ms: 1,
            audit: None,
            disturbed: Some(reason.into()),
            ast: None,
            changed: vec![changed],
        };
        let commit = Commit {
            sha: name.to_owned(),
            subject: reason.to_owned(),
            error: Some(reason.to_owned()),
            tests: vec![test],
            ..Commit::default()
        };
        History::new(name.to_owned(), vec![commit])
    }

    fn page(history: &History) -> String {
        let mut written = Vec::new();
        page::write(&mut written, &PageContent::of_history(history)).unwrap();
        String::from_utf8(written).unwrap()
    }

    proptest! {
        /// Whatever tests are called: the page has the same elements, and the data says the same.
        #[test]
        fn hostile_names_add_no_element(name in "[<>&\"'/a-z!\\-\\n\u{2028}é]{0,40}", reason in any::<String>()) {
            let tags = |text: &str| text.matches('<').count();
            let shown = history(&format!("</script><script>{name}"), &format!("<img src=x onerror=1>{reason}"));
            let plain = history("x", "y");
            prop_assert_eq!(tags(&page(&shown)), tags(&page(&plain)));
            let data: serde_json::Value = serde_json::from_str(&encode(&shown).unwrap()).unwrap();
            prop_assert_eq!(data["tests"][0].as_str(), Some(&*format!("</script><script>{name}")));
        }
    }

    #[test]
    fn cells_are_letters() {
        let text = encode(&history("a", "b")).unwrap();
        let data: serde_json::Value = serde_json::from_str(&text).unwrap();
        let column = &data["commits"][0];
        assert_eq!((column["cells"].as_str(), &column["exits"][0][1]), (Some(":"), &1.into()));
        assert_eq!(
            (&data["changes"][0]["name"], &column["changes"][0][1][0]),
            (&"a".into(), &0.into())
        );
        assert!(column["tests"].as_array().unwrap().is_empty());
    }
}
