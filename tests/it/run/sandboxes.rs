//! Tests in which a sandbox is used: what runs after it is not disturbed either.

use super::Bench;
use crate::workshop::{succeed, tool};

/// Asks for a file while a timer goes off all the time, and tells how often it was not found.
const UNDER_A_TIMER: &str = r#"
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/time.h>
static void tick(int number) { (void)number; }
int main(void) {
    struct sigaction action = {.sa_handler = tick};
    struct itimerval often = {{0, 200}, {0, 200}};
    struct stat found;
    int lost = 0;
    sigaction(SIGALRM, &action, 0);
    setitimer(ITIMER_REAL, &often, 0);
    for (int i = 0; i < 5000; i++) lost += stat("file", &found) != 0;
    printf("%d\n", lost);
    return 0;
}
"#;

/// How a mount namespace is made here, if it may be.
fn sandbox(bench: &Bench) -> Option<&'static str> {
    ["unshare -m", "unshare -rm"].into_iter().find(|words| {
        let line = format!("{words} sh -c 'mount -t tmpfs none folder'");
        succeed(bench.command("sh").args(["-c", &line])).is_ok()
    })
}

#[test]
#[ignore = "needs mounts"]
#[cfg(target_arch = "x86_64")]
fn calls_after_a_sandbox_are_not_interrupted() {
    let bench = Bench::with(UNDER_A_TIMER);
    bench.write("file", "x");
    std::fs::create_dir(bench.path("folder")).unwrap();
    let sandbox = sandbox(&bench).expect("root, or a namespace for users");
    let script =
        format!("{sandbox} sh -c 'mount -t tmpfs none folder && ./t'; ./t; sh -c './t; exit 0'");
    let ran = bench.runs(&["sh", "-c", &script]);
    assert_eq!(ran.text(), "0\n0\n0\n", "{ran:?}");
    ran.not_kept("mount");
    let script = "chroot / /bin/true 2>/dev/null; ./t";
    assert_eq!(bench.runs(&["sh", "-c", script]).text(), "0\n");
}

#[test]
fn interrupted_calls_of_another_user_are_told_first() {
    let (_, cc) = (tool("setpriv"), tool("cc"));
    let bench = Bench::new();
    bench.write("file", "x");
    bench.write("t.c", UNDER_A_TIMER);
    succeed(bench.command(cc).args(["-static", "-o", "t", "t.c"])).unwrap();
    if succeed(bench.command("setpriv").args(["--reuid=65534", "--clear-groups", "true"])).is_err()
    {
        return; // Only root may become somebody else.
    }
    let words = ["setpriv", "--reuid=65534", "--clear-groups", "--", "./t"];
    bench.runs(&words).not_kept("can interrupt watched calls");
}
