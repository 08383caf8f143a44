//! Programs with another C library or loader than that of the GNU project.

use super::{BRANCHES, is_unnoticed};
use crate::run::Bench;

#[test]
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
        for words in [&["./t"][..], &["./t", "other"], &["sh", "-c", "./t"], &["env", "-i", "./t"]] {
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
        bench.command("sh").args(["-c", "readelf -p .interp t | sed -n 's/^.*  \\(\\/.*\\)$/\\1/p'"]),
    );
    let loader = interpreter.stdout_text().trim().to_owned();
    let plain = is_unnoticed(&bench, &[&loader, "./t"]);
    assert_eq!((plain.code, plain.stdout_text().as_str()), (Some(0), "11\n"), "{plain:?}");
    bench.compile(&["-O1", "-o", "t", "-"], &BRANCHES.replace("x + 10", "x + 30"));
    assert_eq!(bench.runs(&[&loader, "./t"]).text(), "31\n");
}
