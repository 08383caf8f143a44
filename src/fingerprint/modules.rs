//! The modules of a program: the binary and the libraries that the dynamic loader would load with
//! it, in the order in which it searches them for symbols. In: a path. Out: each module's manifest
//! or content.

use super::libraries::{self, Search, Seeker};
use super::walk::{self, Fingerprint, Guide, Module, ModuleGraph, Start, Walked};
use crate::elf::ElfError;
use crate::elf::binary::Binary;
use crate::elf::dynamic::Dynamic;
use crate::model::manifest::{Manifest, Node};
use crate::model::{FileIdentity, FormatError, Hash, Hasher};
use crate::process::sys::{self, Mapped};
use crate::process::{Settings, manifest_file};
use self_cell::self_cell;
use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// The libraries that the loader puts before those of every program.
const PRELOADED: &str = "/etc/ld.so.preload";

/// Why a binary has no fingerprint.
#[derive(Debug, Error)]
pub enum FingerprintError {
    #[error("cannot read {path}: {error}")]
    Unreadable { path: PathBuf, error: io::Error },
    #[error("{path}: {error}")]
    NotABinary { path: PathBuf, error: ElfError },
    #[error("{path} needs {name}, which is not found")]
    NoLibrary { path: PathBuf, name: String },
    #[error(
        "{path} has no manifest: link it with tasting-cc, tasting-c++ or tasting-ld ({manifest} is missing)"
    )]
    NoManifest { path: PathBuf, manifest: PathBuf },
    #[error("{path} is not a manifest that can be used: {error}; link the binary again")]
    BadManifest { path: PathBuf, error: FormatError },
    #[error(
        "{path} was changed after it was linked: its manifest does not describe it any more; link it again"
    )]
    Stale { path: PathBuf },
    #[error("{path} has no function or variable called {entry}")]
    NoEntry { path: PathBuf, entry: String },
}

/// The files of one module, open.
pub struct Opened {
    pub path: PathBuf,
    binary: Mapped,
    identity: FileIdentity,
    manifest: Result<(Mapped, FileIdentity), FingerprintError>,
    /// It counts by its content, whether or not it has a manifest.
    counts_whole: bool,
    origin: PathBuf,
    /// The DT_RPATHs that hold for it.
    rpaths: Vec<PathBuf>,
}

impl Opened {
    /// Opens a binary, and its manifest where it has one.
    pub fn open(path: &Path, settings: &Settings) -> Result<Self, FingerprintError> {
        let unreadable = |error| FingerprintError::Unreadable { path: path.to_owned(), error };
        let (binary, metadata) = sys::map_with_metadata(path).map_err(unreadable)?;
        let identity = FileIdentity::of(&metadata);
        let file = manifest_file::find(settings, path);
        let manifest = sys::map_with_metadata(&file)
            .map(|(manifest, metadata)| (manifest, FileIdentity::of(&metadata)))
            .map_err(|_| FingerprintError::NoManifest { path: path.to_owned(), manifest: file });
        let origin = libraries::origin(path);
        Ok(Opened {
            path: path.to_owned(),
            binary,
            identity,
            manifest,
            counts_whole: false,
            origin,
            rpaths: Vec::new(),
        })
    }

    /// The binary's inside.
    pub fn binary(&self) -> Result<Binary<'_>, FingerprintError> {
        Binary::parse_loaded(&self.binary)
            .map_err(|error| FingerprintError::NotABinary { path: self.path.clone(), error })
    }

    /// The manifest, if it describes this binary.
    pub fn manifest(&self, binary: &Binary) -> Result<Manifest<'_>, FingerprintError> {
        self.manifest_with(binary, &|_, make| make())
    }

    /// The same, with a digest of what is loaded that somebody may know already.
    fn manifest_with(
        &self,
        binary: &Binary,
        digest: &Digest,
    ) -> Result<Manifest<'_>, FingerprintError> {
        let bytes = match &self.manifest {
            Ok((bytes, _)) => bytes,
            Err(FingerprintError::NoManifest { path, manifest }) => {
                return Err(FingerprintError::NoManifest {
                    path: path.clone(),
                    manifest: manifest.clone(),
                });
            }
            Err(_) => return Err(FingerprintError::Stale { path: self.path.clone() }),
        };
        let manifest = Manifest::decode(bytes)
            .map_err(|error| FingerprintError::BadManifest { path: self.path.clone(), error })?;
        if manifest.digest != digest(self.identity, &|| binary.loaded_digest()) {
            return Err(FingerprintError::Stale { path: self.path.clone() });
        }
        Ok(manifest)
    }
}

/// The fingerprint of a binary with all the libraries that it needs.
pub fn fingerprint(
    path: &Path,
    entry: Option<&str>,
    settings: &Settings,
) -> Result<Fingerprint, FingerprintError> {
    let member = |opened: Opened| {
        let part = if opened.counts_whole { Part::Whole } else { Part::Linked };
        let module = ReadModule::of(opened, &|_, make| make())?;
        Ok(Member { module, part, counts_by_name: false })
    };
    let members =
        open_all(path, settings)?.into_iter().map(member).collect::<Result<Vec<_>, _>>()?;
    Loaded::new(members, &|_, digest| digest())?
        .narrowed(entry, Guide::Everything)
        .map(|walked| walked.fingerprint)
}

/// What the files of a module say.
pub(super) struct Inspected<'o> {
    pub binary: Binary<'o>,
    pub manifest: Result<Manifest<'o>, FingerprintError>,
}

self_cell! {
    /// A module with its files, parsed. The parsed form borrows from the mapped files.
    pub(super) struct ReadModule {
        owner: Opened,
        #[covariant]
        dependent: Inspected,
    }
}

impl ReadModule {
    /// Opens and parses the files of a module.
    pub fn open(
        path: &Path,
        settings: &Settings,
        digest: &Digest,
    ) -> Result<Self, FingerprintError> {
        ReadModule::of(Opened::open(path, settings)?, digest)
    }

    fn of(opened: Opened, digest: &Digest) -> Result<Self, FingerprintError> {
        ReadModule::try_new(opened, |opened| {
            let binary = opened.binary()?;
            let manifest = opened.manifest_with(&binary, digest);
            Ok(Inspected { binary, manifest })
        })
    }

    pub fn path(&self) -> &Path {
        &self.borrow_owner().path
    }

    pub fn binary(&self) -> &Binary<'_> {
        &self.borrow_dependent().binary
    }

    pub fn manifest(&self) -> Result<&Manifest<'_>, &FingerprintError> {
        self.borrow_dependent().manifest.as_ref()
    }

    /// The file of its manifest, as it was read.
    pub fn manifest_file(&self) -> Option<(&[u8], FileIdentity)> {
        let (bytes, identity) = self.borrow_owner().manifest.as_ref().ok()?;
        Some((bytes, *identity))
    }

    /// A hash of all that is loaded of it and can change how it runs.
    pub fn behaviour(&self, digest: &Digest) -> Hash {
        digest(self.borrow_owner().identity, &|| self.binary().behaviour_digest())
    }
}

/// A module of a program.
pub(super) struct Member {
    pub module: ReadModule,
    pub part: Part,
    /// What is in it does not count, unless it has a manifest; only what it is called.
    pub counts_by_name: bool,
}

/// How a module is part of a program.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// Linked with it.
    Linked,
    /// Opened while it ran.
    Late,
    /// It counts by its content, whether or not it has a manifest.
    Whole,
}

type Modules<'m> = ModuleGraph<'m, 'm>;

self_cell! {
    /// The modules of a program, read, in the order of the loader.
    struct LoadedModules {
        owner: Vec<ReadModule>,
        #[covariant]
        dependent: Modules,
    }
}

/// A program with its libraries, ready to be walked.
pub(super) struct Loaded(LoadedModules);

impl Loaded {
    /// Decides how each module of a program counts. The first one needs a manifest.
    pub fn new(members: Vec<Member>, digest: &Digest) -> Result<Self, FingerprintError> {
        let parts: Vec<_> =
            members.iter().map(|member| (member.part, member.counts_by_name)).collect();
        let modules = members.into_iter().map(|member| member.module).collect();
        LoadedModules::try_new(modules, |modules: &Vec<ReadModule>| {
            if let Some(program) = modules.first().filter(|program| program.manifest().is_err()) {
                program.borrow_owner().manifest(program.binary())?;
            }
            let counted = modules.iter().zip(parts);
            let counted =
                counted.map(|(module, (part, by_name))| module.counted(part, by_name, digest));
            Ok(ModuleGraph::new(counted.collect()))
        })
        .map(Loaded)
    }

    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.modules().map(ReadModule::path)
    }

    pub fn modules(&self) -> impl Iterator<Item = &ReadModule> {
        self.0.borrow_owner().iter()
    }

    pub fn graph(&self) -> &ModuleGraph<'_, '_> {
        self.0.borrow_dependent()
    }

    /// The fingerprint, as far as a guide leads.
    pub fn narrowed(&self, entry: Option<&str>, guide: Guide) -> Result<Walked, FingerprintError> {
        let start = entry.map_or(Start::Program, Start::Entry);
        walk::through(self.0.borrow_dependent(), start, guide).ok_or_else(|| {
            FingerprintError::NoEntry {
                path: self.paths().next().map(Path::to_owned).unwrap_or_default(),
                entry: entry.unwrap_or_default().to_owned(),
            }
        })
    }

    /// The nodes of each module that has a manifest, and whether a walk goes into them.
    pub fn entered(
        &self,
        entry: Option<&str>,
        guide: Guide,
    ) -> Vec<Option<Vec<(&Node<'_>, bool)>>> {
        let modules = &self.0.borrow_dependent().modules;
        let entered = walk::entered(modules, entry.map_or(Start::Program, Start::Entry), guide);
        let nodes = modules.iter().zip(entered).map(|(module, entered)| match module {
            Module::Known(manifest) | Module::Late(manifest) => {
                Some(manifest.nodes.iter().zip(entered).collect())
            }
            Module::Foreign { .. } => None,
        });
        nodes.collect()
    }

    /// The loaded bytes of each module, as a hash.
    pub fn digests(&self) -> impl Iterator<Item = Hash> {
        self.0.borrow_dependent().modules.iter().map(|module| match module {
            Module::Known(manifest) | Module::Late(manifest) => manifest.digest,
            Module::Foreign { content, .. } => *content,
        })
    }
}

impl ReadModule {
    /// How the module counts.
    fn counted(&self, part: Part, by_name: bool, digest: &Digest) -> Module<'_, '_> {
        let binary = self.binary();
        match (self.manifest(), part) {
            (Ok(manifest), Part::Linked) => Module::Known(manifest),
            (Ok(manifest), Part::Late) => Module::Late(manifest),
            (Err(_), _) if by_name => foreign(binary, content_by_name(self.path(), binary)),
            _ => foreign(binary, Hasher::new("foreign").hash(self.behaviour(digest)).finish()),
        }
    }
}

/// What knows the digest of a file, or has it made.
pub type Digest<'d> = dyn Fn(FileIdentity, &dyn Fn() -> Hash) -> Hash + Send + Sync + 'd;

fn foreign<'m, 'a>(binary: &'m Binary<'a>, content: Hash) -> Module<'m, 'a> {
    let symbols = &binary.dynamic.symbols;
    let imports = |name: &&str| {
        symbols.iter().any(|symbol| !symbol.is_defined && symbol.name == name.as_bytes())
    };
    Module::Foreign { content, symbols, finds_by_name: walk::SYMBOL_FINDERS.iter().any(imports) }
}

/// The content of a library that counts whatever is in it. The name that it gives itself does not
/// change with the version of its file.
fn content_by_name(path: &Path, binary: &Binary) -> Hash {
    let name = binary
        .dynamic
        .soname
        .unwrap_or_else(|| path.file_name().unwrap_or_default().as_encoded_bytes());
    Hasher::new("foreign by name").bytes(name).finish()
}

/// A library that a module has the loader bring in.
struct Wanted {
    name: Vec<u8>,
    counts_whole: bool,
}

/// What a module wants, in the loader's order. For the program (`is_first`), that is also what the
/// environment wants: libraries before all others, and some that watch the loader.
fn wanted(dynamic: &Dynamic, is_first: bool) -> Vec<Wanted> {
    let variable = |name: &str| std::env::var_os(name).unwrap_or_default().into_encoded_bytes();
    let has_loader = is_first && !dynamic.needed.is_empty();
    let preloaded =
        [variable("LD_PRELOAD"), std::fs::read(PRELOADED).unwrap_or_default()].join(&b' ');
    let watching = variable("LD_AUDIT");
    let preloaded = preloaded.split(|byte| b" :\t\n".contains(byte)).filter(|_| has_loader);
    let watching = watching.split(|&byte| byte == b':').filter(|_| has_loader);
    let plain = preloaded.chain(dynamic.needed.iter().copied()).map(|name| (name, false));
    let whole = dynamic.companions.iter().copied().chain(watching).map(|name| (name, true));
    let named = plain.chain(whole).filter(|(name, _)| !name.is_empty());
    named.map(|(name, counts_whole)| Wanted { name: name.to_vec(), counts_whole }).collect()
}

/// Opens the binary and, breadth first, the libraries that it needs.
fn open_all(path: &Path, settings: &Settings) -> Result<Vec<Opened>, FingerprintError> {
    let mut program = Opened::open(path, settings)?;
    // The kernel follows links when it starts a program.
    program.origin =
        std::fs::canonicalize(path).map_or(program.origin, |path| libraries::origin(&path));
    let search = Search::from_environment(&program.origin)
        .ok_or_else(|| missing(path, b"LD_LIBRARY_PATH"))?;
    let mut opened = vec![program];
    let mut seen: HashSet<Vec<u8>> = HashSet::new();
    let mut at = 0;
    while at < opened.len() {
        let found = opened[at].libraries(&search, &mut seen, at == 0, settings)?;
        opened.extend(found);
        at += 1;
    }
    Ok(opened)
}

impl Opened {
    /// The libraries that this module wants and nobody before it did.
    fn libraries(
        &self,
        search: &Search,
        seen: &mut HashSet<Vec<u8>>,
        is_first: bool,
        settings: &Settings,
    ) -> Result<Vec<Opened>, FingerprintError> {
        let binary = self.binary()?;
        let dynamic = &binary.dynamic;
        // What is needed under the name that a library gives itself is that library.
        seen.extend(dynamic.soname.map(<[u8]>::to_vec));
        let mut rpaths = libraries::rpaths(dynamic, &self.origin)
            .ok_or_else(|| missing(&self.path, b"DT_RPATH"))?;
        rpaths.extend_from_slice(&self.rpaths);
        let seeker =
            Seeker { machine: binary.machine, dynamic, origin: &self.origin, rpaths: &rpaths };
        let mut found = Vec::new();
        for Wanted { name, counts_whole } in wanted(dynamic, is_first) {
            if seen.insert(name.clone()) {
                let path = search.find(&name, &seeker).or_else(|| self.linked_with(&binary, &name));
                let path = path.ok_or_else(|| missing(&self.path, &name))?;
                let library =
                    Opened::open(&path, settings).map_err(|_| missing(&self.path, &name))?;
                found.push(Opened { counts_whole, rpaths: rpaths.clone(), ..library });
            }
        }
        Ok(found)
    }
}

impl Opened {
    /// The library of the project that this module was linked with. Until it is installed the
    /// loader may find it only with the help of a script's LD_LIBRARY_PATH, as with libtool.
    fn linked_with(&self, binary: &Binary, name: &[u8]) -> Option<PathBuf> {
        let manifest = self.manifest(binary).ok()?;
        let (_, path) = manifest.libraries.iter().find(|(known, _)| known.as_bytes() == name)?;
        let path = self.origin.join(&**path);
        (libraries::machine_of(&path) == Some(binary.machine)).then_some(path)
    }
}

/// A library that we do not find may be one that the loader does.
pub(super) fn missing(path: &Path, name: &[u8]) -> FingerprintError {
    FingerprintError::NoLibrary {
        path: path.to_owned(),
        name: String::from_utf8_lossy(name).into_owned(),
    }
}
