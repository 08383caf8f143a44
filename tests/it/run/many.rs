//! Many runs at once on one store, some of them killed.

use super::Bench;
use std::process::{Child, Stdio};
use std::time::Duration;
use tasting::model::Verdict;

const PROGRAM: &str = r#"
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char **argv) {
    char name[99], text[99] = "";
    snprintf(name, sizeof name, "data%s", argv[1]);
    FILE *file = fopen(name, "r");
    if (file) fgets(text, 99, file);
    printf("%s %s\n", argv[1], text);
    return 0;
}
"#;

#[test]
#[ignore = "takes a minute"]
fn sixty_four_at_once_some_killed() {
    let bench = Bench::with(PROGRAM);
    let count = 64;
    for test in 0..count {
        bench.write(&format!("data{test}"), format!("content {test}"));
    }
    let start = |test: usize| -> Child {
        let mut command = bench.tasting(&["./t", &test.to_string()]);
        command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("it starts")
    };
    for round in 0..3 {
        let mut children: Vec<Child> = (0..count).map(start).collect();
        for (test, child) in children.iter_mut().enumerate() {
            if (test + round) % 5 == 0 {
                std::thread::sleep(Duration::from_millis((test % 7) as u64));
                // It may have ended already.
                let _ = child.kill();
            }
        }
        for (test, child) in children.into_iter().enumerate() {
            let output = child.wait_with_output().expect("it ends");
            if output.status.success() {
                assert_eq!(
                    String::from_utf8_lossy(&output.stdout),
                    format!("{test} content {test}\n")
                );
            } else {
                assert_eq!((test + round) % 5, 0, "test {test} failed: {output:?}");
            }
        }
    }
    for test in 0..count {
        let number = test.to_string();
        let ran = bench.run(&["./t", &number]);
        assert_eq!(ran.text(), format!("{test} content {test}\n"));
        if test % 5 != 0 {
            assert_eq!(ran.decision.decision, Verdict::Reused, "{ran:?}");
        }
        bench.write(&format!("data{test}"), "other");
        assert_eq!(bench.runs(&["./t", &number]).text(), format!("{test} other\n"));
    }
}
