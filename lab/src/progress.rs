//! A progress bar on terminals; elsewhere nothing is printed.

use std::io::{IsTerminal, Write, stderr};
use std::time::{Duration, Instant};

pub struct Progress {
    what: &'static str,
    start: Instant,
    time: Duration,
    is_seen: bool,
}

const WIDTH: usize = 24;

impl Progress {
    pub fn new(what: &'static str, time: Duration) -> Progress {
        Progress { what, start: Instant::now(), time, is_seen: stderr().is_terminal() }
    }

    pub fn tell(&self, text: &str) {
        if self.is_seen {
            let part =
                (self.start.elapsed().as_secs_f64() / self.time.as_secs_f64().max(1.0)).min(1.0);
            let done = (part * WIDTH as f64) as usize;
            let bar = format!("{}{}", "#".repeat(done), " ".repeat(WIDTH - done));
            let _ = write!(stderr(), "\r\x1b[K{} [{bar}] {text}", self.what);
        }
    }

    pub fn end(&self) {
        if self.is_seen {
            let _ = writeln!(stderr());
        }
    }
}
