//! The values of programs: their fingerprints with their libraries, and which of the libraries
//! those cover. They are cached in the store for as long as none of the files changes.

use super::super::config::SystemLibraries;
use super::{NO_MANIFEST, Values, is_of_system};
use crate::fingerprint::comparison::Differences;
use crate::fingerprint::execution::{Coarse, Execution, Extent, Placed, Program as ReadProgram};
use crate::fingerprint::walk::NodeSet;
use crate::model::keys::KeyOf;
use crate::model::{
    Dependency, DependencyKind, DependencySet, FileIdentity, Hash, Hasher, PortablePath,
};
use crate::observe::tracing::Executed;
use crate::observe::used::is_executable;
use crate::process::manifest_file;
use crate::store::{Memo, Store};
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// A program with its libraries, read; or why it cannot be.
pub(super) type Opened = Result<Arc<ReadProgram>, String>;

/// What is found out once for all who ask.
type Shared<K, V> = Arc<Mutex<FxHashMap<K, Arc<V>>>>;

/// Programs that are read, and compared with earlier builds, each once: many tests, and many
/// executions of one, have the same.
#[derive(Clone, Default)]
pub struct OpenedPrograms {
    programs: Shared<Named, OnceLock<Opened>>,
    pub(super) compared: Shared<Compared, Comparison>,
}

/// What is known of the differences from an earlier build.
#[derive(Default)]
pub(super) struct Comparison {
    pub differences: OnceLock<Option<Differences>>,
    /// How often they were asked for before they were known.
    pub asked: AtomicUsize,
}

/// All that decides how a program is read.
#[derive(PartialEq, Eq, Hash)]
pub(super) struct Named {
    /// The binaries and their manifests. One that has changed since is another one.
    files: Vec<(Option<FileIdentity>, PathBuf)>,
    /// Libraries of the system count by their names.
    by_name: bool,
}

/// An earlier build of a program, the function that it starts in, and the program.
pub(super) type Compared = (Hash, Option<String>, Named);

pub(super) fn shared<K: Eq + std::hash::Hash, V: Default>(known: &Shared<K, V>, name: K) -> Arc<V> {
    known.lock().unwrap_or_else(PoisonError::into_inner).entry(name).or_default().clone()
}

/// Where a program and its libraries are, and the function that it starts in, if that is not its
/// own.
pub(super) struct Located {
    pub path: PathBuf,
    pub libraries: Vec<PathBuf>,
    pub entry: Option<String>,
}

/// A program with a fingerprint.
#[derive(Clone, Debug)]
pub(super) struct Program {
    pub value: Hash,
    /// For each library, whether the fingerprint covers it.
    pub covered: Vec<bool>,
}

impl Values<'_> {
    /// The value of a program: its fingerprint with its libraries, else its content.
    pub(super) fn program(&mut self, dependency: &Dependency) -> Hash {
        match self.execution(dependency) {
            Ok(program) => program.value,
            Err(_) => self.value(dependency),
        }
    }

    pub(super) fn execution(&mut self, dependency: &Dependency) -> Result<Program, String> {
        if let Some(known) = self.programs.get(dependency) {
            return known.clone();
        }
        let execution = self.executed(dependency);
        self.programs.insert(dependency.clone(), execution.clone());
        execution
    }

    fn executed(&mut self, dependency: &Dependency) -> Result<Program, String> {
        let nowhere = || "it is not here".to_owned();
        let path = self.project.path(&dependency.place).ok_or_else(nowhere)?;
        if !fs::symlink_metadata(&path).is_ok_and(|found| found.is_file() && is_executable(&found))
        {
            return Err(nowhere());
        }
        manifest_file::beside(self.settings, &path).ok_or(NO_MANIFEST)?;
        let libraries = dependency.libraries.iter().map(|place| self.project.library_path(place));
        let libraries: Vec<PathBuf> = libraries.collect::<Option<_>>().ok_or_else(nowhere)?;
        // A library of another version, which has another file, may be found in its place.
        if let Some(gone) = libraries.iter().find(|library| !library.exists()) {
            return Err(format!("its library {} is not there any more", gone.display()));
        }
        let entry = self.project.entry(&dependency.place).map(str::to_owned);
        let name = self.memory_name(&path, &libraries, entry.as_deref(), &dependency.executed);
        if let Some(remembered) = name.and_then(|name| recall(self.store, name, libraries.len())) {
            return Ok(remembered);
        }
        let located = Located { path, libraries, entry };
        let program = match dependency.executed.is_empty() {
            true => self.walked(&located, Extent::Whole)?.0,
            false => self.executed_in_part(dependency, &located)?,
        };
        if let Some(name) = name.filter(|_| located.libraries.len() <= MOST_REMEMBERED) {
            remember(self.store, name, &program);
        }
        Ok(program)
    }

    /// The value of a program by a walk.
    pub(super) fn walked(
        &mut self,
        located: &Located,
        extent: Extent,
    ) -> Result<(Program, Execution), String> {
        let opened = self.opened(&located.path, &located.libraries)?;
        let execution = opened
            .fingerprint(located.entry.as_deref(), extent)
            .map_err(|error| error.to_string())?;
        let (value, covered) = (self.program_value(&execution), execution.covered.clone());
        Ok((Program { value, covered }, execution))
    }

    /// A name for the files that all of a program's value follows from, as long as none of them
    /// changes.
    pub(super) fn files_of_program(&self, dependency: &Dependency, path: &Path) -> Option<Hash> {
        let libraries = dependency.libraries.iter().map(|place| self.project.library_path(place));
        let libraries: Vec<PathBuf> = libraries.collect::<Option<_>>()?;
        self.memory_name(path, &libraries, self.project.entry(&dependency.place), &[])
    }

    /// What of a program and its libraries counts for an execution, by module. Nothing if they
    /// cannot be read.
    pub fn extent(&mut self, dependency: &Dependency) -> Vec<(PathBuf, Vec<Placed>)> {
        let Some(path) = self.project.path(&dependency.place) else { return Vec::new() };
        let libraries = dependency.libraries.iter().map(|place| self.project.library_path(place));
        let Some(libraries) = libraries.collect::<Option<Vec<PathBuf>>>() else {
            return Vec::new();
        };
        let entry = self.project.entry(&dependency.place).map(str::to_owned);
        let set = NodeSet::from_bytes(&dependency.executed);
        let set = (!dependency.executed.is_empty()).then_some(&set);
        let Ok(opened) = self.opened(&path, &libraries) else { return Vec::new() };
        opened
            .extent(entry.as_deref(), set)
            .into_iter()
            .map(|(path, atoms)| (path.to_owned(), atoms))
            .collect()
    }

    /// A program and its libraries at coarser granularities. `None` if it counts by its content.
    pub fn coarse(&mut self, dependency: &Dependency) -> Option<Coarse> {
        self.execution(dependency).ok()?;
        let path = self.project.path(&dependency.place)?;
        let libraries = dependency.libraries.iter().map(|place| self.project.library_path(place));
        let libraries: Vec<PathBuf> = libraries.collect::<Option<_>>()?;
        let entry = self.project.entry(&dependency.place).map(str::to_owned);
        Some(self.opened(&path, &libraries).ok()?.coarse(entry.as_deref()))
    }

    /// A program with its libraries, read.
    pub(super) fn opened(&mut self, path: &Path, libraries: &[PathBuf]) -> Opened {
        let by_name = self.project.config.sharing.system_libraries == SystemLibraries::Name;
        let counts_by_name = |library: &Path| by_name && is_of_system(library);
        // Libraries of the system are large, and change seldom.
        let digest = |identity: FileIdentity, make: &dyn Fn() -> Hash| {
            digest(self.store, KeyOf::LibraryDigest, identity, make)
        };
        let open = || {
            let opened = ReadProgram::open(
                path,
                libraries,
                self.modules,
                self.settings,
                &counts_by_name,
                &digest,
            );
            opened.map(Arc::new).map_err(|error| error.to_string())
        };
        shared(&self.opened.programs, self.named(path, libraries)).get_or_init(open).clone()
    }

    /// A program with its libraries, as they are now.
    pub(super) fn named(&self, path: &Path, libraries: &[PathBuf]) -> Named {
        let files = std::iter::once(path).chain(libraries.iter().map(PathBuf::as_path));
        let files =
            files.flat_map(|file| [file.to_owned(), manifest_file::find(self.settings, file)]);
        let identity =
            |file: &PathBuf| fs::metadata(file).ok().map(|found| FileIdentity::of(&found));
        let files = files.map(|file| (identity(&file), file)).collect();
        let by_name = self.project.config.sharing.system_libraries == SystemLibraries::Name;
        Named { files, by_name }
    }

    /// What can be reached from a program, and where it has the loader look for libraries: which
    /// one is found there counts only if it was looked for there before.
    fn program_value(&self, execution: &Execution) -> Hash {
        let mut hasher = Hasher::new("fingerprint of a program");
        hasher.hash(execution.fingerprint);
        self.project.hash_text(&execution.search_paths, &mut hasher);
        hasher.finish()
    }

    /// What the value of a program follows from, as long as none of the files changes. `None` if
    /// one of them is too young.
    pub(super) fn memory_name(
        &self,
        path: &Path,
        libraries: &[PathBuf],
        entry: Option<&str>,
        executed: &[u8],
    ) -> Option<Hash> {
        let mut hasher = KeyOf::ProgramFingerprint.hasher();
        hasher.code(self.project.config.sharing.system_libraries);
        hasher.bytes(executed);
        self.project.hash_folders(&mut hasher);
        hasher.bytes(entry.unwrap_or_default().as_bytes());
        for binary in std::iter::once(path).chain(libraries.iter().map(PathBuf::as_path)) {
            let manifest = manifest_file::beside(self.settings, binary);
            for file in std::iter::once(binary).chain(manifest.as_deref()) {
                let identity = FileIdentity::of(&fs::metadata(file).ok()?);
                hasher.hash(identity.is_settled().then(|| identity.hash())?);
            }
            // How a library is called decides which one it is.
            hasher.bytes(binary.file_name().unwrap_or_default().as_bytes());
        }
        Some(hasher.finish())
    }

    /// The libraries that the fingerprint of each program they were mapped into covers.
    pub(super) fn covered(&mut self, dependency_set: &DependencySet) -> BTreeSet<PortablePath> {
        let (mut covered, mut others) = (BTreeSet::new(), BTreeSet::new());
        for program in dependency_set
            .dependencies
            .iter()
            .filter(|dependency| dependency.kind == DependencyKind::Program)
        {
            if program.libraries.is_empty() {
                continue;
            }
            let by_this =
                self.execution(program).map(|execution| execution.covered).unwrap_or_default();
            for (index, library) in program.libraries.iter().enumerate() {
                let set =
                    if by_this.get(index) == Some(&true) { &mut covered } else { &mut others };
                set.insert(library.clone());
            }
        }
        &covered - &others
    }

    /// The part of a program that was executed, if that is known.
    pub(super) fn narrowed(
        &mut self,
        whole: &Dependency,
        path: &Path,
        libraries: &[PathBuf],
        executed: &Executed,
    ) -> Option<Dependency> {
        executed.get(path)?;
        let of = |module: &Path| executed.get(module).map(Vec::as_slice);
        let entry = self.project.entry(&whole.place).map(str::to_owned);
        let opened =
            self.opened(path, libraries).ok().filter(|program| program.can_be_narrowed())?;
        let execution = opened.fingerprint(entry.as_deref(), Extent::Executed(&of)).ok()?;
        let narrowed = Dependency { executed: execution.entered.bytes().to_vec(), ..whole.clone() };
        let (value, covered) = (self.program_value(&execution), execution.covered.clone());
        let program = Program { value, covered };
        self.keep_visit(&narrowed, entry.as_deref(), &opened, &program, execution.visit);
        self.programs.insert(narrowed.clone(), Ok(program));
        Some(narrowed)
    }

    /// The libraries that the fingerprint of a program covers.
    pub fn covered_libraries<'d>(
        &mut self,
        dependency: &'d Dependency,
    ) -> impl Iterator<Item = &'d PortablePath> + use<'d> {
        let covered = self.execution(dependency).map(|program| program.covered).unwrap_or_default();
        dependency
            .libraries
            .iter()
            .zip(covered)
            .filter(|(_, is_covered)| *is_covered)
            .map(|(library, _)| library)
    }

    /// The files whose manifests went into the fingerprint of a program: its own is the first.
    pub fn manifests(&mut self, dependency: &Dependency) -> Vec<PathBuf> {
        let covered = self.covered_libraries(dependency);
        let libraries = covered.map(|library| self.project.library_path(library));
        let paths =
            std::iter::once(self.project.path(&dependency.place)).chain(libraries).flatten();
        paths.map(|path| manifest_file::find(self.settings, &path)).collect()
    }

    /// Why a program counts by its content; `None` if it has a fingerprint.
    pub fn note(&mut self, dependency: &Dependency) -> Option<String> {
        self.execution(dependency).err()
    }
}

/// A set of as many libraries fits into the bits of one hash.
const MOST_REMEMBERED: usize = 128;

/// A digest of a file that is remembered for as long as the file does not change.
pub fn digest(
    store: &dyn Memo,
    key: KeyOf,
    identity: FileIdentity,
    make: &dyn Fn() -> Hash,
) -> Hash {
    content_of(store, key.of_file(&identity), identity, make)
}

/// The same under a name of one's own.
pub(super) fn content_of(
    store: &dyn Memo,
    name: Hash,
    identity: FileIdentity,
    make: &dyn Fn() -> Hash,
) -> Hash {
    store.recall(name).filter(|_| identity.is_settled()).unwrap_or_else(|| {
        let digest = make();
        if identity.is_settled() {
            store.remember(name, digest);
        }
        digest
    })
}

fn covered_name(name: Hash) -> Hash {
    KeyOf::CoveredLibraries.of(name)
}

fn recall(store: &dyn Store, name: Hash, libraries: usize) -> Option<Program> {
    let value = store.recall(name)?;
    let bits = u128::from_be_bytes(store.recall(covered_name(name))?.0);
    let covered = (0..libraries).map(|index| bits >> index & 1 == 1).collect();
    Some(Program { value, covered })
}

fn remember(store: &dyn Store, name: Hash, program: &Program) {
    let bits = program
        .covered
        .iter()
        .enumerate()
        .fold(0u128, |bits, (at, covered)| bits | u128::from(*covered) << at);
    store.remember(covered_name(name), Hash(bits.to_be_bytes()));
    store.remember(name, program.value);
}
