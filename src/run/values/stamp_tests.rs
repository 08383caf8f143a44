//! Stamps: every change that a value shows is another stamp.

use super::*;
use crate::fingerprint::ModuleCache;
use crate::model::PortablePath;
use crate::observe::{Contents, Forgetful, Input};
use crate::process::Settings;
use crate::run::project::Project;
use crate::store::{FileStore, Options};
use std::fs::{self, File, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;
use std::sync::Arc;

struct Bench {
    _folder: tempfile::TempDir,
    top: PathBuf,
    project: Project,
    store: FileStore,
    settings: Settings,
    modules: ModuleCache,
}

impl Bench {
    fn new() -> Bench {
        // Not in /tmp, which can be a file system in memory.
        let here = std::env::current_exe().unwrap();
        let folder = tempfile::tempdir_in(here.parent().unwrap()).unwrap();
        let top = fs::canonicalize(folder.path()).unwrap();
        fs::write(top.join("tasting.toml"), "").unwrap();
        let settings = Settings::default();
        let project = Project::find(&top, None, &settings).unwrap();
        let store = FileStore::new(&top.join("store"), Options::default());
        Bench { _folder: folder, top, project, store, settings, modules: ModuleCache::default() }
    }

    fn values(&self) -> Values<'_> {
        let contents = Contents::new(Arc::new(Forgetful));
        Values::new(
            &self.project,
            &self.settings,
            &self.store,
            contents,
            Input::Empty,
            &self.modules,
        )
        .with_stamps()
    }

    fn set(&self, used: &[(DependencyKind, &str)]) -> DependencySet {
        let on = |(kind, path): &(DependencyKind, &str)| {
            Dependency::on(*kind, self.project.place(Path::new(path)))
        };
        let mut dependencies: Vec<Dependency> = used.iter().map(on).collect();
        dependencies.sort_unstable();
        DependencySet { dependencies }
    }

    fn stamp(&self, used: &[(DependencyKind, &str)]) -> Option<Stamp> {
        self.values().stamp(Hash::of(b"test"), &self.set(used))
    }
}

#[test]
fn every_changed_value_changes_the_stamp() {
    use DependencyKind::{Absent, Attributes, Exists, File as Content, Folder, Link};
    let bench = Bench::new();
    let path = |name: &str| bench.top.join(name).to_str().unwrap().to_owned();
    let [file, other, folder, link, missing] =
        ["file", "other", "folder", "link", "missing"].map(path);
    let write = |path: &str, text: &str| fs::write(path, text).unwrap();
    write(&file, "one");
    write(&other, "one");
    fs::create_dir(&folder).unwrap();
    symlink("file", &link).unwrap();
    let used = [
        (Content, &file[..]),
        (Absent, &missing),
        (Exists, &folder),
        (Attributes, &file),
        (Attributes, &other),
        (Folder, &folder),
        (Link, &link),
    ];
    let mut seen = vec![bench.stamp(&used).unwrap()];
    assert_eq!(bench.stamp(&used), Some(seen[0]), "nothing has changed");
    let mut check = |what: &str| {
        let now = bench.stamp(&used).unwrap();
        assert!(!seen.contains(&now), "{what}");
        seen.push(now);
    };
    let times = fs::metadata(&file).unwrap();
    write(&file, "two");
    let times = fs::FileTimes::new().set_modified(times.modified().unwrap());
    File::options().write(true).open(&file).unwrap().set_times(times).unwrap();
    check("content of the same size, with the old time");
    write(&other, "longer");
    check("size");
    fs::set_permissions(&other, Permissions::from_mode(0o755)).unwrap();
    check("it can be executed");
    write(&missing, "");
    check("it is there");
    write(&format!("{folder}/new"), "");
    check("an entry");
    fs::remove_file(&link).unwrap();
    symlink("other", &link).unwrap();
    check("where a link leads");
    fs::remove_file(&other).unwrap();
    check("it is gone");
    fs::remove_dir_all(&folder).unwrap();
    symlink(".", &folder).unwrap();
    assert_eq!(
        bench.stamp(&used),
        None,
        "it is not known what is in the folder that a link leads to"
    );
}

#[test]
fn equal_values_of_other_dependencies_do_not_match() {
    use DependencyKind::{Attributes, Exists, File as Content};
    let bench = Bench::new();
    let path = |name: &str| bench.top.join(name).to_str().unwrap().to_owned();
    let [one, two] = ["one", "two"].map(path);
    fs::write(&one, "x").unwrap();
    fs::hard_link(&one, &two).unwrap();
    let stamps: Vec<_> = [
        &[(Content, &one[..])][..],
        &[(Content, &two)],
        &[(Attributes, &one)],
        &[(Exists, &one)],
        &[(Content, &one), (Attributes, &one)],
        &[(Content, &one), (Attributes, &two)],
    ]
    .iter()
    .map(|used| bench.stamp(used).unwrap())
    .collect();
    let different: std::collections::BTreeSet<_> = stamps.iter().map(|stamp| stamp.0).collect();
    assert_eq!(different.len(), stamps.len());
}

#[test]
fn untrackable_dependencies_get_no_stamp() {
    let bench = Bench::new();
    let file = bench.top.join("file").to_str().unwrap().to_owned();
    fs::write(&file, "one").unwrap();
    let test = Hash::of(b"test");
    let keep = |used: &[(DependencyKind, &str)]| {
        let (set, mut values) = (bench.set(used), bench.values());
        let stamp = values.stamp(test, &set)?;
        values.now(&set);
        values.remember_outcome(stamp, test, &set, Hash::of(b"outcome"));
        values.outcome_of(stamp)
    };
    assert_eq!(keep(&[(DependencyKind::File, &file)]), None, "it is too young");
    assert_eq!(
        keep(&[(DependencyKind::Folder, bench.top.to_str().unwrap())]),
        None,
        "it is too young"
    );
    let settled = "/etc/passwd";
    assert_eq!(keep(&[(DependencyKind::File, settled)]), Some(Hash::of(b"outcome")));
    assert_eq!(keep(&[(DependencyKind::File, settled), (DependencyKind::File, &file)]), None);
    let in_memory = tempfile::NamedTempFile::new_in("/dev/shm").unwrap();
    assert_eq!(bench.stamp(&[(DependencyKind::File, in_memory.path().to_str().unwrap())]), None);
}

#[test]
fn many_files_are_seen_in_their_order() {
    let bench = Bench::new();
    let names: Vec<String> = (0..2 * MANY).map(|number| format!("{number:05}")).collect();
    names.iter().for_each(|name| fs::write(bench.top.join(name), "").unwrap());
    let place = |name: &String| PortablePath { base: Base::Root, path: name.as_bytes().to_vec() };
    let on = |name: &String| Dependency::on(DependencyKind::File, place(name));
    let set = DependencySet { dependencies: names.iter().map(on).collect() };
    let mut values = bench.values();
    let parts = values.parts(&set).unwrap();
    let seen: Vec<_> = stat_all(&parts).into_iter().map(|seen| seen.unwrap().identity).collect();
    let expected: Vec<_> = names
        .iter()
        .map(|name| FileIdentity::of(&fs::metadata(bench.top.join(name)).unwrap()))
        .collect();
    assert_eq!(seen, expected);
}
