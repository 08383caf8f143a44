//! Modules that are read while the program that uses them still runs: their fingerprint is wanted
//! as soon as it ends.
//!
//! In: the path of a binary, when it is first seen. Out: the parsed module, unless its files were
//! changed since.

use super::modules::{Digest, FingerprintError, ReadModule};
use crate::model::{FileIdentity, Hash};
use crate::process::{Settings, manifest_file};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

/// The modules that are being read ahead. Owned by whoever decides about a test, and shared with
/// the tracer.
pub struct ModuleCache {
    /// Knows the digests of what is loaded of binaries, or has them made.
    digest: Arc<Digest<'static>>,
    ahead: Mutex<BTreeMap<PathBuf, Ahead>>,
}

/// A module that is being read.
struct Ahead {
    /// The binary and its manifest, as they were before.
    files: [Option<FileIdentity>; 2],
    reading: JoinHandle<Result<ReadModule, FingerprintError>>,
}

impl Default for ModuleCache {
    fn default() -> Self {
        ModuleCache::new(|_, make| make())
    }
}

impl ModuleCache {
    /// One that takes the digests of what is loaded of binaries from somewhere.
    pub fn new(
        digest: impl Fn(FileIdentity, &dyn Fn() -> Hash) -> Hash + Send + Sync + 'static,
    ) -> Self {
        ModuleCache { digest: Arc::new(digest), ahead: Mutex::default() }
    }

    /// Starts to read a module in another thread.
    pub fn read_ahead(&self, path: &Path, settings: &Settings) {
        let files = identities(path, settings);
        let (module, settings, digest) = (path.to_owned(), settings.clone(), self.digest.clone());
        let read = move || ReadModule::open(&module, &settings, &*digest);
        let reading = thread::Builder::new().spawn(read);
        if let (Ok(mut ahead), Ok(reading)) = (self.ahead.lock(), reading) {
            ahead.insert(path.to_owned(), Ahead { files, reading });
        }
    }

    /// The module that was read ahead, if its files are still the same; else it is read now.
    pub(super) fn take(
        &self,
        path: &Path,
        settings: &Settings,
    ) -> Result<ReadModule, FingerprintError> {
        let ahead = self.ahead.lock().ok().and_then(|mut ahead| ahead.remove(path));
        let ahead = ahead.filter(|ahead| ahead.files == identities(path, settings));
        match ahead.and_then(|ahead| ahead.reading.join().ok()) {
            Some(module) => module,
            None => ReadModule::open(path, settings, &*self.digest),
        }
    }
}

fn identities(binary: &Path, settings: &Settings) -> [Option<FileIdentity>; 2] {
    let manifest = manifest_file::find(settings, binary);
    [binary, &manifest].map(|file| fs::metadata(file).ok().map(|found| FileIdentity::of(&found)))
}
