//! `tasting objects`: transfers of compiled objects on behalf of the shims, which do not talk to
//! servers.

use super::{OpenStore, exit, open_store};
use crate::model::Hash;
use crate::objects::Objects;
use crate::objects::shared::Reply;
use crate::process::Settings;
use crate::run::config::Config;
use crate::run::project::Project;
use crate::run::sharing;
use crate::store::FileStore;
use crate::store::remote::Remote;
use crate::store::remote::objects::RemoteObject;
use crate::store::remote::transfer::Moved;
use anyhow::Context;

/// Fetch and send compiled objects, for the compilers' shims.
#[derive(clap::Args)]
pub struct Arguments {
    #[command(subcommand)]
    what: ObjectsCommand,
}

#[derive(clap::Subcommand)]
enum ObjectsCommand {
    /// Fetch an object into the cache; the exit code says what came of it
    Fetch { key: String },
    /// Send what waits, and for a second what comes to wait; say nothing
    Send,
}

pub fn run(arguments: Arguments) -> anyhow::Result<u8> {
    let settings = Settings::from_environment();
    match arguments.what {
        ObjectsCommand::Fetch { key } => {
            let key = Hash::from_text(&key).context("that is no key of an object")?;
            Ok(fetch(&settings, key)? as u8)
        }
        ObjectsCommand::Send => {
            let OpenStore { store, .. } = open_store(&settings)?;
            if let Some(remote) = sender(&settings)?
                && let Err(failure) = remote.serve(&store)
            {
                settings.log(format_args!("objects still wait to be sent: {failure}"));
            }
            Ok(exit::OK)
        }
    }
}

/// The remote store for objects, if they are shared, and the largest one that is.
pub fn remote(settings: &Settings) -> anyhow::Result<Option<(Remote, usize)>> {
    let working = std::env::current_dir().context("there is no current folder")?;
    // Which keys are trusted is in there.
    let config = Config::read(&Project::root(&working, settings)).map_err(anyhow::Error::msg)?;
    let Some(objects) = Objects::new(settings) else { return Ok(None) };
    Ok(sharing::objects(settings, &config, objects.root()))
}

/// The same for whoever sends; `None` as well if nothing is to be written there.
fn sender(settings: &Settings) -> anyhow::Result<Option<Remote>> {
    let Some((remote, largest)) = remote(settings)?.filter(|(remote, _)| remote.is_writable())
    else {
        return Ok(None);
    };
    let Some(objects) = Objects::new(settings) else { return Ok(None) };
    Ok(Some(
        remote.for_background_work().with_objects(Box::new(move |key| objects.give(key, largest))),
    ))
}

/// Sends the objects that wait.
pub fn send_waiting(settings: &Settings, store: &FileStore) -> anyhow::Result<Moved> {
    Ok(sender(settings)?
        .map(|remote| remote.upload_waiting(store))
        .transpose()?
        .unwrap_or_default())
}

fn fetch(settings: &Settings, key: Hash) -> anyhow::Result<Reply> {
    let objects = Objects::new(settings).context("there is no folder for the cache")?;
    let Some((remote, largest)) = remote(settings)? else { return Ok(Reply::Private) };
    let wanted = |reply| if remote.is_writable() { reply } else { Reply::Private };
    if settings.recache {
        return Ok(wanted(Reply::Replace));
    }
    let problem = match remote.ask_for_object(key) {
        Ok(RemoteObject::Missing) => return Ok(wanted(Reply::Missing)),
        Ok(RemoteObject::Found(bytes)) => match objects.accept(key, &bytes, largest) {
            Ok(()) => return Ok(Reply::There),
            Err(reason) => reason,
        },
        Ok(RemoteObject::Bad(reason)) => reason,
        Err(failure) => {
            let shown = &failure.shown;
            settings.log(format_args!(
                "the remote store {shown} is left alone for a while: {}",
                failure.reason
            ));
            return Ok(Reply::Private);
        }
    };
    let url = remote.location.url();
    settings
        .log(format_args!("the object {key} in the remote store {url} is of no use: {problem}"));
    Ok(wanted(Reply::Replace))
}
