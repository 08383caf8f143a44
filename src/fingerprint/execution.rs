//! The fingerprint of a program together with the libraries that the dynamic loader was seen to open for it.
//!
//! In: the program, the libraries. Out: one fingerprint, and which of the libraries it covers. What was linked with the
//! program is walked symbol by symbol where it has a manifest; what came in otherwise (`dlopen`, `LD_PRELOAD`) counts as a
//! whole, and so does everything that it could look up in the others.

use super::modules::{FingerprintError, Loaded, Opened, missing};
use super::walk::{Fingerprint, Guide, NodeSet};
use crate::elf::binary::Binary;
use crate::process::Settings;
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
    /// Where the loader is told to look for libraries, by the program and by those: DT_RPATH and DT_RUNPATH.
    pub search_paths: Vec<u8>,
    /// What counted of it.
    pub entered: NodeSet,
}

/// How much of a program counts.
#[derive(Clone, Copy)]
pub enum Extent<'e> {
    /// All that can be reached.
    Whole,
    /// What was executed, and all data that it can reach. By the path of a module: where the functions start that were.
    Executed(&'e dyn Fn(&Path) -> Option<&'e [u32]>),
    /// The same as in another execution.
    Set(&'e NodeSet),
}

/// A program with the libraries that were opened for it, read once for any number of fingerprints.
pub struct Program {
    modules: &'static [Opened],
    loaded: Loaded<'static>,
    covered: Vec<bool>,
    search_paths: Vec<u8>,
}

impl Program {
    /// Reads a program that was executed with these libraries. It stays in memory as long as this process, which asks about few.
    /// Libraries that are said to count by name do so unless they have a manifest.
    pub fn open(
        program: &Path,
        libraries: &[PathBuf],
        settings: &Settings,
        counts_by_name: &dyn Fn(&Path) -> bool,
    ) -> Result<Self, FingerprintError> {
        let program = Opened::open(program, settings)?;
        program.manifest(&program.binary()?)?;
        // Not all that the loader opens is a library: its cache is not.
        let open = |path: &PathBuf| {
            let mut opened = Opened::open(path, settings).ok().filter(|file| file.binary().is_ok())?;
            opened.counts_by_name = counts_by_name(path);
            Some(opened)
        };
        let opened = libraries.iter().map(open);
        let mut opened: Vec<Option<Opened>> = opened.collect();
        let linked = linked(&program, &opened)?;

        let mut covered = vec![false; opened.len()];
        let mut modules = vec![program];
        for Linked { index, is_certain } in linked {
            let Some(mut library) = opened[index].take() else { continue };
            library.counts_whole = !is_certain;
            covered[index] = is_certain && library.manifest(&library.binary()?).is_ok();
            modules.push(library);
        }
        modules.extend(opened.into_iter().flatten().map(Opened::into_whole));
        let search_paths = search_paths(&modules)?;
        let modules: &'static [Opened] = modules.leak();
        Ok(Program { modules, loaded: Loaded::new(modules)?, covered, search_paths })
    }

    /// The fingerprint of as much of it as counts.
    pub fn fingerprint(&self, entry: Option<&str>, extent: Extent) -> Result<Execution, FingerprintError> {
        let places: Vec<Option<&[u32]>>;
        let guide = match extent {
            Extent::Whole => Guide::Everything,
            Extent::Set(set) => Guide::Set(set),
            Extent::Executed(of) => {
                places = self.modules.iter().map(|module| of(&module.path)).collect();
                Guide::Executed(&places)
            }
        };
        let (fingerprint, entered) = self.loaded.narrowed(entry, guide)?;
        let (covered, search_paths) = (self.covered.clone(), self.search_paths.clone());
        Ok(Execution { fingerprint, covered, search_paths, entered })
    }
}

/// Where a function starts, and its first bytes.
pub type FunctionStart = (u32, [u8; 4]);

/// Where the functions of a binary start that can be traced, and their first bytes: sorted, each place once. `None` if one of
/// them has no place that can be told: it would be taken for one that is not executed.
pub fn functions(binary: &Path, settings: &Settings) -> Result<Option<Vec<FunctionStart>>, FingerprintError> {
    let opened = Opened::open(binary, settings)?;
    let parsed = opened.binary()?;
    let manifest = opened.manifest(&parsed)?;
    let start = |address: u64| {
        let section = parsed.section_at(address)?;
        let rest =
            section.data.get(usize::try_from(address - section.address).ok()?..).filter(|rest| !rest.is_empty())?;
        let mut code = [0; 4];
        code.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
        Some((u32::try_from(address).ok()?, code))
    };
    let traceable = manifest.nodes.iter().filter(|node| node.traceable);
    let functions: Option<Vec<_>> = traceable.map(|node| start(node.address)).collect();
    Ok(functions.map(|mut functions| {
        functions.sort_unstable();
        functions.dedup();
        functions
    }))
}

/// They are no part of fingerprints, for they name the folders of a checkout.
fn search_paths(modules: &[Opened]) -> Result<Vec<u8>, FingerprintError> {
    let mut paths = Vec::new();
    for module in modules {
        let dynamic = module.binary()?.dynamic;
        for path in [dynamic.rpath, dynamic.runpath] {
            paths.extend_from_slice(path.unwrap_or_default());
            paths.push(0);
        }
    }
    Ok(paths)
}

/// A library that was linked with the program, or with another one that was.
struct Linked {
    index: usize,
    /// No other library could be meant.
    is_certain: bool,
}

/// The linked ones, in the order in which the loader searches them for symbols.
fn linked(program: &Opened, opened: &[Option<Opened>]) -> Result<Vec<Linked>, FingerprintError> {
    let binary = program.binary()?;
    let binaries = opened.iter().map(|library| library.as_ref().map(Opened::binary).transpose());
    let binaries: Vec<Option<Binary>> = binaries.collect::<Result<_, _>>()?;
    let loader = interpreter(&binary).and_then(Path::file_name);
    let mut linked: Vec<Linked> = Vec::new();
    let mut seen: HashSet<&[u8]> = HashSet::new();
    let mut at = None;
    loop {
        let asking = at.map_or(Some(&binary), |at: usize| binaries[linked[at].index].as_ref());
        for name in asking.map(|binary| &binary.dynamic.needed[..]).unwrap_or_default() {
            if Some(OsStr::from_bytes(name)) == loader || !seen.insert(name) {
                continue;
            }
            let meant: Vec<usize> =
                (0..opened.len()).filter(|&index| is_called(&opened[index], &binaries[index], name)).collect();
            if meant.is_empty() {
                return Err(missing(&program.path, name));
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
fn is_called(library: &Option<Opened>, binary: &Option<Binary>, name: &[u8]) -> bool {
    let (Some(library), Some(binary)) = (library, binary) else { return false };
    let base = name.rsplit(|&byte| byte == b'/').next().unwrap_or(name);
    binary.dynamic.soname == Some(base) || library.path.file_name() == Some(OsStr::from_bytes(base))
}

/// The dynamic loader that a program asks for.
fn interpreter<'a>(binary: &Binary<'a>) -> Option<&'a Path> {
    let section = binary.sections.iter().find(|section| section.name == b".interp")?;
    let path = section.data.split(|&byte| byte == 0).next()?;
    Some(Path::new(OsStr::from_bytes(path)))
}
