//! Output that goes to a file: the test gets the file itself if it is new and nobody else has it
//! open.

use super::Bench;
use super::forwarded::IS_TRACED;
use crate::workshop::TASTING;
use tasting::model::Verdict;

/// What a line of shell leaves in the file `log`, with and without `tasting run` in the place of
/// `RUN`.
#[track_caller]
fn same_as_plainly(bench: &Bench, line: &str) -> Vec<u8> {
    let [ran, plain] = [format!("{TASTING} run --"), "env".to_owned()].map(|run| {
        let _ = std::fs::remove_file(bench.path("log"));
        let status =
            bench.command("bash").args(["-c", &line.replace("RUN", &run)]).status().unwrap();
        (std::fs::read(bench.path("log")).unwrap(), status.code())
    });
    assert_eq!(
        (String::from_utf8_lossy(&ran.0), ran.1),
        (String::from_utf8_lossy(&plain.0), plain.1),
        "{line}"
    );
    ran.0
}

#[track_caller]
fn is_reused(bench: &Bench, line: &str) {
    let first = same_as_plainly(bench, line);
    assert_eq!(bench.last().decision, Verdict::Executed, "{line}");
    assert_eq!(same_as_plainly(bench, line), first);
    assert_eq!(bench.last().decision, Verdict::Reused, "{line}: {:?}", bench.last());
}

#[test]
fn a_file_of_ones_own_is_a_file() {
    let bench = Bench::new();
    bench.write(
        "t.py",
        "import os, stat\nprint(stat.S_ISREG(os.fstat(1).st_mode), flush=True)\nprint(os.lseek(1, 0, 1))\n",
    );
    is_reused(&bench, "RUN python3 t.py > log");
    is_reused(&bench, "RUN sh -c 'echo out; echo err >&2; echo out' > log 2>&1");
    is_reused(&bench, "RUN sh -c 'echo out; echo err >&2' 2> log > /dev/null");
}

/// A pipe takes whatever is written to it.
#[test]
fn a_limit_of_the_size_of_files_holds_for_a_shared_file() {
    let bench = Bench::new();
    // What the shell says of it goes elsewhere: a long log as standard error would end the shell.
    let writes = "RUN sh -c 'ulimit -f 8; head -c 100000 /dev/zero; exit $?' 2>/dev/null";
    for line in [format!("{writes} >> log"), format!("exec > log; {writes}")] {
        for _ in 0..2 {
            let text = same_as_plainly(&bench, &line);
            assert!(text.len() <= 8 * 1024, "{line}: {}", text.len());
            assert!(!bench.last().reason.contains("disturbed"), "{:?}", bench.last());
        }
    }
}

/// A limit that no output which is kept can reach makes no difference.
#[test]
fn a_limit_with_room_for_the_output_is_reused() {
    is_reused(&Bench::new(), "ulimit -f 200000; RUN sh -c 'echo out; exit 0' >> log");
}

#[test]
fn seeking_and_truncating_work_and_are_not_kept() {
    let bench = Bench::new();
    for code in
        ["os.ftruncate(1, 0); os.lseek(1, 0, 0)", "os.lseek(1, 2, 0)", "os.ftruncate(1, 100)"]
    {
        bench.write(
            "t.py",
            format!("import os\nos.write(1, b'abcdef')\n{code}\nos.write(1, b'X')\n"),
        );
        for _ in 0..2 {
            same_as_plainly(&bench, "RUN python3 t.py > log");
        }
    }
    bench
        .write("t.py", "import os\nos.write(1, b'abcdef')\nos.lseek(1, 2, 0)\nos.write(1, b'X')\n");
    same_as_plainly(&bench, "RUN python3 t.py > log");
    assert!(bench.last().reason.contains("one behind the other"), "{:?}", bench.last());
}

/// What others print to the same file is not the test's.
#[test]
fn shared_output_files_appear_as_pipes() {
    let bench = Bench::new();
    let run = r#"RUN sh -c 'perl -e "print STDERR -p STDOUT ? q(pipe) : q(file)" 2>&1; echo own'"#
        .replace("RUN", &format!("{TASTING} run --"));
    for line in [
        format!("{{ echo before; {run}; }} > log"),
        format!("exec > log; (sleep 0.05; echo other) & {run}; wait"),
        format!("{run} >> log"),
    ] {
        for _ in 0..2 {
            let _ = std::fs::remove_file(bench.path("log"));
            bench.command("bash").args(["-c", &line]).status().unwrap();
            let text = std::fs::read_to_string(bench.path("log")).unwrap();
            assert_eq!(
                (text.matches("pipe").count(), text.matches("own").count()),
                (1, 1),
                "{line}: {text}"
            );
            assert!(text.matches("other").count() <= 1, "{line}: {text}");
        }
    }
}

#[test]
fn a_disturbed_test_leaves_one_output() {
    let source = format!(
        "{IS_TRACED}\nint main(void) {{ puts(\"one\"); puts(is_traced() ? \"bad\" : \"good\"); return is_traced(); }}"
    );
    let bench = Bench::with(&source);
    let line = "RUN ./t > log 2>&1";
    assert_eq!(same_as_plainly(&bench, line), b"one\ngood\n");
    assert!(bench.last().disturbed.is_some());
    same_as_plainly(&bench, line);
    same_as_plainly(&bench, line);
    assert_eq!(bench.last().decision, Verdict::Reused);
}

#[test]
fn a_pipes_writer_does_not_share_the_file() {
    let bench = Bench::new();
    let test = "RUN sh -c 'echo first; echo second > /dev/stdout'";
    let line = format!("exec < <(sleep 0.5); exec > log; exec {test}");
    assert_eq!(same_as_plainly(&bench, &line), b"second\n");
}

/// A file that others have open as well is a pipe to the test, until the test asks for it by a
/// path.
#[test]
fn a_shared_file_is_opened_by_its_path() {
    let bench = Bench::new();
    bench.write(
        "t.py",
        "import os, stat\nos.write(2, b'abcdef')\nfile = os.open('/proc/self/fd/2', os.O_WRONLY | os.O_TRUNC)\n\
         os.write(file, b'another line')\nos.write(2, b'XY')\nprint(stat.S_ISREG(os.fstat(2).st_mode))\n",
    );
    for line in [
        "exec 2> log; RUN bash -c 'echo first >&2; echo second line > /dev/stderr; echo x >&2' | cat",
        "exec 2> log; RUN sh -c 'echo first >&2; echo second line > /dev/stderr; ls none' | cat",
        "exec 2> log; RUN sh -c 'echo first >&2; (echo other > /dev/stderr); echo x >&2' | cat",
        "exec 2>> log; RUN sh -c 'echo first >&2; echo second > /dev/stderr; echo x >&2' | cat",
        "exec > log 2>&1; sleep 60 & RUN sh -c 'echo first; echo second line > /dev/stderr; echo x; echo y >&2'; kill $!",
        "exec 2> log; RUN python3 t.py | cat >&2",
        "exec 2> log; RUN sh -c 'test -f /dev/stderr && echo file >&2; readlink /proc/self/fd/2 >&2' | cat",
        "exec 2> log; RUN sh -c 'echo text >&2; cat /dev/stderr > copy; cat copy >&2' | cat",
    ] {
        for _ in 0..2 {
            same_as_plainly(&bench, line);
            assert_eq!(bench.last().decision, Verdict::Executed, "{line}: {:?}", bench.last());
        }
    }
}

/// A pipe cannot be emptied, a file can.
#[test]
fn output_to_pipes_is_not_reused_for_files() {
    let bench = Bench::new();
    let test = "RUN sh -c 'echo first >&2; echo second line > /dev/stderr; echo x >&2'";
    is_reused(&bench, &format!("{test} 2>&1 | cat > log"));
    for _ in 0..2 {
        same_as_plainly(&bench, &format!("exec 2> log; {test} | cat"));
        assert_eq!(bench.last().decision, Verdict::Executed, "{:?}", bench.last());
    }
}
