//! The fingerprint of a program together with the libraries that the dynamic loader was seen to
//! open for it.
//!
//! In: the program, the libraries. Out: one fingerprint, and which of the libraries it covers. What
//! was linked with the program is walked symbol by symbol where it has a manifest; so is what came
//! in otherwise (`dlopen`, `LD_PRELOAD`), and then everything counts that any of them exports. What
//! has no manifest counts by its content.

pub mod builds;

use super::code_readers::reads_code;
use super::module_cache::ModuleCache;
use super::modules::{Digest, FingerprintError, Loaded, Member, Opened, Part, ReadModule, missing};
use super::visit::Visit;
use super::walk::{Fingerprint, Guide, NodeSet, Walked};
use crate::elf::binary::{Binary, Segment};
use crate::model::manifest::{Node, RIGHTS};
use crate::model::{AtomKind, Code, Function, Hash, Hasher};
use crate::process::Settings;
use object::elf;
use rustc_hash::FxHashSet;
use std::collections::HashSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// What is known of a program and its libraries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Execution {
    pub fingerprint: Fingerprint,
    /// For each library, whether the fingerprint covers it.
    pub covered: Vec<bool>,
    /// Where the loader is told to look for libraries, by the program and by those: DT_RPATH and
    /// DT_RUNPATH.
    pub search_paths: Vec<u8>,
    /// What counted of it.
    pub entered: NodeSet,
    /// The same, for comparisons.
    pub visit: Visit,
}

/// How much of a program counts.
#[derive(Clone, Copy)]
pub enum Extent<'e> {
    /// All that can be reached.
    Whole,
    /// What was executed, and all data that it can reach. By the path of a module: where the
    /// functions start that were.
    Executed(&'e dyn Fn(&Path) -> Option<&'e [u32]>),
    /// The same as in another execution.
    Set(&'e NodeSet),
}

/// A program with the libraries that were opened for it, read once for any number of fingerprints.
pub struct Program {
    loaded: Loaded,
    covered: Vec<bool>,
    search_paths: Vec<u8>,
    has_hidden_start: bool,
}

impl Program {
    /// Reads a program that was executed with these libraries. Libraries that are said to count by
    /// name do so unless they have a manifest. `digest` knows the digests of other files, or has
    /// them computed.
    pub fn open(
        program: &Path,
        libraries: &[PathBuf],
        cache: &ModuleCache,
        settings: &Settings,
        counts_by_name: &dyn Fn(&Path) -> bool,
        digest: &Digest,
    ) -> Result<Self, FingerprintError> {
        let program = cache.take(program, settings)?;
        // Not all that the loader opens is a library: its cache is not.
        let open = |path: &PathBuf| cache.take(path, settings).ok();
        let mut opened: Vec<Option<ReadModule>> = libraries.iter().map(open).collect();
        let linked = linked(&program, &opened)?;

        let mut covered = vec![false; opened.len()];
        let mut members =
            vec![Member { module: program, part: Part::Linked, counts_by_name: false }];
        let mut add = |index: usize, module: ReadModule, part: Part| {
            covered[index] = part != Part::Whole && module.manifest().is_ok();
            members.push(Member {
                module,
                part,
                counts_by_name: counts_by_name(&libraries[index]),
            });
        };
        for Linked { index, is_certain } in linked {
            let Some(library) = opened[index].take() else { continue };
            add(index, library, if is_certain { Part::Linked } else { Part::Whole });
        }
        for (index, library) in opened.into_iter().enumerate() {
            let Some(library) = library else { continue };
            add(index, library, Part::Late);
        }
        let search_paths = search_paths(&members);
        let has_hidden_start = members.iter().any(comes_first);
        Ok(Program {
            loaded: Loaded::new(members, digest)?,
            covered,
            search_paths,
            has_hidden_start,
        })
    }

    /// Whether all that it executes can be seen.
    pub fn can_be_narrowed(&self) -> bool {
        !self.has_hidden_start
    }

    /// The fingerprint of as much of it as counts.
    pub fn fingerprint(
        &self,
        entry: Option<&str>,
        extent: Extent,
    ) -> Result<Execution, FingerprintError> {
        let places: Vec<Option<&[u32]>>;
        let guide = match extent {
            Extent::Whole => Guide::Everything,
            Extent::Set(set) => Guide::Set(set),
            Extent::Executed(of) => {
                places = self.loaded.paths().map(of).collect();
                Guide::Executed(&places)
            }
        };
        let Walked { fingerprint, entered, visit } = self.loaded.narrowed(entry, guide)?;
        let (covered, search_paths) = (self.covered.clone(), self.search_paths.clone());
        Ok(Execution { fingerprint, covered, search_paths, entered, visit })
    }
}

/// An atom of a module in its place, and whether it counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placed {
    pub name: String,
    pub address: u64,
    pub size: u64,
    pub counts: bool,
}

impl Program {
    /// What of each module with a manifest counts, and what does not. Atoms without a place of
    /// their own are left out; but where a linker folds equal functions into one, only one of them
    /// has a place, and it is that of all.
    pub fn extent(&self, entry: Option<&str>, set: Option<&NodeSet>) -> Vec<(&Path, Vec<Placed>)> {
        let entered = self.loaded.entered(entry, set.map_or(Guide::Everything, Guide::Set));
        let atoms = |nodes: Vec<(&Node, bool)>| {
            let homeless = nodes.iter().filter(|(node, counts)| *counts && node.address == 0);
            // What has a place counts with the rights to it (exception tables are folded too); see
            // `link/graph.rs`.
            let in_place = |hash: Hash| {
                (1..8).map(move |rights| hash.with_number(RIGHTS, rights)).chain([hash])
            };
            let homeless: FxHashSet<(Hash, u64)> = homeless
                .flat_map(|(node, _)| in_place(node.hash).map(|hash| (hash, node.size)))
                .collect();
            let placed = |(node, counts): &(&Node, bool)| Placed {
                name: node.name.to_string(),
                address: node.address,
                size: node.size,
                counts: *counts || homeless.contains(&(node.hash, node.size)),
            };
            let has_place = |node: &Node| node.address != 0 && node.kind != AtomKind::Literal;
            nodes.iter().filter(|(node, _)| has_place(node)).map(placed).collect()
        };
        let modules = self.loaded.paths().zip(entered);
        modules.filter_map(|(path, nodes)| Some((path, atoms(nodes?)))).collect()
    }
}

/// A program with its libraries at coarser granularities than functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Coarse {
    /// All that was linked from the object files that something reachable comes from.
    pub files: Hash,
    /// The loaded bytes of all modules.
    pub whole: Hash,
}

impl Program {
    /// What a tool that knows no functions would compare.
    pub fn coarse(&self, entry: Option<&str>) -> Coarse {
        let mut files = Hasher::new("object files");
        for nodes in self.loaded.entered(entry, Guide::Everything).into_iter().flatten() {
            let contributing: FxHashSet<u32> =
                nodes.iter().filter(|(_, counts)| *counts).map(|(node, _)| node.input).collect();
            files.number(contributing.len() as u64);
            // What belongs to no object file counts by itself.
            let counted =
                nodes.iter().filter(|(node, counts)| *counts || contributing.contains(&node.input));
            for (node, _) in counted.filter(|(node, counts)| node.input > 0 || *counts) {
                files.bytes(node.name.as_bytes()).hash(node.hash);
            }
        }
        let mut whole = Hasher::new("loaded bytes");
        self.loaded.digests().for_each(|digest| _ = whole.hash(digest));
        Coarse { files: files.finish(), whole: whole.finish() }
    }
}

/// The smallest pages that a processor has.
const PAGE: u64 = 4096;

/// The code of a binary in which functions can be traced. `None` if there is none, or if one of
/// them has no place that can be told: it would be taken for one that is not executed. None either
/// where the binary reads code of its own, by the address of a function, by its bounds or its
/// headers: it would find breakpoints there.
pub fn code(binary: &Path, settings: &Settings) -> Result<Option<Code>, FingerprintError> {
    let opened = Opened::open(binary, settings)?;
    let parsed = opened.binary()?;
    let manifest = opened.manifest(&parsed)?;
    if manifest.nodes.iter().any(Node::is_whole_binary) {
        return Ok(None);
    }
    let traceable = manifest.nodes.iter().filter(|node| node.traceable);
    let functions: Option<Vec<_>> = traceable.map(function).collect();
    let code = functions.and_then(|functions| around(&parsed, functions));
    Ok(code.filter(|_| !reads_code(&parsed, &manifest)))
}

fn function(node: &Node) -> Option<Function> {
    // Parts of functions that compilers put elsewhere are jumped to while others still have their
    // values below the stack pointer.
    let is_part = [".cold", ".__part."].iter().any(|mark| node.name.contains(mark));
    let (place, size) = (u32::try_from(node.address).ok()?, u32::try_from(node.size).ok()?);
    Some(Function { place, size, is_called: !is_part })
}

fn around(binary: &Binary, mut functions: Vec<Function>) -> Option<Code> {
    // Functions that the linker has folded into one are there several times.
    functions.sort_unstable();
    functions.dedup_by_key(|function| (function.place, function.size));
    let is_apart = |pair: &[Function]| pair[0].end() <= pair[1].place.into();
    if !functions.windows(2).all(is_apart) || functions.iter().any(|function| function.size == 0) {
        return None;
    }
    let (first, last) = (u64::from(functions.first()?.place), functions.last()?.end());
    let holds =
        |segment: &&Segment| segment.address <= first && last - segment.address <= segment.size;
    let segment =
        binary.segments.iter().filter(|segment| segment.kind == elf::PT_LOAD.0).find(holds)?;
    let is_only_code = segment.flags & (elf::PF_X.0 | elf::PF_W.0) == elf::PF_X.0;
    let changes_when_loaded =
        binary.dynamic.flags[0] & elf::DF_TEXTREL.0 != 0 || segment.file_size != segment.size;
    if !is_only_code || changes_when_loaded {
        return None;
    }
    let start = first / PAGE * PAGE;
    let offset = (segment.offset + first).checked_sub(segment.address + first % PAGE)?;
    Some(Code { start, length: last.next_multiple_of(PAGE) - start, offset, functions })
}

/// Whether a module's constructors run before everybody else's, the agent's too: nobody sees what
/// they execute.
fn comes_first(member: &Member) -> bool {
    member.module.binary().dynamic.flags[1] & elf::DF_1_INITFIRST.0 != 0
}

/// They are no part of fingerprints, for they name the folders of a checkout.
fn search_paths(members: &[Member]) -> Vec<u8> {
    let mut paths = Vec::new();
    for member in members {
        let dynamic = &member.module.binary().dynamic;
        for path in [dynamic.rpath, dynamic.runpath] {
            paths.extend_from_slice(path.unwrap_or_default());
            paths.push(0);
        }
    }
    paths
}

/// A library that was linked with the program, or with another one that was.
struct Linked {
    index: usize,
    /// No other library could be meant.
    is_certain: bool,
}

/// The linked ones, in the order in which the loader searches them for symbols.
fn linked(
    program: &ReadModule,
    opened: &[Option<ReadModule>],
) -> Result<Vec<Linked>, FingerprintError> {
    let loader = interpreter(program.binary()).and_then(Path::file_name);
    let mut linked: Vec<Linked> = Vec::new();
    let mut seen: HashSet<&[u8]> = HashSet::new();
    let mut at = None;
    loop {
        let asking = at.map_or(Some(program), |at: usize| opened[linked[at].index].as_ref());
        for name in asking.map(|asking| &asking.binary().dynamic.needed[..]).unwrap_or_default() {
            if Some(OsStr::from_bytes(name)) == loader || !seen.insert(name) {
                continue;
            }
            let meant: Vec<usize> =
                (0..opened.len()).filter(|&index| is_called(&opened[index], name)).collect();
            if meant.is_empty() {
                return Err(missing(program.path(), name));
            }
            let is_certain = meant.len() == 1;
            for index in meant {
                match linked.iter_mut().find(|linked| linked.index == index) {
                    Some(known) => known.is_certain &= is_certain,
                    None => linked.push(Linked { index, is_certain }),
                }
            }
        }
        at = Some(at.map_or(0, |at| at + 1));
        if at >= Some(linked.len()) {
            return Ok(linked);
        }
    }
}

/// Whether the loader takes a library for the one of this name.
fn is_called(library: &Option<ReadModule>, name: &[u8]) -> bool {
    let Some(library) = library else { return false };
    let base = name.rsplit(|&byte| byte == b'/').next().unwrap_or(name);
    library.binary().dynamic.soname == Some(base)
        || library.path().file_name() == Some(OsStr::from_bytes(base))
}

/// The dynamic loader that a program asks for.
fn interpreter<'a>(binary: &Binary<'a>) -> Option<&'a Path> {
    let section = binary.sections.iter().find(|section| section.name == b".interp")?;
    let path = section.data.split(|&byte| byte == 0).next()?;
    Some(Path::new(OsStr::from_bytes(path)))
}
