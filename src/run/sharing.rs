//! The remote store of a run: where it is, whether to write there, and uploading new results in the
//! background.
//!
//! In: `TASTING_REMOTE`, `tasting.toml`, the build server's variables. Out: a [`Remote`], or none.

use super::config::{Config, Processors};
use super::{Session, processor, untrusted};
use crate::process::{Settings, sys};
use crate::store::remote::location::{self, Location};
use crate::store::remote::{Remote, Usage};
use crate::store::{FileStore, Layered};
use std::path::Path;
use std::process::{Command, Stdio};

/// Why nothing is written to a remote store.
const ASKED_FOR: &str = "the attribute read-only asks for it";
const OF_STORE: &str = "TASTING_READONLY asks for it";

/// It is read and written as a whole.
const NO_ARCHIVE: &str = "the attribute archive is for what `tasting push` and `tasting pull` name, \
     not for a store that each test asks";

/// Where the remote store is; none if nobody names one. The variable goes before `tasting.toml`.
pub fn location(settings: &Settings, config: &Config) -> Result<Option<Location>, String> {
    let location = match (&settings.remote, &config.remote) {
        (Some(text), _) if location::is_none(&text.0) => None,
        (Some(text), _) => {
            let parsed = Location::parse(&text.0);
            Some(parsed.map_err(|error| format!("TASTING_REMOTE: {error}"))?)
        }
        (None, Some(remote)) => Some(remote.0.clone()),
        (None, None) => None,
    };
    match location {
        Some(location) if location.attributes.archive => Err(NO_ARCHIVE.to_owned()),
        location => Ok(location),
    }
}

/// The remote store behind the one of this machine. One that cannot be used is as good as none, but
/// for the log.
pub fn remote(settings: &Settings, config: &Config, near: &FileStore) -> Option<Remote> {
    match location(settings, config) {
        Ok(location) => Some(open(location?, settings, config, near)),
        Err(error) => {
            settings.log(format_args!("no remote store: {error}"));
            None
        }
    }
}

/// A remote store, used as settings and project say.
pub fn open(location: Location, settings: &Settings, config: &Config, near: &FileStore) -> Remote {
    let usage = usage(&location, settings, config);
    Remote::new(in_namespace(location, config), usage, near.root(), settings.readonly)
}

/// The remote store for compiled objects, and the largest one that is shared. Only TASTING_REMOTE
/// can ask for that: a compiler's shim reads nothing else. `cache` is the folder of this machine's
/// objects.
pub fn objects(settings: &Settings, config: &Config, cache: &Path) -> Option<(Remote, usize)> {
    let given = Location::parse(&settings.remote.as_ref()?.0).ok()?;
    let largest = given.attributes.objects?;
    let usage = usage(&given, settings, config);
    let location = in_namespace(given.clone(), config);
    Some((Remote::for_objects(location, usage, &given, cache, largest), largest))
}

/// Only machines share whose processors can do the same, unless the project does not care.
fn in_namespace(mut location: Location, config: &Config) -> Location {
    if config.sharing.processors == Processors::Same {
        let namespace = &mut location.attributes.namespace;
        let separator = if namespace.is_empty() { "" } else { "-" };
        *namespace = format!("{namespace}{separator}{}", processor::name());
    }
    location
}

fn usage(location: &Location, settings: &Settings, config: &Config) -> Usage {
    Usage {
        read_only: read_only_reason(location, settings),
        trusted_keys: [&config.sharing.trusted_keys[..], &location.attributes.trusted_keys]
            .concat(),
        failures: config.reuse_failures,
        checkout_specific: config.sharing.same_path,
        recache: settings.recache,
    }
}

/// Why nothing is to be written there. What a job of a stranger's is allowed is not for the
/// stranger's `tasting.toml` to say.
fn read_only_reason(location: &Location, settings: &Settings) -> Option<&'static str> {
    match location.attributes.read_only {
        _ if settings.readonly => Some(OF_STORE),
        Some(true) => Some(ASKED_FOR),
        Some(false) if settings.remote.is_some() => None,
        _ => untrusted::job(),
    }
}

/// Has another process send what waits to be sent. It has none of our descriptors, and belongs to
/// no group that a harness could wait for or end.
pub(crate) fn send_behind(session: &Session) {
    let Layered { far: Some(far), .. } = &*session.store else { return };
    if !session.store.has_upload_jobs()
        || far.writing.is_open(far.location.attributes.retry).is_some()
    {
        return;
    }
    // Somebody does so already, and looks again before it ends.
    let Some(uploader_lock) = far.spool.uploader_lock() else { return };
    drop(uploader_lock);
    if let Err(error) = start(&session.project.working) {
        session.settings.log(format_args!("nothing is sent to the remote store: {error}"));
    }
}

fn start(working: &Path) -> std::io::Result<()> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["push", "--behind"]).current_dir(working);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    sys::detach(&mut command);
    command.spawn().map(|_| ())
}
