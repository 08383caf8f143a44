//! Locks on files that others hold, and what folders hand on to what is made in them.

use super::Bench;
use std::fs::File;
use std::os::unix::fs::PermissionsExt;

#[test]
fn a_lock_of_others_counts_for_who_does_not_wait() {
    let bench = Bench::new();
    bench.write("lock", "");
    let tries = [
        ["bash", "-c", "exec 9<lock; flock -n 9 && echo free || echo busy"],
        ["bash", "-c", "exec 9>lock; flock -n 9 && echo free || echo busy"],
        [
            "bash",
            "-c",
            "flock -n lock sh -c 'flock -n lock true || echo own; echo free' || echo busy",
        ],
        [
            "python3",
            "-c",
            "import fcntl\ntry: fcntl.flock(open('lock'), 6); print('free')\nexcept OSError: print('busy')",
        ],
    ];
    for words in tries {
        let free = bench.settles(&words).text();
        assert!(free.ends_with("free\n"), "{words:?}: {free}");
        let lock = File::open(bench.path("lock")).unwrap();
        lock.lock().unwrap();
        assert_eq!(bench.settles(&words).text(), "busy\n", "{words:?}");
        drop(lock);
        assert_eq!(bench.reuses(&words).text(), free);
    }
}

#[test]
fn a_record_lock_of_others_counts() {
    let bench = Bench::new();
    bench.write("lock", "");
    let words = [
        "python3",
        "-c",
        "import fcntl\ntry: fcntl.lockf(open('lock', 'r+'), 6); print('free')\nexcept OSError: print('busy')",
    ];
    bench.settles(&words);
    let holds = "import fcntl, sys\nf = open('lock', 'r+'); fcntl.lockf(f, 2)\nprint(flush=True); sys.stdin.read()";
    let mut holder = bench
        .command("python3")
        .args(["-c", holds])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    std::io::Read::read_exact(holder.stdout.as_mut().unwrap(), &mut [0]).unwrap();
    assert_eq!(bench.settles(&words).text(), "busy\n");
    drop(holder.stdin.take());
    holder.wait().unwrap();
    assert_eq!(bench.reuses(&words).text(), "free\n");
}

/// Tests that wait for each other are reused while one of them runs.
#[test]
fn a_lock_of_others_does_not_count_for_who_waits() {
    let bench = Bench::new();
    bench.write("lock", "");
    let words = ["flock", "lock", "echo", "done"];
    bench.settles(&words);
    let lock = File::open(bench.path("lock")).unwrap();
    lock.lock().unwrap();
    bench.reuses(&words);
}

#[test]
fn what_a_folder_hands_on_counts() {
    let bench = Bench::new();
    bench.write("folder/x", "");
    let words = ["sh", "-c", "mkdir -p folder/new; stat -c %A folder/new; rmdir folder/new"];
    assert_eq!(bench.settles(&words).text(), "drwxr-xr-x\n");
    let set = |mode| {
        std::fs::set_permissions(bench.path("folder"), PermissionsExt::from_mode(mode)).unwrap()
    };
    set(0o2755);
    assert_eq!(bench.settles(&words).text(), "drwxr-sr-x\n");
    set(0o755);
    assert_eq!(bench.reuses(&words).text(), "drwxr-xr-x\n");
}
