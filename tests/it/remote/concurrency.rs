//! Many at once.

use super::machine::Machine;
use super::servers;
use std::process::Stdio;
use tasting::model::Verdict;
use tasting::store::Journal;

const CLIENTS: usize = 32;
const TESTS: usize = 4;

/// 32 machines run the same tests at one time against one store; what is right on one is right on
/// all, and each value is there once.
fn together(remote: &str) {
    let first = Machine::new("first", remote);
    let machines: Vec<Machine> =
        (0..CLIENTS).map(|number| Machine::like(&first, &format!("client{number}"))).collect();
    let run_all = |machines: &[Machine]| {
        for test in 0..TESTS {
            let name = format!("test{test}");
            let start = |machine: &Machine| {
                let mut command = machine.tasting(&["run", "--", "./t", &name]);
                command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
            };
            let children: Vec<_> = machines.iter().map(start).collect();
            for child in children {
                let output = child.wait_with_output().unwrap();
                assert_eq!(String::from_utf8_lossy(&output.stdout), format!("{name}: the data\n"));
                assert!(output.status.success());
            }
        }
    };
    run_all(&machines);
    let pushes: Vec<_> = machines
        .iter()
        .map(|machine| machine.tasting(&["push"]).stdout(Stdio::null()).spawn().unwrap())
        .collect();
    for mut push in pushes {
        assert!(push.wait().unwrap().success());
    }
    let shown: serde_json::Value =
        serde_json::from_str(&first.does(&["stats", "--remote", "--json"])).unwrap();
    assert_eq!(
        (&shown["results"], &shown["tests"]),
        (&(TESTS as u64).into(), &(TESTS as u64).into()),
        "{shown}"
    );
    let fresh: Vec<Machine> =
        (0..CLIENTS).map(|number| Machine::like(&first, &format!("fresh{number}"))).collect();
    run_all(&fresh);
    for machine in &fresh {
        let decisions = machine.store().decisions(TESTS).unwrap();
        assert!(
            decisions
                .iter()
                .all(|decision| decision.decision == Verdict::Reused && decision.shared),
            "{decisions:?}"
        );
    }
}

#[test]
#[ignore = "needs redis"]
fn thirty_two_clients_of_redis() {
    let server = servers::redis(&[]);
    together(&format!("redis://127.0.0.1:{} operation-timeout=20s", server.port));
}

#[test]
fn thirty_two_clients_of_a_folder() {
    let place = tempfile::tempdir().unwrap();
    together(&format!("file:{} operation-timeout=20s", place.path().display()));
}

/// Each of many clients adds another dependency set to the same test at one time; as many as a test
/// may have are kept, and none is damaged.
#[test]
#[ignore = "needs redis"]
fn dependency_sets_of_one_test_from_many() {
    let server = servers::redis(&[]);
    let remote = format!("redis://127.0.0.1:{}", server.port);
    let script = "#!/bin/sh\ncat \"$(cat which)\"\n";
    let machines: Vec<Machine> = (0..8)
        .map(|number| {
            let machine = Machine::bare(&format!("client{number}"), &remote);
            machine.write("t.sh", script);
            (0..8).for_each(|file| _ = machine.write(&format!("file{file}"), format!("{file}\n")));
            machine.write("which", format!("file{number}"));
            machine
        })
        .collect();
    machines.iter().for_each(|machine| _ = machine.runs(&["sh", "t.sh"]));
    let pushes: Vec<_> = machines
        .iter()
        .map(|machine| machine.tasting(&["push"]).stdout(Stdio::null()).spawn().unwrap())
        .collect();
    for mut push in pushes {
        assert!(push.wait().unwrap().success());
    }
    let reader = Machine::like(&machines[0], "reader");
    let reused = (0..8).filter(|number| {
        reader.write("which", format!("file{number}"));
        let ran = reader.run(&["sh", "t.sh"]);
        assert_eq!(ran.outcome.stdout_text(), format!("{number}\n"));
        ran.is_reused()
    });
    let reused = reused.count();
    println!("of 8 dependency sets that were written at one time, {reused} are found");
    assert!(reused >= 6, "{reused}");
}
