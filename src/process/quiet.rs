//! Runs our own work during a build without disturbing it: nothing is printed, failures and even
//! panics go to the log file, and the tool's exit status is what counts.
//!
//! In: the work. Out: its result, if it does not fail.

use super::Settings;
use std::fmt::Display;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook};
use std::sync::Once;

/// The process's panic hook is replaced once: from then on panics go to the log instead of standard
/// error.
static HOOK: Once = Once::new();

/// Does `work`, and logs how it failed, if it did: by an error, or even by a panic.
pub fn quietly<E: Display>(
    settings: &Settings,
    what: impl Display,
    work: impl FnOnce() -> Result<(), E>,
) {
    if let Some(Err(error)) = attempt(settings, &what, work) {
        settings.log(format_args!("{what}: {error}"));
    }
}

/// Does `work`; `None`, and a line in the log, after a panic.
pub fn attempt<T>(settings: &Settings, what: impl Display, work: impl FnOnce() -> T) -> Option<T> {
    HOOK.call_once(|| {
        let log = settings.clone();
        set_hook(Box::new(move |panic| log.log(panic)));
    });
    let done = catch_unwind(AssertUnwindSafe(work)).ok();
    if done.is_none() {
        settings.log(format_args!("{what}: gave up after a panic; please report it"));
    }
    done
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_go_to_the_log() {
        let folder = tempfile::tempdir().unwrap();
        let settings = Settings { logfile: Some(folder.path().join("log")), ..Settings::default() };
        quietly(&settings, "fine", || Ok::<(), String>(()));
        quietly(&settings, "one", || Err("an error"));
        quietly(&settings, "two", || -> Result<(), String> { panic!("a panic") });
        let _ = std::panic::take_hook();
        let text = std::fs::read_to_string(folder.path().join("log")).unwrap();
        assert!(text.contains("one: an error") && text.contains("two: gave up"));
        assert!(!text.contains("fine"));
    }
}
