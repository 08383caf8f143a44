//! Inputs for linker scripts that do not expect one section per function. In: a link with scripts,
//! whose patterns name input sections. Out: copies of those inputs that have sections which our
//! options made and which no pattern matches (`.text.main`, where the script has `*(.text)` and
//! discards the rest), with the section names that they have without our options.
//!
//! Only names are changed, in place, so that a copy equals its input byte by byte in everything
//! else. Several sections of one name in an object are allowed. The map then names other files and
//! sections than the records do, so the binary is fingerprinted as a whole.

use super::arguments::LinkerJob;
use crate::elf::archive::{self, Content};
use crate::elf::object_file::{ObjectFile, SymbolPlace};
use crate::process::sys;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Sections that options divide, the longer names first.
const DIVIDED: [&str; 14] = [
    ".data.rel.ro.local",
    ".data.rel.local",
    ".text.unlikely",
    ".text.startup",
    ".data.rel.ro",
    ".text.exit",
    ".data.rel",
    ".text.hot",
    ".rodata",
    ".tdata",
    ".text",
    ".data",
    ".tbss",
    ".bss",
];

/// The copies, for as long as the link runs.
pub struct Copies {
    folder: PathBuf,
    /// What stands on the command line, and what is to stand there.
    replaced: Vec<(OsString, OsString)>,
}

impl Copies {
    /// The copies that a link needs; `None` if its scripts take in all as it is.
    pub fn for_scripts(job: &LinkerJob) -> Option<Self> {
        let texts: Vec<Vec<u8>> =
            job.scripts.iter().map(fs::read).collect::<io::Result<_>>().ok()?;
        let patterns = texts
            .iter()
            .flat_map(|text| patterns(&String::from_utf8_lossy(text)))
            .collect::<Vec<_>>();
        if patterns.is_empty() {
            return None;
        }
        let folder = std::env::temp_dir().join(format!("tasting-ld-{}", std::process::id()));
        let mut copies = Copies { folder, replaced: Vec::new() };
        let inputs = job.inputs.iter().filter(|input| !input.as_bytes().starts_with(b"-"));
        for (number, input) in inputs.enumerate() {
            copies.add(number, input, &patterns).ok()?;
        }
        (!copies.replaced.is_empty()).then_some(copies)
    }

    fn add(&mut self, number: usize, input: &OsStr, patterns: &[String]) -> io::Result<()> {
        let content = sys::map(Path::new(input))?;
        let Some(renamed) = renamed(&content, patterns) else { return Ok(()) };
        let folder = self.folder.join(number.to_string());
        fs::create_dir_all(&folder)?;
        let copy = folder.join(Path::new(input).file_name().unwrap_or(OsStr::new("object.o")));
        fs::write(&copy, renamed)?;
        self.replaced.push((input.to_owned(), copy.into_os_string()));
        Ok(())
    }

    /// The words of the link, with copies for inputs.
    pub fn arguments(&self, arguments: &[OsString]) -> Vec<OsString> {
        let copy = |word: &OsString| {
            self.replaced.iter().find(|(input, _)| input == word).map(|(_, copy)| copy.clone())
        };
        arguments.iter().map(|word| copy(word).unwrap_or_else(|| word.clone())).collect()
    }

    /// What the linker says, with the inputs in place of their copies.
    pub fn with_inputs_named(&self, said: &[u8]) -> Vec<u8> {
        let mut text = said.to_vec();
        for (input, copy) in &self.replaced {
            let mut plain = Vec::with_capacity(text.len());
            let mut from = 0;
            for at in memchr::memmem::find_iter(&text, copy.as_bytes()) {
                plain.extend_from_slice(&text[from..at]);
                plain.extend_from_slice(input.as_bytes());
                from = at + copy.len();
            }
            plain.extend_from_slice(&text[from..]);
            text = plain;
        }
        text
    }
}

impl Drop for Copies {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// The patterns by which a script takes in sections, outside of what it discards. Names of output
/// sections may be among them, which does no harm.
fn patterns(script: &str) -> Vec<String> {
    let script = without_comments(script);
    // Such a script is beside the linker's own, which takes in everything.
    if script.split_whitespace().any(|word| word == "INSERT") {
        return Vec::new();
    }
    let script = without_discarded(&script);
    let is_end = |c: char| c.is_whitespace() || "(){};,=".contains(c);
    let mut found = Vec::new();
    let mut start = 0;
    for (end, c) in script.char_indices().filter(|(_, c)| is_end(*c)) {
        let word = script[start..end].trim_matches('"');
        let before = script[..start].trim_end().chars().next_back();
        let is_file = script[end..].trim_start().starts_with('(');
        // A star in an expression multiplies.
        let is_pattern = word.starts_with('.') && word.len() > 1
            || word.contains('*') && (word != "*" || before == Some('('));
        if is_pattern && !is_file {
            found.push(word.to_owned());
        }
        start = end + c.len_utf8();
    }
    found
}

fn without_comments(script: &str) -> String {
    let mut parts = script.split("/*");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| {
        text + " " + part.split_once("*/").map_or("", |(_, behind)| behind)
    })
}

fn without_discarded(script: &str) -> String {
    let mut parts = script.split("/DISCARD/");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| {
        text + " " + part.split_once('}').map_or("", |(_, behind)| behind)
    })
}

/// Whether a name fits a pattern of a linker script: `*`, `?` and `[…]`.
fn fits(pattern: &[u8], name: &[u8]) -> bool {
    match pattern {
        [] => name.is_empty(),
        [b'*', rest @ ..] => (0..=name.len()).any(|from| fits(rest, &name[from..])),
        [b'?', rest @ ..] => !name.is_empty() && fits(rest, &name[1..]),
        [b'[', rest @ ..] => {
            let Some(end) = rest.iter().position(|&byte| byte == b']') else { return false };
            let is_among = |byte: u8| match &rest[..end] {
                [b'!' | b'^', set @ ..] => !contains(set, byte),
                set => contains(set, byte),
            };
            name.first().is_some_and(|&byte| is_among(byte)) && fits(&rest[end + 1..], &name[1..])
        }
        [byte, rest @ ..] => name.first() == Some(byte) && fits(rest, &name[1..]),
    }
}

/// Whether a byte is in a set such as `a-z0`.
fn contains(set: &[u8], byte: u8) -> bool {
    match set {
        [from, b'-', to, rest @ ..] => (*from..=*to).contains(&byte) || contains(rest, byte),
        [one, rest @ ..] => *one == byte || contains(rest, byte),
        [] => false,
    }
}

/// An object or archive with other names for sections, if there are any to be given.
fn renamed(content: &[u8], patterns: &[String]) -> Option<Vec<u8>> {
    let mut changes = Vec::new();
    if archive::is_archive(content) {
        for member in archive::members(content).ok()? {
            if let Content::Here(bytes) = member.content {
                let base = bytes.as_ptr() as usize - content.as_ptr() as usize;
                changes
                    .extend(names(bytes, patterns).into_iter().map(|(at, name)| (base + at, name)));
            }
        }
    } else {
        changes = names(content, patterns);
    }
    let mut copy = content.to_vec();
    for (at, name) in changes.iter() {
        copy.get_mut(*at..at + name.len())?.copy_from_slice(name);
    }
    (!changes.is_empty()).then_some(copy)
}

/// Where in an object which names are to be written.
fn names(object: &[u8], patterns: &[String]) -> Vec<(usize, Vec<u8>)> {
    let Ok(parsed) = ObjectFile::parse(object) else { return Vec::new() };
    let is_taken =
        |name: &str| patterns.iter().any(|pattern| fits(pattern.as_bytes(), name.as_bytes()));
    let mut changes = Vec::new();
    for (number, section) in
        parsed.sections.iter().enumerate().filter(|(_, section)| section.is_allocated())
    {
        let begins = |name: &str| {
            let is_it = |place: &SymbolPlace| matches!(place, SymbolPlace::Section(section) if *section == number);
            parsed
                .symbols
                .iter()
                .any(|symbol| symbol.name == name && symbol.value == 0 && is_it(&symbol.place))
        };
        let has_function = |name: &str| parsed.symbols.iter().any(|symbol| symbol.name == name);
        let Some(plain) = plain_name(section.name, begins, has_function) else { continue };
        let at = (section.name.as_ptr() as usize).checked_sub(object.as_ptr() as usize);
        if let Some(at) = at.filter(|at| {
            at + plain.len() < object.len() && !is_taken(section.name) && is_taken(&plain)
        }) {
            changes.push((at, [plain.as_bytes(), b"\0"].concat()));
        }
    }
    changes
}

/// What a section is called without our options: one of a single definition, or of the literals of
/// one.
fn plain_name(
    name: &str,
    begins: impl Fn(&str) -> bool,
    is_symbol: impl Fn(&str) -> bool,
) -> Option<String> {
    DIVIDED.iter().find_map(|base| {
        let own = name.strip_prefix(base)?.strip_prefix('.')?;
        if begins(own) {
            return Some((*base).to_owned());
        }
        let literals =
            own.find(".str").or_else(|| own.find(".cst")).filter(|_| *base == ".rodata")?;
        is_symbol(&own[..literals]).then(|| format!("{base}{}", &own[literals..]))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_those_outside_of_what_is_discarded() {
        let script = "/* *(.all) */ SECTIONS { . = 0x1000 * 4; .code : { KEEP(*(.init)) *(.text .text.hot*) *(SORT(.x*)) }\n\
            /DISCARD/ : { *(.comment*) *(*) } .data : { *(.data) } }";
        let found = patterns(script);
        assert_eq!(found, [".code", ".init", ".text", ".text.hot*", ".x*", ".data", ".data"]);
        assert_eq!(patterns("SECTIONS { .text : { *(*) } }"), [".text", "*"]);
        assert_eq!(patterns("SECTIONS { .t : { *(.text.t) } } INSERT AFTER .text;"), [""; 0]);
    }

    #[test]
    fn names_fit_patterns_as_in_scripts() {
        for (pattern, name, expected) in [
            (".text.*", ".text.main", true),
            (".text", ".text.main", false),
            (".text*", ".text", true),
            (".[a-t]ext.?", ".text.f", true),
            (".[!t]ext", ".text", false),
        ] {
            assert_eq!(fits(pattern.as_bytes(), name.as_bytes()), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn plain_names() {
        let plain = |name: &str| plain_name(name, |own| own == "main", |own| own == "main");
        assert_eq!(plain(".text.main").as_deref(), Some(".text"));
        assert_eq!(plain(".text.startup.main").as_deref(), Some(".text.startup"));
        assert_eq!(plain(".rodata.main.str1.8").as_deref(), Some(".rodata.str1.8"));
        assert_eq!(plain(".text.other"), None);
        assert_eq!(plain(".text"), None);
    }
}
