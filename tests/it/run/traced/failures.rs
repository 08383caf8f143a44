//! What fails while it is traced.

use crate::run::Bench;
use std::io::Write;

const SNAPSHOT: &str = r#"
#include <stdio.h>
int main(void) {
    if (fopen("snapshot", "r")) return 0;
    fclose(fopen("snapshot", "w"));
    return 1;
}
"#;

const READER: &str = r#"
#include <stdio.h>
int main(void) { return getchar() == 'x'; }
"#;

/// A failure while functions are traced is doubted. But the second attempt would find what the
/// first one left, or nothing where the first one read, and pass.
#[test]
fn a_failure_that_cannot_be_repeated_is_believed() {
    let bench = Bench::with(SNAPSHOT);
    assert_eq!(bench.run(&["./t"]).outcome.code, Some(1));
    assert_eq!(bench.run(&["./t"]).outcome.code, Some(0));

    let bench = Bench::with(READER);
    let (reader, mut writer) = std::io::pipe().expect("a pipe can be made");
    writer.write_all(b"x").expect("a pipe has room for a letter");
    drop(writer);
    assert_eq!(bench.finish(bench.tasting(&["./t"]).stdin(reader)).outcome.code, Some(1));

    bench.write("input", "x");
    let input = std::fs::File::open(bench.path("input")).expect("it was just written");
    assert_eq!(bench.finish(bench.tasting(&["./t"]).stdin(input)).outcome.code, Some(1));
}

/// GoogleTest prints the addresses of mock objects with each failure.
#[test]
fn a_failure_is_printed_once() {
    let source = "#include <stdio.h>\n#include <unistd.h>\nint main(void) { printf(\"%d\\n\", getpid()); return 1; }";
    let bench = Bench::with(source);
    let ran = bench.runs(&["./t"]);
    assert_eq!((ran.outcome.code, ran.text().lines().count()), (Some(1), 1), "{ran:?}");
}

/// It finds breakpoints in a function that it has not called, where nobody can follow the address,
/// and says so in the language of TAP, where a failure is not in the status.
const SAYS_IT: &str = r#"
#include <stdio.h>
#include <stdlib.h>
__attribute__((noinline, used)) static int idle(int x) { for (int i = 0; i < x; i++) x += i * x; return x; }
int main(void) {
    const unsigned char *volatile *code = malloc(sizeof *code);
    *code = (const unsigned char *)idle;
    int breakpoints = 0;
    for (int i = 8; i < 16; i++) breakpoints += (*code)[i] == 0xcc;
    puts("1..2\nnot ok 1 - later # TODO");
    puts(breakpoints < 8 ? "ok 2" : "not ok 2");
    return 0;
}
"#;

/// It is run again without tracing, before anyone hears of it, and is not traced from then on.
#[test]
fn reported_failures_with_status_zero_are_repeated() {
    let bench = Bench::with(SAYS_IT);
    for _ in 0..2 {
        assert!(bench.runs(&["./t"]).text().ends_with("\nok 2\n"));
    }
    assert!(bench.reuses(&["./t"]).text().ends_with("\nok 2\n"));
}
