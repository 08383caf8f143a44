//! Changes that were missed once, and ways in which a test could tell that it ran under
//! `tasting run`.

use super::Bench;
use crate::workshop::{TASTING, tool};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use tasting::model::Verdict;

#[test]
fn a_file_that_is_asked_about_and_read() {
    let bench = Bench::new();
    let file = bench.write("file", "x");
    let set = |mode| fs::set_permissions(&file, PermissionsExt::from_mode(mode)).unwrap();
    let words = ["sh", "-c", "test -x file && echo yes; cat file"];
    bench.follows(&words, |_| set(0o755), |_| set(0o644));
}

#[test]
fn a_file_whose_times_are_looked_at() {
    let bench = Bench::new();
    bench.write("module.py", "x = 1\n");
    bench.write("main.py", "import module; print(module.x)");
    let words = ["sh", "-c", "unset PYTHONDONTWRITEBYTECODE; exec python3 main.py"];
    bench.runs(&words);
    assert!(bench.path("__pycache__").exists(), "there is something to look at the times for");
    assert_eq!(bench.settles(&words).text(), "1\n");
    bench.write("module.py", "x = 2\n");
    let now = fs::File::options().append(true).open(bench.path("module.py")).unwrap();
    now.set_modified(std::time::SystemTime::now() + std::time::Duration::from_secs(10)).unwrap();
    assert_eq!(bench.runs(&words).text(), "2\n");
}

#[test]
#[ignore = "needs valgrind"]
fn valgrind_is_reused() {
    tool("valgrind");
    Bench::new().settles(&["valgrind", "-q", "true"]);
}

#[test]
fn a_signal_to_another_process_is_not_kept() {
    let bench = Bench::new();
    let mut other = Command::new("sleep").arg("100").spawn().unwrap();
    bench.write("pid", other.id().to_string());
    let words = ["sh", "-c", "kill $(cat pid)"];
    let first = bench.runs(&words);
    other.wait().unwrap();
    first.not_kept("sends signals to a process that is not its own");
    assert_ne!(bench.runs(&words).outcome.code, Some(0), "it is gone");
}

#[test]
fn attributes_that_are_asked_for_by_a_descriptor() {
    let bench = Bench::new();
    bench.write("file", "x");
    let words = ["python3", "-c", "import os; print(os.fstat(os.open('file', os.O_PATH)).st_size)"];
    bench.follows(
        &words,
        |bench| _ = bench.write("file", "xx"),
        |bench| _ = bench.write("file", "x"),
    );
}

#[test]
fn a_library_replaced_while_in_use() {
    let bench = Bench::new();
    let library = |value: &str| {
        bench.compile(
            &["-shared", "-fPIC", "-o", "libx.so", "-x", "c", "-"],
            &format!("int x(void) {{ return {value}; }}"),
        );
    };
    library("2");
    fs::rename(bench.path("libx.so"), bench.path("new")).unwrap();
    fs::rename(bench.path("libx.so.tasting"), bench.path("new.tasting")).unwrap();
    library("1");
    bench.compile(
        &["-o", "t", "-x", "c", "-", "-x", "none", "libx.so", "-Wl,-rpath,$ORIGIN"],
        "#include <stdio.h>\nint x(void); int main(void) { printf(\"%d\\n\", x()); fclose(fopen(\"ready\", \"w\")); getchar(); return 0; }",
    );
    let mut command = bench.tasting(&["./t"]);
    let mut child = command
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    crate::workshop::wait_for(&bench.path("ready"));
    for name in ["", ".tasting"] {
        fs::rename(bench.path(&format!("new{name}")), bench.path(&format!("libx.so{name}")))
            .unwrap();
    }
    drop(child.stdin.take());
    child.wait().unwrap();
    let ran = bench.finish(bench.tasting(&["./t"]).stdin(std::process::Stdio::null()));
    assert_eq!(ran.text(), "2\n", "{ran:?}");
}

/// What python says of starting a command in a way that shells cannot.
fn started_by_python(bench: &Bench, words: &str, how: &str) -> String {
    let script = format!("import signal, subprocess, sys, time\ncommand = {words}\n{how}");
    let outcome = bench.command("python3").args(["-c", &script]).output().unwrap();
    assert!(outcome.status.success(), "{outcome:?}");
    String::from_utf8(outcome.stdout).unwrap()
}

#[test]
fn signals_are_ignored_and_blocked_as_without() {
    let bench = Bench::new();
    // The upper half has signals of the C library's own.
    let command = r"['sed', '-nE', r's/^Sig(Ign|Blk):\s*.{8}(.*)/\1 \2/p', '/proc/self/status']";
    let how = "signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2])\n\
               print(subprocess.run(command, restore_signals=False, stdout=subprocess.PIPE).stdout)";
    let plain = started_by_python(&bench, command, how);
    let words = format!("['{TASTING}', 'run', '--'] + {command}");
    for verdict in [Verdict::Executed, Verdict::Reused] {
        assert_eq!(started_by_python(&bench, &words, how), plain);
        assert_eq!(bench.last().decision, verdict);
    }
    let restored = how.replace("restore_signals=False", "restore_signals=True");
    assert_ne!(started_by_python(&bench, &words, &restored), plain);
}

#[test]
fn a_signal_to_the_runner_reaches_the_test() {
    let bench = Bench::new();
    let script = "trap 'echo INT; exit 3' INT; trap 'echo USR1; exit 4' USR1; echo go; \
                  i=0; while [ $i -lt 100 ]; do sleep 0.1; i=$((i+1)); done";
    let words = format!("['{TASTING}', 'run', '--', 'sh', '-c', {script:?}]");
    for (signal, code) in [("INT", 3), ("USR1", 4)] {
        let how = format!(
            "p = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)\np.stdout.readline()\n\
             p.send_signal(signal.SIG{signal})\nprint(p.communicate()[0].strip(), p.returncode)"
        );
        assert_eq!(started_by_python(&bench, &words, &how), format!("{signal} {code}\n"));
        assert!(bench.last().reason.contains("interrupted"), "{:?}", bench.last());
    }
}

#[test]
fn output_that_cannot_be_written() {
    let bench = Bench::new();
    let run = |line: &str| {
        let line = line.replace("tasting run", &format!("{TASTING} run"));
        bench.command("bash").args(["-c", &line]).status().unwrap().code()
    };
    for _ in 0..2 {
        assert_eq!(run("tasting run -- sh -c 'echo x' > /dev/full"), Some(1));
        assert_eq!(run("tasting run -- sh -c 'echo x' >&-"), Some(1));
        assert_eq!(run("tasting run -- sh -c 'echo x >&2' 2>&-"), Some(2));
        assert_eq!(run("tasting run -- cat <&-"), Some(1));
        assert_eq!(run("tasting run -- sh -c 'echo x' 1< tasting.toml"), Some(1));
    }
    // A pipe that nobody reads.
    let unread = "perl -e 'pipe R, W; close R; open STDOUT, q(>&), W; exec @ARGV' \
        tasting run -- sh -c 'echo late'; exit $?";
    assert_eq!(run(unread), Some(128 + libc::SIGPIPE));
    bench
        .last()
        .reason
        .contains("could not be written")
        .then_some(())
        .expect("half an output is not kept");
    assert_eq!(run("tasting run -- sh -c 'echo late' > /dev/null"), Some(0));
}

#[test]
fn replay_advances_a_shared_standard_input() {
    let bench = Bench::new();
    bench.write("list", "a\nb\nc\nd\n");
    let run = || {
        let line = format!(
            "while read x; do echo $x; {TASTING} run -- sh -c 'read y; echo -$y'; done < list"
        );
        String::from_utf8(bench.command("sh").args(["-c", &line]).output().unwrap().stdout).unwrap()
    };
    for verdict in [Verdict::Executed, Verdict::Reused] {
        assert_eq!(run(), "a\n-b\nc\n-d\n");
        assert_eq!(bench.last().decision, verdict);
    }
}

#[test]
fn standard_input_that_changes() {
    let bench = Bench::new();
    let line = |redirected: &str, script: &str| {
        let line = format!("{TASTING} run -- sh -c '{script}' {redirected}; cat file");
        bench.write("file", "1\n");
        let ran = bench.finish(bench.command("sh").args(["-c", &line]));
        (ran.text(), ran.decision)
    };
    for _ in 0..2 {
        let (text, decision) = line("<> file", "echo 2 >&0");
        assert_eq!((text.as_str(), decision.decision), ("2\n", Verdict::Executed));
        // The position in the file, which both share, says that the test has begun to read.
        let meanwhile = "< file & until grep -q 'pos:.*[1-9]' /proc/$!/fdinfo/0; do :; done; \
            echo 3 >> file; wait";
        let (_, decision) = line(meanwhile, "read x; until [ \"$y\" ]; do read y; done");
        assert_eq!(decision.decision, Verdict::Executed);
    }
    let ran = bench.finish(
        bench.command("sh").args(["-c", &format!("{TASTING} run -- cat < /proc/self/stat")]),
    );
    ran.not_kept("standard input");
}

#[test]
fn files_in_memory_changed_unnoticed() {
    let folder = tempfile::tempdir_in("/dev/shm").expect("it is a folder in memory");
    let bench = Bench::new();
    bench.build(
        "write",
        "#include <fcntl.h>\n#include <sys/mman.h>\nint main(int count, char **words) {\n\
         char *text = mmap(0, 1, PROT_READ | PROT_WRITE, MAP_SHARED, open(words[1], O_RDWR), 0);\n\
         text[0]++; return 0; }",
    );
    let file = folder.path().join("file");
    fs::write(&file, "a").unwrap();
    let path = file.to_str().unwrap();
    std::thread::sleep(std::time::Duration::from_millis(3100));
    assert_eq!(bench.settles(&["cat", path]).text(), "a");
    assert!(bench.command(bench.path("write")).arg(path).status().unwrap().success());
    assert_eq!(bench.runs(&["cat", path]).text(), "b");
    bench.runs(&["./write", path]).not_kept("in memory");
    assert_eq!(fs::read(&file).unwrap(), b"c");
}

#[test]
fn an_inherited_file_that_is_mapped() {
    let bench = Bench::with(
        "#include <stdio.h>\n#include <sys/mman.h>\nint main(void) { puts(mmap(0, 9, PROT_READ, MAP_SHARED, 5, 0)); }",
    );
    for text in ["one", "two"] {
        bench.write("file", text);
        let ran = bench
            .finish(bench.command("sh").args(["-c", &format!("{TASTING} run -- ./t 5< file")]));
        assert_eq!(ran.text(), format!("{text}\n"));
        ran.not_kept("descriptor 5");
    }
}

#[test]
fn more_limits_and_the_width_of_text() {
    let bench = Bench::new();
    let with = |setting: &str| {
        let line = format!(
            "{setting}; exec {TASTING} run -- sh -c 'ulimit -c; ulimit -Hs; echo $COLUMNS $EDITOR'"
        );
        let ran = bench.finish(bench.command("sh").args(["-c", &line]));
        (ran.text(), ran.decision.decision)
    };
    let settings =
        ["ulimit -c 0", "ulimit -c 0; ulimit -Hs 20000", "export COLUMNS=7", "export EDITOR=x"];
    let first: Vec<_> = settings.iter().map(|setting| with(setting)).collect();
    assert!(first.iter().all(|(_, verdict)| *verdict == Verdict::Executed), "{first:?}");
    for (setting, (text, _)) in settings.iter().zip(first) {
        assert_eq!(with(setting), (text, Verdict::Reused), "{setting}");
    }
}

#[test]
fn libraries_of_programs_built_by_the_test() {
    let bench = Bench::new();
    let library = |value: u8| {
        let source =
            format!("int one(void) {{ return 1; }}\nint other(void) {{ return {value}; }}");
        bench.compile(&["-shared", "-fPIC", "-o", "libx.so", "-x", "c", "-"], &source);
    };
    library(1);
    for (name, function) in [("t", "one"), ("u", "other")] {
        let source = format!(
            "#include <stdio.h>\nint {function}(void); int main(void) {{ printf(\"%d\\n\", {function}()); }}"
        );
        bench.compile(
            &["-o", name, "-x", "c", "-", "-x", "none", "libx.so", "-Wl,-rpath,$ORIGIN"],
            &source,
        );
    }
    let words = ["sh", "-c", "./t; cp u own; ./own; rm own"];
    assert_eq!(bench.settles(&words).text(), "1\n1\n");
    library(2);
    assert_eq!(bench.runs(&words).text(), "1\n2\n");
    bench.settles(&["./t"]);
    library(3);
    bench.reuses(&["./t"]);
}
