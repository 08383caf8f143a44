//! One file of `fixtures/edits/` → a small program in two versions and what the edit must do.
//! The format is described in `fixtures/edits/README.md`.

use std::collections::BTreeMap;
use std::path::Path;

use super::matrix::{Pattern, Variant};
use super::recipe::{Item, parse_items};

/// What the edit must do to the fingerprint, or to the program's output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    Change,
    Same,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    C,
    Cxx,
}

/// A program in two versions.
#[derive(Debug)]
pub struct Fixture {
    pub name: String,
    pub expect: Expect,
    /// Whether the two programs print something different: keeps a fixture from rotting.
    pub expect_run: Expect,
    pub language: Language,
    pub before: Version,
    pub after: Version,
    /// Where only the fixture makes sense; each with a reason in the file.
    pub only: Vec<Pattern>,
    /// Where precision falls short, so that the fingerprint changes although it need not.
    pub unless: Vec<Pattern>,
    /// Builds besides the plain one.
    pub variants: Vec<Variant>,
    /// A function to start from, for `tasting fingerprint --entry`.
    pub entry: Option<String>,
    /// The binary whose fingerprint counts.
    pub fingerprint: String,
    /// In the second version only the libraries are linked anew, the program is not.
    pub keeps_program: bool,
}

/// One version of the program.
#[derive(Clone, Debug, Default)]
pub struct Version {
    pub files: BTreeMap<String, String>,
    pub cflags: Vec<String>,
    pub ldflags: Vec<String>,
    pub libs: Vec<Item>,
    pub link: Vec<Item>,
}

impl Fixture {
    pub fn read(path: &Path) -> Result<Fixture, String> {
        let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
        let name = path.file_stem().expect("a fixture has a name").to_string_lossy().into_owned();
        Fixture::parse(&name, &text)
    }

    pub fn parse(name: &str, text: &str) -> Result<Fixture, String> {
        let (header, sections) = split_sections(text);
        let directives = Directives::parse(&header)?;
        let fixture = Fixture::assemble(name, &directives, sections)?;
        directives.all_used()?;
        fixture.check()?;
        Ok(fixture)
    }

    fn assemble(
        name: &str,
        directives: &Directives,
        sections: Vec<(String, String)>,
    ) -> Result<Fixture, String> {
        let expect = expectation(&directives.one("expect")?.ok_or("no `expect:`")?)?;
        let expect_run = match directives.one("expect-run")?.as_deref() {
            None => expect,
            Some("differs") => Expect::Change,
            Some("same") => Expect::Same,
            Some(other) => return Err(format!("expect-run: {other}")),
        };
        let (before, after) = versions(directives, sections)?;
        Ok(Fixture {
            name: name.to_owned(),
            expect,
            expect_run,
            language: language(directives.one("language")?.as_deref())?,
            before,
            after,
            only: restrictions(directives)?,
            unless: directives
                .all_with_reason("unless")?
                .iter()
                .map(|words| Pattern::all_of(words))
                .collect(),
            variants: variants(&directives.words("variants")?)?,
            entry: directives.one("entry")?,
            fingerprint: directives.one("fingerprint")?.unwrap_or_else(|| "prog".to_owned()),
            keeps_program: match directives.one("relink")?.as_deref() {
                None => false,
                Some("libs") => true,
                Some(other) => return Err(format!("relink: {other}")),
            },
        })
    }

    fn check(&self) -> Result<(), String> {
        if self.expect == Expect::Change && !self.unless.is_empty() {
            return Err("`unless` excuses a lack of precision, never a missed change".to_owned());
        }
        if self.expect == Expect::Same && self.expect_run == Expect::Change {
            return Err("programs that print something different cannot have the same fingerprint"
                .to_owned());
        }
        let scripted = |version: &Version| version.files.contains_key("build.sh");
        if self.before.link.is_empty() && !scripted(&self.before) {
            return Err("neither `link:` nor a build.sh".to_owned());
        }
        Ok(())
    }
}

/// The text above the first `-- path --` line, and the files below.
fn split_sections(text: &str) -> (String, Vec<(String, String)>) {
    let mut header = String::new();
    let mut sections: Vec<(String, String)> = Vec::new();
    for line in text.lines() {
        if let Some(path) = line.strip_prefix("-- ").and_then(|rest| rest.strip_suffix(" --")) {
            sections.push((path.to_owned(), String::new()));
            continue;
        }
        let target = sections.last_mut().map_or(&mut header, |(_, content)| content);
        target.push_str(line);
        target.push('\n');
    }
    (header, sections)
}

/// The `key: value` lines above the files. Lines that start with `#` are for people.
struct Directives {
    lines: Vec<(String, String)>,
    used: std::cell::RefCell<Vec<String>>,
}

impl Directives {
    fn parse(header: &str) -> Result<Directives, String> {
        if !header.starts_with('#') {
            return Err("the first line does not say what the case is about".to_owned());
        }
        let mut lines = Vec::new();
        for line in header.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let (key, value) =
                line.split_once(':').ok_or_else(|| format!("not a directive: {line}"))?;
            lines.push((key.to_owned(), value.trim().to_owned()));
        }
        Ok(Directives { lines, used: std::cell::RefCell::default() })
    }

    fn all(&self, key: &str) -> Vec<String> {
        self.used.borrow_mut().push(key.to_owned());
        self.lines.iter().filter(|(name, _)| name == key).map(|(_, value)| value.clone()).collect()
    }

    fn one(&self, key: &str) -> Result<Option<String>, String> {
        let mut values = self.all(key);
        match values.len() {
            0 | 1 => Ok(values.pop()),
            _ => Err(format!("`{key}:` stands there twice")),
        }
    }

    fn words(&self, key: &str) -> Result<Vec<String>, String> {
        Ok(split_words(&self.one(key)?.unwrap_or_default()))
    }

    /// The words of each `key: words # reason` line; without a reason it is refused.
    fn all_with_reason(&self, key: &str) -> Result<Vec<Vec<String>>, String> {
        let with_reason = |value: String| match value.split_once(" # ") {
            Some((words, reason)) if !reason.trim().is_empty() => Ok(split_words(words)),
            _ => Err(format!("`{key}: {value}` gives no reason (`{key}: … # because …`)")),
        };
        self.all(key).into_iter().map(with_reason).collect()
    }

    fn all_used(&self) -> Result<(), String> {
        let used = self.used.borrow();
        match self.lines.iter().find(|(key, _)| !used.contains(key)) {
            Some((key, _)) => Err(format!("nobody knows the directive `{key}:`")),
            None => Ok(()),
        }
    }
}

fn split_words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

fn expectation(word: &str) -> Result<Expect, String> {
    match word {
        "change" => Ok(Expect::Change),
        "same" => Ok(Expect::Same),
        _ => Err(format!("expect: {word}")),
    }
}

fn language(word: Option<&str>) -> Result<Language, String> {
    match word {
        None | Some("c") => Ok(Language::C),
        Some("c++") => Ok(Language::Cxx),
        Some(other) => Err(format!("language: {other}")),
    }
}

fn restrictions(directives: &Directives) -> Result<Vec<Pattern>, String> {
    let mut only = Vec::new();
    for key in ["compilers", "linkers", "opt"] {
        only.extend(directives.all_with_reason(key)?.iter().map(|words| Pattern::any_of(words)));
    }
    Ok(only)
}

fn variants(names: &[String]) -> Result<Vec<Variant>, String> {
    let find =
        |name: &String| Variant::named(name).ok_or_else(|| format!("no variant is called {name}"));
    names.iter().map(find).collect()
}

/// The files and flags before and after the edit: what is not given for `after` is as before.
fn versions(
    directives: &Directives,
    sections: Vec<(String, String)>,
) -> Result<(Version, Version), String> {
    let mut before = Version {
        cflags: directives.words("cflags")?,
        ldflags: directives.words("ldflags")?,
        libs: parse_items(&directives.one("libs")?.unwrap_or_default())?,
        link: parse_items(&directives.one("link")?.unwrap_or_default())?,
        ..Version::default()
    };
    let (edited, original): (Vec<_>, Vec<_>) =
        sections.into_iter().partition(|(path, _)| path.starts_with("after/"));
    before.files = original.into_iter().collect();
    let mut after = before.clone();
    after
        .files
        .extend(edited.into_iter().map(|(path, text)| (path["after/".len()..].to_owned(), text)));
    for path in directives.all("remove") {
        after.files.remove(&path).ok_or_else(|| format!("remove: there is no {path}"))?;
    }
    if let Some(flags) = directives.one("after-cflags")? {
        after.cflags = split_words(&flags);
    }
    if let Some(flags) = directives.one("after-ldflags")? {
        after.ldflags = split_words(&flags);
    }
    if let Some(items) = directives.one("after-libs")? {
        after.libs = parse_items(&items)?;
    }
    if let Some(items) = directives.one("after-link")? {
        after.link = parse_items(&items)?;
    }
    Ok((before, after))
}
