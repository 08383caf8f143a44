//! Everything that a test reads or looks for.

use super::Bench;
use std::fs;
use std::os::unix::fs::symlink;

const READS_DATA: &str = r#"
#include <stdio.h>
int main(void) { char text[99] = "none\n"; FILE *file = fopen("data", "r"); if (file) fgets(text, 99, file); fputs(text, stdout); }
"#;

#[test]
fn a_file_that_is_read() {
    let bench = Bench::with(READS_DATA);
    bench.write("data", "one\n");
    let write = |text: &'static str| move |bench: &Bench| _ = bench.write("data", text);
    bench.follows(&["./t"], write("two\n"), write("one\n"));
    assert_eq!(bench.reuses(&["./t"]).text(), "one\n");
}

#[test]
fn a_file_that_is_looked_for_in_vain() {
    let bench = Bench::with(READS_DATA);
    let add = |bench: &Bench| _ = bench.write("data", "there\n");
    bench.follows(&["./t"], add, |bench| fs::remove_file(bench.path("data")).unwrap());
    assert_eq!(bench.reuses(&["./t"]).text(), "none\n");
}

#[test]
fn a_link_on_the_way() {
    let bench = Bench::with(READS_DATA);
    bench.write("a/file", "a\n");
    bench.write("b/file", "b\n");
    let point = |target: &'static str| {
        move |bench: &Bench| {
            let _ = fs::remove_file(bench.path("data"));
            symlink(target, bench.path("data")).unwrap();
        }
    };
    point("a/file")(&bench);
    bench.follows(&["./t"], point("b/file"), point("a/file"));
    bench.write("a/file", "c\n");
    assert_eq!(bench.runs(&["./t"]).text(), "c\n");
}

#[test]
fn a_folder_that_is_listed() {
    let bench = Bench::new();
    bench.write("folder/a", "");
    bench.write("elsewhere/x", "");
    let words = ["sh", "-c", "ls folder"];
    let add = |bench: &Bench| _ = bench.write("folder/b", "");
    bench.follows(&words, add, |bench| fs::remove_file(bench.path("folder/b")).unwrap());
    bench.write("elsewhere/y", "");
    bench.reuses(&words);
}

#[test]
fn attributes_that_are_asked_for() {
    let bench = Bench::new();
    bench.write("file", "123");
    let words = ["sh", "-c", "test -s file && echo large"];
    let write = |text: &'static str| move |bench: &Bench| _ = bench.write("file", text);
    bench.settles(&words);
    // Its times tell that it is another one.
    write("456")(&bench);
    bench.settles(&words);
    write("")(&bench);
    bench.runs(&words);
    for text in ["123", "456"] {
        write(text)(&bench);
        bench.reuses(&words);
    }
}

#[test]
fn a_touched_file_is_unchanged() {
    let bench = Bench::with(READS_DATA);
    bench.write("data", "one\n");
    bench.settles(&["./t"]);
    let later = std::time::SystemTime::now() + std::time::Duration::from_secs(100);
    for name in ["data", "t"] {
        fs::File::options()
            .append(true)
            .open(bench.path(name))
            .unwrap()
            .set_modified(later)
            .unwrap();
    }
    bench.reuses(&["./t"]);
    let copy = bench.path("copy");
    fs::copy(bench.path("data"), &copy).unwrap();
    fs::rename(copy, bench.path("data")).unwrap();
    bench.reuses(&["./t"]);
}

#[test]
fn files_written_before_reading_are_no_inputs() {
    let bench = Bench::new();
    bench.settles(&["sh", "-c", "date +%N > mine; cat mine > other; rm mine other; echo done"]);
}

#[test]
fn a_test_that_uses_its_leftovers_runs() {
    let bench = Bench::new();
    bench.write("count", "1");
    let words = ["sh", "-c", "n=$(cat count); echo $((n + 1)) > count; cat count"];
    assert_eq!(bench.runs(&words).text(), "2\n");
    assert_eq!(bench.runs(&words).text(), "3\n");
    bench.write("count", "1");
    assert_eq!(bench.reuses(&words).text(), "2\n");
    assert_eq!(fs::read_to_string(bench.path("count")).unwrap(), "2\n");
}

#[test]
fn declared_inputs_count_although_nobody_reads_them() {
    let bench = Bench::new();
    bench.write("tasting.toml", "inputs = ['golden/*.txt']");
    bench.write("golden/a.txt", "1");
    let words = ["true"];
    let write = |text: &'static str| move |bench: &Bench| _ = bench.write("golden/a.txt", text);
    bench.follows(&words, write("2"), write("1"));
    bench.write("golden/b.txt", "");
    bench.runs(&words);
    bench.write("golden/b.dat", "");
    bench.reuses(&words);
}

#[test]
fn a_file_that_others_change_meanwhile() {
    let bench = Bench::new();
    bench.write("data", "1");
    // The harness changes it while the test waits for just that.
    let (path, ready) = (bench.path("data"), bench.path("ready"));
    let other = std::thread::spawn(move || {
        crate::workshop::wait_for(&ready);
        fs::write(path, "22").unwrap();
    });
    bench
        .runs(&[
            "sh",
            "-c",
            "cat data; : > ready; while read v < data || [ \"$v\" = 1 ]; do :; done",
        ])
        .not_kept("changed while the test ran");
    other.join().unwrap();
}
