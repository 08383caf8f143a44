//! What sharing saves, in small: forks of a project, and variants of its build. Each fork or
//! variant is a machine of its own; once with stores of their own only, once with one store for
//! all.

use super::machine::Machine;
use super::servers;

const FUNCTIONS: usize = 8;

/// A library of functions, some of them edited, and a test for each; test N also uses the function
/// before N. With numbers of 32 bits some functions would be of 4 bytes, which are too short to be
/// traced.
fn suite(edited: &[usize]) -> String {
    let body = |number: usize| {
        let change = edited
            .iter()
            .filter(|edit| *edit % FUNCTIONS == number)
            .map(|edit| format!(" x += {};", edit + 1));
        let change: String = change.collect();
        let feature = format!("#ifdef FEATURE{}\n x ^= {number};\n#endif\n", number % 3);
        format!(
            "__attribute__((noinline)) long f{number}(long x) {{\n{feature}{change} return x * {}; }}\n",
            number + 3
        )
    };
    let functions: String = (0..FUNCTIONS).map(body).collect();
    let case = |number: usize| {
        let before =
            number.checked_sub(1).map_or(String::new(), |before| format!(" + f{before}(n)"));
        format!("case {number}: printf(\"%ld\\n\", f{number}(n){before}); break;\n")
    };
    let cases: String = (0..FUNCTIONS).map(case).collect();
    format!(
        "#include <stdio.h>\n#include <stdlib.h>\n{functions}\
         int main(int argc, char **argv) {{ int n = argc; switch (atoi(argv[1])) {{ {cases} }} return 0; }}\n"
    )
}

/// Runs all tests of a build; how many of them were executed.
fn executed(machine: &Machine, source: &str, options: &[&str]) -> usize {
    machine.build("t", source, options);
    let ran = |test: usize| {
        let name = test.to_string();
        machine.finish(&mut machine.tasting(&["run", "--", "./t", &name]))
    };
    let executed = (0..FUNCTIONS).filter(|test| !ran(*test).is_reused()).count();
    if !machine.remote.is_empty() {
        machine.does(&["push"]);
    }
    executed
}

fn saved(executed: usize, all: usize) -> f64 {
    100.0 * (all - executed) as f64 / all as f64
}

/// Each fork runs the suite as it was when it forked, and after each of its own edits; some edits
/// are made in several forks.
#[test]
#[ignore = "needs redis"]
fn forks() {
    let server = servers::redis(&[]);
    let forks: Vec<Vec<Vec<usize>>> = (0..10)
        .map(|fork| match fork % 5 {
            0 => vec![vec![], vec![fork]],
            1 => vec![vec![], vec![3]],
            2 => vec![vec![], vec![3], vec![3, fork]],
            3 => vec![vec![]],
            _ => vec![vec![], vec![fork], vec![fork, 3]],
        })
        .collect();
    let all = forks.iter().map(Vec::len).sum::<usize>() * FUNCTIONS;
    let mut totals = [0; 2];
    for (total, remote) in
        totals.iter_mut().zip([String::new(), format!("redis://127.0.0.1:{}", server.port)])
    {
        for (number, commits) in forks.iter().enumerate() {
            let machine = Machine::bare(&format!("fork{number}"), &remote);
            *total += commits
                .iter()
                .map(|edits| executed(&machine, &suite(edits), &["-O1"]))
                .sum::<usize>();
        }
    }
    let [local, shared] = totals.map(|executed| saved(executed, all));
    println!(
        "{} forks, {all} test runs: own stores save {local:.0} %, one store {shared:.0} %",
        forks.len()
    );
    assert!(shared > local + 20.0 && shared > 60.0, "{local} {shared}");
}

/// Each variant is built with other `-D` options, of which most tests see nothing.
#[test]
#[ignore = "needs redis"]
fn variants() {
    let server = servers::redis(&[]);
    let options = |variant: usize| {
        let features =
            (0..3).filter(|bit| variant >> bit & 1 == 1).map(|bit| format!("-DFEATURE{bit}"));
        let unused =
            (3..4).filter(|bit| variant >> bit & 1 == 1).map(|bit| format!("-DUNUSED{bit}"));
        features.chain(unused).collect::<Vec<String>>()
    };
    let variants = 16;
    let all = variants * FUNCTIONS;
    let mut totals = [0; 2];
    for (total, remote) in
        totals.iter_mut().zip([String::new(), format!("redis://127.0.0.1:{}", server.port)])
    {
        for variant in 0..variants {
            let machine = Machine::bare(&format!("variant{variant}"), &remote);
            let options = options(variant);
            let options: Vec<&str> =
                ["-O1"].into_iter().chain(options.iter().map(String::as_str)).collect();
            *total += executed(&machine, &suite(&[]), &options);
        }
    }
    let [local, shared] = totals.map(|executed| saved(executed, all));
    println!(
        "{variants} variants, {all} test runs: own stores save {local:.0} %, one store {shared:.0} %"
    );
    assert!(local < 1.0 && shared > 60.0, "{local} {shared}");
}
