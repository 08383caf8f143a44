//! Where a test belongs: the project's root, its build folder, the user's home. Paths inside them
//! are stored relative to them, so that another checkout, another user or another machine finds the
//! same results.
//!
//! In: the working folder, the program, the settings. Out: [`Project`], which converts paths to
//! portable paths and back.

use super::config::{self, Config};
use super::context::Environment;
use crate::model::{Base, Dependency, DependencyKind, Hasher, PortablePath};
use crate::process::Settings;
use memchr::memmem;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What lies in the top folder of a build.
const BUILD_MARKS: [&str; 4] = ["CMakeCache.txt", "meson-private", "config.status", "build.ninja"];

/// Folders of the user, and the variables that name them.
const FOLDERS: [(Base, &str); 3] =
    [(Base::Home, "HOME"), (Base::Temporary, "TMPDIR"), (Base::Runtime, "XDG_RUNTIME_DIR")];

/// Folders that build servers give to each job; the first variable that is set counts.
const JOB_FOLDERS: [&str; 3] = ["RUNNER_TEMP", "AGENT_TEMPDIRECTORY", "WORKSPACE_TMP"];

/// A project, as seen from one test.
#[derive(Clone, Debug)]
pub struct Project {
    pub root: PathBuf,
    pub working: PathBuf,
    pub config: Config,
    /// The variables that the test is given.
    pub environment: Arc<Environment>,
    /// What paths are made relative to, the longest first.
    bases: Vec<(Base, PathBuf)>,
    /// Other spellings of the same folders, in texts: through symbolic links.
    spellings: Vec<(Base, PathBuf)>,
}

impl Project {
    /// The project of a program that is started in a folder. The folder has to be absolute and free
    /// of links.
    pub fn find(
        working: &Path,
        program: Option<&Path>,
        settings: &Settings,
    ) -> Result<Self, String> {
        Project::find_in(&Environment::own(), working, program, settings)
    }

    /// The same for a program that is given this environment.
    pub fn find_in(
        environment: &Arc<Environment>,
        working: &Path,
        program: Option<&Path>,
        settings: &Settings,
    ) -> Result<Self, String> {
        let given = settings.root.clone();
        let real = |path: &Path| fs::canonicalize(path).ok();
        let root = Project::root(working, settings);
        let config = Config::read(&root)?;
        let folder = |name: &str| environment.get(name).map(PathBuf::from);
        let starts = [program.and_then(Path::parent), Some(working)];
        let build = bazel_build(&root).or_else(|| {
            starts.into_iter().flatten().find_map(|start| build_folder(start, &root, &config))
        });
        let logical = logical_root(working, &root, environment);
        let job = JOB_FOLDERS.iter().find_map(|name| folder(name));
        let folders =
            FOLDERS.iter().map(|(base, name)| (*base, folder(name))).chain([(Base::Job, job)]);
        let spelled = [(Base::Root, given), (Base::Root, logical)]
            .into_iter()
            .chain(folders)
            .filter_map(|(base, path)| Some((base, path?)));
        let spellings: Vec<_> =
            spelled.filter(|(_, path)| path.is_absolute() && path.parent().is_some()).collect();
        let mut bases = vec![(Base::Root, root.clone())];
        bases.extend(build.map(|build| (Base::Build, build)));
        bases.extend(spellings.iter().filter_map(|(base, path)| Some((*base, real(path)?))));
        bases.retain(|(_, path)| path.parent().is_some());
        // Of two that are the same folder the first one counts: the sort is stable.
        bases.sort_by_key(|(_, path)| std::cmp::Reverse(path.as_os_str().len()));
        bases.dedup_by(|one, other| one.1 == other.1);
        let environment = environment.clone();
        Ok(Project { root, working: working.to_owned(), config, environment, bases, spellings })
    }

    /// The root of the project that a folder belongs to.
    pub fn root(working: &Path, settings: &Settings) -> PathBuf {
        let given = settings.root.as_deref().and_then(|root| fs::canonicalize(root).ok());
        given
            .or_else(|| bazel_root(working))
            .or_else(|| nearest_root(working))
            .unwrap_or(working.to_owned())
    }

    /// The place that a path means. The path has to be absolute and free of links.
    pub fn place(&self, path: &Path) -> PortablePath {
        let inside = self
            .bases
            .iter()
            .find_map(|(base, folder)| Some((*base, path.strip_prefix(folder).ok()?)));
        let (base, path) = inside.unwrap_or((Base::None, path));
        PortablePath { base, path: path.as_os_str().as_bytes().to_vec() }
    }

    /// The path of a place here; `None` if there is no such folder here.
    pub fn path(&self, place: &PortablePath) -> Option<PathBuf> {
        let path = Path::new(OsStr::from_bytes(&place.path));
        if place.base == Base::None {
            return Some(path.to_owned());
        }
        let (_, folder) = self.bases.iter().find(|(base, _)| *base == place.base)?;
        Some(if place.path.is_empty() { folder.clone() } else { folder.join(path) })
    }

    /// The file of a library, which may be known by the name of a link to it.
    pub fn library_path(&self, place: &PortablePath) -> Option<PathBuf> {
        let path = self.path(place)?;
        let is_link = std::fs::symlink_metadata(&path).is_ok_and(|found| found.is_symlink());
        Some(if is_link { std::fs::canonicalize(&path).unwrap_or(path) } else { path })
    }

    /// The folder here that a place belongs to, and the path below it; `None` if there is no such
    /// folder here.
    pub fn top_and_path<'a>(&'a self, place: &'a PortablePath) -> Option<(&'a Path, &'a Path)> {
        let path = Path::new(OsStr::from_bytes(&place.path));
        if place.base == Base::None {
            return Some((Path::new("/"), path.strip_prefix("/").ok()?));
        }
        let (_, folder) = self.bases.iter().find(|(base, _)| *base == place.base)?;
        Some((folder, path))
    }

    /// A place in words for people.
    pub fn show(&self, place: &PortablePath) -> String {
        let path = String::from_utf8_lossy(&place.path);
        match place.base {
            Base::None => path.into_owned(),
            Base::Root | Base::Build if path.is_empty() => ".".to_owned(),
            Base::Root | Base::Build => path.into_owned(),
            Base::Home => format!("~/{path}"),
            Base::Temporary => format!("$TMPDIR/{path}"),
            Base::Runtime => format!("$XDG_RUNTIME_DIR/{path}"),
            Base::Job => format!("(the job's temporary folder)/{path}"),
        }
    }

    /// Hashes a text in which the folders of this checkout, user and machine are left out.
    pub fn hash_text(&self, text: &[u8], hasher: &mut Hasher) {
        let mut from = 0;
        let mut at = 0;
        while let Some(slash) = memchr::memchr(b'/', &text[at..]).map(|found| at + found) {
            match self.base_at(&text[slash..]) {
                Some((base, length)) => {
                    hasher.bytes(&text[from..slash]).code(base);
                    at = slash + length;
                    from = at;
                }
                None => at = slash + 1,
            }
        }
        hasher.bytes(&text[from..]).number(u64::MAX);
    }

    /// The folder that a text starts with, and the length of its name.
    fn base_at(&self, text: &[u8]) -> Option<(Base, usize)> {
        let folders = self.bases.iter().chain(&self.spellings);
        let starts = folders.filter_map(|(base, folder)| {
            let folder = folder.as_os_str().as_bytes();
            let rest = text.strip_prefix(folder)?;
            rest.first().is_none_or(|next| !is_of_a_name(*next)).then_some((*base, folder.len()))
        });
        starts.max_by_key(|(_, length)| *length)
    }

    /// Whether a text names one of the folders of this checkout, user or machine.
    pub fn is_named_in(&self, text: &[u8]) -> bool {
        let folders =
            self.bases.iter().chain(&self.spellings).filter(|(base, _)| *base != Base::Temporary);
        folders
            .into_iter()
            .any(|(_, folder)| memmem::find(text, folder.as_os_str().as_bytes()).is_some())
    }

    /// The folder that paths of a base are relative to.
    pub fn folder(&self, base: Base) -> Option<&PathBuf> {
        self.bases.iter().find(|(other, _)| *other == base).map(|(_, folder)| folder)
    }

    /// All names of a folder in texts.
    pub fn spellings_of(&self, base: Base) -> Vec<&[u8]> {
        let all = self.bases.iter().chain(&self.spellings).filter(|(other, _)| *other == base);
        all.map(|(_, folder)| folder.as_os_str().as_bytes()).collect()
    }

    /// The names that the path of each folder consists of; of one that lies in another, what is
    /// behind that.
    pub fn parts(&self) -> Vec<(Base, Vec<&[u8]>)> {
        let parts = |(base, folder): &'_ (Base, PathBuf)| {
            let others = self.bases.iter().filter(|(_, other)| other != folder);
            let inside = others.into_iter().find(|(_, other)| folder.starts_with(other));
            let known = inside.map_or(0, |(_, other)| other.iter().count());
            (*base, known)
        };
        let names = |folder: usize, known: usize| {
            self.bases[folder]
                .1
                .iter()
                .skip(known)
                .map(OsStr::as_bytes)
                .filter(|part| *part != b"/")
                .collect()
        };
        let known = self.bases.iter().map(parts).enumerate();
        known.map(|(index, (base, known))| (base, names(index, known))).collect()
    }

    /// Hashes where this checkout is.
    pub fn hash_folders(&self, hasher: &mut Hasher) {
        for (base, folder) in self.bases.iter().filter(|(base, _)| *base != Base::Temporary) {
            hasher.code(*base).bytes(folder.as_os_str().as_bytes());
        }
    }

    /// How the folders lie within each other, by which one and the same path belongs to this or to
    /// that one. Where the root itself lies does not matter, but see `surroundings`.
    pub fn hash_nesting(&self, hasher: &mut Hasher) {
        let named = self
            .spellings
            .iter()
            .filter_map(|(base, path)| Some((*base, fs::canonicalize(path).ok()?)));
        let build = self.bases.iter().find(|(base, _)| *base == Base::Build).cloned();
        for (base, path) in named.chain(build) {
            let own = self.place(&path);
            let around = path.parent().map(|parent| self.place(parent)).unwrap_or_default();
            hasher.code(base).code(own.base);
            if matches!(around.base, Base::Root | Base::Build) {
                hasher.place(&around);
            }
        }
    }

    /// What lies around the root and the build folder, but not in them, can have been found by way
    /// of `..`: there it matters what they lie in.
    pub fn surroundings(&self, used: &[Dependency]) -> Vec<PortablePath> {
        if !used.iter().any(|used| self.is_around(used)) {
            return Vec::new();
        }
        let around =
            |top: &PathBuf| top.parent().map(|parent| self.place(parent)).unwrap_or_default();
        self.tops().map(|(_, top)| around(top)).collect()
    }

    /// The folders that a test belongs to.
    fn tops(&self) -> impl Iterator<Item = &(Base, PathBuf)> {
        self.bases.iter().filter(|(base, _)| matches!(base, Base::Root | Base::Build))
    }

    fn is_around(&self, used: &Dependency) -> bool {
        if matches!(used.place.base, Base::Root | Base::Build) || used.kind.is_no_path() {
            return false;
        }
        let Some(path) = self.path(&used.place) else { return false };
        // That the folders which they lie in are there goes without saying.
        let is_above = used.kind == DependencyKind::Exists
            && self.tops().any(|(_, top)| top.starts_with(&path));
        self.tops().any(|(_, top)| top.components().nth(1) == path.components().nth(1)) && !is_above
    }

    /// The function that a program's tests start in, if the project names one.
    pub fn entry(&self, program: &PortablePath) -> Option<&str> {
        let path = String::from_utf8_lossy(&program.path);
        let fits = |(pattern, _): &(&String, &String)| config::matches(pattern, &path);
        self.config.entry_points.iter().find(fits).map(|(_, function)| function.as_str())
    }
}

/// What a shell calls the working folder, where links lead to it.
pub fn logical_folder(working: &Path, environment: &Environment) -> Option<PathBuf> {
    let logical = PathBuf::from(environment.get("PWD")?);
    let is_other = logical.is_absolute() && logical != working;
    (is_other && fs::canonicalize(&logical).is_ok_and(|real| real == working)).then_some(logical)
}

/// What a shell would call the root then.
fn logical_root(working: &Path, root: &Path, environment: &Environment) -> Option<PathBuf> {
    let inside = working.strip_prefix(root).ok()?;
    let logical = logical_folder(working, environment)?;
    logical
        .ends_with(inside)
        .then(|| logical.ancestors().nth(inside.components().count()).map(Path::to_owned))?
}

/// Where Bazel runs a test, the project is there anew each time, in a folder with a number of its
/// own.
fn bazel_root(working: &Path) -> Option<PathBuf> {
    let is_output = |folder: &&Path| folder.ends_with("bazel-out");
    let root = working.ancestors().find(is_output)?.parent()?;
    root.parent()?.ends_with("execroot").then(|| root.to_owned())
}

/// What is linked to from there: `BASE/execroot/NAME` for a root
/// `BASE/sandbox/KIND/NUMBER/execroot/NAME`.
fn bazel_build(root: &Path) -> Option<PathBuf> {
    let sandbox = root.ancestors().nth(4).filter(|folder| folder.ends_with("sandbox"))?;
    let inside = root
        .strip_prefix(root.ancestors().nth(2)?)
        .ok()
        .filter(|inside| inside.starts_with("execroot"))?;
    Some(sandbox.parent()?.join(inside)).filter(|build| build.is_dir())
}

/// The nearest folder that is the top of a project.
fn nearest_root(working: &Path) -> Option<PathBuf> {
    let is_root =
        |folder: &&Path| [config::FILE, ".git"].iter().any(|mark| folder.join(mark).exists());
    working.ancestors().find(is_root).map(Path::to_owned)
}

/// The top folder of the build that a folder belongs to: the outermost one below the root, or the
/// nearest outside of it.
fn build_folder(start: &Path, root: &Path, config: &Config) -> Option<PathBuf> {
    let is_declared = |folder: &Path| {
        let inside = folder.strip_prefix(root).ok().and_then(Path::to_str);
        inside.is_some_and(|inside| {
            config.build_folders.iter().any(|pattern| config::matches(pattern, inside))
        })
    };
    let is_build = |folder: &&Path| {
        is_declared(folder) || BUILD_MARKS.iter().any(|mark| folder.join(mark).exists())
    };
    match start.starts_with(root) {
        true => start
            .ancestors()
            .take_while(|folder| *folder != root)
            .filter(is_build)
            .last()
            .map(Path::to_owned),
        false => start
            .ancestors()
            .filter(|folder| folder.parent().is_some())
            .find(is_build)
            .map(Path::to_owned),
    }
}

/// Whether a letter goes on with the name before it.
fn is_of_a_name(letter: u8) -> bool {
    letter.is_ascii_alphanumeric() || b"_-.+~@".contains(&letter) || letter >= 0x80
}

#[cfg(test)]
#[path = "project_tests.rs"]
mod tests;
