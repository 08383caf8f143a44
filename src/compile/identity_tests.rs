//! Identities of compilers, wrappers and scripts.

use super::*;
use std::os::unix::fs::PermissionsExt;

#[test]
fn the_commands_count_and_the_folder_does_not() {
    let hash =
        commands(b"gcc version 12\n cc1 -quiet -march=x86-64 -o - |\n as --64\nLIBRARY_PATH=/x\n");
    assert_eq!(
        hash,
        commands(b"gcc version 13\n cc1 -quiet -march=x86-64 -o - |\n as --64\nLIBRARY_PATH=/y\n")
    );
    assert_ne!(
        hash,
        commands(b"gcc version 12\n cc1 -quiet -march=znver4 -o - |\n as --64\nLIBRARY_PATH=/x\n")
    );
    let at = |folder: &str| {
        commands(format!(" clang -cc1 \"-fdebug-compilation-dir={folder}\" -x c\n").as_bytes())
    };
    assert_eq!(at("/one"), at("/two"));
}

fn asked(driver: &Program) -> Option<Answer> {
    DriverAnswer::of(driver, &[], &account(driver, &[])?)?.read()
}

#[test]
fn drivers_are_told_from_wrappers() {
    for driver in ["gcc", "clang"].into_iter().filter_map(|name| which::which(name).ok()) {
        assert!(!is_wrapper(&driver), "{}", driver.display());
    }
    for wrapper in
        ["ccache", "sccache", "sh"].into_iter().filter_map(|name| which::which(name).ok())
    {
        assert!(is_wrapper(&wrapper), "{}", wrapper.display());
    }
}

#[test]
fn programs_are_those_of_the_commands() {
    let told = b"Using built-in specs.\nCOLLECT_GCC=/bin/sh\n /bin/cat -quiet |\n as --64\n (in-process)\n \"/bin/ls\" \"-cc1\"\n";
    assert_eq!(programs(told), ["/bin/sh", "/bin/cat", "/bin/ls"].map(PathBuf::from));
}

#[test]
fn the_libraries_of_all_parts_count() {
    let settings = Settings::default();
    let found = libraries(Path::new("/bin/sh"));
    assert!(found.iter().any(|path| path.to_string_lossy().contains("libc.")), "{found:?}");
    let gcc = Program::at(which::which("gcc").unwrap());
    let answer = asked(&gcc);
    assert!(answer.is_some_and(|answer| answer.parts.len() > 3 && is_current(&answer)));
    assert_eq!(of(&settings, &gcc, &[]), of(&settings, &gcc, &[]));
    assert_ne!(of(&settings, &gcc, &[]), of(&settings, &gcc, &["-m32".into()]));
}

/// Neither a `specs` nor a configuration file has to be there from the beginning.
#[test]
fn a_new_configuration_file_invalidates_the_identity() {
    for driver in ["gcc", "clang"].into_iter().filter_map(|name| which::which(name).ok()) {
        let answer = asked(&Program::at(driver)).unwrap();
        let is_folder =
            |part: &&(Vec<u8>, FileIdentity)| Path::new(OsStr::from_bytes(&part.0)).is_dir();
        assert_eq!(answer.parts.iter().filter(is_folder).count(), 1);
    }
    let folder = tempfile::tempdir().unwrap();
    let part = (folder.path().as_os_str().as_bytes().to_vec(), identity_of(folder.path()).unwrap());
    let answer = Answer { parts: vec![part], identity: None };
    assert!(is_current(&answer));
    // The clock of file systems goes in ticks.
    std::thread::sleep(std::time::Duration::from_millis(100));
    fs::write(folder.path().join("specs"), "").unwrap();
    assert!(!is_current(&answer));
}

#[test]
fn a_script_is_identified_by_its_compiler() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let settings = Settings { dir: Some(path("store")), ..Settings::default() };
    // As musl's does it, with the compiler's name in a file in place of a variable.
    let script = format!(
        "#!/bin/sh\nexec $(cat {0}/name) \"$@\" \"-I{0}\" # \"{0}/specs\"\n",
        folder.path().display()
    );
    fs::write(path("wrapped-gcc"), script).unwrap();
    fs::set_permissions(path("wrapped-gcc"), fs::Permissions::from_mode(0o755)).unwrap();
    let identity = |name: &str, specs: &str| {
        fs::write(path("name"), name).unwrap();
        fs::write(path("specs"), specs).unwrap();
        of(&settings, &Program::at(path("wrapped-gcc")), &[]).unwrap()
    };
    let gcc = identity("gcc", "a");
    assert_eq!(gcc, identity("gcc", "a"));
    let clang = identity("clang", "a");
    assert_ne!(gcc, clang);
    assert_ne!(clang, identity("clang", "other"));
}

#[test]
fn a_script_behind_a_script_counts() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let settings = Settings { dir: Some(path("store")), ..Settings::default() };
    let write = |name: &str, text: &str| {
        fs::write(path(name), text).unwrap();
        fs::set_permissions(path(name), fs::Permissions::from_mode(0o755)).unwrap();
    };
    write("gcc", "#!/bin/sh\nexec \"$(dirname \"$0\")/inner\" \"$@\"\n");
    let identity = |text: &str| {
        write("inner", text);
        of(&settings, &Program::at(path("gcc")), &[]).unwrap()
    };
    let plain = identity("#!/bin/sh\nexec gcc \"$@\"\n");
    assert_eq!(plain, identity("#!/bin/sh\nexec gcc \"$@\"\n"));
    // For some calls only, which the question for its commands is not.
    assert_ne!(plain, identity("#!/bin/sh\n[ $# = 17 ] && exec gcc -O3 \"$@\"\nexec gcc \"$@\"\n"));
}
