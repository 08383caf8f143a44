//! `tasting stats`: the sums over all decisions.

use super::{OpenStore, doctor, exit, objects, open_store, print, push};
use crate::objects::{Counts, Objects};
use crate::process::{Settings, side_caches};
use crate::report::metrics;
use crate::report::stats::{self, ShownObjects, ShownStats, ShownStore};
use crate::report::transfer::{self, ShownRemote};
use crate::store::remote::Remote;
use crate::store::remote::breaker::Breaker;
use crate::store::{Journal, Quarantine, Store};

/// Show how many results were reused, the time saved, and why tests ran.
///
/// The miss rate is measured, not guessed: of the tests that ran although their results could have
/// been reused (`tasting run --audit 5%`), the share that ended differently without being an
/// unstable test. Without audits no rate is known, and none is shown. Tests in quarantine run until
/// they have passed often enough again. Disturbed tests fail while they are traced or watched, and
/// pass without: they are not traced, or not watched, from then on. Binaries of the project at hand
/// that could only be described as a whole are named with the reason: every change of them makes
/// their tests run.
#[derive(clap::Args)]
pub struct Arguments {
    /// Print JSON: reused, executed, share, saved_ms, executed_ms, reasons, not_kept, audits,
    /// miss_rate, quarantine, disturbed, store, objects, whole
    #[arg(long)]
    json: bool,
    /// Print the sums as metrics for Prometheus (its text format; for the textfile collector, or a
    /// push gateway)
    #[arg(long, conflicts_with_all = ["json", "remote", "zero"])]
    prometheus: bool,
    /// Print a short summary in Markdown, for build servers
    #[arg(long, conflicts_with_all = ["json", "remote", "zero", "prometheus"])]
    markdown: bool,
    /// Show what the store of the team holds, whether it answers, and what waits to be sent to it
    #[arg(long, conflicts_with = "zero")]
    remote: bool,
    /// Start counting anew; the log, the results and the quarantine stay
    #[arg(long, conflicts_with = "json")]
    zero: bool,
}

pub fn run(arguments: Arguments) -> anyhow::Result<u8> {
    let settings = Settings::from_environment();
    let opened = open_store(&settings)?;
    if arguments.remote {
        let shown = shown_remote(&opened, &settings)?;
        print(arguments.json, &shown, transfer::write_remote)?;
        return Ok(if shown.problem.is_some() { exit::FAILED } else { exit::OK });
    }
    if arguments.zero {
        opened.store.zero_stats()?;
        if let Some(objects) = Objects::new(&settings) {
            objects.forget_counts();
        }
        println!("The sums are zero again.");
        return Ok(exit::OK);
    }
    let shown = shown(&opened, &settings)?;
    match () {
        () if arguments.prometheus => {
            print(false, &shown, |out, shown, _| metrics::write_prometheus(out, shown))?
        }
        () if arguments.markdown => {
            print(false, &shown, |out, shown, _| metrics::write_markdown(out, shown))?
        }
        () => print(arguments.json, &shown, stats::write)?,
    }
    Ok(exit::OK)
}

/// What is known of the store of the team.
fn shown_remote(opened: &OpenStore, settings: &Settings) -> anyhow::Result<ShownRemote> {
    let remote = push::remote(&[], settings, &opened.store)?;
    let failed = |breaker: &Breaker| breaker.state().map(|open| open.reason);
    // A server that cannot tell what it holds may still answer.
    let volume = remote.volume();
    let problem = volume.is_err().then(|| remote.answers().err()).flatten();
    let volume = volume.ok();
    let objects = Objects::new(settings);
    let for_objects = objects::remote(settings)?;
    let waiting = |remote: &Remote| remote.spool.jobs().len() as u64;
    Ok(ShownRemote {
        url: remote.location.shown.clone(),
        namespace: remote.location.attributes.namespace.clone(),
        read_only: remote.usage.read_only,
        problem: problem.map(|failure| failure.reason),
        reading_failed: failed(&remote.reading),
        writing_failed: failed(&remote.writing),
        waiting: waiting(&remote),
        objects_failed: for_objects.as_ref().and_then(|(remote, _)| failed(&remote.reading)),
        waiting_objects: for_objects.as_ref().map(|(remote, _)| waiting(remote)),
        objects: volume.map(|volume| volume.objects),
        reused_objects: objects.map_or(0, |objects| objects.counts().shared),
        results: volume.map(|volume| volume.outcomes),
        tests: volume.map(|volume| volume.tests),
        bytes: volume.map(|volume| volume.bytes),
        reused: opened.store.stats()?.reused_shared,
    })
}

fn shown(opened: &OpenStore, settings: &Settings) -> anyhow::Result<ShownStats> {
    let OpenStore { store, folder, limit } = opened;
    let volume = store.volume()?;
    let bytes = volume.bytes + side_caches::volume(settings);
    let shown = ShownStore {
        path: folder.display().to_string(),
        results: volume.outcomes,
        bytes,
        limit: *limit,
    };
    let objects = Objects::new(settings)
        .map(|objects| shown_objects(&objects))
        .transpose()?
        .unwrap_or_default();
    let shown =
        ShownStats::new(store.stats()?, store.marks()?, store.all_disturbed()?, shown, objects);
    Ok(shown.with_whole(doctor::build::whole_binaries(settings)))
}

fn shown_objects(cache: &Objects) -> anyhow::Result<ShownObjects> {
    let (Counts { reused, shared, compiled }, (objects, bytes)) = (cache.counts(), cache.volume()?);
    Ok(ShownObjects { reused, shared, compiled, objects, bytes, limit: cache.limit() })
}
