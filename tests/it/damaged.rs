//! Every file of `fixtures/damaged/`, fed to every reader of bytes from outside: whatever once
//! ended in a panic, in endless time or in endless memory ends in a result or a reason.

#[path = "../../fuzz/readers.rs"]
mod readers;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// What a reader may take for one small file, in a debug build on a busy machine.
const LONGEST: Duration = Duration::from_secs(5);

#[test]
fn damaged_files_crash_no_reader() {
    let files = damaged_files();
    assert!(!files.is_empty(), "fixtures/damaged is empty");
    for file in files {
        let bytes = std::fs::read(&file).expect("a fixture is readable");
        feed(&file, &bytes);
    }
}

/// The same files cut short, and with one byte of the first kilobyte changed at a time.
#[test]
fn damaged_parts_crash_no_reader() {
    for file in damaged_files() {
        let bytes = std::fs::read(&file).expect("a fixture is readable");
        for end in (0..bytes.len()).step_by(bytes.len() / 16 + 1) {
            feed(&file, &bytes[..end]);
        }
        for at in (0..bytes.len().min(1024)).step_by(61) {
            let mut changed = bytes.clone();
            changed[at] ^= 0x81;
            feed(&file, &changed);
        }
    }
}

fn feed(file: &Path, bytes: &[u8]) {
    for (name, reader) in readers::ALL {
        let start = Instant::now();
        let outcome = std::panic::catch_unwind(|| reader(bytes));
        assert!(outcome.is_ok(), "{}: the reader `{name}` panics", file.display());
        let time = start.elapsed();
        assert!(time < LONGEST, "{}: the reader `{name}` takes {time:?}", file.display());
    }
}

fn damaged_files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/damaged");
    let entries = std::fs::read_dir(&folder).expect("fixtures/damaged is readable");
    let mut files: Vec<PathBuf> =
        entries.map(|entry| entry.expect("a folder entry is readable").path()).collect();
    files.retain(|path| path.extension().is_none_or(|extension| extension != "md"));
    files.sort();
    files
}
