//! The values of what a test used: as they were when it ran, and as they are now. Hashed in order they are the key under
//! which its outcome is kept; the two ways must give the same for the same thing.
//!
//! In: uses that were observed, or dependencies of an earlier execution. Out: hashes.

use super::config::SystemLibraries;
use super::mentions;
use super::project::Project;
use crate::fingerprint::execution::{self, Coarse, Execution, Extent, Placed};
use crate::fingerprint::libraries;
use crate::fingerprint::walk::NodeSet;
use crate::model::keys::{self, KeyOf, PlainState};
use crate::model::{Base, Dependency, DependencyKind, FileIdentity, Hash, Hasher, Place, Shape, Traced};
use crate::observe::targets::{self, Target};
use crate::observe::tracing::Executed;
use crate::observe::used::{is_absence, is_executable};
use crate::observe::{Contents, Input, Kind, Use, What};
use crate::observe::{extended, facts, listing};
use crate::process::{Settings, manifest_file};
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
    known: FxHashMap<(DependencyKind, Place), Hash>,
    /// What files were found to be, while all values of an execution are looked up: many count by their attributes as well.
    found: Option<FxHashMap<PathBuf, fs::Metadata>>,
    programs: FxHashMap<Dependency, Result<Program, String>>,
    /// The names under which libraries were opened, by their files.
    library_names: FxHashMap<PathBuf, PathBuf>,
    /// Programs that were read, with their libraries: many executions have the same.
    opened: FxHashMap<(PathBuf, Vec<PathBuf>), Result<&'static execution::Program, String>>,
}

/// A program with a fingerprint.
#[derive(Clone, Debug)]
struct Program {
    value: Hash,
    /// For each library, whether the fingerprint covers it.
    covered: Vec<bool>,
}

/// What an execution used, with values. The order is that of the shape.
#[derive(Debug, Default)]
pub struct Valued {
    pub used: Vec<Traced>,
}

impl Valued {
    /// What was used, without the values.
    pub fn shape(&self) -> Shape {
        Shape { dependencies: self.used.iter().map(|traced| traced.dependency.clone()).collect() }
    }
}

impl<'a> Values<'a> {
    pub fn new(
        project: &'a Project,
        settings: &'a Settings,
        store: &'a dyn Store,
        contents: Contents,
        input: Input,
    ) -> Self {
        let (known, found, programs, library_names, opened) = Default::default();
        Values { project, settings, store, contents, input, known, found, programs, library_names, opened }
    }

    /// The key of an outcome: what a test used, and what that is. With the test's own name, for two tests may use the same.
    pub fn key(project: &Project, test: Hash, shape: &Shape, values: &[Hash]) -> Option<Hash> {
        Some(keys::outcome(test, shape.hash().ok()?, &project.surroundings(&shape.dependencies), values))
    }

    /// A name for the key of an outcome, by which it is found at once where not even what was not executed has changed.
    pub fn whole_key(&mut self, test: Hash, shape: &Shape) -> Option<Hash> {
        let values = self.whole(shape);
        Values::whole_key_of(self.project, test, shape, &values)
    }

    /// The same for given values.
    pub fn whole_key_of(project: &Project, test: Hash, shape: &Shape, values: &[Hash]) -> Option<Hash> {
        Some(KeyOf::WholeOutcome.of(Values::key(project, test, shape, values)?))
    }

    /// What an execution used, from what was observed of it.
    pub fn observed(&mut self, used: &[Use], executed: &Executed, declared: Vec<Traced>) -> Valued {
        let mut valued = declared;
        valued.push(self.traced_input());
        self.library_names.extend(used.iter().filter_map(|used| match used {
            Use::Loaded { path, name, .. } => Some((path.clone(), name.clone())),
            _ => None,
        }));
        for used in used {
            valued.extend(self.traced(used, executed));
        }
        valued.sort_unstable_by(|one, other| one.dependency.cmp(&other.dependency));
        valued.dedup_by(|one, other| one.dependency == other.dependency);
        let shape = Shape { dependencies: valued.iter().map(|traced| traced.dependency.clone()).collect() };
        let covered = self.covered(&shape);
        for traced in &mut valued {
            if self.counts_by_name(&traced.dependency) {
                traced.value = PlainState::OfTheSystem.value();
            } else if traced.dependency.kind != DependencyKind::Library {
                continue;
            } else if is_loader_cache(&traced.dependency.place) {
                traced.value = loader_cache(&shape);
            } else if covered.contains(&traced.dependency.place) {
                traced.value = PlainState::Covered.value();
            }
        }
        Valued { used: valued }
    }

    /// The values that the dependencies of an execution have now.
    pub fn now(&mut self, shape: &Shape) -> Vec<Hash> {
        let covered = self.covered(shape);
        self.found = Some(FxHashMap::default());
        let values = shape
            .dependencies
            .iter()
            .map(|dependency| match dependency.kind {
                _ if self.counts_by_name(dependency) => self.value_by_name(dependency),
                DependencyKind::Library if is_loader_cache(&dependency.place) => loader_cache(shape),
                DependencyKind::Library if covered.contains(&dependency.place) => PlainState::Covered.value(),
                DependencyKind::Program => self.program(dependency),
                _ => self.value(dependency),
            })
            .collect();
        self.found = None;
        values
    }

    /// The same, with all that can be reached of programs, whatever of it was executed.
    pub fn whole(&mut self, shape: &Shape) -> Vec<Hash> {
        self.now(&whole(shape))
    }

    /// Whether something is a library of the system, or a link to one, and the project does not care what is in those.
    fn counts_by_name(&self, dependency: &Dependency) -> bool {
        self.project.config.sharing.system_libraries == SystemLibraries::Name
            && matches!(dependency.kind, DependencyKind::Library | DependencyKind::Link)
            && dependency.place.base == Base::None
            && is_of_system(Path::new(OsStr::from_bytes(&dependency.place.path)))
    }

    fn value_by_name(&self, dependency: &Dependency) -> Hash {
        let path = Path::new(OsStr::from_bytes(&dependency.place.path));
        let is_there = match dependency.kind {
            DependencyKind::Link => fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink()),
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
            _ if dependency.kind == DependencyKind::Mentioned => mentions::value(self.project, &dependency.place),
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
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return PlainState::Denied.value(),
            Err(_) => return PlainState::Unknown.value(),
        };
        if let Some(files) = self.found.as_mut().filter(|_| kind == DependencyKind::File) {
            files.insert(path.to_owned(), found.clone());
        }
        match kind {
            DependencyKind::File | DependencyKind::Library => match self.contents.of_any(path, &found) {
                Ok(content) => file_value(content),
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => PlainState::Denied.value(),
                Err(_) => PlainState::Unknown.value(),
            },
            DependencyKind::Program => match self.contents.of_any(path, &found) {
                Ok(content) if is_executable(&found) => program_value(content),
                _ => PlainState::Unknown.value(),
            },
            DependencyKind::Denied if self.contents.is_denied(path) => PlainState::Denied.value(),
            DependencyKind::Exists => what_value(What::kind(Kind::of(found.file_type()))),
            DependencyKind::Attributes => what_value(What::of(&found)),
            DependencyKind::Folder => {
                listing::of(path).map_or(PlainState::Unknown.value(), |now| listing_value(listing::hash(&now)))
            }
            DependencyKind::Link => {
                fs::read_link(path).map_or(PlainState::Unknown.value(), |target| self.link_value(&target))
            }
            _ => PlainState::There.value(),
        }
    }

    /// The value of a program: its fingerprint with its libraries, else its content.
    fn program(&mut self, dependency: &Dependency) -> Hash {
        match self.execution(dependency) {
            Ok(program) => program.value,
            Err(_) => self.value(dependency),
        }
    }

    fn execution(&mut self, dependency: &Dependency) -> Result<Program, String> {
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
        if !fs::symlink_metadata(&path).is_ok_and(|found| found.is_file() && is_executable(&found)) {
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
        let set = NodeSet::from_bytes(&dependency.executed);
        let extent = if dependency.executed.is_empty() { Extent::Whole } else { Extent::Set(&set) };
        let opened = self.opened(&path, &libraries)?;
        let execution = opened.fingerprint(entry.as_deref(), extent).map_err(|error| error.to_string())?;
        let program = Program { value: self.program_value(&execution), covered: execution.covered };
        if let Some(name) = name.filter(|_| libraries.len() <= MOST_REMEMBERED) {
            remember(self.store, name, &program);
        }
        Ok(program)
    }

    /// What of a program and its libraries counts for an execution, by module. Nothing if they cannot be read.
    pub fn extent(&mut self, dependency: &Dependency) -> Vec<(PathBuf, Vec<Placed>)> {
        let Some(path) = self.project.path(&dependency.place) else { return Vec::new() };
        let libraries = dependency.libraries.iter().map(|place| self.project.library_path(place));
        let Some(libraries) = libraries.collect::<Option<Vec<PathBuf>>>() else { return Vec::new() };
        let entry = self.project.entry(&dependency.place).map(str::to_owned);
        let set = NodeSet::from_bytes(&dependency.executed);
        let set = (!dependency.executed.is_empty()).then_some(&set);
        let Ok(opened) = self.opened(&path, &libraries) else { return Vec::new() };
        opened.extent(entry.as_deref(), set).into_iter().map(|(path, atoms)| (path.to_owned(), atoms)).collect()
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
    fn opened(&mut self, path: &Path, libraries: &[PathBuf]) -> Result<&'static execution::Program, String> {
        let by_name = self.project.config.sharing.system_libraries == SystemLibraries::Name;
        let counts_by_name = |library: &Path| by_name && is_of_system(library);
        // Libraries of the system are large, and change seldom.
        let digest = |identity: FileIdentity, make: &dyn Fn() -> Hash| {
            let name = KeyOf::LibraryDigest.of_file(&identity);
            self.store.recall(name).filter(|_| identity.is_settled()).unwrap_or_else(|| {
                let digest = make();
                if identity.is_settled() {
                    self.store.remember(name, digest);
                }
                digest
            })
        };
        let open = || execution::Program::open(path, libraries, self.settings, &counts_by_name, &digest);
        let known = self.opened.entry((path.to_owned(), libraries.to_vec()));
        known
            .or_insert_with(|| open().map(|program| &*Box::leak(Box::new(program))).map_err(|error| error.to_string()))
            .clone()
    }

    /// What can be reached from a program, and where it has the loader look for libraries: which one is found there counts
    /// only if it was looked for there before.
    fn program_value(&self, execution: &Execution) -> Hash {
        let mut hasher = Hasher::new("fingerprint of a program");
        hasher.hash(execution.fingerprint);
        self.project.hash_text(&execution.search_paths, &mut hasher);
        hasher.finish()
    }

    /// What the value of a program follows from, as long as none of the files changes. `None` if one of them is too young.
    fn memory_name(&self, path: &Path, libraries: &[PathBuf], entry: Option<&str>, executed: &[u8]) -> Option<Hash> {
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
    fn covered(&mut self, shape: &Shape) -> BTreeSet<Place> {
        let (mut covered, mut others) = (BTreeSet::new(), BTreeSet::new());
        for program in shape.dependencies.iter().filter(|dependency| dependency.kind == DependencyKind::Program) {
            if program.libraries.is_empty() {
                continue;
            }
            let by_this = self.execution(program).map(|execution| execution.covered).unwrap_or_default();
            for (index, library) in program.libraries.iter().enumerate() {
                let set = if by_this.get(index) == Some(&true) { &mut covered } else { &mut others };
                set.insert(library.clone());
            }
        }
        &covered - &others
    }

    fn link_value(&self, target: &Path) -> Hash {
        let mut hasher = Hasher::new("link");
        self.project.hash_text(target.as_os_str().as_bytes(), &mut hasher);
        hasher.finish()
    }

    /// The files that the project declares as inputs, as they are now.
    pub fn declared(&mut self) -> Vec<Traced> {
        let patterns = self.project.config.inputs.clone();
        let declared = patterns.into_iter().map(|pattern| {
            let place = Place { base: Base::Root, path: pattern.into_bytes() };
            Dependency::on(DependencyKind::Declared, place)
        });
        declared.map(|dependency| traced(self.value(&dependency), dependency)).collect()
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

    fn traced_input(&self) -> Traced {
        traced(input_value(&self.input), Dependency::on(DependencyKind::Input, Place::default()))
    }

    /// What was observed of one thing. What the run left behind is no dependency.
    fn traced(&mut self, used: &Use, executed: &Executed) -> Option<Traced> {
        let (kind, value) = match used {
            Use::Read { content, .. } => (DependencyKind::File, file_value(*content)),
            Use::Loaded { content, .. } => (DependencyKind::Library, file_value(*content)),
            Use::Exists { what, .. } if what.details.is_none() => (DependencyKind::Exists, what_value(*what)),
            Use::Exists { what, .. } => (DependencyKind::Attributes, what_value(*what)),
            Use::Absent { .. } => (DependencyKind::Absent, PlainState::Absent.value()),
            Use::Denied { .. } => (DependencyKind::Denied, PlainState::Denied.value()),
            Use::Listed { listing, .. } => (DependencyKind::Folder, listing_value(*listing)),
            Use::Link { target, .. } => (DependencyKind::Link, self.link_value(target)),
            Use::Extended { attributes, .. } => (DependencyKind::Extended, *attributes),
            Use::Target { target, state, .. } => (target_kind(*target), *state),
            Use::Fact { path, value } => {
                let place = Place { base: Base::None, path: path.as_os_str().as_bytes().to_vec() };
                return Some(traced(*value, Dependency::on(DependencyKind::Fact, place)));
            }
            Use::Executed { path, content, libraries } => {
                return Some(self.traced_program(path, *content, libraries, executed));
            }
            Use::Written { .. } | Use::Removed { .. } => return None,
        };
        let place = match kind {
            DependencyKind::Library => self.library_place(used.path()),
            _ => self.project.place(used.path()),
        };
        Some(traced(value, Dependency::on(kind, place)))
    }

    /// A library's place: that of the name under which it was opened.
    fn library_place(&self, library: &Path) -> Place {
        self.project.place(self.library_names.get(library).map_or(library, PathBuf::as_path))
    }

    fn traced_program(&mut self, path: &Path, content: Hash, libraries: &[PathBuf], executed: &Executed) -> Traced {
        let places = libraries.iter().map(|library| self.library_place(library)).collect();
        let place = self.project.place(path);
        let whole = Dependency { libraries: places, ..Dependency::on(DependencyKind::Program, place) };
        let narrowed = self.narrowed(&whole, path, libraries, executed);
        let dependency = narrowed.unwrap_or(whole);
        match self.execution(&dependency) {
            Ok(program) => traced(program.value, dependency),
            Err(note) => Traced { note, ..traced(program_value(content), dependency) },
        }
    }

    /// The part of a program that was executed, if that is known.
    fn narrowed(
        &mut self,
        whole: &Dependency,
        path: &Path,
        libraries: &[PathBuf],
        executed: &Executed,
    ) -> Option<Dependency> {
        executed.get(path)?;
        let of = |module: &Path| executed.get(module).map(Vec::as_slice);
        let entry = self.project.entry(&whole.place).map(str::to_owned);
        let opened = self.opened(path, libraries).ok().filter(|program| program.can_be_narrowed())?;
        let execution = opened.fingerprint(entry.as_deref(), Extent::Executed(&of)).ok()?;
        let narrowed = Dependency { executed: execution.entered.bytes().to_vec(), ..whole.clone() };
        let program = Program { value: self.program_value(&execution), covered: execution.covered };
        self.programs.insert(narrowed.clone(), Ok(program));
        Some(narrowed)
    }

    /// The libraries that the fingerprint of a program covers.
    pub fn covered_libraries<'d>(&mut self, dependency: &'d Dependency) -> impl Iterator<Item = &'d Place> + use<'d> {
        let covered = self.execution(dependency).map(|program| program.covered).unwrap_or_default();
        dependency.libraries.iter().zip(covered).filter(|(_, is_covered)| *is_covered).map(|(library, _)| library)
    }

    /// The files whose manifests went into the fingerprint of a program: its own is the first.
    pub fn manifests(&mut self, dependency: &Dependency) -> Vec<PathBuf> {
        let covered = self.covered_libraries(dependency);
        let libraries = covered.map(|library| self.project.library_path(library));
        let paths = std::iter::once(self.project.path(&dependency.place)).chain(libraries).flatten();
        paths.map(|path| manifest_file::find(self.settings, &path)).collect()
    }

    /// The content of a file, from memory if it is there.
    pub fn content(&mut self, path: &Path) -> Option<Hash> {
        self.contents.of_any(path, &fs::metadata(path).ok()?).ok()
    }

    /// Whether programs and libraries are what they were when they ran. To be asked when all values are known.
    pub fn code_is_unchanged(&mut self, used: &[Use]) -> bool {
        let mut is_still = |path: &Path, content: Hash| {
            fs::symlink_metadata(path).is_ok_and(|now| self.contents.is(path, &now, content))
        };
        used.iter().all(|used| match used {
            Use::Executed { path, content, .. } | Use::Loaded { path, content, .. } => is_still(path, *content),
            _ => true,
        })
    }

    /// Why a program counts by its content; `None` if it has a fingerprint.
    pub fn note(&mut self, dependency: &Dependency) -> Option<String> {
        self.execution(dependency).err()
    }

    /// Whether standard input is something that can be looked at.
    pub fn has_certain_input(&self) -> bool {
        matches!(self.input, Input::Empty | Input::File { .. })
    }

    /// Takes something to be as it was. Says whether it is not.
    pub fn assume(&mut self, before: &Traced) -> bool {
        let is_different = self.value(&before.dependency) != before.value;
        self.known.insert((before.dependency.kind, before.dependency.place.clone()), before.value);
        is_different
    }

    /// Keeps what was hashed for the next time.
    pub fn remember(&mut self) {
        self.contents.remember();
    }
}

fn target_kind(target: Target) -> DependencyKind {
    match target {
        Target::Overwritten => DependencyKind::Overwritten,
        Target::Permissions => DependencyKind::Permissions,
        Target::Time => DependencyKind::Time,
        Target::Replaced => DependencyKind::Replaced,
        Target::Writable => DependencyKind::Writable,
    }
}

/// A shape that leaves nothing out.
pub(super) fn whole(shape: &Shape) -> Shape {
    let all = |dependency: &Dependency| Dependency { executed: Vec::new(), ..dependency.clone() };
    Shape { dependencies: shape.dependencies.iter().map(all).collect() }
}

/// Said of programs that were not built with Tasting.
pub const NO_MANIFEST: &str = "it has no manifest";

fn traced(value: Hash, dependency: Dependency) -> Traced {
    Traced { dependency, value, manifests: Vec::new(), note: String::new() }
}

fn file_value(content: Hash) -> Hash {
    Hasher::new("file").hash(content).finish()
}

fn program_value(content: Hash) -> Hash {
    Hasher::new("program").hash(content).finish()
}

fn listing_value(listing: Hash) -> Hash {
    Hasher::new("folder").hash(listing).finish()
}

fn what_value(what: What) -> Hash {
    let mut hasher = Hasher::new("attributes");
    hasher.code(what.kind);
    if let Some(details) = what.details {
        hasher.number(details.size).number(details.executable.into());
        if let Some((seconds, rest)) = details.modified {
            hasher.pair(seconds as u64, rest as u64);
        }
    }
    hasher.finish()
}

fn input_value(input: &Input) -> Hash {
    let mut hasher = Hasher::new("input");
    match input {
        Input::Empty => hasher.number(0),
        Input::File { content, position, .. } => hasher.number(1).hash(*content).number(*position),
        // What is used of these makes a run impossible to reuse. That there is a terminal can be asked without using it.
        Input::Terminal => hasher.number(2),
        Input::Pipe | Input::Given => hasher.number(3),
        Input::Socket => hasher.number(4),
        Input::Other => hasher.number(5),
    };
    hasher.finish()
}

/// Whether a library belongs to the system, not to the project or to what somebody has installed beside it.
fn is_of_system(library: &Path) -> bool {
    ["/lib", "/lib32", "/lib64", "/usr/lib", "/usr/lib32", "/usr/lib64"]
        .iter()
        .any(|folder| library.starts_with(folder))
        && library.as_os_str().as_bytes().windows(3).any(|part| part == b".so")
}

/// What `ldconfig` has found counts only as far as it was asked for: it is different on each machine.
fn is_loader_cache(place: &Place) -> bool {
    place.base == Base::None && place.path == libraries::CACHE.as_bytes()
}

/// The cache's answers for every name of a library that the execution met.
fn loader_cache(shape: &Shape) -> Hash {
    use DependencyKind::{Absent, Library, Link};
    let named = shape.dependencies.iter().filter(|dependency| matches!(dependency.kind, Absent | Library | Link));
    let names = named.filter_map(|dependency| Path::new(OsStr::from_bytes(&dependency.place.path)).file_name());
    libraries::in_cache(&names.filter(|name| name.as_bytes().windows(3).any(|part| part == b".so")).collect())
}

/// A set of as many libraries fits into the bits of one hash.
const MOST_REMEMBERED: usize = 128;

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
    let bits = program.covered.iter().enumerate().fold(0u128, |bits, (at, covered)| bits | u128::from(*covered) << at);
    store.remember(covered_name(name), Hash(bits.to_be_bytes()));
    store.remember(name, program.value);
}
