//! One shape for everything that `tasting show` can show, ready for text and for JSON.

use super::demangle::demangle;
use crate::fingerprint::components::global_hashes;
use crate::model::{AtomKind, Hash, Level, Manifest, Record, Refusal, Target};
use serde::Serialize;

/// A file with its atoms.
#[derive(Serialize)]
pub struct Shown {
    pub file: String,
    /// `object`, `archive` or `binary`.
    pub kind: &'static str,
    pub atoms: Vec<ShownAtom>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub roots: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub exports: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub needed: Vec<String>,
    pub refusals: Vec<ShownRefusal>,
}

/// One atom.
#[derive(Serialize)]
pub struct ShownAtom {
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub demangled: Option<String>,
    pub kind: &'static str,
    pub level: &'static str,
    pub hash: String,
    /// The hash with everything that the atom reaches.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub global: Option<String>,
    pub refs: Vec<String>,
    pub size: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object: Option<String>,
    pub traceable: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
}

/// A refusal.
#[derive(Serialize)]
pub struct ShownRefusal {
    pub subject: String,
    pub reason: String,
}

impl Shown {
    fn new(file: String, kind: &'static str) -> Self {
        Shown {
            file,
            kind,
            atoms: Vec::new(),
            roots: Vec::new(),
            exports: Vec::new(),
            needed: Vec::new(),
            refusals: Vec::new(),
        }
    }

    /// An object's record.
    pub fn object(file: String, record: &Record) -> Self {
        let mut shown = Shown::new(file, "object");
        shown.add_record(record, None);
        shown
    }

    /// An archive; its members are added one by one.
    pub fn archive(file: String) -> Self {
        Shown::new(file, "archive")
    }

    pub fn add_member(&mut self, member: String, record: &Record) {
        self.add_record(record, Some(member));
    }

    pub fn add_refusal(&mut self, subject: String, reason: String) {
        self.refusals.push(ShownRefusal { subject, reason });
    }

    fn add_record(&mut self, record: &Record, object: Option<String>) {
        let name = |target: Target| match target {
            Target::Atom(atom) => record.atoms[atom as usize].name.to_owned(),
            Target::Symbol(symbol) => record.symbols[symbol as usize].name.to_owned(),
        };
        for (atom, references) in record.atoms_with_references() {
            let source = (atom.line > 0)
                .then(|| format!("{}:{}", record.files[atom.file as usize], atom.line));
            self.atoms.push(ShownAtom {
                refs: references.iter().map(|reference| name(reference.target)).collect(),
                object: object.clone(),
                traceable: atom.traceable,
                source,
                ..shown_atom(atom.name, atom.kind, atom.level, atom.hash, atom.size)
            });
        }
        self.add_refusals(&record.refusals);
    }

    fn add_refusals(&mut self, refusals: &[Refusal]) {
        for refusal in refusals {
            self.add_refusal(refusal.subject.to_string(), refusal.reason.to_string());
        }
    }

    /// A binary's manifest.
    pub fn binary(file: String, manifest: &Manifest) -> Self {
        let mut shown = Shown::new(file, "binary");
        let starts = manifest.edge_starts();
        let name = |node: u32| manifest.nodes[node as usize].name.to_string();
        for ((index, node), global) in
            manifest.nodes.iter().enumerate().zip(global_hashes(manifest))
        {
            let edges = &manifest.edges[starts[index] as usize..starts[index + 1] as usize];
            let object =
                (node.input > 0).then(|| manifest.inputs[node.input as usize - 1].to_string());
            let source = (node.line > 0)
                .then(|| format!("{}:{}", manifest.files[node.file as usize], node.line));
            shown.atoms.push(ShownAtom {
                refs: edges.iter().map(|edge| name(edge.node)).collect(),
                global: Some(global.to_string()),
                address: (node.address > 0).then_some(node.address),
                object,
                traceable: node.traceable,
                source,
                ..shown_atom(&node.name, node.kind, node.level, node.hash, node.size)
            });
        }
        shown.roots = manifest.roots.iter().map(|root| name(root.node)).collect();
        shown.exports = manifest.exports.iter().map(|export| export.name.to_owned()).collect();
        shown.needed = manifest.needed.iter().map(|&needed| needed.to_owned()).collect();
        shown.add_refusals(&manifest.refusals);
        shown
    }
}

fn shown_atom(name: &str, kind: AtomKind, level: Level, hash: Hash, size: u64) -> ShownAtom {
    let demangled = demangle(name);
    ShownAtom {
        name: name.to_owned(),
        demangled: (demangled != name).then(|| demangled.into_owned()),
        kind: kind_name(kind),
        level: level_name(level),
        hash: hash.to_string(),
        global: None,
        refs: Vec::new(),
        size,
        address: None,
        object: None,
        traceable: false,
        source: None,
    }
}

/// The word for a kind of atom.
pub fn kind_name(kind: AtomKind) -> &'static str {
    match kind {
        AtomKind::Function => "function",
        AtomKind::Resolver => "resolver",
        AtomKind::Data => "data",
        AtomKind::Zeroed => "zeroed",
        AtomKind::ThreadLocal => "thread-local",
        AtomKind::Literal => "literal",
        AtomKind::Common => "common",
        AtomKind::Range => "range",
        AtomKind::Import => "import",
        AtomKind::Value => "value",
        AtomKind::Residue => "residue",
    }
}

/// The word for a level.
pub fn level_name(level: Level) -> &'static str {
    match level {
        Level::Code => "code",
        Level::Ast => "ast",
        Level::File => "file",
    }
}
