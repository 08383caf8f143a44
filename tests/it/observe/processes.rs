//! Trees of processes: every way to start a program, scripts and their interpreters, tools that
//! look into others.

use super::{build, see, see_c, see_shell};
use crate::workshop::{Workshop, tool, write_executable};
use std::fs;
use tasting::model::Hash;
use tasting::observe::Use;

fn executable(shop: &Workshop, name: &str, text: &str) {
    write_executable(&shop.path(name), text);
}

const STARTS: &str = r#"
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
extern char **environ;
static void reads(const char *name) { char c; int fd = open(name, O_RDONLY); if (read(fd, &c, 1) != 1) _exit(9); close(fd); }
static int ends(pid_t child) { int status; return waitpid(child, &status, 0) == child && status == 0; }
static char *words(const char *name) { return strdup(name); }
int main(int count, char **arguments) {
    if (count > 1) { reads(arguments[1]); return 0; }
    char *self = "./program";
    pid_t child = fork();
    if (child == 0) { reads("by_fork"); _exit(0); }
    if (!ends(child)) return 1;
    char *by_vfork[] = {self, words("by_vfork"), 0};
    if ((child = vfork()) == 0) { execve(self, by_vfork, environ); _exit(9); }
    if (!ends(child)) return 2;
    char *by_spawn[] = {self, words("by_spawn"), 0};
    if (posix_spawn(&child, self, 0, 0, by_spawn, environ) || !ends(child)) return 3;
    if (system("./program by_system")) return 4;
    if ((child = fork()) == 0) {
        setsid();
        pid_t again = fork();
        if (again == 0) { reads("by_setsid"); _exit(0); }
        _exit(!ends(again));
    }
    if (!ends(child)) return 5;
    int fd = open(self, O_RDONLY | O_CLOEXEC);
    char *by_fexecve[] = {self, words("by_fexecve"), 0};
    if ((child = fork()) == 0) { fexecve(fd, by_fexecve, environ); _exit(9); }
    return ends(child) ? 0 : 6;
}
"#;

#[test]
fn every_way_to_start_a_process_is_seen() {
    let shop = Workshop::new();
    let names = ["by_fork", "by_vfork", "by_spawn", "by_system", "by_setsid", "by_fexecve"];
    for name in names {
        shop.write(name, name);
    }
    let seen = see_c(&shop, STARTS, &[]);
    assert!(seen.is_fine() && seen.executed("program"));
    for name in names {
        assert!(seen.read(name, name), "{name}");
    }
}

/// The filter lets it through where the loader opens it.
#[test]
fn the_loader_cache_counts_for_every_program() {
    const CACHE: &str = "/etc/ld.so.cache";
    let shop = Workshop::new();
    let Ok(cache) = fs::read(CACHE) else { return };
    let program = build(&shop, "cc", "int main(void) { return 0; }", &[]);
    fs::rename(&program, shop.path("other")).unwrap();
    build(
        &shop,
        "cc",
        "#include <unistd.h>\nint main(void) { return execl(\"./other\", \"other\", NULL); }",
        &[],
    );
    let seen = see(&shop, shop.command(shop.path("program")));
    assert!(seen.is_fine());
    let content = Hash::of(&cache);
    assert!(seen.has(&Use::Loaded { path: CACHE.into(), content, name: CACHE.into() }));
    for name in ["program", "other"] {
        let loads = |used: &Use| matches!(used, Use::Executed { path, libraries, .. } if *path == seen.path(name) && libraries.contains(&CACHE.into()));
        assert!(seen.watched.used.iter().any(loads), "{name}");
    }
}

#[test]
fn a_static_program_is_watched_too() {
    let shop = Workshop::new();
    shop.write("data", "x");
    let source = "#include <fcntl.h>\nint main(void) { return open(\"data\", O_RDONLY) < 0; }";
    let program = build(&shop, "cc", source, &["-static"]);
    let seen = see(&shop, shop.command(program));
    assert!(seen.is_fine() && seen.read("data", "x"));
}

#[test]
fn scripts_bring_their_interpreters() {
    let shop = Workshop::new();
    executable(&shop, "inner", "#!/bin/sh\necho inner\n");
    executable(&shop, "outer", "#! ./inner\n");
    executable(&shop, "by_env", "#!/usr/bin/env sh\n./inner\n");
    let seen = see(&shop, shop.command(shop.path("outer")));
    assert!(seen.is_fine() && seen.executed("outer") && seen.executed("inner"));
    let seen = see(&shop, shop.command(shop.path("by_env")));
    assert!(seen.is_fine() && seen.executed("by_env") && seen.executed("inner"));
    let shell = fs::canonicalize("/bin/sh").unwrap();
    let env = fs::canonicalize("/usr/bin/env").unwrap();
    assert!(seen.executed(shell) && seen.executed(env));
    let is_loader = |used: &Use| matches!(used, Use::Executed { path, .. } if path.to_string_lossy().contains("ld-"));
    assert!(
        seen.watched.used.iter().any(is_loader),
        "the dynamic loader is opened by the kernel alone"
    );
}

#[test]
fn a_perl_driver_with_its_programs() {
    let perl = tool("perl");
    let shop = Workshop::new();
    shop.write("data", "x");
    executable(&shop, "program", "#!/bin/sh\ncat data\n");
    shop.write(
        "driver.pl",
        "use strict; my $out = `./program`; die unless $out eq 'x'; print \"ok\\n\";",
    );
    let mut command = shop.command(perl);
    command.arg("driver.pl");
    let seen = see(&shop, command);
    assert!(
        seen.is_fine()
            && seen.executed("program")
            && seen.read("data", "x")
            && seen.mentions("driver.pl")
    );
}

#[test]
fn programs_built_by_the_test_are_no_inputs() {
    tool("cc");
    let shop = Workshop::new();
    shop.write("x.c", "int main(void) { return 0; }");
    let seen = see_shell(&shop, "cc -o built x.c && ./built");
    assert!(seen.is_fine() && seen.read("x.c", "int main(void) { return 0; }"));
    assert!(!seen.executed("built") && seen.written("built"));
}

#[test]
fn two_hundred_processes() {
    let shop = Workshop::new();
    for number in 0..200 {
        shop.write(format!("data/{number}"), number.to_string());
    }
    let script = "i=0; while [ $i -lt 200 ]; do cat data/$i > /dev/null & i=$((i+1)); done; wait";
    let seen = see_shell(&shop, script);
    assert!(seen.is_fine());
    assert!((0..200).all(|number| seen.read(&format!("data/{number}"), &number.to_string())));
}

const LEAKS: &str = r#"
#include <stdlib.h>
int main(int count, char **arguments) {
    char *volatile kept = malloc(10);
    if (count > 1) kept = 0;
    return kept != 0 ? (free(kept), 0) : 0;
}
"#;

#[test]
#[ignore = "needs clang"]
fn leak_sanitizer_works_inside() {
    let shop = Workshop::new();
    let program = build(&shop, "clang", LEAKS, &["-fsanitize=address"]);
    assert!(see(&shop, shop.command(&program)).is_fine());
    let mut leaks = shop.command(&program);
    leaks.arg("leak").env("ASAN_OPTIONS", "log_path=report:exitcode=42");
    assert_eq!(see(&shop, leaks).watched.status.code(), Some(42));
    let reports = fs::read_dir(shop.path("")).unwrap().flatten();
    let report = reports
        .map(|entry| entry.path())
        .find(|path| path.to_string_lossy().contains("report."))
        .unwrap();
    assert!(fs::read_to_string(report).unwrap().contains("detected memory leaks"));
}

#[test]
#[ignore = "needs strace and gdb"]
fn debuggers_work_inside() {
    let shop = Workshop::new();
    shop.write("data", "x");
    const GDB: &str = "gdb -q -batch -nx -ex 'break main' -ex run -ex continue --args ./program 2>&1 | grep -q 'Breakpoint 1, '";
    // gdb starts programs through $SHELL. dash has a handler that interrupts calls, so that such a
    // run is doubtful.
    for (line, is_doubtful) in [
        ("strace -f -o trace cat data && grep -q openat trace".to_owned(), false),
        (format!("SHELL=/bin/bash {GDB}"), false),
        (format!("SHELL=/bin/dash {GDB}"), true),
    ] {
        let name = line.split(' ').find(|word| !word.contains('=')).unwrap();
        tool(name);
        build(&shop, "cc", LEAKS, &["-g"]);
        let seen = see_shell(&shop, &line);
        assert!(seen.watched.status.success(), "{line}");
        assert_eq!(seen.watched.disturbed, is_doubtful, "{line}");
        assert!(!seen.refused("looks into a process that is not its own"), "{line}");
    }
}

/// A program without any library that makes calls of 32 bits.
const OF_32_BITS: &str = ".globl _start\n_start: movl $5,%eax\nmovl $name,%ebx\nxorl %ecx,%ecx\nint $0x80\n\
                          movl $1,%eax\nxorl %ebx,%ebx\nint $0x80\nname: .asciz \"data\"\n";

#[test]
#[cfg(target_arch = "x86_64")]
fn programs_of_32_bits_are_refused() {
    let shop = Workshop::new();
    let compiler = tool("cc");
    let source = shop.write("x.s", OF_32_BITS);
    for (name, flags) in [("narrow", &["-m32"][..]), ("wide", &["-m64", "-Wl,-Ttext=0x400000"])] {
        let mut command = shop.command(&compiler);
        command.args(flags).args(["-nostdlib", "-static", "-no-pie", "-o", name]).arg(&source);
        if !command.output().unwrap().status.success() {
            continue;
        }
        assert!(
            see(&shop, shop.command(shop.path(name))).refused("another architecture"),
            "{name}"
        );
    }
}
