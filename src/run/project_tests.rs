//! Paths and texts of a project, here and in another checkout.

use super::*;
use crate::model::Hash;

fn project(root: &str, build: &str) -> Project {
    let bases = vec![
        (Base::Build, build.into()),
        (Base::Root, root.into()),
        (Base::Home, "/home/u".into()),
    ];
    let spellings = vec![(Base::Home, "/u".into())];
    let (config, environment) = Default::default();
    Project { root: root.into(), working: root.into(), config, environment, bases, spellings }
}

#[test]
fn portable_paths_round_trip() {
    let project = project("/home/u/p", "/home/u/p/build");
    for (path, base, rest) in [
        ("/home/u/p/build/t", Base::Build, "t"),
        ("/home/u/p/a/b", Base::Root, "a/b"),
        ("/home/u/p", Base::Root, ""),
        ("/home/u/pp", Base::Home, "pp"),
        ("/usr/bin", Base::None, "/usr/bin"),
    ] {
        let place = project.place(Path::new(path));
        assert_eq!(place, PortablePath { base, path: rest.into() });
        assert_eq!(project.path(&place), Some(path.into()));
    }
    assert_eq!(project.path(&PortablePath { base: Base::Temporary, path: b"x".to_vec() }), None);
}

#[test]
fn portable_texts_hold_in_other_checkouts() {
    let hash = |project: &Project, text: &str| -> Hash {
        let mut hasher = Hasher::new("test");
        project.hash_text(text.as_bytes(), &mut hasher);
        hasher.finish()
    };
    let (one, other) = (project("/home/u/p", "/home/u/p/build"), project("/w/q", "/w/out"));
    for (here, there) in [
        ("/home/u/p/x", "/w/q/x"),
        ("-I/home/u/p:/home/u/p/build/y", "-I/w/q:/w/out/y"),
        ("/home/u/p", "/w/q"),
        ("/u/x:/home/u/z", "/home/u/x:/u/z"),
        ("plain", "plain"),
    ] {
        assert_eq!(hash(&one, here), hash(&other, there), "{here}");
    }
    for (here, there) in
        [("/home/u/p/x", "/w/q/y"), ("/home/u/pp/x", "/w/qq/x"), ("/home/u/p", "/w/out")]
    {
        assert_ne!(hash(&one, here), hash(&other, there), "{here}");
    }
    assert!(one.is_named_in(b"in /home/u/p/x.c:3") && !one.is_named_in(b"in x.c:3"));
}

#[test]
fn the_root_is_nearest_the_build_folder_outermost() {
    let folder = tempfile::tempdir().unwrap();
    let top = fs::canonicalize(folder.path()).unwrap();
    let deep = top.join("p/build/sub/x");
    fs::create_dir_all(&deep).unwrap();
    fs::write(top.join("p/tasting.toml"), "build-folders = ['declared']").unwrap();
    let find = |working: &Path| Project::find(working, None, &Settings::default()).unwrap();
    assert_eq!(find(&deep).root, top.join("p"));
    assert_eq!(
        find(&deep).place(&deep),
        PortablePath { base: Base::Root, path: b"build/sub/x".to_vec() }
    );
    for mark in ["p/build/CMakeCache.txt", "p/build/sub/CMakeCache.txt"] {
        fs::write(top.join(mark), "").unwrap();
    }
    assert_eq!(
        find(&deep).place(&deep),
        PortablePath { base: Base::Build, path: b"sub/x".to_vec() }
    );
    let declared = top.join("p/declared");
    fs::create_dir(&declared).unwrap();
    assert_eq!(
        find(&declared).place(&declared),
        PortablePath { base: Base::Build, path: Vec::new() }
    );
    assert_eq!(find(&top).root, top, "without a mark it is the working folder");
    let [sandbox, build] =
        ["b/sandbox/linux-sandbox/17/execroot/main", "b/execroot/main"].map(|name| top.join(name));
    assert_eq!(bazel_build(&sandbox), None);
    fs::create_dir_all(&build).unwrap();
    assert_eq!((bazel_build(&sandbox), bazel_build(&build)), (Some(build.clone()), None));
    for (inside, root) in [
        ("17/execroot/main/bazel-out/k8/bin/t.runfiles/main", "17/execroot/main"),
        ("p/bazel-out/x", "p"),
    ] {
        fs::create_dir_all(top.join(inside)).unwrap();
        assert_eq!(find(&top.join(inside)).root, top.join(root));
    }
}
