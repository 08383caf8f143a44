//! Imports go one way. Every path of `src/` that starts with `crate`, `super` or `self` is resolved
//! to the module that it names, by a real parser, and held against the table of layers. Inside a
//! layer, files must not import each other in a circle.

use crate::workshop::{TASTING, TASTING_CC, TASTING_CXX, TASTING_LD};
use object::{Object, ObjectSymbol};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use syn::visit::{self, Visit};

/// A folder of `src/` and the folders that it may import. `main.rs` and `lib.rs` belong to no
/// layer.
const LAYERS: &[(&str, &[&str])] = &[
    ("model", &[]),
    ("elf", &["model"]),
    ("flow", &["model", "elf"]),
    ("process", &["model"]),
    ("store", &["model"]),
    ("objects", &["model", "process", "store"]),
    ("ast", &["model"]),
    ("compile", &["model", "elf", "process", "objects", "ast"]),
    ("fingerprint", &["model", "elf", "process"]),
    ("link", &["model", "elf", "process", "fingerprint"]),
    ("observe", &["model", "elf", "process"]),
    ("harness", &[]),
    ("run", &["model", "elf", "process", "observe", "fingerprint", "store", "harness"]),
    ("suite", &["model", "process", "store", "harness", "run"]),
    ("change", &["model", "flow", "fingerprint"]),
    ("report", &["model", "change", "fingerprint"]),
    (
        "cli",
        &[
            "model",
            "elf",
            "flow",
            "process",
            "store",
            "objects",
            "fingerprint",
            "observe",
            "harness",
            "run",
            "suite",
            "change",
            "report",
        ],
    ),
];

/// A module of the crate, by the names that lead to it: `["link", "graph", "roots"]`.
type Module = Vec<String>;

/// What each file of `src/` imports.
struct Sources {
    modules: BTreeSet<Module>,
    imports: Vec<Import>,
}

struct Import {
    from: Module,
    to: Module,
    file: PathBuf,
    is_test: bool,
}

#[test]
fn imports_go_one_way() {
    let sources = Sources::read();
    let wrong = sources.imports.iter().filter(|import| !import.is_allowed());
    let wrong: BTreeSet<String> = wrong.map(Import::describe).collect();
    assert!(wrong.is_empty(), "imports against the table in tests/it/layers.rs:\n{wrong:#?}");
}

#[test]
fn every_permission_is_used() {
    let sources = Sources::read();
    let mut unused = Vec::new();
    for (layer, allowed) in LAYERS {
        for target in *allowed {
            let is_used = |import: &Import| import.from[0] == *layer && import.to[0] == *target;
            if !sources.imports.iter().any(is_used) {
                unused.push(format!("{layer} does not import {target}"));
            }
        }
    }
    assert!(unused.is_empty(), "the table in tests/it/layers.rs allows too much: {unused:#?}");
}

#[test]
fn files_of_a_layer_form_no_circle() {
    let sources = Sources::read();
    let circles: Vec<String> =
        LAYERS.iter().flat_map(|(layer, _)| sources.circles(layer)).collect();
    assert_eq!(circles, Vec::<String>::new(), "files that import each other");
}

#[test]
fn every_folder_has_its_line_in_the_table() {
    let folders = std::fs::read_dir(source_folder()).expect("src/ is readable");
    for folder in folders.map(|entry| entry.expect("readable").path()).filter(|path| path.is_dir())
    {
        let name = folder.file_name().expect("a folder has a name").to_string_lossy().into_owned();
        assert!(allowed(&name).is_some(), "src/{name}/ has no line in tests/it/layers.rs");
    }
}

#[test]
fn wrong_imports_are_seen_however_they_are_written() {
    let text = "use crate::link::graph;\nuse super::super::{model::Hash, cli};\nfn f() { crate::process::run() }\n";
    let modules: BTreeSet<Module> =
        ["elf", "link", "model", "cli", "process"].map(|name| vec![name.to_owned()]).into();
    let found = imports_of(Path::new("elf/section.rs"), text, &modules);
    let wrong: Vec<&str> =
        found.iter().filter(|it| !it.is_allowed()).map(|it| it.to[0].as_str()).collect();
    assert_eq!(wrong, ["link", "cli", "process"]);
}

impl Sources {
    fn read() -> Sources {
        let source = source_folder();
        let files = rust_files(&source);
        let inside: Vec<&Path> = files
            .iter()
            .map(|file| file.strip_prefix(&source).expect("it was found below src/"))
            .collect();
        let modules: BTreeSet<Module> = inside.iter().map(|file| module_of(file)).collect();
        let mut imports = Vec::new();
        for (file, inside) in files.iter().zip(inside) {
            let text = std::fs::read_to_string(file).expect("a source file is readable");
            imports.extend(imports_of(inside, &text, &modules));
        }
        imports.retain(|import| !import.from.is_empty() && !import.to.is_empty());
        Sources { modules, imports }
    }

    /// The circles among the files of a layer, tests left out. A file may name what is declared
    /// below it, and a part may use what its `mod.rs` declares: only siblings are looked at.
    fn circles(&self, layer: &str) -> Vec<String> {
        let mut edges: BTreeMap<&Module, BTreeSet<&Module>> = BTreeMap::new();
        for import in
            self.imports.iter().filter(|it| !it.is_test && it.from[0] == layer && it.to[0] == layer)
        {
            let is_family =
                import.from.starts_with(&import.to) || import.to.starts_with(&import.from);
            if !is_family && self.modules.contains(&import.to) {
                edges.entry(&import.from).or_default().insert(&import.to);
            }
        }
        let reaches = |from: &Module, to: &Module| {
            let (mut seen, mut open) = (BTreeSet::new(), vec![from]);
            while let Some(next) = open.pop() {
                for target in edges.get(next).into_iter().flatten() {
                    if *target == to {
                        return true;
                    }
                    if seen.insert(*target) {
                        open.push(target);
                    }
                }
            }
            false
        };
        edges
            .keys()
            .filter(|module| reaches(module, module))
            .map(|module| module.join("::"))
            .collect()
    }
}

impl Import {
    fn is_allowed(&self) -> bool {
        let (Some(layer), Some(target)) = (self.from.first(), self.to.first()) else { return true };
        match allowed(layer) {
            Some(allowed) => {
                layer == target || allowed.contains(&target.as_str()) || !is_layer(target)
            }
            None => true,
        }
    }

    fn describe(&self) -> String {
        format!("src/{}: {}", self.file.display(), self.to.join("::"))
    }
}

fn allowed(layer: &str) -> Option<&'static [&'static str]> {
    LAYERS.iter().find(|(name, _)| *name == layer).map(|(_, imports)| *imports)
}

fn is_layer(name: &str) -> bool {
    allowed(name).is_some()
}

fn source_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).expect("a source folder is readable") {
        let path = entry.expect("a folder entry is readable").path();
        if path.is_dir() {
            files.extend(rust_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files
}

/// The module of a file below `src/`. Tests in a file of their own (`walk_tests.rs`) are the module
/// `tests` of the file that they belong to.
fn module_of(inside: &Path) -> Module {
    let mut names: Module =
        inside.with_extension("").iter().map(|name| name.to_string_lossy().into_owned()).collect();
    match names.last().map(String::as_str) {
        Some("mod" | "lib" | "main") => {
            names.pop();
        }
        Some(last) if last.ends_with("_tests") => {
            let owner = last.trim_end_matches("_tests").to_owned();
            names.pop();
            names.extend([owner, "tests".to_owned()]);
        }
        _ => {}
    }
    names
}

fn imports_of(inside: &Path, text: &str, modules: &BTreeSet<Module>) -> Vec<Import> {
    let file =
        syn::parse_file(text).unwrap_or_else(|error| panic!("{}: {error}", inside.display()));
    let here = module_of(inside);
    let is_test = here.iter().any(|name| name == "tests");
    let mut finder = Finder { here, is_test, found: Vec::new() };
    finder.visit_file(&file);
    let from = module_of(inside);
    let nearest = |path: &Module| {
        (0..=path.len()).rev().map(|end| path[..end].to_vec()).find(|it| modules.contains(it))
    };
    let imports = finder.found.into_iter().map(|(path, is_test)| {
        let to = nearest(&path).unwrap_or_else(|| path.iter().take(1).cloned().collect());
        Import { from: from.clone(), to, file: inside.to_owned(), is_test }
    });
    imports.collect()
}

/// Collects the paths of a file, as they are seen from the crate's root.
struct Finder {
    here: Module,
    is_test: bool,
    found: Vec<(Module, bool)>,
}

impl Finder {
    /// Turns the names of a path into those from the root; `None` for other crates and local names.
    fn resolve(&self, names: &[String]) -> Option<Module> {
        let mut base = match names.first()?.as_str() {
            "crate" => Vec::new(),
            "self" => self.here.clone(),
            "super" => self.here[..self.here.len().checked_sub(1)?].to_vec(),
            _ => return None,
        };
        for name in &names[1..] {
            match name.as_str() {
                "super" => {
                    base.pop()?;
                }
                _ => base.push(name.clone()),
            }
        }
        Some(base)
    }

    fn note(&mut self, names: &[String]) {
        if let Some(path) = self.resolve(names) {
            self.found.push((path, self.is_test));
        }
    }

    fn note_tree(&mut self, tree: &syn::UseTree, before: &mut Vec<String>) {
        match tree {
            syn::UseTree::Path(path) => {
                before.push(path.ident.to_string());
                self.note_tree(&path.tree, before);
                before.pop();
            }
            syn::UseTree::Group(group) => {
                group.items.iter().for_each(|item| self.note_tree(item, before))
            }
            syn::UseTree::Name(name) if name.ident == "self" => self.note(before),
            syn::UseTree::Name(name) => self.note_leaf(name.ident.to_string(), before),
            syn::UseTree::Rename(name) => self.note_leaf(name.ident.to_string(), before),
            _ => self.note(before),
        }
    }

    fn note_leaf(&mut self, name: String, before: &mut Vec<String>) {
        before.push(name);
        self.note(before);
        before.pop();
    }
}

impl<'ast> Visit<'ast> for Finder {
    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        self.note_tree(&item.tree, &mut Vec::new());
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let names: Vec<String> =
            path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        if names.len() > 1 {
            self.note(&names);
        }
        visit::visit_path(self, path);
    }

    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        if module.content.is_none() {
            return;
        }
        let was_test = self.is_test;
        self.is_test |= module.ident == "tests";
        self.here.push(module.ident.to_string());
        visit::visit_item_mod(self, module);
        self.here.pop();
        self.is_test = was_test;
    }
}

/// Crates that a shim, which starts thousands of times in a build, must not carry: TLS, HTTP, the
/// command line of `tasting`.
const TOO_LARGE_FOR_SHIMS: [&str; 4] = ["rustls", "ring", "ureq", "clap_builder"];

/// Those of the crates whose functions a program contains.
fn crates_within(program: &str) -> Vec<&'static str> {
    let bytes = std::fs::read(program).unwrap();
    let file = object::File::parse(&*bytes).unwrap();
    let names: Vec<&str> = file.symbols().filter_map(|symbol| symbol.name().ok()).collect();
    assert!(names.len() > 100, "{program} has no symbols to look at");
    // Rust's mangled names have the length of each part before it.
    let has =
        |name: &&str| names.iter().any(|symbol| symbol.contains(&format!("{}{name}", name.len())));
    TOO_LARGE_FOR_SHIMS.into_iter().filter(has).collect()
}

#[test]
fn shims_link_neither_tls_nor_http_nor_clap() {
    assert_eq!(crates_within(TASTING), TOO_LARGE_FOR_SHIMS);
    for shim in [TASTING_CC, TASTING_CXX, TASTING_LD] {
        assert!(crates_within(shim).is_empty(), "{shim} contains {:?}", crates_within(shim));
    }
}
