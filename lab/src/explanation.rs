//! Explains why the result of a program varies. In: a test of a built program. Out: what shows that
//! it is unsteady by itself, without Tasting; nothing, if nothing does.
//!
//! Two attempts: a different environment that no correct program notices (its size, a single
//! processor); and valgrind, which reports reads of uninitialised memory.

use crate::bench::Bench;
use crate::process::Ended;
use crate::program::Test;
use std::io;
use std::time::Duration;

/// How often a program is run again before two of its ends are said to contradict each other. A
/// race between two threads (`pthread_join(0, thread)`) that went one way in two of five runs on a
/// busy machine went the other way 20 times on an idle one.
const RERUNS: usize = 200;

/// Programs are slower by a factor of about thirty.
const WITH_VALGRIND: Duration = Duration::from_secs(90);

/// What valgrind says of a read of something that was never written, and of other reads that no
/// program may do.
const FAULTS: [&str; 3] = ["uninitialised", "Invalid read", "Invalid write"];

/// Why `plain` may not be how a test ends each time.
pub fn of(
    bench: &Bench,
    test: &Test,
    plain: &Ended,
    patience: Duration,
) -> io::Result<Option<String>> {
    for turn in 0..RERUNS {
        if bench.run_otherwise(test, turn, patience)? != *plain {
            return Ok(Some(format!(
                "it ends differently under other circumstances (attempt {turn})"
            )));
        }
    }
    let Some(said) = bench.run_in_valgrind(test, WITH_VALGRIND)? else { return Ok(None) };
    let is_fault = |line: &&str| FAULTS.iter().any(|fault| line.contains(fault));
    Ok(said.lines().find(is_fault).map(|line| format!("valgrind: {line}")))
}
