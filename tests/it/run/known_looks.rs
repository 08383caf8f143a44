//! Looks that are known are not asked for again, and nothing that a run gets to see is missed for
//! it: whatever changes what a path means makes it a new look.

use super::Bench;
use std::fs;
use std::os::unix::fs::symlink;
use std::thread;
use std::time::Duration;
use tasting::model::Verdict;

/// What all programs begin with. `show` looks at a file often enough to know it, and prints its
/// content.
const PRELUDE: &str = r#"
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
static void show(const char *path) {
    char text[99] = "";
    for (int i = 0; i < 3; i++) {
        int file = open(path, O_RDONLY);
        if (file < 0) { printf("%s: %d\n", path, errno); return; }
        text[read(file, text, 98)] = 0;
        close(file);
    }
    printf("%s: %s\n", path, text);
    fflush(stdout);
}
"#;

/// A project with a program `t` that does this, and the files `a` and `b`, `sub/a` and a link to
/// `a`.
fn bench(steps: &str) -> Bench {
    let bench = Bench::new();
    bench.build("t", &format!("{PRELUDE} int main(void) {{ {steps} return 0; }}"));
    for name in ["a", "b", "sub/a"] {
        bench.write(name, name);
    }
    symlink("a", bench.path("link")).unwrap();
    bench
}

/// A test that does this counts what is in the file.
#[track_caller]
fn counts(steps: &str, file: &str) {
    let bench = bench(steps);
    bench.follows(
        &["./t"],
        |bench| _ = bench.write(file, "changed"),
        |bench| _ = bench.write(file, file),
    );
}

#[test]
#[cfg(target_arch = "x86_64")]
fn a_known_look_does_not_wait() {
    let bench = bench(
        r#"mkdir("made", 0755);
        struct rusage before, after; struct stat found;
        getrusage(RUSAGE_SELF, &before);
        for (int i = 0; i < 2000; i++) {
            close(open("a", O_RDONLY)); stat("link", &found); lstat("link", &found); access("absent", F_OK);
            char text[99]; if (readlink("link", text, 99) != 1) return 1;
        }
        getrusage(RUSAGE_SELF, &after);
        rmdir("made");
        printf("%d\n", after.ru_nvcsw - before.ru_nvcsw < 1000);"#,
    );
    assert_eq!(bench.settles(&["./t"]).text(), "1\n");
}

#[test]
fn a_link_that_the_test_leads_elsewhere_counts() {
    counts(
        r#"show("link"); unlink("link"); symlink("b", "link"); show("link"); unlink("link"); symlink("a", "link");"#,
        "b",
    );
}

#[test]
fn a_link_that_another_process_leads_elsewhere_counts() {
    let steps = r#"show("link"); if (system("ln -sfn b link")) return 1; show("link"); return system("ln -sfn a link");"#;
    counts(steps, "b");
}

#[test]
fn a_name_in_another_working_folder_counts() {
    counts(r#"show("a"); if (chdir("sub")) return 1; show("a");"#, "sub/a");
}

#[test]
fn a_working_folder_by_its_descriptor_counts() {
    counts(
        r#"show("a"); int folder = open("sub", O_PATH); if (fchdir(folder)) return 1; show("a");"#,
        "sub/a",
    );
}

#[test]
fn the_working_folder_of_a_vfork_child_counts() {
    let steps = r#"show("a"); pid_t child = vfork(); if (child == 0) { if (chdir("sub")) _exit(1); show("a"); _exit(0); }
        waitpid(child, 0, 0); show("a");"#;
    counts(steps, "sub/a");
    counts(&steps.replace(r#"show("a"); pid_t"#, "pid_t"), "a");
}

#[test]
fn the_working_folder_of_a_thread_counts() {
    let thread = r#"void *other(void *none) { if (unshare(CLONE_FS) || chdir("sub")) exit(1); show("a"); return none; }"#;
    let steps = r#"show("a"); pthread_t thread; pthread_create(&thread, 0, other, 0); pthread_join(thread, 0); show("a");"#;
    let bench = Bench::new();
    bench.build("t", &format!("{PRELUDE} {thread} int main(void) {{ {steps} return 0; }}"));
    for name in ["a", "sub/a"] {
        bench.write(name, name);
    }
    bench.follows(
        &["./t"],
        |bench| _ = bench.write("sub/a", "changed"),
        |bench| _ = bench.write("sub/a", "sub/a"),
    );
}

#[test]
fn content_counts_after_a_look_at_the_link() {
    counts(
        r#"struct stat found; for (int i = 0; i < 3; i++) lstat("link", &found); show("link");"#,
        "a",
    );
}

#[test]
fn content_counts_after_it_was_missing() {
    let bench =
        bench(r#"show("new"); symlink("b", "new"); show("new"); unlink("new"); show("new");"#);
    bench.follows(
        &["./t"],
        |bench| _ = bench.write("b", "changed"),
        |bench| _ = bench.write("b", "b"),
    );
    assert_eq!(bench.reuses(&["./t"]).text(), "new: 2\nnew: b\nnew: 2\n");
}

#[test]
fn a_replaced_folder_counts() {
    let steps = r#"mkdir("made", 0755); symlink("../sub/a", "made/x"); mkdir("other", 0755); symlink("../b", "other/x");
        show("made/x"); rename("made", "old"); rename("other", "made"); show("made/x");
        return system("rm -r made old");"#;
    counts(steps, "b");
}

#[test]
fn files_changed_between_examinations_are_reused() {
    let bench = bench(
        r#"show("a"); FILE *file = fopen("a", "w"); fputs("own", file); fclose(file); show("a");
        if (system("echo other > b; echo made > c")) return 1; show("b"); show("c"); unlink("c"); show("c");
        file = fopen("a", "w"); fputs("a", file); fclose(file); file = fopen("b", "w"); fputs("b", file); fclose(file);"#,
    );
    let ran = bench.settles(&["./t"]);
    assert_eq!(ran.text(), "a: a\na: own\nb: other\n\nc: made\n\nc: 2\n");
    bench.write("a", "changed");
    bench.runs(&["./t"]);
}

/// Runs the test while somebody else does something once it has made the file `ready`.
fn while_it_waits(steps: &str, outsider: impl Fn(&Bench) + Sync) -> super::Ran {
    let bench = bench(&format!(
        r#"show("a"); show("late"); close(creat("ready", 0644)); show("late"); {steps} unlink("ready");"#
    ));
    thread::scope(|scope| {
        scope.spawn(|| {
            while !bench.path("ready").exists() {
                thread::sleep(Duration::from_millis(1));
            }
            outsider(&bench);
        });
        bench.runs(&["./t"])
    })
}

#[test]
fn a_temporary_file_of_another_process_is_noticed() {
    let steps = r#"while (access("late", F_OK)); close(creat("seen", 0644)); while (access("late", F_OK) == 0); unlink("seen");"#;
    let ran = while_it_waits(steps, |bench| {
        bench.write("late", "");
        while !bench.path("seen").exists() {
            thread::sleep(Duration::from_millis(1));
        }
        fs::remove_file(bench.path("late")).unwrap();
    });
    ran.not_kept("changed while the test ran");
}

#[test]
fn a_file_that_somebody_else_replaces_is_noticed() {
    let steps = r#"char text[9] = ""; while (text[0] != 'x') { int file = open("a", O_RDONLY); if (read(file, text, 9) < 0) return 1; close(file); }"#;
    let ran = while_it_waits(steps, |bench| {
        let other = bench.write("other", "x");
        fs::rename(other, bench.path("a")).unwrap();
    });
    ran.not_kept("changed while the test ran");
}

#[test]
fn paths_that_cannot_be_read_fail_as_ever() {
    let bench = bench(
        r#"struct stat found; char *pages = mmap(0, 3 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        mprotect(pages, 4096, PROT_NONE); munmap(pages + 2 * 4096, 4096);
        char *last = pages + 2 * 4096; last[-1] = 'a';
        const char *paths[] = {0, (char *)8, pages, last - 1, last, (char *)-1, (char *)(1l << 62)};
        for (int round = 0; round < 3; round++)
            for (int i = 0; i < 7; i++)
                printf("%d %d %d\n", open(paths[i], O_RDONLY) < 0 ? errno : 0, stat(paths[i], &found) < 0 ? errno : 0, access(paths[i], 0) < 0 ? errno : 0);
        memcpy(last - 2, "a", 2); show(last - 2);"#,
    );
    let plain = crate::workshop::Outcome::of(&mut bench.command(bench.path("t")));
    assert_eq!(bench.settles(&["./t"]).outcome, plain);
}

#[test]
fn sandboxed_programs_are_left_alone() {
    let sandbox = r#"
        #include <linux/filter.h>
        #include <linux/seccomp.h>
        #include <stddef.h>
        #include <sys/prctl.h>
        #include <sys/syscall.h>
        static int forbid_sigprocmask(void) {
            struct sock_filter steps[] = {
                BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
                BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_rt_sigprocmask, 0, 1),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
            struct sock_fprog all = {4, steps};
            return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &all);
        }"#;
    let bench = Bench::new();
    let steps =
        r#"int main(void) { show("a"); if (forbid_sigprocmask()) return 1; show("a"); return 0; }"#;
    bench.build("t", &format!("{PRELUDE} {sandbox} {steps}"));
    bench.write("a", "a");
    let ran = bench.run(&["./t"]);
    assert_eq!((ran.text().as_str(), ran.decision.decision), ("a: a\na: a\n", Verdict::Executed));
    assert_eq!(ran.outcome.code, Some(0));
}
