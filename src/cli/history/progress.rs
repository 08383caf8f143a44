//! What people see on a terminal while commits are replayed: the commit, what is done, how many
//! tests, the time left.
//!
//! In: the steps as they are begun, and a way to count tests. Out: one line on standard error,
//! nothing where that is no terminal.

use super::repository::Listed;
use crate::report::history::short;
use crate::report::units::{duration, visible};
use rustix::termios::tcgetwinsize;
use std::io::{self, IsTerminal, Write};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How often tests are counted.
const PAUSE: Duration = Duration::from_millis(500);

/// What is being done.
#[derive(Clone, Default)]
struct Shown {
    /// Its number, from 1 on.
    commit: usize,
    all: usize,
    sha: String,
    subject: String,
    step: &'static str,
    /// Tests are counted while it lasts.
    is_testing: bool,
    /// How many tests the commit before had.
    tests_before: usize,
    left: Option<Duration>,
}

/// The line, and the thread that keeps it up to date.
pub struct Progress {
    shown: Shown,
    started: Instant,
    /// How many commits were done before this replay began.
    before: usize,
    thread: Option<(Sender<Shown>, JoinHandle<()>)>,
}

impl Progress {
    /// Nothing is done yet. `count`: the tests of the commit at hand that have run.
    pub fn new(all: usize, before: usize, count: impl Fn() -> usize + Send + 'static) -> Self {
        let is_seen = io::stderr().is_terminal();
        if is_seen && before > 0 {
            eprintln!("{before} of {all} commits were done before; --fresh starts anew");
        }
        let thread = is_seen.then(|| {
            let (sender, receiver) = mpsc::channel::<Shown>();
            let keep = move || {
                let mut shown = Shown::default();
                loop {
                    match receiver.recv_timeout(PAUSE) {
                        Ok(next) => shown = next,
                        Err(RecvTimeoutError::Timeout) => {}
                        Err(RecvTimeoutError::Disconnected) => break,
                    }
                    draw(&shown.line(if shown.is_testing { count() } else { 0 }));
                }
            };
            (sender, std::thread::spawn(keep))
        });
        Progress {
            shown: Shown { all, ..Shown::default() },
            started: Instant::now(),
            before,
            thread,
        }
    }

    /// The next commit.
    pub fn commit(&mut self, done: usize, listed: &Listed, tests_before: usize) {
        let here = done - self.before;
        let left = (here > 0)
            .then(|| self.started.elapsed() / here as u32 * (self.shown.all - done) as u32);
        let (sha, subject) = (short(&listed.sha).to_owned(), visible(&listed.subject));
        self.shown =
            Shown { commit: done + 1, sha, subject, tests_before, left, ..self.shown.clone() };
    }

    /// What is done with it.
    pub fn step(&mut self, step: &'static str, is_testing: bool) {
        (self.shown.step, self.shown.is_testing) = (step, is_testing);
        if let Some((sender, _)) = &self.thread {
            // The thread ends when this does.
            let _ = sender.send(self.shown.clone());
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some((sender, thread)) = self.thread.take() {
            drop(sender);
            let _ = thread.join();
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}

impl Shown {
    fn line(&self, tests: usize) -> String {
        let Shown { commit, all, sha, subject, step, tests_before, .. } = self;
        let tests = match (self.is_testing, *tests_before) {
            (false, _) => String::new(),
            (true, before) if before >= tests && before > 0 => {
                format!(", {tests} of {before} tests")
            }
            (true, _) => format!(", {tests} tests"),
        };
        let left =
            self.left.map(|left| format!(", about {} left", duration(left.as_secs() * 1000)));
        format!("[{commit}/{all}] {sha} {step}{tests}{}  {subject}", left.unwrap_or_default())
    }
}

/// In place of the line that is there. One that is too long would be broken, and remain.
fn draw(line: &str) {
    // 0: the terminal does not know.
    let width = tcgetwinsize(io::stderr())
        .ok()
        .map(|size| usize::from(size.ws_col))
        .filter(|width| *width >= 20)
        .unwrap_or(80);
    let line: String = line.chars().take(width - 1).collect();
    let _ = write!(io::stderr(), "\r\x1b[K{line}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_has_commit_tests_and_time_left() {
        let left = Some(Duration::from_millis(185_400));
        let (sha, subject) = ("abc1234".to_owned(), "Fix it".to_owned());
        let mut shown =
            Shown { commit: 3, all: 30, sha, subject, step: "building", left, ..Shown::default() };
        assert_eq!(shown.line(0), "[3/30] abc1234 building, about 3 min 5 s left  Fix it");
        (shown.step, shown.is_testing, shown.left) = ("testing", true, None);
        assert_eq!(shown.line(7), "[3/30] abc1234 testing, 7 tests  Fix it");
        shown.tests_before = 9;
        assert_eq!(shown.line(7), "[3/30] abc1234 testing, 7 of 9 tests  Fix it");
        assert_eq!(shown.line(10), "[3/30] abc1234 testing, 10 tests  Fix it");
    }
}
