//! The values of dependencies: as they were when the test ran, and as they are now. Hashed in order
//! they are the cache key of the outcome; both ways must give the same value for the same thing.
//!
//! In: uses that were observed, or dependencies of an earlier execution. Out: hashes.

mod comparisons;
mod hashes;
mod observed;
mod programs;
mod stamp;

use self::hashes::{attributes_value, file_value, input_value, listing_value, program_value};
use self::programs::Program;
pub use self::programs::{OpenedPrograms, digest};
pub use self::stamp::Stamp;
use super::config::SystemLibraries;
use super::mentions;
use super::project::Project;
use crate::fingerprint::ModuleCache;
use crate::fingerprint::libraries;
use crate::model::keys::{self, KeyOf, PlainState};
use crate::model::{
    Base, Dependency, DependencyKind, DependencySet, Hash, Hasher, PortablePath, RecordedDependency,
};
use crate::observe::targets::{self, Target};
use crate::observe::used::{is_absence, is_executable};
use crate::observe::{Contents, Input, Kind, What};
use crate::observe::{extended, facts, listing};
use crate::process::Settings;
use crate::store::Store;
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Looks up values; each thing is looked at once, whatever number of executions used it.
pub struct Values<'a> {
    project: &'a Project,
    settings: &'a Settings,
    store: &'a dyn Store,
    contents: Contents,
    input: Input,
    modules: &'a ModuleCache,
    known: FxHashMap<(DependencyKind, PortablePath), Hash>,
    /// What files were found to be, while all values of an execution are looked up: many count by
    /// their attributes as well.
    found: Option<FxHashMap<PathBuf, fs::Metadata>>,
    programs: FxHashMap<Dependency, Result<Program, String>>,
    /// The names under which libraries were opened, by their files.
    library_names: FxHashMap<PathBuf, PathBuf>,
    opened: OpenedPrograms,
    /// What the loader's cache says of libraries, by their names.
    loader_caches: FxHashMap<Vec<u8>, Hash>,
    /// Stamps are taken: it is about one test. What many tests have in common is faster looked up
    /// once.
    has_stamps: bool,
}

/// What an execution used, with values. The order is that of the dependency set.
#[derive(Debug, Default)]
pub struct ResolvedDependencies {
    pub used: Vec<RecordedDependency>,
}

impl ResolvedDependencies {
    /// What was used, without the values.
    pub fn dependency_set(&self) -> DependencySet {
        DependencySet {
            dependencies: self.used.iter().map(|traced| traced.dependency.clone()).collect(),
        }
    }
}

impl<'a> Values<'a> {
    pub fn new(
        project: &'a Project,
        settings: &'a Settings,
        store: &'a dyn Store,
        contents: Contents,
        input: Input,
        modules: &'a ModuleCache,
    ) -> Self {
        let (known, found, programs, library_names) = Default::default();
        let (opened, loader_caches) = Default::default();
        let has_stamps = false;
        Values {
            project,
            settings,
            store,
            contents,
            input,
            modules,
            known,
            found,
            programs,
            library_names,
            opened,
            loader_caches,
            has_stamps,
        }
    }

    /// With programs that others read too.
    pub fn with_opened(self, opened: OpenedPrograms) -> Self {
        Values { opened, ..self }
    }

    /// For one test.
    pub fn with_stamps(self) -> Self {
        Values { has_stamps: true, ..self }
    }

    /// The key of an outcome: what a test used, and what that is. With the test's own name, for two
    /// tests may use the same.
    pub fn key(
        project: &Project,
        test: Hash,
        dependency_set: &DependencySet,
        values: &[Hash],
    ) -> Option<Hash> {
        Some(keys::outcome(
            test,
            dependency_set.hash().ok()?,
            &project.surroundings(&dependency_set.dependencies),
            values,
        ))
    }

    /// A name for the key of an outcome, by which it is found at once where not even what was not
    /// executed has changed.
    pub fn whole_key(&mut self, test: Hash, dependency_set: &DependencySet) -> Option<Hash> {
        let values = self.whole(dependency_set);
        Values::whole_key_of(self.project, test, dependency_set, &values)
    }

    /// The same for given values.
    pub fn whole_key_of(
        project: &Project,
        test: Hash,
        dependency_set: &DependencySet,
        values: &[Hash],
    ) -> Option<Hash> {
        Some(KeyOf::WholeOutcome.of(Values::key(project, test, dependency_set, values)?))
    }

    /// The values that the dependencies of an execution have now.
    pub fn now(&mut self, dependency_set: &DependencySet) -> Vec<Hash> {
        let covered = self.covered(dependency_set);
        self.found = Some(FxHashMap::default());
        let values = dependency_set
            .dependencies
            .iter()
            .map(|dependency| match dependency.kind {
                _ if self.counts_by_name(dependency) => self.value_by_name(dependency),
                DependencyKind::Library if is_loader_cache(&dependency.place) => {
                    self.loader_cache(dependency_set)
                }
                DependencyKind::Library if covered.contains(&dependency.place) => {
                    PlainState::Covered.value()
                }
                DependencyKind::Program => self.program(dependency),
                _ => self.value(dependency),
            })
            .collect();
        self.found = None;
        values
    }

    /// The answers of the loader's cache for every name of a library that the execution met.
    fn loader_cache(&mut self, dependency_set: &DependencySet) -> Hash {
        let names = library_names(dependency_set);
        let all: Vec<&[u8]> = names.iter().map(|name| name.as_bytes()).collect();
        let answers = self.loader_caches.entry(all.join(&0));
        *answers.or_insert_with(|| libraries::in_cache(&names))
    }

    /// The same, with all that can be reached of programs, whatever of it was executed.
    pub fn whole(&mut self, dependency_set: &DependencySet) -> Vec<Hash> {
        self.now(&whole(dependency_set))
    }

    /// Whether something is a library of the system, or a link to one, and the project does not
    /// care what is in those.
    fn counts_by_name(&self, dependency: &Dependency) -> bool {
        self.project.config.sharing.system_libraries == SystemLibraries::Name
            && matches!(dependency.kind, DependencyKind::Library | DependencyKind::Link)
            && dependency.place.base == Base::None
            && is_of_system(Path::new(OsStr::from_bytes(&dependency.place.path)))
    }

    fn value_by_name(&self, dependency: &Dependency) -> Hash {
        let path = Path::new(OsStr::from_bytes(&dependency.place.path));
        let is_there = match dependency.kind {
            DependencyKind::Link => {
                fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink())
            }
            _ => fs::metadata(path).is_ok(),
        };
        if is_there { PlainState::OfTheSystem.value() } else { PlainState::Absent.value() }
    }

    /// The value that one thing has now.
    fn value(&mut self, dependency: &Dependency) -> Hash {
        let name = (dependency.kind, dependency.place.clone());
        if let Some(known) = self.known.get(&name) {
            return *known;
        }
        let path = match dependency.kind {
            DependencyKind::Library => self.project.library_path(&dependency.place),
            _ => self.project.path(&dependency.place),
        };
        let value = match path {
            _ if dependency.kind == DependencyKind::Mentioned => {
                mentions::value(self.project, &dependency.place)
            }
            Some(path) => self.look(dependency.kind, &path),
            None => PlainState::NoSuchFolder.value(),
        };
        self.known.insert(name, value);
        value
    }

    fn look(&mut self, kind: DependencyKind, path: &Path) -> Hash {
        match kind {
            DependencyKind::Input => input_value(&self.input),
            DependencyKind::Declared => self.declared_value(path),
            DependencyKind::Fact => facts::value(path),
            DependencyKind::Extended => extended::of(path),
            DependencyKind::Overwritten => targets::state(Target::Overwritten, path),
            DependencyKind::Permissions => targets::state(Target::Permissions, path),
            DependencyKind::Time => targets::state(Target::Time, path),
            DependencyKind::Replaced => targets::state(Target::Replaced, path),
            DependencyKind::Writable => targets::state(Target::Writable, path),
            DependencyKind::Locked => targets::state(Target::Locked, path),
            _ => self.look_at_file(kind, path),
        }
    }

    fn look_at_file(&mut self, kind: DependencyKind, path: &Path) -> Hash {
        let found = match self
            .found
            .as_mut()
            .and_then(|found| found.remove(path))
            .map_or_else(|| fs::symlink_metadata(path), Ok)
        {
            Ok(found) => found,
            Err(error) if is_absence(&error) => return PlainState::Absent.value(),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                return PlainState::Denied.value();
            }
            Err(_) => return PlainState::Unknown.value(),
        };
        if let Some(files) = self.found.as_mut().filter(|_| kind == DependencyKind::File) {
            files.insert(path.to_owned(), found.clone());
        }
        match kind {
            DependencyKind::File | DependencyKind::Library => {
                match self.contents.of_any(path, &found) {
                    Ok(content) => file_value(content),
                    Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                        PlainState::Denied.value()
                    }
                    Err(_) => PlainState::Unknown.value(),
                }
            }
            DependencyKind::Program => match self.contents.of_any(path, &found) {
                Ok(content) if is_executable(&found) => program_value(content),
                _ => PlainState::Unknown.value(),
            },
            DependencyKind::Denied if self.contents.is_denied(path) => PlainState::Denied.value(),
            DependencyKind::Exists => attributes_value(What::kind(Kind::of(found.file_type()))),
            DependencyKind::Attributes => attributes_value(What::of(&found)),
            DependencyKind::Folder => listing::of(path)
                .map_or(PlainState::Unknown.value(), |now| listing_value(listing::hash(&now))),
            DependencyKind::Link => fs::read_link(path)
                .map_or(PlainState::Unknown.value(), |target| self.link_value(&target)),
            _ => PlainState::There.value(),
        }
    }

    fn link_value(&self, target: &Path) -> Hash {
        let mut hasher = Hasher::new("link");
        self.project.hash_text(target.as_os_str().as_bytes(), &mut hasher);
        hasher.finish()
    }

    fn declared_value(&mut self, pattern: &Path) -> Hash {
        let mut hasher = Hasher::new("declared");
        let pattern = pattern.to_string_lossy();
        let Ok(paths) = glob::glob(&pattern) else { return PlainState::Unknown.value() };
        for path in paths.flatten() {
            let Ok(found) = fs::metadata(&path) else { continue };
            if found.is_dir() {
                continue;
            }
            let real = fs::canonicalize(&path).unwrap_or_else(|_| path.clone());
            let place = self.project.place(&path);
            hasher.place(&place);
            match self.contents.of_any(&real, &found) {
                Ok(content) => hasher.hash(content),
                Err(_) => hasher.hash(PlainState::Unknown.value()),
            };
        }
        hasher.finish()
    }

    /// The content of a file, from memory if it is there.
    pub fn content(&mut self, path: &Path) -> Option<Hash> {
        self.contents.of_any(path, &fs::metadata(path).ok()?).ok()
    }

    /// Whether standard input is something that can be looked at.
    pub fn has_certain_input(&self) -> bool {
        matches!(self.input, Input::Empty | Input::File { .. })
    }

    /// Takes something to be as it was. Says whether it is not.
    pub fn assume(&mut self, before: &RecordedDependency) -> bool {
        let is_different = self.value(&before.dependency) != before.value;
        self.known.insert((before.dependency.kind, before.dependency.place.clone()), before.value);
        is_different
    }

    /// Keeps what was hashed for the next time.
    pub fn remember(&mut self) {
        self.contents.remember();
    }
}

/// A dependency set that leaves nothing out.
pub(super) fn whole(dependency_set: &DependencySet) -> DependencySet {
    let all = |dependency: &Dependency| Dependency { executed: Vec::new(), ..dependency.clone() };
    DependencySet { dependencies: dependency_set.dependencies.iter().map(all).collect() }
}

/// Said of programs that were not built with Tasting.
pub const NO_MANIFEST: &str = "it has no manifest";

/// Whether a library belongs to the system, not to the project or to what somebody has installed
/// beside it.
fn is_of_system(library: &Path) -> bool {
    ["/lib", "/lib32", "/lib64", "/usr/lib", "/usr/lib32", "/usr/lib64"]
        .iter()
        .any(|folder| library.starts_with(folder))
        && library.as_os_str().as_bytes().windows(3).any(|part| part == b".so")
}

/// What `ldconfig` has found counts only as far as it was asked for: it is different on each
/// machine.
fn is_loader_cache(place: &PortablePath) -> bool {
    place.base == Base::None && place.path == libraries::CACHE.as_bytes()
}

/// The names of libraries that an execution met.
fn library_names(dependency_set: &DependencySet) -> BTreeSet<&OsStr> {
    use DependencyKind::{Absent, Library, Link};
    let named = dependency_set
        .dependencies
        .iter()
        .filter(|dependency| matches!(dependency.kind, Absent | Library | Link));
    let names = named
        .filter_map(|dependency| Path::new(OsStr::from_bytes(&dependency.place.path)).file_name());
    names.filter(|name| name.as_bytes().windows(3).any(|part| part == b".so")).collect()
}
