//! Compiled objects in a remote store. A compiler's shim does not talk to servers itself: it starts
//! thousands of times in a build, and must stay small. It reads the breaker's file, has `tasting`
//! fetch what it misses, and leaves new objects in a spool. All of that needs only the text of
//! TASTING_REMOTE, from which the folder's name is derived.

use super::location::Location;
use super::spool::Spool;
use super::transfer::Moved;
use super::{Breaker, Fetched, Name, Remote, RemoteError, Usage, breakers_in, identity};
use crate::model::Hash;
use std::path::{Path, PathBuf};

/// What a value has around its object.
const AROUND: usize = 8 << 10;

/// Where the objects of this machine come from: the bytes for others; `None` if there is none; or
/// the reason why others do not get it.
pub type Source = Box<dyn Fn(Hash) -> Result<Option<Vec<u8>>, String> + Send + Sync>;

/// What is remembered about a remote store in the cache of objects.
fn folder(cache: &Path, location: &Location) -> PathBuf {
    cache.join("remote").join(identity(location).to_string())
}

/// What a shim needs to know.
pub struct ShimRemoteState {
    pub reading: Breaker,
    pub writing: Breaker,
    pub spool: Spool,
}

impl ShimRemoteState {
    pub fn new(cache: &Path, location: &Location) -> ShimRemoteState {
        let folder = folder(cache, location);
        let [reading, writing] = breakers_in(&folder, location);
        ShimRemoteState { reading, writing, spool: Spool::new(folder.join("spool")) }
    }
}

/// What came of asking for an object.
pub enum RemoteObject {
    Missing,
    Found(Vec<u8>),
    /// There is something of no use, and why.
    Bad(String),
}

impl Remote {
    /// The remote store for objects up to `largest` bytes. `given` is the location as the user has
    /// it, by which shims find the folder.
    pub fn for_objects(
        mut location: Location,
        usage: Usage,
        given: &Location,
        cache: &Path,
        largest: usize,
    ) -> Remote {
        location.attributes.largest = largest + AROUND;
        let folder = folder(cache, given);
        Remote::with_folders(location, usage, &folder, &folder)
    }

    /// The same for the process that uploads objects.
    pub fn with_objects(self, source: Source) -> Remote {
        Remote { objects: Some(source), ..self }
    }

    /// Asks for an object. The process that started this one has checked the breaker.
    pub fn ask_for_object(&self, key: Hash) -> Result<RemoteObject, RemoteError> {
        let name = Name::object(key);
        let mut values =
            self.get(&[name], true).inspect_err(|failure| self.reading.failed(&failure.reason))?;
        self.reading.succeeded();
        Ok(match values.pop() {
            None | Some(Fetched::Missing) => RemoteObject::Missing,
            Some(Fetched::Bad(reason)) => RemoteObject::Bad(reason),
            Some(Fetched::Value(bytes)) => self
                .keys
                .read_object(name, &bytes)
                .map_or_else(RemoteObject::Bad, RemoteObject::Found),
        })
    }

    /// Writes objects, one at a time: they are large, and nobody waits for it.
    pub(super) fn send_objects(
        &self,
        objects: &[(Hash, bool)],
        moved: &mut Moved,
    ) -> Result<(), RemoteError> {
        let Some(source) = &self.objects else { return Ok(()) };
        for &(key, replace) in objects {
            let name = Name::object(key);
            let value = match source(key) {
                // What has been cleaned away in the meantime is nobody's loss.
                Ok(None) => continue,
                Ok(Some(raw)) => self.keys.object(name, &raw),
                Err(reason) => Err(reason),
            };
            match value {
                Ok(bytes) => {
                    moved.objects += 1;
                    moved.bytes += bytes.len() as u64;
                    self.with(move |server| server.put(&[(name, bytes)], replace))?;
                }
                Err(reason) => moved.leave(reason),
            }
        }
        Ok(())
    }
}
