//! Objects of other machines: if `TASTING_REMOTE` has the attribute `objects`, objects that this
//! machine lacks are looked up in the remote store, and those that it makes are uploaded.
//!
//! A shim does not talk to servers. It has `tasting` fetch an object into the cache; and it adds
//! the objects that it has made to the upload queue, for a background process. In: keys. Out: a
//! [`Reply`]. On any error, the source is compiled.

use super::Objects;
use crate::model::Hash;
use crate::process::{Settings, sys};
use crate::store::remote::location::Location;
use crate::store::remote::objects::ShimRemoteState;
use crate::store::remote::spool::UploadJob;
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

/// What came of asking for an object. `tasting objects fetch` ends with the number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    /// It is in the cache now.
    There = 0,
    /// Nobody has it: others would like to have it.
    Missing = 10,
    /// What is there is of no use, or not wanted: it is to be replaced.
    Replace = 11,
    /// Nobody was asked, or nothing is to be written there.
    Private = 12,
}

impl Reply {
    /// The reply of a process that has ended so. One that failed has asked nobody.
    fn of(status: ExitStatus) -> Reply {
        let all = [Reply::There, Reply::Missing, Reply::Replace];
        all.into_iter().find(|reply| status.code() == Some(*reply as i32)).unwrap_or(Reply::Private)
    }
}

/// The way to the remote store.
pub struct Shared<'s> {
    settings: &'s Settings,
    remote_state: ShimRemoteState,
    /// How long asking may take, and how long a server that has failed is left alone.
    trial: Duration,
    retry: Duration,
    /// The program that speaks to servers.
    tool: PathBuf,
}

impl<'s> Shared<'s> {
    /// `None` unless objects are to be shared. What is fetched goes into the cache, so it has to be
    /// one that can be written to.
    pub fn new(settings: &'s Settings, objects: &Objects) -> Option<Self> {
        let text = settings.remote.as_ref().filter(|_| !settings.readonly)?;
        // A text that is not understood is told of by `tasting config`.
        let location = Location::parse(&text.0).ok()?;
        location.attributes.objects?;
        let tool = std::env::current_exe().ok()?.with_file_name("tasting");
        Some(Shared {
            settings,
            remote_state: ShimRemoteState::new(objects.root(), &location),
            trial: location.attributes.operation_timeout,
            retry: location.attributes.retry,
            tool,
        })
    }

    /// Has an object fetched into the cache. A server that has failed is left alone by all, without
    /// a process being started.
    pub fn ask(&self, key: Hash) -> Reply {
        if self.remote_state.reading.is_open(self.trial).is_some() {
            return Reply::Private;
        }
        match self.command(&["fetch", &key.to_string()]).status() {
            Ok(status) => Reply::of(status),
            Err(error) => {
                self.settings
                    .log(format_args!("no objects are shared: {}: {error}", self.tool.display()));
                Reply::Private
            }
        }
    }

    /// Has an object sent that was made, if that is wanted. Nobody waits for it.
    pub fn give(&self, key: Hash, reply: Reply) {
        let replace = match reply {
            Reply::There | Reply::Private => return,
            Reply::Missing => false,
            Reply::Replace => true,
        };
        let ShimRemoteState { spool, writing, .. } = &self.remote_state;
        if let Err(error) = spool.add(UploadJob::Object { key, replace }) {
            return self.settings.log(error);
        }
        if writing.is_open(self.retry).is_some() {
            return;
        }
        // Somebody does so already, and looks again before it ends.
        let Some(uploader_lock) = spool.uploader_lock() else { return };
        drop(uploader_lock);
        let mut command = self.command(&["send"]);
        sys::detach(&mut command);
        if let Err(error) = command.spawn() {
            self.settings.log(format_args!("no objects are sent to the remote store: {error}"));
        }
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(&self.tool);
        command.arg("objects").args(words);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    }
}
