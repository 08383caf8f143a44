//! Compiled objects of other machines that are not taken, or not sent: damaged, hostile, unsigned,
//! too large, of another folder.

use super::{Compiler, HEADER, compile, compiles, log, machine, made, object, shared, waiting};
use std::path::Path;
use tasting::model::Hash;
use tasting::store::remote::Name;
use tasting::store::remote::location::Attributes;
use tasting::store::remote::value::Keys;

/// The key of a value, by its place.
fn key(path: &Path) -> Hash {
    let start = path.parent().unwrap().file_name().unwrap().to_string_lossy().into_owned();
    Hash::from_text(&(start + &path.file_stem().unwrap().to_string_lossy())).unwrap()
}

/// After this change to the only object, another machine compiles, the log says why, and what it
/// made takes the place.
#[track_caller]
fn is_refused(compiler: &Compiler, reason: &str, change: impl FnOnce(&Path)) {
    let place = tempfile::tempdir().unwrap();
    let alice = machine("alice", &format!("file:{} objects=1M", place.path().display()));
    compiles(&alice, compiler, &[]);
    alice.does(&["push"]);
    change(&shared(place.path())[0]);
    let bob = machine("bob", &alice.remote);
    compiles(&bob, compiler, &[]);
    assert!(log(&bob).contains(reason), "{reason:?} is not in {}", log(&bob));
    assert_eq!((made(&bob), object(&bob)), (1, object(&alice)));
    bob.does(&["push"]);
    let carol = machine("carol", &alice.remote);
    compiles(&carol, compiler, &[]);
    assert_eq!((made(&carol), object(&carol)), (0, object(&alice)), "{}", log(&carol));
}

#[test]
fn damaged_and_hostile_values_are_compiled() {
    let compiler = Compiler::new("gcc");
    let forge = |path: &Path, change: &dyn Fn(&mut Vec<u8>)| {
        let keys = Keys::new(&Attributes::default(), &[]);
        let name = Name::object(key(path));
        let mut raw = keys.read_object(name, &std::fs::read(path).unwrap()).unwrap();
        change(&mut raw);
        std::fs::write(path, keys.object(name, &raw).unwrap()).unwrap();
    };
    is_refused(&compiler, "magic", |path| {
        std::fs::write(path, "<html>Not found</html> and much more text").unwrap()
    });
    is_refused(&compiler, "truncated", |path| std::fs::write(path, "").unwrap());
    is_refused(&compiler, "checksum", |path| {
        let mut bytes = std::fs::read(path).unwrap();
        let last = bytes.len() - 20;
        bytes[last] ^= 1;
        std::fs::write(path, bytes).unwrap();
    });
    is_refused(&compiler, "no plain file", |path| {
        std::fs::File::create(path).unwrap().set_len(1 << 30).unwrap()
    });
    // Whole, under its name, and yet nothing to be linked.
    is_refused(&compiler, "it is malformed", |path| forge(path, &|raw| raw.truncate(30)));
    is_refused(&compiler, "it is malformed", |path| forge(path, &|raw| raw[0] = 0xff));
    is_refused(&compiler, "it is no object", |path| {
        forge(path, &|raw| {
            let at = raw.windows(4).position(|word| word == b"\x7fELF").unwrap();
            raw[at..at + 4].copy_from_slice(b"!<ar");
        });
    });
    is_refused(&compiler, "more than the attribute objects allows", |path| {
        forge(path, &|raw| {
            let object = vec![0; (1 << 20) + 1];
            *raw = [&[0, 0x81, 0x80, 0x40][..], &object].concat();
        });
    });
}

#[test]
#[ignore = "needs openssl"]
fn only_what_named_keys_have_signed_is_linked() {
    let compiler = Compiler::new("gcc");
    let place = tempfile::tempdir().unwrap();
    let key = place.path().join("ci.pem");
    let openssl = |words: &[&str]| {
        let output = std::process::Command::new("openssl").args(words).arg(&key).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    openssl(&["genpkey", "-algorithm", "ed25519", "-out"]);
    let public = openssl(&["pkey", "-pubout", "-in"]).lines().nth(1).unwrap().to_owned();
    let remote = format!("file:{}/store objects", place.path().display());
    let stranger = machine("stranger", &remote);
    compiles(&stranger, &compiler, &[]);
    stranger.does(&["push"]);
    // Named in TASTING_REMOTE, or in the project's file.
    let developer = machine("developer", &format!("{remote} read-only trusted-key={public}"));
    let other = machine("other", &format!("{remote} read-only"));
    other.write("tasting.toml", format!("[sharing]\ntrusted-keys = ['{public}']"));
    for machine in [&developer, &other] {
        compiles(machine, &compiler, &[]);
        assert!(
            made(machine) == 1 && log(machine).contains("nobody has signed it"),
            "{}",
            log(machine)
        );
    }
    let server =
        machine("server", &format!("{remote} sign-key={} trusted-key={public}", key.display()));
    compiles(&server, &compiler, &[]);
    server.does(&["push"]);
    let another = machine("another", &developer.remote);
    compiles(&another, &compiler, &[]);
    assert_eq!((made(&server), made(&another)), (1, 0), "{}", log(&another));
}

#[test]
fn large_objects_are_not_uploaded() {
    let compiler = Compiler::new("gcc");
    let place = tempfile::tempdir().unwrap();
    let alice = machine("alice", &format!("file:{} objects=1K", place.path().display()));
    alice.write("part.c", "int part[1000] = { 1 };\n");
    compiles(&alice, &compiler, &[]);
    alice.does(&["push"]);
    assert_eq!((waiting(&alice), shared(place.path())), (0, Vec::new()));
}

/// Messages are those of the compiler at hand, whoever has the object.
#[test]
fn shared_objects_bring_their_diagnostics() {
    let place = tempfile::tempdir().unwrap();
    for compiler in Compiler::all() {
        let remote = format!("file:{} objects namespace={}", place.path().display(), compiler.name);
        let (alice, bob) = (machine("alice", &remote), machine("bob", &remote));
        compiles(&alice, &compiler, &[]);
        alice.does(&["push"]);
        bob.write("part.h", format!("{HEADER}struct {{ int x; }};\n"));
        let plain = machine("plain", "");
        plain.write("part.h", format!("{HEADER}struct {{ int x; }};\n"));
        let (told, expected) = (compile(&bob, &compiler, &[]), compile(&plain, &compiler, &[]));
        assert!(told.success() && !expected.stderr.is_empty(), "{}: {told:?}", compiler.name);
        assert_eq!((told, object(&bob)), (expected, object(&plain)), "{}", compiler.name);
    }
}

/// Debug information names the folder: only checkouts in the same place share it.
#[test]
fn objects_naming_their_folder_are_not_shared() {
    let compiler = Compiler::new("gcc");
    let place = tempfile::tempdir().unwrap();
    let remote = format!("file:{} objects", place.path().display());
    let (alice, bob) = (machine("alice", &remote), machine("bob", &remote));
    compiles(&alice, &compiler, &["-g"]);
    alice.does(&["push"]);
    compiles(&bob, &compiler, &["-g"]);
    assert_eq!(made(&bob), 1);
    assert_ne!(object(&alice), object(&bob));
    // The same checkout, with nothing left of its own store.
    let before = object(&alice);
    std::fs::rename(alice.store_folder(), alice.home().join("old store")).unwrap();
    compiles(&alice, &compiler, &["-g"]);
    assert_eq!((made(&alice), object(&alice)), (1, before), "{}", log(&alice));
}
