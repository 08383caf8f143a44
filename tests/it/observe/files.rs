//! Files, folders and links: one test for each kind of use.

use super::{see_c, see_shell};
use crate::workshop::Workshop;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::sync::Arc;
use tasting::model::Hash;
use tasting::observe::{Contents, Details, Forgetful, Kind, Use, What};

fn hold(used: &[Use]) -> bool {
    let mut contents = Contents::new(Arc::new(Forgetful));
    used.iter().all(|used| used.holds(&mut contents))
}

#[test]
fn a_read_file_counts_by_content() {
    let shop = Workshop::new();
    let file = shop.write("data.txt", "one\n");
    let seen = see_shell(&shop, "cat data.txt");
    assert!(seen.is_fine() && seen.read("data.txt", "one\n"));
    assert!(hold(&seen.watched.used));
    fs::write(&file, "two\n").unwrap();
    assert!(!hold(&seen.watched.used));
    fs::write(&file, "one\n").unwrap();
    assert!(hold(&seen.watched.used), "content counts, not time");
}

#[test]
fn a_missing_file_counts_as_absent() {
    let shop = Workshop::new();
    let seen = see_shell(&shop, "test -e optional.conf || cat deep/er/file 2>/dev/null || exit 0");
    assert!(seen.is_fine() && seen.absent("optional.conf"));
    assert!(seen.absent("deep"), "the first folder that is missing is enough");
    assert!(hold(&seen.watched.used));
    shop.write("optional.conf", "");
    assert!(!hold(&seen.watched.used));
}

#[test]
fn an_examined_file_counts_by_its_attributes() {
    let shop = Workshop::new();
    let file = shop.write("data.txt", "12345");
    let seen = see_shell(&shop, "test -s data.txt && test ! -x data.txt");
    let what = What {
        kind: Kind::File,
        details: Some(Details { size: 5, executable: false, modified: None }),
    };
    assert!(seen.is_fine() && seen.has(&Use::Exists { path: seen.path("data.txt"), what }));
    fs::write(&file, "54321").unwrap();
    assert!(
        !hold(&seen.watched.used),
        "the time was seen, which tells that the content is another"
    );
    fs::write(&file, "12345").unwrap();
    assert!(hold(&seen.watched.used));
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    assert!(!hold(&seen.watched.used));
}

#[test]
fn only_listed_folders_count_by_their_entries() {
    let shop = Workshop::new();
    shop.write("data/one", "");
    let listed = see_shell(&shop, "ls data");
    let entered = see_shell(&shop, "cd data && cat one");
    assert!(listed.is_fine() && entered.is_fine());
    let is_listing = |used: &Use| matches!(used, Use::Listed { .. });
    assert!(
        listed
            .watched
            .used
            .iter()
            .any(|used| is_listing(used) && used.path() == listed.path("data"))
    );
    assert!(!entered.watched.used.iter().any(is_listing) && entered.folder("data"));
    shop.write("data/two", "");
    assert!(!hold(&listed.watched.used) && hold(&entered.watched.used));
}

/// Where links lead is remembered, until something else may be in their place.
#[test]
fn links_that_are_replaced_while_the_test_runs() {
    let ways = [
        "rm link; ln -s two link",
        "ln -s two other; mv -T other link",
        "ln -sfn two link",
        "echo > file; mv -T file link; rm link; ln -s two link",
        "mv link old; ln -s two link",
        "mkdir folder; mv link folder/link; mv folder gone; ln -s two link",
    ];
    for way in ways {
        let shop = Workshop::new();
        shop.write("one/x", "1");
        shop.write("two/x", "2");
        symlink("one", shop.path("link")).unwrap();
        let seen = see_shell(&shop, &format!("cat link/x; cat link/x; {way}; cat link/x"));
        assert!(seen.read("one/x", "1") && seen.read("two/x", "2"), "{way}");
    }
}

#[test]
fn links_are_followed_to_the_thing_itself() {
    let shop = Workshop::new();
    shop.write("real/deep/data.txt", "x");
    symlink("real", shop.path("one")).unwrap();
    symlink("one/deep", shop.path("two")).unwrap();
    symlink("two/data.txt", shop.path("three")).unwrap();
    let seen = see_shell(&shop, "cat three");
    assert!(seen.is_fine() && seen.read("real/deep/data.txt", "x"));
    assert!(
        seen.link("three", "two/data.txt")
            && seen.link("two", "one/deep")
            && seen.link("one", "real")
    );
    assert!(!seen.mentions("one/deep") && hold(&seen.watched.used));
    fs::remove_file(shop.path("one")).unwrap();
    symlink("elsewhere", shop.path("one")).unwrap();
    assert!(!hold(&seen.watched.used));
}

#[test]
fn a_link_to_the_working_folder_counts() {
    let shop = Workshop::new();
    shop.write("real/data.txt", "x");
    symlink("real", shop.path("link")).unwrap();
    let seen = see_shell(&shop, "cd link && cat ./data.txt");
    assert!(seen.is_fine() && seen.link("link", "real") && seen.read("real/data.txt", "x"));
}

#[test]
fn leaving_a_folder_again_needs_the_folder() {
    let shop = Workshop::new();
    shop.write("data.txt", "x");
    shop.write("sub/y", "");
    let seen = see_shell(&shop, "cat sub/../data.txt");
    assert!(seen.is_fine() && seen.read("data.txt", "x") && seen.folder("sub"));
}

#[test]
fn files_written_by_the_test_are_no_inputs() {
    let shop = Workshop::new();
    let script = "mkdir out && echo a > out/file && cat out/file && echo b >> out/file && mv out/file out/other \
                  && cat out/other && ls out && rm -r out && test ! -e out && echo c > left.txt && cat left.txt";
    let seen = see_shell(&shop, script);
    assert!(seen.is_fine());
    assert!(seen.absent("out"), "mkdir would have failed");
    assert!(!seen.mentions("out/file") && !seen.mentions("out/other"));
    assert!(seen.written("left.txt") && !seen.absent("left.txt"));
    assert!(
        hold(&see_shell(&shop, script).watched.used),
        "what an earlier run left behind is in nobody's way"
    );
}

#[test]
fn overwritten_content_counts() {
    let shop = Workshop::new();
    shop.write("log", "old\n");
    shop.write("gone", "was\n");
    shop.write("script", "echo hello\n");
    let script = "echo new >> log && cat log gone && rm gone && chmod +x script && ./script && mv script moved && cat moved";
    let seen = see_shell(&shop, script);
    assert!(seen.is_fine());
    assert!(seen.read("log", "old\n") && seen.written("log"));
    assert!(seen.read("gone", "was\n") && seen.has(&Use::Removed { path: seen.path("gone") }));
    assert!(seen.read("script", "echo hello\n") && seen.written("moved"));
}

#[test]
fn a_change_that_fails_changes_nothing() {
    let shop = Workshop::new();
    shop.write("folder/data", "x");
    let busy = shop.path("busy");
    fs::copy("/bin/sleep", &busy).unwrap();
    // A program that runs cannot be written to, and a folder that is not empty cannot be removed.
    let script = "rmdir folder 2>/dev/null; cat folder/data; ./busy 100 & until [ /proc/$!/exe -ef busy ]; do :; done; (echo x > busy) 2>/dev/null; wc -c busy; kill $!; wait; true";
    let seen = see_shell(&shop, script);
    assert!(seen.is_fine() && seen.read("folder/data", "x") && seen.mentions("busy"));
    assert!(!seen.written("busy") && !seen.written("folder"));
    let seen = see_shell(&shop, "echo x > folder/data/below 2>/dev/null; cat folder/data");
    assert!(seen.is_fine() && seen.read("folder/data", "x"));
}

#[test]
fn listings_leave_out_the_tests_own_files() {
    let shop = Workshop::new();
    shop.write("data/one", "");
    shop.write("data/two", "");
    let before = see_shell(&shop, "ls data");
    let seen = see_shell(
        &shop,
        "touch data/three && rm data/two && ls data && rm data/three && touch data/two",
    );
    assert!(before.is_fine() && seen.is_fine());
    let listing = |seen: &super::Seen| {
        seen.watched.used.iter().find_map(|used| match used {
            Use::Listed { listing, .. } => Some(*listing),
            _ => None,
        })
    };
    assert!(listing(&before).is_some() && listing(&before) == listing(&seen));
}

#[test]
fn files_opened_but_not_written_are_unchanged() {
    let shop = Workshop::new();
    shop.write("data.txt", "x");
    let seen = see_shell(&shop, "exec 3<>data.txt; exec 3>&-");
    assert!(seen.is_fine() && seen.read("data.txt", "x") && !seen.written("data.txt"));
}

#[test]
fn an_input_that_others_change_meanwhile_is_refused() {
    let shop = Workshop::new();
    let (file, ready) = (shop.write("data.txt", "x"), shop.path("ready"));
    let changer = std::thread::spawn(move || {
        crate::workshop::wait_for(&ready);
        fs::write(file, "y").unwrap();
    });
    // Until it is changed.
    let wait = "while read v < data.txt || [ \"$v\" = x ]; do :; done";
    let seen = see_shell(&shop, &format!("cat data.txt; : > ready; {wait}"));
    changer.join().unwrap();
    assert!(seen.refused("changed while the test ran"));
}

#[test]
fn writing_under_another_name_is_refused() {
    let shop = Workshop::new();
    fs::hard_link(shop.write("one", "x"), shop.path("two")).unwrap();
    let seen = see_shell(&shop, "echo y >> one; cat two");
    assert!(seen.refused("under another name"));
}

const THREADS: &str = r#"
#include <pthread.h>
#include <stdio.h>
static void *reads(void *number) {
    char name[32], byte[8];
    for (int round = 0; round < 20; round++) {
        snprintf(name, sizeof name, "data/%d", (int)(long)number * 20 + round);
        FILE *file = fopen(name, "r");
        if (!file || fread(byte, 1, 1, file) != 1) return (void *)1;
        fclose(file);
    }
    return 0;
}
int main(void) {
    pthread_t thread[16];
    for (long i = 0; i < 16; i++) if (pthread_create(&thread[i], 0, reads, (void *)i)) return 1;
    for (int i = 0; i < 16; i++) { void *bad; pthread_join(thread[i], &bad); if (bad) return 2; }
    return 0;
}
"#;

#[test]
fn threads_may_open_files_at_the_same_time() {
    let shop = Workshop::new();
    for number in 0..320 {
        shop.write(format!("data/{number}"), number.to_string());
    }
    let seen = see_c(&shop, THREADS, &[]);
    assert!(seen.is_fine());
    assert!((0..320).all(|number| seen.read(&format!("data/{number}"), &number.to_string())));
}

const CALLS: &str = r#"
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <linux/openat2.h>
#include <unistd.h>
int main(void) {
    struct stat st; char text[64];
    int folder = open("folder", O_PATH | O_DIRECTORY);
    int bad = openat(folder, "by_folder", O_RDONLY) < 0;
    struct open_how how = {.flags = O_RDONLY};
    bad |= syscall(SYS_openat2, folder, "by_openat2", &how, sizeof how) < 0;
    bad |= faccessat(folder, "by_access", F_OK, 0) != 0;
    bad |= fstatat(folder, "by_stat", &st, AT_EMPTY_PATH) != 0;
    bad |= readlinkat(folder, "link", text, sizeof text) != 5;
    bad |= open("/proc/self/cwd/folder/by_proc", O_RDONLY) < 0;
    snprintf(text, sizeof text, "/proc/self/fd/%d/by_fd", folder);
    bad |= open(text, O_RDONLY) < 0;
    bad |= fchdir(folder) != 0 || open("by_cwd", O_RDONLY) < 0 || fstat(0, &st) != 0;
    return bad;
}
"#;

#[test]
fn every_way_to_name_a_file_is_understood() {
    let shop = Workshop::new();
    let read = ["by_folder", "by_openat2", "by_proc", "by_fd", "by_cwd"];
    for name in read.iter().chain(&["by_access", "by_stat"]) {
        shop.write(format!("folder/{name}"), name);
    }
    symlink("there", shop.path("folder/link")).unwrap();
    let seen = see_c(&shop, CALLS, &[]);
    assert!(seen.is_fine());
    assert!(read.iter().all(|name| seen.read(&format!("folder/{name}"), name)));
    assert!(
        seen.mentions("folder/by_access")
            && seen.mentions("folder/by_stat")
            && seen.link("folder/link", "there")
    );
}

#[test]
fn files_of_the_kernel_follow_the_table() {
    let shop = Workshop::new();
    let harmless = "cat /proc/meminfo /proc/self/status /proc/cpuinfo /proc/self/stat > /dev/null; \
                    head -c 4 /dev/urandom > /dev/null; cat /sys/devices/system/cpu/online > /dev/null";
    let seen = see_shell(&shop, harmless);
    assert!(seen.is_fine());
    let of_the_kernel =
        |used: &&Use| ["/proc", "/sys", "/dev"].iter().any(|tree| used.path().starts_with(tree));
    assert_eq!(seen.watched.used.iter().find(of_the_kernel), None);
    let seen = see_shell(&shop, "cat /proc/sys/vm/overcommit_memory");
    let content = Hash::of(&fs::read("/proc/sys/vm/overcommit_memory").unwrap());
    assert!(
        seen.is_fine()
            && seen.has(&Use::Read { path: "/proc/sys/vm/overcommit_memory".into(), content })
    );
    assert!(hold(&seen.watched.used));
    assert!(see_shell(&shop, "cat /proc/1/stat").refused("not its own"));
    assert!(see_shell(&shop, "ls /proc").refused("lists the processes"));
}
