//! Link-time optimisation: the code in the binary comes from objects that the linker's plugin makes
//! and removes, and no map says which definitions they came from. In: the placement, the files of
//! the command line. Out: the placement without those objects, and the objects whose definitions
//! are, or may be, in the binary. They have records at the AST level, which need no addresses.

use super::arguments::LinkerJob;
use super::early::Early;
use super::files::Files;
use super::input::{Input, Read};
use super::open_file::OpenFile;
use crate::elf::archive;
use crate::elf::binary::Binary;
use crate::model::{Hash, Placement, Symbol, SymbolKind};
use rustc_hash::{FxHashMap, FxHashSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The name of an object that a plugin made: GCC's, LLVM's, and LLVM's in lld, which since its
/// version 18 names them after the binary (`prog.lto.o`, `prog.lto.part.o`).
pub fn is_product(file: &[u8]) -> bool {
    let last = file.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
    let of_lld = || last.ends_with(b".o") && memchr::memmem::find(last, b".lto.").is_some();
    let of_plugin = || last.starts_with(b"lto-llvm-") && last.ends_with(b".o");
    let is_named_so = file.ends_with(b".ltrans.o") || file == b"lto.tmp" || of_lld() || of_plugin();
    is_named_so && !Path::new(OsStr::from_bytes(file)).exists()
}

/// Takes the plugin's objects out of the placement. Whether there were any.
pub fn remove_plugin_objects(placement: &mut Placement) -> bool {
    let before = placement.objects.len();
    placement.objects.retain(|(name, _)| !is_product(name.0));
    placement.objects.len() < before
}

/// The files of the command line that the plugin's objects may have been made of.
pub fn sources(early: &Early) -> Vec<&Path> {
    let may_hold = |file: &&OpenFile| archive::is_thin(file.bytes()) || holds_bitcode(file.bytes());
    early.in_order().filter(may_hold).map(OpenFile::path).collect()
}

/// The objects that the plugin's were made of.
pub struct Optimised<'f> {
    /// First those of the command line, then the members of archives.
    pub inputs: Vec<Input<'f>>,
    /// How many of them are members.
    pub members: usize,
}

impl<'f> Optimised<'f> {
    /// Reads them. The error is a reason to take the binary as a whole.
    pub fn read(files: &'f Files, sources: &[&Path]) -> Result<Self, String> {
        let (mut inputs, mut members) = (Vec::new(), Vec::new());
        for path in sources {
            for (label, object, is_member) in files.all(path).map_err(|error| error.to_string())? {
                if !holds_bitcode(object.bytes()) {
                    continue;
                }
                let problem =
                    "it holds bitcode for link-time optimisation, and no record of definitions";
                let record = object.record().ok().filter(|(record, _)| record.bitcode);
                let (mut record, is_fresh) = record.ok_or_else(|| format!("{label}: {problem}"))?;
                // There may be machine code beside the bitcode; that was not linked.
                for atom in &mut record.atoms {
                    (atom.section, atom.section_name) = (0, "");
                }
                let list = if is_member { &mut members } else { &mut inputs };
                list.push(Input::new(label, Read::new((record, is_fresh)), None));
            }
        }
        if inputs.is_empty() && members.is_empty() {
            return Err(
                "it was optimised when it was linked, and it cannot be told from what".to_owned()
            );
        }
        let count = members.len();
        inputs.extend(members);
        Ok(Optimised { inputs, members: count })
    }
}

/// Of an archive the linker takes the members that it needs, and does not say which. That does not
/// matter where nobody else has what a member defines, and nobody can do without it: whoever refers
/// to it has it then. `inputs` are all of the link, with the members at their end.
///
/// The `optimised` ones before those may use what some file defines that is not on the command
/// line. Where they need it, the graph has no answer; where they can do without, none is told from
/// nobody.
pub fn check(
    inputs: &[Input],
    optimised: usize,
    members: usize,
    binary: &Binary,
) -> Result<(), String> {
    let (first_optimised, first) = (inputs.len() - optimised, inputs.len() - members);
    let mut definers: FxHashMap<Hash, u32> = FxHashMap::default();
    let mut dispensable: FxHashSet<Hash> = FxHashSet::default();
    for symbol in inputs.iter().flat_map(|input| &input.record.symbols) {
        match symbol.kind {
            SymbolKind::Undefined if symbol.weak => _ = dispensable.insert(symbol.name_hash),
            SymbolKind::Undefined => {}
            _ => *definers.entry(symbol.name_hash).or_default() += 1,
        }
    }
    let imports = binary.dynamic.symbols.iter().filter(|symbol| !symbol.is_defined);
    let imports: FxHashSet<Hash> =
        imports.map(|symbol| Symbol::hash_of_bytes(symbol.name)).collect();
    for input in &inputs[first_optimised..] {
        let is_nobodys = |symbol: &&Symbol| {
            let is_known =
                definers.contains_key(&symbol.name_hash) || imports.contains(&symbol.name_hash);
            symbol.kind == SymbolKind::Undefined && symbol.weak && !is_known
        };
        if let Some(symbol) = input.record.symbols.iter().find(is_nobodys) {
            return Err(format!(
                "{}: it cannot be told whether anything defines {}",
                input.label, symbol.name
            ));
        }
    }
    dispensable.extend(imports);
    for member in &inputs[first..] {
        let is_doubtful = |symbol: &&Symbol| match symbol.kind {
            SymbolKind::Undefined => false,
            SymbolKind::Common { .. } => true,
            _ => definers[&symbol.name_hash] > 1 || dispensable.contains(&symbol.name_hash),
        };
        if let Some(symbol) = member.record.symbols.iter().find(is_doubtful) {
            let (label, name) = (&member.label, symbol.name);
            return Err(format!(
                "{label}: optimised when it was linked, if at all: {name} may be another one's"
            ));
        }
    }
    Ok(())
}

/// What decides over the code besides the bitcode: who made it, and the options of the link. GCC's
/// driver tells its own options to those that it starts by a variable.
pub fn frame(job: &LinkerJob, producers: Vec<&[u8]>) -> Vec<Vec<u8>> {
    // Names of files, and of others' options.
    const OTHERS: [&str; 6] =
        ["/", "-fresolution=", "-pass-through=", "dwo_dir=", "obj-path=", "jobs="];
    let said = job.generation.iter().map(|word| word.as_bytes().to_vec());
    let mut frame = vec![b"optimised".to_vec()];
    frame.extend(producers.into_iter().map(<[u8]>::to_vec));
    frame
        .extend(said.filter(|word| !OTHERS.iter().any(|start| word.starts_with(start.as_bytes()))));
    let driver = std::env::var_os("COLLECT_GCC_OPTIONS").unwrap_or_default();
    let words = driver.as_bytes().split(|byte| *byte == b'\'').filter(|word| is_about_code(word));
    frame.extend(words.map(<[u8]>::to_vec));
    frame
}

/// An option of the driver's that may matter for code.
fn is_about_code(word: &[u8]) -> bool {
    let is_about = [&b"-O"[..], b"-f", b"-m"].iter().any(|start| word.starts_with(start));
    let is_not = [&b"-fuse-ld="[..], b"-flto", b"-fdiagnostics", b"-fresolution="];
    is_about && !is_not.iter().any(|start| word.starts_with(start))
}

/// The file has bitcode of GCC's or LLVM's in it, or seems to.
fn holds_bitcode(bytes: &[u8]) -> bool {
    let signs: [&[u8]; 3] = [b".gnu.lto_", b"BC\xc0\xde", b".llvm.lto"];
    signs.iter().any(|sign| memchr::memmem::find(bytes, sign).is_some())
}
