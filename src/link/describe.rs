//! After the linker: describes the binary that it made. In: the output, the map, the options. Out: the manifest's
//! bytes. Where anything is in doubt, the manifest takes the binary as a whole, and says why.

use super::arguments::LinkerJob;
use super::early::{self, Early, Records};
use super::graph::{self, Options};
use super::inputs::Groups;
use super::libraries;
use super::map::{self, MapKind};
use super::symbols::FinalSymbols;
use crate::elf::append::Appended;
use crate::elf::binary::Binary;
use crate::elf::{self, ElfError, Labels, WithRecord};
use crate::fingerprint::walk::{self, Module, Start};
use crate::model::manifest::{Edge, Export, Manifest, Node};
use crate::model::{AtomKind, FormatError, Hasher, Level, Refusal};
use crate::process::{Settings, aside, manifest_file, sys};
use std::borrow::Cow;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read};
use std::mem;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Beyond so many symbols or atoms several threads pay.
const MANY: usize = 4096;

/// Why there is no manifest at all.
#[derive(Debug, Error)]
pub enum DescribeError {
    #[error("cannot read the binary or write the manifest: {0}")]
    File(#[from] io::Error),
    #[error(transparent)]
    Elf(#[from] ElfError),
    #[error("the manifest cannot be encoded: {0}")]
    Format(#[from] FormatError),
}

/// Describes what was linked: a binary by its manifest, the object that `-r` makes by its record.
pub fn after(
    settings: &Settings,
    job: &LinkerJob,
    map: Option<&[u8]>,
    early: (&Early, Records),
) -> Result<(), DescribeError> {
    if job.relocatable {
        return attach(&job.output, settings.level);
    }
    let (options, map) = match options(job, map.unwrap_or_default(), early.0) {
        Ok(options) => (options, map.ok_or_else(|| "the linker wrote no map that could be read".to_owned())),
        Err(reason) => (Options::default(), Err(reason)),
    };
    let bytes = manifest(settings, job, map, &options, early)?;
    manifest_file::write(settings, &job.output, &bytes)?;
    Ok(())
}

fn attach(object: &Path, level: Level) -> Result<(), DescribeError> {
    let metadata = fs::metadata(object)?;
    let bytes = sys::map(object)?;
    if let Some(WithRecord { record: Appended { head, tail }, .. }) = elf::with_record(&bytes, level, Labels::Plain)? {
        let rest = &bytes[head.len()..];
        aside::write(object, Some(&metadata), metadata.modified().ok(), &[&head[..], rest, &tail])?;
    }
    Ok(())
}

/// What the command line means for the graph. The error is a reason to take the binary as a whole.
fn options(job: &LinkerJob, map: &[u8], early: &Early) -> Result<Options, String> {
    let text = |word: &OsString| word.to_string_lossy().into_owned();
    let mut frame = vec![b"icf".to_vec(), job.icf.clone().unwrap_or_default().into_encoded_bytes()];
    frame.push(job.optimisation.clone().unwrap_or_default().into_encoded_bytes());
    let options = frame.len();
    let inputs = job.inputs.iter().map(PathBuf::from).filter(|path| is_script(path, early));
    for script in job.scripts.iter().cloned().chain(inputs) {
        frame.push(script_text(&script)?);
    }
    if let Some(file) = job.just_symbols.iter().find(|file| file.is_file()) {
        return Err(format!("{}: its symbols are used without its content (--just-symbols)", file.display()));
    }
    let assigned = job.defsyms.iter().map(|(name, value)| (text(name), is_symbol(&text(value))));
    Ok(Options {
        wrapped: job.wraps.iter().map(text).collect(),
        wraps_at_home: map::kind(map) == Some(MapKind::Lld),
        assigned: assigned.collect(),
        has_scripts: frame.len() > options,
        frame,
    })
}

/// An expression that is another symbol, or a place at a known distance from it.
fn is_symbol(expression: &str) -> bool {
    let name = expression.split(['+', '-']).next().unwrap_or_default().trim();
    let is_letter = |letter: char| letter.is_ascii_alphanumeric() || "_$.@".contains(letter);
    name != "." && name.chars().all(is_letter) && !name.starts_with(|letter: char| letter.is_ascii_digit())
}

/// An input that the linker takes for a script.
fn is_script(path: &Path, early: &Early) -> bool {
    if let Some(file) = early.file(path) {
        return early::is_script(file.bytes());
    }
    let mut start = [0; 8];
    let length = File::open(path).and_then(|mut file| file.read(&mut start));
    length.is_ok_and(|length| early::is_script(&start[..length]))
}

/// A script can place bytes and fill gaps: its text counts, and so would that of what it includes.
fn script_text(path: &Path) -> Result<Vec<u8>, String> {
    let text = fs::read(path).map_err(|error| format!("cannot read the linker script {}: {error}", path.display()))?;
    if text.windows(7).any(|word| word == b"INCLUDE") {
        return Err(format!("the linker script {} includes others", path.display()));
    }
    Ok(text)
}

/// The manifest of the binary that a link made.
pub fn manifest(
    settings: &Settings,
    job: &LinkerJob,
    map: Result<&[u8], String>,
    options: &Options,
    early: (&Early, Records),
) -> Result<Vec<u8>, DescribeError> {
    let bytes = sys::map(&job.output)?;
    let binary = Binary::parse(&bytes)?;
    let opened = early.0;
    let finish = |mut manifest: Manifest| {
        let libraries = libraries::needed(&opened.libraries, &job.output, &binary).into_iter();
        manifest.libraries = libraries.map(|(name, path)| (Cow::Owned(name), Cow::Owned(path))).collect();
        let walk = || walk::fingerprint(&[Module::Known(&manifest)], Start::Program).unwrap_or_default();
        (manifest.fingerprint, manifest.digest) = both(manifest.nodes.len() > MANY, walk, || binary.loaded_digest());
        let bytes = manifest.encode();
        // The process is about to end, and that is the fastest way to give back many small pieces of memory.
        mem::forget(manifest);
        bytes
    };
    match finely(settings, &binary, map, options, early, finish) {
        Ok(manifest) => Ok(manifest),
        Err(reason) => Ok(finish(whole(&binary, options, reason))?),
    }
}

/// Atom by atom. The error is the reason why that cannot be done.
fn finely(
    settings: &Settings,
    binary: &Binary,
    map: Result<&[u8], String>,
    options: &Options,
    (early, records): (&Early, Records),
    finish: impl Fn(Manifest) -> Result<Vec<u8>, FormatError>,
) -> Result<Vec<u8>, String> {
    let map = map?;
    let (placement, symbols) = both(binary.symbols.len() > MANY, || map::parse(map), || FinalSymbols::new(binary));
    let placement = placement.map_err(|error| format!("the linker's map: {error}"))?;
    let groups = Groups::new(&placement);
    let files = groups.open(early, settings).map_err(|error| error.to_string())?;
    let inputs = groups.read(&files, records, &symbols).map_err(|error| error.to_string())?;
    let manifest = graph::build(&inputs, &placement, binary, &symbols, options).map_err(|error| error.to_string())?;
    files.remember(settings, &inputs);
    let bytes = finish(manifest).map_err(|error| error.to_string());
    mem::forget((inputs, symbols, placement));
    bytes
}

/// Does two things, at once where that pays.
fn both<A: Send, B: Send>(at_once: bool, one: impl FnOnce() -> A + Send, other: impl FnOnce() -> B + Send) -> (A, B) {
    if at_once { rayon::join(one, other) } else { (one(), other()) }
}

/// One node for all that is loaded. It may use every symbol that the binary imports, and whoever uses one of its
/// symbols uses all of it.
fn whole<'a>(binary: &Binary<'a>, options: &Options, reason: String) -> Manifest<'a> {
    let node = |name: Cow<'a, str>, kind, hash, references| Node {
        name,
        kind,
        level: Level::File,
        hash,
        input: 0,
        address: 0,
        size: 0,
        traceable: false,
        file: 0,
        line: 0,
        references,
    };
    let text = |bytes: &'a [u8]| String::from_utf8_lossy(bytes);
    let symbols = &binary.dynamic.symbols;
    // What is defined may be a copy of a library's variable, or stand in for a library's own.
    let imports: Vec<Node> = symbols
        .iter()
        .map(|symbol| {
            let version = symbol.version.unwrap_or_default();
            let hash = Hasher::new("import").bytes(symbol.name).bytes(version).finish();
            node(text(symbol.name), AtomKind::Import, hash, 0)
        })
        .collect();
    let mut exports: Vec<Export> = symbols
        .iter()
        .filter(|symbol| symbol.is_defined)
        .filter_map(|symbol| {
            let version = std::str::from_utf8(symbol.version.unwrap_or_default()).ok()?;
            Some(Export { name: std::str::from_utf8(symbol.name).ok()?, version, edge: Edge { node: 0, offset: 0 } })
        })
        .collect();
    exports.sort_unstable_by_key(|export| (export.name, export.version));
    let mut nodes = vec![node(
        Cow::Borrowed("(the whole binary)"),
        AtomKind::Function,
        binary.behaviour_digest(),
        imports.len() as u32,
    )];
    nodes.extend(imports);
    Manifest {
        shared_library: binary.is_shared_library(),
        frame: graph::frame(binary, options),
        edges: (1..nodes.len() as u32).map(|node| Edge { node, offset: 0 }).collect(),
        nodes,
        roots: vec![Edge { node: 0, offset: 0 }],
        exports,
        needed: graph::needed(binary),
        refusals: vec![Refusal::new("the whole binary", reason)],
        ..Manifest::default()
    }
}
