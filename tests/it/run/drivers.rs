//! Tests that are more than one program: scripts, drivers, wrappers, threads, debuggers.

use super::Bench;
use crate::workshop::{TASTING, tool};
use tasting::model::Verdict;

fn prints(text: &str) -> String {
    format!(
        "#include <stdio.h>\nvoid unused(void) {{ puts(\"{text}{text}\"); }}\nint main(void) {{ puts(\"{text}\"); }}"
    )
}

#[test]
fn a_script_that_runs_two_programs() {
    let bench = Bench::new();
    bench.build("a", &prints("a"));
    bench.build("b", &prints("b"));
    bench.script("test.sh", "#!/bin/sh\nset -e\n./a\n./b | sed s/b/B/\n");
    let words = ["./test.sh"];
    assert_eq!(bench.settles(&words).text(), "a\nB\n");
    bench.build("b", &prints("bb"));
    assert_eq!(bench.settles(&words).text(), "a\nBb\n");
    bench.build("b", &prints("b"));
    bench.reuses(&words);
    bench.script("test.sh", "#!/bin/sh\nset -e\n./a\n");
    assert_eq!(bench.runs(&words).text(), "a\n");
}

#[test]
fn a_driver_in_perl() {
    let perl = tool("perl");
    let bench = Bench::new();
    bench.build("a", &prints("a"));
    bench.write("lib/Helper.pm", "package Helper; sub run { return `./a`; } 1;");
    bench.write(
        "driver.pl",
        "use lib 'lib'; use Helper; print Helper::run() eq \"a\\n\" ? \"ok\\n\" : \"not ok\\n\";",
    );
    let words = [perl.to_str().unwrap(), "driver.pl"];
    assert_eq!(bench.settles(&words).text(), "ok\n");
    bench.build("a", &prints("x"));
    assert_eq!(bench.settles(&words).text(), "not ok\n");
    bench.build("a", &prints("a"));
    bench.reuses(&words);
    bench.write("lib/Helper.pm", "package Helper; sub run { return 1; } 1;");
    bench.runs(&words);
}

#[test]
#[ignore = "needs libtool"]
fn a_wrapper_as_libtool_makes_them() {
    let libtool = tool("libtool");
    let bench = Bench::new();
    let call = |words: &[&str]| {
        let mut command = bench.command(&libtool);
        command.args(["--quiet", "--tag=CC"]).args(words);
        crate::workshop::succeed(&mut command).unwrap();
    };
    let cc = crate::workshop::TASTING_CC;
    let library = |value: &str| {
        bench.write(
            "x.c",
            format!(
                "int x(void) {{ return {value}; }}\nint unused(void) {{ return {value} + 1; }}"
            ),
        );
        call(&["--mode=compile", cc, "-c", "x.c", "-o", "x.lo"]);
        call(&["--mode=link", cc, "-o", "libx.la", "x.lo", "-rpath", "/usr/local/lib"]);
    };
    library("1");
    bench.write(
        "t.c",
        "#include <stdio.h>\nint x(void);\nint main(void) { printf(\"%d\\n\", x()); }",
    );
    call(&["--mode=compile", cc, "-c", "t.c", "-o", "t.o"]);
    call(&["--mode=link", cc, "-o", "t", "t.o", "libx.la"]);
    assert!(bench.path(".libs/t").exists(), "libtool makes a wrapper");
    assert_eq!(bench.run(&["./t"]).text(), "1\n");
    assert_eq!(bench.reuses(&["./t"]).text(), "1\n");
    library("2");
    assert_eq!(bench.runs(&["./t"]).text(), "2\n");
    library("1");
    assert_eq!(bench.reuses(&["./t"]).text(), "1\n");
}

#[test]
fn threads_and_children_of_all_kinds() {
    let bench = Bench::new();
    let source = r#"
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
extern char **environ;
static void *work(void *name) { FILE *file = fopen(name, "r"); if (file) fclose(file); return file; }
int main(void) {
    pthread_t threads[8];
    char names[8][8];
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, 0);
    for (int i = 0; i < 8; i++) { sprintf(names[i], "d%d", i); pthread_create(&threads[i], 0, work, names[i]); }
    long found = 0;
    for (int i = 0; i < 8; i++) { void *file; pthread_join(threads[i], &file); found += file != 0; }
    printf("%ld files\n", found);
    fflush(stdout);
    int status;
    if (fork() == 0) { setsid(); _exit(work("forked") != 0); }
    wait(&status);
    printf("fork %d\n", WEXITSTATUS(status));
    fflush(stdout);
    if (vfork() == 0) { execl("/bin/cat", "cat", "vforked", (char *)0); _exit(9); }
    wait(&status);
    pid_t child;
    char *words[] = {"cat", "spawned", 0};
    if (posix_spawnp(&child, "cat", 0, 0, words, environ) == 0) waitpid(child, &status, 0);
    return WEXITSTATUS(status);
}
"#;
    bench.compile(&["-o", "t", "-pthread", "-x", "c", "-"], source);
    for name in ["d0", "d3", "d7", "forked", "vforked", "spawned"] {
        bench.write(name, format!("{name}\n"));
    }
    assert_eq!(bench.settles(&["./t"]).text(), "3 files\nfork 1\nvforked\nspawned\n");
    for name in ["d0", "forked", "vforked", "spawned"] {
        bench.write(name, "changed\n");
        bench.runs(&["./t"]);
        bench.write(name, format!("{name}\n"));
        bench.reuses(&["./t"]);
    }
    bench.write("d1", "new");
    assert!(bench.runs(&["./t"]).text().starts_with("4 files"));
}

#[test]
fn a_test_under_leak_sanitizer() {
    let bench = Bench::new();
    let source = "#include <stdlib.h>\n#include <stdio.h>\nint main(int argc, char **argv) { void *p = malloc(9); if (argc == 1) free(p); else p = 0; puts(\"x\"); }";
    bench.compile(&["-fsanitize=address", "-o", "t", "-x", "c", "-"], source);
    assert_eq!(bench.settles(&["./t"]).outcome.code, Some(0));
    let ran = bench.runs(&["./t", "leak"]);
    assert_ne!(ran.outcome.code, Some(0));
    assert!(ran.outcome.stderr_text().contains("LeakSanitizer: detected memory leaks"), "{ran:?}");
}

#[test]
#[ignore = "needs strace and gdb"]
fn a_test_that_traces_itself() {
    let bench = Bench::with(&prints("x"));
    let (strace, gdb) = (tool("strace"), tool("gdb"));
    let ran =
        bench.run(&[strace.to_str().unwrap(), "-f", "-o", "trace", "-e", "trace=write", "./t"]);
    assert_eq!((ran.text().as_str(), ran.outcome.code), ("x\n", Some(0)), "{ran:?}");
    assert!(std::fs::read_to_string(bench.path("trace")).unwrap().contains("write(1, \"x"));
    let words =
        ["-batch", "-ex", "break main", "-ex", "run", "-ex", "bt", "-ex", "continue", "./t"];
    let ran = bench.run(&[&[gdb.to_str().unwrap()], &words[..]].concat());
    assert!(ran.text().contains("#0") && ran.text().contains("exited normally"), "{ran:?}");
}

#[test]
fn a_run_within_a_run() {
    let bench = Bench::with(&prints("x"));
    bench.script("outer", &format!("#!/bin/sh\n{TASTING} run -- ./t\n"));
    assert_eq!(bench.settles(&["./outer"]).text(), "x\n");
    bench.build("t", &prints("y"));
    let ran = bench.runs(&["./outer"]);
    assert_eq!((ran.text().as_str(), ran.decision.argv.len()), ("y\n", 1));
}

#[test]
fn own_servers_are_kept_foreign_ones_refused() {
    let python = tool("python3");
    let bench = Bench::new();
    bench.write(
        "inside.py",
        "import socket, threading\ns = socket.create_server(('127.0.0.1', 0))\n\
         t = threading.Thread(target=lambda: s.accept()[0].sendall(b'hi'))\nt.start()\n\
         c = socket.create_connection(s.getsockname())\nprint(c.recv(9).decode())\nt.join()\n",
    );
    let python = python.to_str().unwrap();
    let ran = bench.run(&[python, "-B", "inside.py"]);
    assert_eq!(ran.text(), "hi\n");
    assert_eq!(
        bench.run(&[python, "-B", "inside.py"]).decision.decision,
        Verdict::Reused,
        "{:?}",
        ran.decision
    );
    let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = server.local_addr().unwrap().port();
    bench.write(
        "outside.py",
        format!("import socket\nsocket.create_connection(('127.0.0.1', {port}))\nprint('ok')\n"),
    );
    for _ in 0..2 {
        let ran = bench.runs(&[python, "-B", "outside.py"]);
        assert_eq!(ran.text(), "ok\n");
        ran.not_kept("no process of the test listens there");
    }
}
