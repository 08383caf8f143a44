//! The store under many processes, some of them killed; on a full disk; in a read-only folder; with
//! 10,000 tests in it.
//!
//! The other processes are this test binary again, told by an environment variable to be a worker.

use std::collections::HashSet;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

use tasting::model::{
    Base, Decision, Dependency, DependencyKind, DependencySet, Exit, FileIdentity, Hash, Origin,
    Outcome, PortablePath, Verdict,
};
use tasting::store::{FileStore, Journal, Memo, Options, Results, Store};

/// How a worker is told what to do: `MODE FROM COUNT FOLDER`.
const ORDER: &str = "TASTING_TEST_STORE_WORKER";

/// How many tests the entries belong to, and how many dependency sets each test has: few, so that
/// workers meet.
const TESTS: u64 = 97;
const SHAPES: u64 = 12;

fn test_of(entry: u64) -> Hash {
    Hash::of(format!("test {}", entry % TESTS).as_bytes())
}

fn key_of(entry: u64) -> Hash {
    Hash::of(format!("key {entry}").as_bytes())
}

fn dependency_set_of(entry: u64) -> DependencySet {
    let number = entry / TESTS % SHAPES;
    let place = |at| PortablePath {
        base: Base::Root,
        path: format!("data/of-shape-{number}/file-{at}").into_bytes(),
    };
    let dependency = |at| Dependency::on(DependencyKind::File, place(at));
    DependencySet { dependencies: (0..40).map(dependency).collect() }
}

fn outcome_of(entry: u64) -> Outcome {
    let lines =
        (0..10 + entry % 200).map(|line| format!("{entry}/{line}: {}\n", key_of(entry ^ line)));
    Outcome {
        exit: Exit::Code((entry % 3) as i32),
        stdout: lines.collect::<String>().into_bytes(),
        stderr: entry.to_string().into_bytes(),
        turns: vec![1, 1, 1],
        duration: Duration::from_millis(entry),
        files: Vec::new(),
        input_end: None,
        origin: Origin { time: entry, ..Origin::default() },
        checkout_specific: false,
    }
}

fn decision_of(entry: u64) -> Decision {
    Decision {
        time: entry,
        argv: vec!["./test".into()],
        cwd: "/".into(),
        decision: Verdict::Executed,
        step: None,
        reason: "it is new".into(),
        sort: "new".into(),
        exit_code: 0,
        told_failure: false,
        duration_ms: 1,
        saved_ms: 0,
        audit: None,
        shared: false,
        not_kept: None,
        disturbed: None,
        shadow: None,
    }
}

fn is_whole(store: &FileStore, entry: u64) -> bool {
    store.outcome(key_of(entry)).is_ok_and(|found| found == Some(outcome_of(entry)))
        && store
            .dependency_sets(test_of(entry))
            .is_ok_and(|dependency_sets| dependency_sets.contains(&dependency_set_of(entry)))
}

/// Not a test: the other processes.
#[test]
fn worker() {
    let Ok(order) = std::env::var(ORDER) else { return };
    let mut words = order.splitn(4, ' ');
    let mut word = || words.next().expect("four words");
    let mode = word().to_owned();
    let (from, count) = (word().parse::<u64>().unwrap(), word().parse::<u64>().unwrap());
    let store = FileStore::new(Path::new(word()), Options::default());
    match &mode[..] {
        "write" => write_and_tell(&store, from, count),
        "full" => write_until_nothing_fits(&store, count),
        "read-only" => read_and_try_to_write(&store, count),
        other => panic!("no such mode: {other}"),
    }
}

/// Stores entries, tells of each, and looks meanwhile at those of others.
fn write_and_tell(store: &FileStore, from: u64, count: u64) {
    for entry in from..from + count {
        store
            .put(test_of(entry), &dependency_set_of(entry), key_of(entry), &outcome_of(entry))
            .unwrap();
        println!("\nstored {entry}");
        store.log(&decision_of(entry)).unwrap();
        println!("\nlogged {entry}");
        let other = entry.wrapping_mul(7919) % (64 * count);
        let found = store.outcome(key_of(other)).unwrap();
        assert!(found.is_none_or(|found| found == outcome_of(other)), "a wrong answer for {other}");
    }
}

fn write_until_nothing_fits(store: &FileStore, count: u64) {
    let put = |entry: &u64| {
        store
            .put(test_of(*entry), &dependency_set_of(*entry), key_of(*entry), &outcome_of(*entry))
            .is_ok()
    };
    let stored: Vec<u64> = (0..count).filter(put).collect();
    let logged = (0..count).filter(|entry| store.log(&decision_of(*entry)).is_ok()).count();
    assert!(
        !stored.is_empty() && (stored.len() as u64) < count,
        "{} of {count} stored",
        stored.len()
    );
    assert!(stored.iter().all(|entry| is_whole(store, *entry)));
    for entry in 0..count {
        let found = store.outcome(key_of(entry)).unwrap_or(None);
        assert!(found.is_none_or(|found| found == outcome_of(entry)));
    }
    assert!(store.decisions(usize::MAX).unwrap().len() >= logged);
    store.clear().unwrap();
    assert!(put(&3), "there is room again");
}

fn read_and_try_to_write(store: &FileStore, count: u64) {
    assert!((0..count).all(|entry| is_whole(store, entry)));
    let entry = count;
    assert!(
        store
            .put(test_of(entry), &dependency_set_of(entry), key_of(entry), &outcome_of(entry))
            .is_err()
    );
    assert!(store.log(&decision_of(entry)).is_err() && store.zero_stats().is_err());
    assert!(store.drop_outcome(key_of(0)).is_err());
    store.used(test_of(0), &dependency_set_of(0), key_of(0));
    let file = FileIdentity::of(&Path::new("/bin/sh").metadata().unwrap());
    store.remember(file.hash(), key_of(0));
    assert_eq!(store.recall(file.hash()), None);
    assert_eq!(store.decisions(9).unwrap().len(), 1);
}

/// A worker, started by `launcher` (a program and its first arguments; empty for none).
fn worker_process(launcher: &[&str], mode: &str, from: u64, count: u64, folder: &Path) -> Command {
    let itself = std::env::current_exe().unwrap();
    let mut words = launcher.iter().map(|word| word.as_ref()).chain([itself.as_os_str()]);
    let mut command = Command::new(words.next().unwrap());
    command.args(words).args(["store::worker", "--exact", "--nocapture", "--test-threads=1"]);
    command.env(ORDER, format!("{mode} {from} {count} {}", folder.display()));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// The entries that a worker's output tells of. The last line may be cut short.
fn told(output: &[u8], word: &str) -> Vec<u64> {
    let text = String::from_utf8_lossy(output);
    let whole = &text[..text.rfind('\n').map_or(0, |end| end + 1)];
    whole.lines().filter_map(|line| line.strip_prefix(word)?.trim().parse().ok()).collect()
}

#[test]
#[ignore = "takes a minute"]
fn killed_writers_lose_nothing_that_was_reported_stored() {
    let folder = tempfile::tempdir().unwrap();
    let spawn =
        |number: u64| worker_process(&[], "write", number * 20, 20, folder.path()).spawn().unwrap();
    let mut workers: Vec<Child> = (0..64).map(spawn).collect();
    for worker in workers.iter_mut().step_by(2) {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
        std::thread::sleep(Duration::from_micros(u64::from(now.subsec_nanos()) % 10_000));
        worker.kill().unwrap();
    }
    let (mut stored, mut logged, mut killed) = (Vec::new(), 0, 0);
    for worker in workers {
        let output = worker.wait_with_output().unwrap();
        let ended_by_itself = output.status.code();
        assert!(
            ended_by_itself.is_none_or(|code| code == 0),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        killed += usize::from(ended_by_itself.is_none());
        stored.extend(told(&output.stdout, "stored"));
        logged += told(&output.stdout, "logged").len();
    }
    let store = FileStore::new(folder.path(), Options::default());
    let lost: Vec<&u64> = stored.iter().filter(|entry| !is_whole(&store, **entry)).collect();
    assert!(lost.is_empty(), "of {} stored with {killed} killed, lost: {lost:?}", stored.len());
    assert!(stored.len() >= 32 * 20, "who was not killed has stored everything");
    let counted = store.stats().unwrap().executed as usize;
    assert!((logged..=logged + 64).contains(&counted), "{counted} counted, {logged} logged");
}

#[test]
fn a_file_that_cannot_grow_is_not_stored() {
    let folder = tempfile::tempdir().unwrap();
    let launcher = ["sh", "-c", "trap '' XFSZ; ulimit -f 8; exec \"$@\"", "sh"];
    let output = worker_process(&launcher, "full", 0, 300, folder.path()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Runs a worker after `mount` in a namespace of its own; false where this is not allowed.
fn with_mount(mount: &str, mode: &str, count: u64, folder: &Path) -> bool {
    let allowed = Command::new("unshare")
        .args(["-rm", "true"])
        .output()
        .is_ok_and(|output| output.status.success());
    if !allowed {
        eprintln!("not tested: mounting is not possible here");
        return false;
    }
    let script = format!("{mount} && exec \"$@\"");
    let launcher = ["unshare", "-rm", "sh", "-c", &script, &folder.display().to_string()];
    let output = worker_process(&launcher, mode, 0, count, folder).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    true
}

#[test]
fn a_full_disk_is_only_an_error() {
    let folder = tempfile::tempdir().unwrap();
    with_mount("mount -t tmpfs -o size=1m none \"$0\"", "full", 1000, folder.path());
}

#[test]
fn a_read_only_folder_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let store = FileStore::new(folder.path(), Options::default());
    (0..5).for_each(|entry| {
        store
            .put(test_of(entry), &dependency_set_of(entry), key_of(entry), &outcome_of(entry))
            .unwrap();
    });
    store.log(&decision_of(0)).unwrap();
    let mount = "mount --bind \"$0\" \"$0\" && mount -o remount,ro,bind \"$0\"";
    with_mount(mount, "read-only", 5, folder.path());
}

#[test]
fn two_stores_in_one_process_and_threads_agree() {
    let folder = tempfile::tempdir().unwrap();
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let store = FileStore::new(folder.path(), Options::default());
            scope.spawn(move || {
                for entry in (thread * 10)..(thread * 10 + 30) {
                    store
                        .put(
                            test_of(entry),
                            &dependency_set_of(entry),
                            key_of(entry),
                            &outcome_of(entry),
                        )
                        .unwrap();
                }
            });
        }
    });
    let store = FileStore::new(folder.path(), Options::default());
    assert!((0..100).all(|entry| is_whole(&store, entry)));
}

/// A store with so many tests of one entry each.
fn filled(folder: &Path, tests: u64) -> FileStore {
    let store = FileStore::new(folder, Options::default());
    for number in 0..tests {
        store
            .put(key_of(number), &dependency_set_of(number), key_of(number), &outcome_of(1))
            .unwrap();
    }
    store
}

fn look_up_time(store: &FileStore, number: u64) -> Duration {
    let start = Instant::now();
    let dependency_sets = store.dependency_sets(key_of(number)).unwrap();
    let found = store.outcome(key_of(number)).unwrap().is_some();
    assert!(found && dependency_sets.len() == 1);
    start.elapsed()
}

#[test]
#[ignore = "takes a minute"]
fn ten_thousand_tests_do_not_slow_lookup() {
    let folder = tempfile::tempdir().unwrap();
    let few = filled(&folder.path().join("few"), 10);
    let many = filled(&folder.path().join("many"), 10_000);
    let (mut of_few, mut of_many): (Vec<_>, Vec<_>) = (0..2000)
        .map(|round| (look_up_time(&few, round % 10), look_up_time(&many, round * 37 % 10_000)))
        .unzip();
    of_few.sort_unstable();
    of_many.sort_unstable();
    let (few, many) = (of_few[1000], of_many[1000]);
    println!("a look-up among 10: {few:?}, among 10,000: {many:?}");
    assert!(many < few * 2, "{many:?} among 10,000, {few:?} among 10");
}

#[test]
fn names_of_entries_are_all_different() {
    let names: HashSet<Hash> = (0..10_000).map(key_of).chain((0..TESTS).map(test_of)).collect();
    assert_eq!(names.len(), 10_000 + TESTS as usize);
}
