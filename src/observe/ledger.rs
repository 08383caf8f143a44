//! The ledger of one run: the state in which each path was first seen, how much of it the run can
//! have seen, and what the run itself has created or changed. What the run has made itself is not
//! an input, even if the run reads it later.
//!
//! In: paths, in the state they have just before the run sees or changes them. Out: uses and
//! refusals.

use super::content::{Contents, Identity, device_and_inode};
use super::entries::{Entry, First, Sight};
use super::extended;
use super::facts::Fact;
use super::library_names::LibraryNames;
use super::listing::{self, Listing};
use super::policy::{self, Treatment};
use super::resolve::{Found, Place, Trail};
use super::targets::Target;
use super::used::{Kind, What, is_large};
use crate::model::{Hash, Refusal, Why, codes};
use rustc_hash::{FxHashMap, FxHashSet};
use std::fs::{self, Metadata};
use std::io;
use std::path::{Path, PathBuf};

/// More reasons than this tell nobody more.
const MOST_REFUSALS: usize = 64;

/// What the run did to a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Touch {
    /// It was not there before.
    Made,
    /// It was, as a thing of this kind and identity.
    Changed(Kind, Identity),
}

/// The account.
pub struct Ledger {
    pub(super) entries: FxHashMap<PathBuf, Entry>,
    pub(super) links: FxHashMap<PathBuf, PathBuf>,
    pub(super) touched: FxHashMap<PathBuf, Touch>,
    pub(super) own_folders: FxHashSet<PathBuf>,
    pub(super) library_names: LibraryNames,
    /// Which program had the loader open which libraries, in that order.
    pub(super) loads: Vec<(PathBuf, PathBuf)>,
    /// Files that were there before and have been changed: they may have other names.
    pub(super) changed: FxHashSet<(u64, u64)>,
    /// What was at places before the run wrote to them.
    pub(super) targets: FxHashMap<(Target, PathBuf), Hash>,
    /// Files that the run has locked, and whether somebody else had when it did so first.
    pub(super) locks: FxHashMap<PathBuf, Hash>,
    pub(super) extended: FxHashMap<PathBuf, Hash>,
    pub(super) facts: FxHashMap<PathBuf, Hash>,
    /// Named pipes of the run's own, and whether it has opened them for reading, and for writing.
    pub(super) pipes: FxHashMap<PathBuf, [bool; 2]>,
    pub(super) refusals: Vec<Refusal<'static>>,
    pub(super) contents: Contents,
}

impl Ledger {
    /// An empty account.
    pub fn new(contents: Contents) -> Ledger {
        Ledger {
            entries: FxHashMap::default(),
            links: FxHashMap::default(),
            library_names: LibraryNames::default(),
            touched: FxHashMap::default(),
            own_folders: FxHashSet::default(),
            loads: Vec::new(),
            changed: FxHashSet::default(),
            targets: FxHashMap::default(),
            locks: FxHashMap::default(),
            extended: FxHashMap::default(),
            facts: FxHashMap::default(),
            pipes: FxHashMap::default(),
            refusals: Vec::new(),
            contents,
        }
    }

    /// Notes a reason why the run cannot be reused.
    pub fn refuse(&mut self, subject: impl Into<String>, why: impl Into<Why>) {
        let refusal = Refusal::of_run(subject.into(), why);
        if self.refusals.len() < MOST_REFUSALS && !self.refusals.contains(&refusal) {
            self.refusals.push(refusal);
        }
    }

    /// Notes the reason that is to be told before all others.
    pub fn refuse_first(&mut self, subject: String, why: impl Into<Why>) {
        let refusal = Refusal::of_run(subject, why);
        if !self.refusals.contains(&refusal) {
            self.refusals.insert(0, refusal);
        }
    }

    /// The same as `refuse`, about a path.
    pub fn refuse_path(&mut self, path: &Path, why: impl Into<Why>) {
        self.refuse(path.to_string_lossy(), why);
    }

    /// What a walk met on its way.
    pub fn passed(&mut self, trail: Trail, is_own: policy::IsOwn) {
        trail.links.iter().for_each(|(link, _)| self.library_names.follows(link));
        self.met(trail, is_own);
    }

    /// The same where it is the dynamic loader that opens a library.
    pub fn passed_by_loader(&mut self, trail: Trail, library: &Path, is_own: policy::IsOwn) {
        self.library_names.opened(library, &trail);
        self.met(trail, is_own);
    }

    fn met(&mut self, trail: Trail, is_own: policy::IsOwn) {
        for (link, target) in trail.links {
            self.saw_link(link, target);
        }
        for folder in trail.folders {
            if !self.entries.contains_key(&folder) {
                let found = fs::symlink_metadata(&folder).map_or(Found::Denied, Found::There);
                self.saw(&Place { path: folder, found }, Sight::Kind, is_own);
            }
        }
    }

    fn saw_link(&mut self, link: PathBuf, target: PathBuf) {
        if link.starts_with("/proc") || self.is_own(&link) {
            return;
        }
        match self.links.get(&link) {
            None => _ = self.links.insert(link, target),
            Some(first) if *first != target => {
                self.refuse_path(&link, (codes::CHANGED_MEANWHILE, CHANGED))
            }
            Some(_) => {}
        }
    }

    /// The run gets to see something of a place.
    pub fn saw(&mut self, place: &Place, sight: Sight, is_own: policy::IsOwn) {
        let path = &place.path;
        if matches!(place.found, Found::Nameless) || self.is_own(path) {
            return;
        }
        if policy::names_mapped_files(path) {
            self.library_names.sees_files();
        }
        match policy::of(path, is_own) {
            Treatment::Ignored => {}
            // To see that a device is there is not to use it.
            Treatment::Refused(_) if sight <= Sight::Details && path.starts_with("/dev") => {
                self.enter(place, sight)
            }
            Treatment::Refused(reason) => self.refuse_path(path, (codes::DEVICE, reason)),
            Treatment::ByContent => match policy::lasting(path) {
                Some(path) => self.enter_pseudo(&Place { path, found: place.found.clone() }, sight),
                None => self.enter_pseudo(place, sight),
            },
            Treatment::Ordinary => self.enter(place, sight),
        }
    }

    fn enter(&mut self, place: &Place, sight: Sight) {
        let first = match &place.found {
            Found::There(found) | Found::Blocks(found) => {
                First::There(Identity::of(found), What::of(found))
            }
            Found::Missing | Found::MissingFolder => First::Absent,
            Found::Denied | Found::Nameless => First::Denied,
        };
        let changed = match self.entries.get(&place.path) {
            Some(entry) => entry.differs(&first),
            None => {
                self.entries.insert(place.path.clone(), Entry::new(first, sight));
                false
            }
        };
        if changed {
            self.refuse_path(&place.path, (codes::CHANGED_MEANWHILE, CHANGED));
            return;
        }
        if let Some(entry) = self.entries.get_mut(&place.path) {
            entry.sight = entry.sight.max(sight);
            entry.asked |= sight == Sight::Details;
            entry.loaded |= sight == Sight::Library;
            entry.read |= sight == Sight::Content;
        }
        if let Found::There(found) = &place.found {
            self.enter_content(&place.path, found, sight);
        }
    }

    /// Takes note of the content, before the run can have changed it. Who asks for a file's
    /// attributes learns when it was changed, and may know its content from then: as Python does of
    /// sources that it has compiled, and git of its working tree.
    fn enter_content(&mut self, path: &Path, found: &Metadata, sight: Sight) {
        if sight < Sight::Details {
            return;
        }
        match Kind::of(found.file_type()) {
            Kind::File if sight == Sight::Details && is_large(found) => return,
            Kind::File => {}
            Kind::Folder => return,
            // Its length is that of its target.
            Kind::Link => {
                if let Ok(target) = fs::read_link(path) {
                    self.library_names.follows(path);
                    self.saw_link(path.to_owned(), target);
                }
                return;
            }
            _ if sight == Sight::Details => return,
            kind => {
                return self.refuse_path(
                    path,
                    (codes::OUTSIDE_PROCESS, format!("uses a {} from outside", name_of(kind))),
                );
            }
        }
        if self.changed.contains(&device_and_inode(found)) && !self.touched.contains_key(path) {
            return self.refuse_path(
                path,
                (codes::CHANGED_MEANWHILE, "is read after it was changed under another name"),
            );
        }
        if self.entries.get(path).is_some_and(|entry| entry.content.is_some()) {
            return;
        }
        match self.contents.of(path, found) {
            Err(error)
                if sight == Sight::Details && error.kind() == io::ErrorKind::PermissionDenied => {}
            content => self.settle(path, content),
        }
    }

    fn settle(&mut self, path: &Path, content: io::Result<Hash>) {
        let Some(entry) = self.entries.get_mut(path) else { return };
        match content {
            Ok(hash) => entry.content = Some(hash),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => entry.denied = true,
            Err(error) => self.refuse_path(path, format!("cannot be hashed: {error}")),
        }
    }

    /// A file of the kernel, whose identity says nothing.
    fn enter_pseudo(&mut self, place: &Place, sight: Sight) {
        match &place.found {
            Found::There(found) if found.is_file() && sight >= Sight::Content => {
                if self.entries.contains_key(&place.path) {
                    return;
                }
                let first = First::There(Identity::of(found), What::of(found));
                let entry = Entry { read: true, ..Entry::new(first, Sight::Content) };
                self.entries.insert(place.path.clone(), entry);
                let content = self.contents.of_pseudo_file(&place.path);
                self.settle(&place.path, content);
            }
            // Sizes mean nothing there.
            _ if !self.entries.contains_key(&place.path) => self.enter(place, Sight::Kind),
            _ => {}
        }
    }

    /// The run lists a folder.
    pub fn lists(&mut self, folder: &Path, found: &Metadata, is_own: policy::IsOwn) {
        if self.entries.get(folder).is_some_and(|entry| entry.listing.is_some()) {
            return;
        }
        if self.is_own(folder) {
            return self.lists_own(folder);
        }
        match policy::of_listing(folder, is_own) {
            Treatment::Ignored => return,
            Treatment::Refused(reason) => return self.refuse_path(folder, (codes::DEVICE, reason)),
            Treatment::Ordinary | Treatment::ByContent => {}
        }
        let place = Place { path: folder.to_owned(), found: Found::There(found.clone()) };
        self.enter(&place, Sight::Kind);
        match self.effective_listing(folder) {
            Ok(now) => {
                if let Some(entry) = self.entries.get_mut(folder) {
                    entry.listing = Some((now, Identity::of(found)));
                }
            }
            Err(error) => self.refuse_path(folder, format!("cannot be listed: {error}")),
        }
    }

    /// The run lists a folder that it has made. What others have put there by now may be gone the
    /// next time, or come later.
    fn lists_own(&mut self, folder: &Path) {
        let is_of_others =
            |name: &std::ffi::OsString| !self.touched.contains_key(&folder.join(name));
        if listing::of(folder).is_ok_and(|now| now.keys().any(is_of_others)) {
            let why =
                "is a folder of the test's own, in which others write while the test lists it";
            self.refuse_path(folder, (codes::CHANGED_MEANWHILE, why));
        }
    }

    /// The entries that a folder would have, had the run not touched it.
    pub(super) fn effective_listing(&self, folder: &Path) -> io::Result<Listing> {
        let mut now = listing::of(folder)?;
        for (path, touch) in self.touched.iter().filter(|(path, _)| path.parent() == Some(folder)) {
            let Some(name) = path.file_name() else { continue };
            match touch {
                Touch::Made => _ = now.remove(name),
                Touch::Changed(kind, _) => _ = now.insert(name.to_owned(), *kind),
            }
        }
        Ok(now)
    }

    /// The dynamic loader opens a library for a program. `false` if that is the run's own: nothing
    /// else says then what of the library it uses.
    pub fn loads(&mut self, program: &Path, library: &Path) -> bool {
        let is_counted =
            self.entries.get(program).is_some_and(|entry| entry.sight == Sight::Program);
        if !is_counted || self.is_own(program) {
            return false;
        }
        if !self.loads.iter().any(|(by, loaded)| by == program && loaded == library) {
            self.loads.push((program.to_owned(), library.to_owned()));
        }
        true
    }

    /// The libraries that the loader has opened for a program.
    pub fn libraries_of(&self, program: &Path) -> impl Iterator<Item = &PathBuf> {
        self.loads.iter().filter(move |(of, _)| of == program).map(|(_, library)| library)
    }

    /// The run asks for the extended attributes of what is at a place.
    pub fn asks_for_extended(&mut self, place: &Place, is_own: policy::IsOwn) {
        let is_counted = matches!(place.found, Found::There(_))
            && policy::of(&place.path, is_own) == Treatment::Ordinary;
        if is_counted && !self.is_own(&place.path) && !self.extended.contains_key(&place.path) {
            self.extended.insert(place.path.clone(), extended::of(&place.path));
        }
    }

    /// The run learns a fact about the machine. What it changes itself afterwards does not count.
    pub fn learns(&mut self, fact: &Fact) {
        self.facts.entry(fact.name()).or_insert_with(|| fact.value());
    }
}

/// Said of inputs that others change, or that differ at the end.
pub(super) const CHANGED: &str = "changed while the test ran";

fn name_of(kind: Kind) -> &'static str {
    match kind {
        Kind::Fifo => "named pipe",
        Kind::Socket => "socket",
        _ => "device",
    }
}
