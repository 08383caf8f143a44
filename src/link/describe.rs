//! Describes the binary after the linker has made it. In: the binary, the objects with their
//! addresses, the options. Out: the manifest's bytes. If anything is in doubt, the manifest treats
//! the binary as a whole, and says why.

use super::arguments::LinkerJob;
use super::early::{self, Early};
use super::finished::Finished;
use super::graph::{self, Options};
use super::libraries;
use super::linked::Linked;
use super::lto;
use super::script;
use crate::elf::append::Appended;
use crate::elf::binary::Binary;
use crate::elf::{self, ElfError, Labels, WithRecord};
use crate::fingerprint::walk::{self, Module, Start};
use crate::model::manifest::{Edge, Export, Manifest, Node, WHOLE};
use crate::model::{AtomKind, FormatError, Hasher, Level, Refusal};
use crate::process::linker::LinkerKind;
use crate::process::{Settings, atomic_write, manifest_file, sys};
use std::borrow::Cow;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read};
use std::mem;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Beyond so many atoms several threads pay.
const MANY: usize = 4096;

/// Why there is no manifest at all.
#[derive(Debug, Error)]
pub enum DescribeError {
    #[error("cannot read the binary or write the manifest: {0}")]
    File(#[from] io::Error),
    #[error("cannot read the binary: {0}")]
    Unreadable(String),
    #[error(transparent)]
    Elf(#[from] ElfError),
    #[error("the manifest cannot be encoded: {0}")]
    Format(#[from] FormatError),
}

/// Describes what was linked: a binary by its manifest, the object that `-r` makes by its record.
pub fn after(
    settings: &Settings,
    job: &LinkerJob,
    finished: &Finished,
    linked: Result<Linked, String>,
    early: &Early,
) -> Result<(), DescribeError> {
    if job.relocatable {
        return attach(&job.output, settings.level);
    }
    let (options, linked) = match options(job, early) {
        Ok(options) => (options, linked),
        Err(reason) => (Options::default(), Err(reason)),
    };
    let bytes = manifest(settings, job, finished, linked, options, early)?;
    manifest_file::write(settings, &job.output, &bytes)?;
    Ok(())
}

fn attach(object: &Path, level: Level) -> Result<(), DescribeError> {
    let metadata = fs::metadata(object)?;
    let bytes = sys::map(object)?;
    if let Some(WithRecord { record: Appended { head, tail }, .. }) =
        elf::with_record(&bytes, level, Labels::Plain)?
    {
        let rest = &bytes[head.len()..];
        atomic_write::write(
            object,
            Some(&metadata),
            metadata.modified().ok(),
            &[&head[..], rest, &tail],
        )?;
    }
    Ok(())
}

/// What the command line means for the graph, whichever linker it is. The error is a reason to take
/// the binary as a whole.
fn options(job: &LinkerJob, early: &Early) -> Result<Options, String> {
    let text = |word: &OsString| word.to_string_lossy().into_owned();
    let mut frame = vec![b"icf".to_vec(), job.icf.clone().unwrap_or_default().into_encoded_bytes()];
    frame.push(job.optimisation.clone().unwrap_or_default().into_encoded_bytes());
    let options = frame.len();
    let mut gathered = Vec::new();
    let mut fixed_by = job.fixed_addresses.first().map(|option| format!("the option -{option}"));
    let inputs = job.inputs.iter().map(PathBuf::from).filter(|path| is_script(path, early));
    for script in job.scripts.iter().cloned().chain(inputs) {
        let text = script_text(&script)?;
        if script::has_addresses(&text) {
            fixed_by = Some(format!("the linker script {}", script.display()));
        }
        gathered.extend(script::gathered(&text));
        frame.push(text);
    }
    if let Some(file) = job.just_symbols.iter().find(|file| file.is_file()) {
        return Err(format!(
            "{}: its symbols are used without its content (--just-symbols)",
            file.display()
        ));
    }
    let assigned = job.defsyms.iter().map(|(name, value)| (text(name), is_symbol(&text(value))));
    Ok(Options {
        wrapped: job.wraps.iter().map(text).collect(),
        wraps_own_references: false,
        assigned: assigned.collect(),
        has_scripts: frame.len() > options,
        gathered,
        fixed_by,
        fixed_sections: job.section_starts.iter().map(text).collect(),
        frame,
    })
}

/// An expression that is another symbol, or a place at a known distance from it.
fn is_symbol(expression: &str) -> bool {
    let name = expression.split(['+', '-']).next().unwrap_or_default().trim();
    let is_letter = |letter: char| letter.is_ascii_alphanumeric() || "_$.@".contains(letter);
    name != "."
        && name.chars().all(is_letter)
        && !name.starts_with(|letter: char| letter.is_ascii_digit())
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
    let text = fs::read(path)
        .map_err(|error| format!("cannot read the linker script {}: {error}", path.display()))?;
    if text.windows(7).any(|word| word == b"INCLUDE") {
        return Err(format!("the linker script {} includes others", path.display()));
    }
    Ok(text)
}

/// The manifest of the binary that a link made.
pub fn manifest(
    settings: &Settings,
    job: &LinkerJob,
    finished: &Finished,
    linked: Result<Linked, String>,
    mut options: Options,
    early: &Early,
) -> Result<Vec<u8>, DescribeError> {
    let binary = finished.binary().map_err(|reason| DescribeError::Unreadable(reason.clone()))?;
    let finish = |mut manifest: Manifest| {
        let libraries = libraries::needed(&early.libraries, &job.output, binary).into_iter();
        manifest.libraries =
            libraries.map(|(name, path)| (Cow::Owned(name), Cow::Owned(path))).collect();
        manifest.digest = finished.digest();
        let walk =
            || walk::fingerprint(&[Module::Known(&manifest)], Start::Program).unwrap_or_default();
        let (fingerprint, bytes) =
            both(manifest.nodes.len() > MANY, walk, || manifest.encode_before_fingerprint());
        // The process is about to end, and that is the fastest way to give back many small pieces
        // of memory.
        mem::forget(manifest);
        Ok::<Vec<u8>, FormatError>(bytes?.with_fingerprint(fingerprint))
    };
    let reason = match linked {
        Ok(linked) => {
            options.wraps_own_references = linked.kind == LinkerKind::Lld;
            if linked.is_optimised {
                options.frame.extend(lto::frame(job, finished.producers()));
            }
            match finely(settings, finished, binary, &linked, &options, finish) {
                Ok(manifest) => {
                    mem::forget(linked);
                    return Ok(manifest);
                }
                Err(reason) => reason,
            }
        }
        Err(reason) => reason,
    };
    Ok(finish(whole(binary, &options, reason))?)
}

/// Atom by atom. The error is the reason why that cannot be done.
fn finely(
    settings: &Settings,
    finished: &Finished,
    binary: &Binary,
    linked: &Linked,
    options: &Options,
    finish: impl Fn(Manifest) -> Result<Vec<u8>, FormatError>,
) -> Result<Vec<u8>, String> {
    let Linked { placement, files, inputs, definitions, .. } = linked;
    let manifest =
        graph::build(inputs, definitions, placement, binary, finished.symbols(), options)
            .map_err(|error| error.to_string())?;
    files.remember(settings, inputs);
    finish(manifest).map_err(|error| error.to_string())
}

/// Does two things, at once where that pays.
fn both<A: Send, B: Send>(
    at_once: bool,
    one: impl FnOnce() -> A + Send,
    other: impl FnOnce() -> B + Send,
) -> (A, B) {
    if at_once { rayon::join(one, other) } else { (one(), other()) }
}

/// One node for all that is loaded. It may use every symbol that the binary imports, and whoever
/// uses one of its symbols uses all of it.
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
            Some(Export {
                name: std::str::from_utf8(symbol.name).ok()?,
                version,
                edge: Edge { node: 0, offset: 0, takes_address: false },
            })
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
        edges: (1..nodes.len() as u32)
            .map(|node| Edge { node, offset: 0, takes_address: false })
            .collect(),
        nodes,
        roots: vec![Edge { node: 0, offset: 0, takes_address: false }],
        exports,
        needed: graph::needed(binary),
        refusals: vec![Refusal::new(WHOLE, reason)],
        ..Manifest::default()
    }
}
