//! Large files: their content is not read only because a test asks for their attributes.

use super::Bench;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::Duration;

/// A file with nothing in it but holes.
fn large(bench: &Bench, name: &str) -> File {
    let file = File::options()
        .write(true)
        .read(true)
        .create(true)
        .truncate(false)
        .open(bench.path(name))
        .unwrap();
    file.set_len(2 << 30).unwrap();
    file
}

#[test]
fn a_large_file_counts_by_size_and_time() {
    let bench = Bench::new();
    let files = ["one", "two", "three"].map(|name| large(&bench, name));
    let words = ["sh", "-c", "test -s one && test -s two && test -s three && echo there"];
    assert_eq!(bench.settles(&words).text(), "there\n");
    let time = files[0].metadata().unwrap().modified().unwrap();
    files[0].set_modified(time + Duration::from_secs(1)).unwrap();
    bench.settles(&words);
    files[0].set_modified(time).unwrap();
    bench.reuses(&words);
    files[0].set_len(3 << 30).unwrap();
    bench.runs(&words);
}

#[test]
fn large_files_that_are_read_count_by_content() {
    let bench = Bench::new();
    let file = large(&bench, "data");
    file.set_len(257 << 20).unwrap();
    let time = file.metadata().unwrap().modified().unwrap();
    let words = ["sh", "-c", "test -s data && head -c 3 data | od -c"];
    let first = bench.settles(&words);
    file.write_all_at(b"abc", 0).unwrap();
    file.set_modified(time).unwrap();
    assert_ne!(bench.runs(&words).text(), first.text());
}
