//! The store of the team: whether it answers.

use crate::cli::push;
use crate::process::Settings;
use crate::report::findings::Finding;
use crate::run::config::Config;
use crate::run::project::Project;
use crate::run::sharing;
use crate::store::{FileStore, Options};
use std::time::Instant;

pub fn examine(settings: &Settings) -> Option<Finding> {
    let working = std::env::current_dir().ok()?;
    let config = Config::read(&Project::root(&working, settings)).ok()?;
    match sharing::location(settings, &config) {
        Ok(None) => return None,
        Ok(Some(_)) => {}
        Err(problem) => {
            return Some(Finding::note("remote store", format!("{problem}: none is used")));
        }
    }
    let store =
        FileStore::new(settings.dir.as_ref()?, Options { read_only: true, ..Options::default() });
    let remote = push::remote(&[], settings, &store).ok()?;
    let start = Instant::now();
    Some(match (remote.answers(), remote.usage.read_only) {
        (Err(failure), _) => {
            Finding::note("remote store", format!("{failure}: nothing is shared until it answers"))
        }
        (Ok(()), Some(reason)) => Finding::note(
            "remote store",
            format!("{} answers, and is only read: {reason}", remote.location.url()),
        ),
        (Ok(()), None) => {
            let took = start.elapsed().as_millis();
            Finding::works(
                "remote store",
                format!("{} answers in {took} ms", remote.location.url()),
            )
        }
    })
}
