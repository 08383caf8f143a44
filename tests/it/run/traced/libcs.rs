//! Programs with another C library or loader than that of the GNU project.

use super::{BRANCHES, is_unnoticed};
use crate::run::Bench;
use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::PathBuf;
use tasting::observe::patched;
use tasting::observe::sites::Sites;

#[test]
#[ignore = "needs musl-gcc"]
fn musl_programs_run_without_the_agent() {
    let bench = Bench::new();
    let build = |name: &str, source: &str, flags: &[&str]| {
        let source = bench.write(".source.c", source);
        let mut command = bench.command(crate::workshop::TASTING_CC);
        command.env("TASTING_CC", "musl-gcc").args(["-O1", "-o", name]).arg(source).args(flags);
        crate::workshop::succeed(&mut command).unwrap_or_else(|error| panic!("{error}"));
    };
    for flags in [&[][..], &["-static"]] {
        build("t", BRANCHES, flags);
        for words in [&["./t"][..], &["./t", "other"], &["sh", "-c", "./t"], &["env", "-i", "./t"]]
        {
            let plain = is_unnoticed(&bench, words);
            assert_eq!(plain.code, Some(0), "{plain:?}");
        }
        build("t", &BRANCHES.replace("x + 10", "x + 30"), flags);
        assert_eq!(bench.runs(&["./t"]).text(), "31\n");
    }
}

/// `ld.so PROGRAM` opens the program as it opens libraries.
#[test]
fn a_loader_that_is_started_as_a_program() {
    let bench = Bench::new();
    bench.compile(&["-O1", "-o", "t", "-"], BRANCHES);
    let interpreter = crate::workshop::Outcome::of(
        bench
            .command("sh")
            .args(["-c", "readelf -p .interp t | sed -n 's/^.*  \\(\\/.*\\)$/\\1/p'"]),
    );
    let loader = interpreter.stdout_text().trim().to_owned();
    let plain = is_unnoticed(&bench, &[&loader, "./t"]);
    assert_eq!((plain.code, plain.stdout_text().as_str()), (Some(0), "11\n"), "{plain:?}");
    bench.compile(&["-O1", "-o", "t", "-"], &BRANCHES.replace("x + 10", "x + 30"));
    assert_eq!(bench.runs(&[&loader, "./t"]).text(), "31\n");
}

/// Where the C library has its code from, in a shell.
const WHERE: &str = "while read -r line; do case $line in *r-xp*/libc.so.6) echo \"${line##* }\";; esac; done < /proc/self/maps";

#[test]
#[cfg(all(target_arch = "x86_64", target_env = "gnu"))]
fn libc_jumps_come_from_a_patched_copy() {
    let bench = Bench::new();
    // Who is told in its arguments to read the list is disturbed.
    bench.write("where", WHERE);
    let file = || PathBuf::from(bench.runs(&["sh", "where"]).text().trim());
    let library =
        crate::workshop::Outcome::of(bench.command("sh").args(["-c", WHERE])).stdout_text();
    let library = fs::read(library.trim()).unwrap();
    let has_room = Sites::of(&library).and_then(|sites| patched::room(&library, &sites)).is_some();
    let copy = file();
    assert_eq!(
        copy.starts_with(fs::canonicalize(bench.store_path()).unwrap()),
        has_room,
        "{}",
        copy.display()
    );
    if !has_room {
        return;
    }
    bench.runs(&["sh", "where"]).not_kept("shows that it is watched");
    let content = fs::read(&copy).unwrap();
    assert_eq!(content.len(), library.len());
    let writable = |mode| fs::set_permissions(&copy, fs::Permissions::from_mode(mode)).unwrap();
    let spoil: [&dyn Fn(); 3] = [
        &|| File::options().write(true).open(&copy).unwrap().set_len(4096).unwrap(),
        &|| fs::remove_file(&copy).unwrap(),
        &|| writable(0o666),
    ];
    for (number, spoil) in spoil.iter().enumerate() {
        spoil();
        assert_eq!(file(), copy, "{number}");
        assert_eq!(fs::read(&copy).unwrap(), content, "{number}");
        assert_eq!(fs::metadata(&copy).unwrap().mode() & 0o022, 0, "{number}");
    }
    // Without a place for one, jumps are written by each process.
    fs::remove_dir_all(copy.parent().unwrap()).unwrap();
    fs::write(copy.parent().unwrap(), "").unwrap();
    let ran = bench.runs(&["sh", "-c", "ls -d /; echo x > made; cat made"]);
    assert_eq!(ran.text(), "/\nx\n");
}
