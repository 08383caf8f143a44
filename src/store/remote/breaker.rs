//! A circuit breaker for servers: after a failure, a file shared by all processes of this machine
//! says until when the server is not asked, and why. Afterwards one process tries again; the others
//! wait for its result.

use crate::store::store_file::{self, TemporaryFile};
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A reason is not longer.
const LARGEST: usize = 64 << 10;

/// The breaker in one file.
pub struct Breaker {
    path: PathBuf,
    pause: Duration,
}

/// A server that is left alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Open {
    /// Milliseconds since 1970.
    pub until: u64,
    pub reason: String,
}

impl Breaker {
    pub fn new(path: PathBuf, pause: Duration) -> Breaker {
        Breaker { path, pause }
    }

    /// Whether the server is to be left alone. Where a pause has just ended, the caller is the one
    /// to try, for as long as `trial`.
    pub fn is_open(&self, trial: Duration) -> Option<Open> {
        let open = self.state()?;
        if open.until > now() {
            return Some(open);
        }
        self.write(&Open { until: now() + trial.as_millis() as u64, reason: open.reason });
        None
    }

    /// What is known, whether the pause has ended or not.
    pub fn state(&self) -> Option<Open> {
        let (bytes, _) = store_file::read(&self.path, LARGEST).ok()??;
        let text = String::from_utf8_lossy(&bytes);
        let (until, reason) = text.split_once(' ')?;
        let until = until.parse().ok()?;
        // A clock that was put back must not keep everybody away for years.
        (until <= now() + self.pause.as_millis() as u64)
            .then(|| Open { until, reason: reason.to_owned() })
    }

    /// The server has failed.
    pub fn failed(&self, reason: &str) {
        self.write(&Open {
            until: now() + self.pause.as_millis() as u64,
            reason: reason.to_owned(),
        });
    }

    /// The server has answered.
    pub fn succeeded(&self) {
        // Nearly always there is none.
        let _ = fs::remove_file(&self.path);
    }

    /// If it cannot be written, everybody pays for himself.
    fn write(&self, open: &Open) {
        let Some(folder) = self.path.parent() else { return };
        let text = format!("{} {}", open.until, open.reason);
        let _ =
            TemporaryFile::write(folder, text.as_bytes()).and_then(|file| file.replace(&self.path));
    }
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_millis() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRIAL: Duration = Duration::from_secs(5);

    #[test]
    fn after_the_pause_one_process_tries_again() {
        let folder = tempfile::tempdir().unwrap();
        let breaker =
            |pause| Breaker::new(folder.path().join("a/failed"), Duration::from_millis(pause));
        assert!(breaker(5000).is_open(TRIAL).is_none());
        breaker(5000).failed("it is away");
        assert_eq!(breaker(5000).is_open(TRIAL).unwrap().reason, "it is away");
        breaker(5000).succeeded();
        assert!(breaker(5000).is_open(TRIAL).is_none());
        breaker(1).failed("again");
        std::thread::sleep(Duration::from_millis(5));
        assert!(breaker(6000).is_open(TRIAL).is_none(), "the first one tries");
        assert!(breaker(6000).is_open(TRIAL).is_some(), "the others do not");
    }

    #[test]
    fn nonsense_and_a_far_future_are_ignored() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("failed");
        let breaker = Breaker::new(path.clone(), Duration::from_secs(60));
        for text in ["", "x", "99999999999999 later", "-1 x"] {
            fs::write(&path, text).unwrap();
            assert!(breaker.is_open(TRIAL).is_none(), "{text:?}");
        }
    }
}
