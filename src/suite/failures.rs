//! The tests of a suite that failed the last time, for `--failed`.
//!
//! In: the command line of the suite. Out: names of tests, in the store.

use super::End;
use super::course::TestResult;
use crate::model::Hash;
use crate::model::keys::KeyOf;
use crate::process::Settings;
use crate::run::local_store;
use crate::store::{FileStore, Memo};
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

/// Where the failures of one suite are.
pub struct Failures {
    name: Hash,
    store: Option<FileStore>,
}

impl Failures {
    /// Those of the suite with this command line, here.
    pub fn of(words: &[OsString]) -> Failures {
        let mut hasher = KeyOf::SuiteFailures.hasher();
        hasher.bytes(std::env::current_dir().unwrap_or_default().as_os_str().as_bytes());
        words.iter().for_each(|word| _ = hasher.bytes(word.as_bytes()));
        Failures { name: hasher.finish(), store: local_store(&Settings::from_environment()) }
    }

    /// The names; `None` where no run is remembered.
    pub fn names(&self) -> Option<Vec<String>> {
        postcard::from_bytes(&self.store.as_ref()?.blob(self.name).ok()??).ok()
    }

    /// Remembers how a run ended. What cannot be written is not known the next time.
    pub fn remember(&self, tests: &[TestResult]) {
        let failed =
            tests.iter().filter(|test| matches!(test.end, Some(End::Failed | End::NotRun)));
        let names: Vec<&str> = failed.map(|test| test.name.as_str()).collect();
        if let (Some(store), Ok(bytes)) = (&self.store, postcard::to_stdvec(&names)) {
            let _ = store.put_blob(self.name, &bytes);
        }
    }
}
