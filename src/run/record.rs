//! Stores a run: its outcome under the key of everything that it used, and a trace for
//! `tasting explain`.

use super::choice::{Run, checkout_key};
use super::config::UnknownPrograms;
use super::execute::Ran;
use super::project::Project;
use super::values::{ResolvedDependencies, Values};
use super::{
    Session, exit_code, granularity, is_success, latest, leftovers, mentions, now, random_names,
};
use crate::model::keys::{self, KeyOf};
use crate::model::{
    Base, Dependency, DependencyKind, Hash, LastUse, Left, LeftFile, Origin, Outcome, PortablePath,
    RecordedDependency, Refusal, Trace, codes,
};
use crate::observe::Input;
use crate::store::{Memo, Quarantine, Results, StoreError};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Remembers what can be remembered. Gives the reason why the outcome is not kept, if so.
pub fn record(
    session: &Session,
    ran: &Ran,
    run: &Run,
    declared: Vec<RecordedDependency>,
) -> Option<Refusal<'static>> {
    let mut values = values(session, ran.input.clone());
    let mut refusals = ran.refusals.clone();
    if values.declared() != declared {
        refusals.push(Refusal::of_run(
            "an input that tasting.toml declares",
            (codes::CHANGED_MEANWHILE, "changed while the test ran"),
        ));
    }
    let files = match leftovers::keep(
        &session.project,
        &ran.used,
        ran.duration,
        session.project.config.limits.files,
    ) {
        Ok(files) => files,
        Err(refusal) => {
            refusals.push(refusal);
            Vec::new()
        }
    };
    if mentions::shows_watcher(&traces(ran, &files)) {
        let why = (
            codes::DISTURBED,
            "shows that it is watched (the agent in a list of what is mapped, the filter in a status)",
        );
        refusals.push(Refusal::of_run("its output", why));
    }
    let known = declared.into_iter().chain(mentioned(session, ran, &files)).collect();
    let mut resolved = values.observed(&ran.used, &ran.executed, known);
    refusals.extend(unknown_programs(session, &resolved));
    if !values.code_is_unchanged(&ran.used) {
        // Its fingerprint is that of another one, which did not run.
        let why = (codes::CHANGED_MEANWHILE, "was replaced when the test had ended");
        refusals.push(Refusal::of_run("a program or library", why));
    }
    random_names::forget(&mut resolved.used, &ran.used, session);
    keep_manifests(session, &mut values, &mut resolved);
    values.remember();
    let kept = match refusals.first() {
        Some(refusal) => Err(refusal.clone()),
        None => keep(session, ran, run, &resolved, &mut values, files),
    };
    leave_trace(session, ran, &resolved, &refusals, kept.is_ok());
    kept.err()
}

fn traces<'a>(ran: &'a Ran, files: &'a [LeftFile]) -> mentions::Traces<'a> {
    let [stdout, stderr] = &ran.captured.texts;
    mentions::Traces { output: [stdout, stderr], files, used: &ran.used }
}

/// What the run mentions of where it is, and of variables that do not count otherwise.
fn mentioned(session: &Session, ran: &Ran, files: &[LeftFile]) -> Vec<RecordedDependency> {
    let places = mentions::of(
        &session.project,
        session.context.connection.on_terminal(),
        &traces(ran, files),
    );
    let traced = places.into_iter().map(|place| RecordedDependency {
        value: mentions::value(&session.project, &place),
        dependency: Dependency::on(DependencyKind::Mentioned, place),
        manifests: Vec::new(),
        note: String::new(),
    });
    traced.collect()
}

/// The files that the project declares as inputs of its tests. To be asked before the test runs.
pub fn declared(session: &Session) -> Vec<RecordedDependency> {
    if session.project.config.inputs.is_empty() {
        return Vec::new();
    }
    values(session, Input::Given).declared()
}

fn values(session: &Session, input: Input) -> Values<'_> {
    Values::new(
        &session.project,
        &session.settings,
        &*session.store,
        session.contents(),
        input,
        &session.modules,
    )
}

/// Keeps the outcome, unless the test is not to be trusted.
fn keep(
    session: &Session,
    ran: &Ran,
    run: &Run,
    resolved: &ResolvedDependencies,
    values: &mut Values,
    files: Vec<LeftFile>,
) -> Result<(), Refusal<'static>> {
    trust(session, ran, run)?;
    let dependency_set = resolved.dependency_set();
    let then: Vec<Hash> = resolved.used.iter().map(|traced| traced.value).collect();
    let key = Values::key(&session.project, session.test.identity, &dependency_set, &then)
        .ok_or_else(|| Refusal::of_run("the test", (codes::STORE, "uses too much")))?;
    let [stdout, stderr] = ran.captured.texts.clone();
    let mut outcome = Outcome {
        exit: ran.exit,
        stdout,
        stderr,
        turns: ran.captured.turns.clone(),
        duration: ran.duration,
        files,
        input_end: ran.input_end,
        origin: origin(session),
        checkout_specific: false,
    };
    outcome.checkout_specific = names_its_place(session, &outcome);
    let placed =
        |name: Hash| if outcome.checkout_specific { checkout_key(session, name) } else { name };
    let key = placed(key);
    session.store.put(session.test.identity, &dependency_set, key, &outcome).map_err(of_store)?;
    if dependency_set.is_narrowed()
        && let Some(whole) = whole_key(session, resolved, values)
    {
        session.store.remember(placed(whole), key);
    }
    if session.is_shadow() && is_success(ran.exit, &outcome.stdout) {
        granularity::remember(
            session,
            &granularity::names(session, &dependency_set, values, Some(&resolved.used)),
        );
    }
    Ok(())
}

fn of_store(error: StoreError) -> Refusal<'static> {
    Refusal::of_run("the store", (codes::STORE, error.to_string()))
}

/// The name of the key for those who have the very same programs.
fn whole_key(
    session: &Session,
    resolved: &ResolvedDependencies,
    values: &mut Values,
) -> Option<Hash> {
    let dependency_set = resolved.dependency_set();
    let mut whole = values.whole(&dependency_set);
    for (now, traced) in whole.iter_mut().zip(&resolved.used) {
        // What the test itself has changed since counts as it was before.
        if traced.dependency.executed.is_empty() {
            *now = traced.value;
        }
    }
    Values::whole_key_of(&session.project, session.test.identity, &dependency_set, &whole)
}

/// Whether the result counts. A pass that follows a failure of the same may be luck, and so may
/// each pass in quarantine but the last one.
fn trust(session: &Session, ran: &Ran, run: &Run) -> Result<(), Refusal<'static>> {
    let unstable = |why: String| Err(Refusal::of_run("the test", (codes::UNSTABLE, why)));
    let passes = session.quarantine_passes();
    match (&run.mark, is_success(ran.exit, &ran.captured.texts[0])) {
        (None, true) if run.failed_before && passes > 1 => {
            session.quarantine("it passed on a retry", passes - 1);
            unstable(format!("passed on a retry, and has to pass {} more times", passes - 1))
        }
        (Some(mark), true) if mark.passes_left > 1 => {
            session.quarantine(&mark.reason, mark.passes_left - 1);
            unstable(format!(
                "is in quarantine, and has to pass {} more times",
                mark.passes_left - 1
            ))
        }
        (Some(_), true) => session.store.unmark(session.test.identity).map_err(of_store),
        (Some(mark), false) => {
            session.quarantine(&mark.reason, passes);
            unstable("is in quarantine, and failed".to_owned())
        }
        (None, _) => Ok(()),
    }
}

/// Programs of the project itself that were not built with Tasting, where the project does not want
/// them.
fn unknown_programs(
    session: &Session,
    resolved: &ResolvedDependencies,
) -> Option<Refusal<'static>> {
    if session.project.config.unknown_programs != UnknownPrograms::Refuse {
        return None;
    }
    let is_ours = |traced: &&RecordedDependency| {
        matches!(traced.dependency.place.base, Base::Root | Base::Build)
    };
    let is_binary = |traced: &&RecordedDependency| {
        let path = session.project.path(&traced.dependency.place);
        path.and_then(|path| fs::read(path).ok()).is_some_and(|bytes| bytes.starts_with(b"\x7fELF"))
    };
    let programs =
        resolved.used.iter().filter(|traced| traced.dependency.kind == DependencyKind::Program);
    let unknown =
        programs.filter(|traced| !traced.note.is_empty()).filter(is_ours).find(is_binary)?;
    let subject = session.project.show(&unknown.dependency.place);
    let why = format!("is a program of unknown provenance: {}", unknown.note);
    Some(Refusal::of_run(subject, (codes::UNKNOWN_PROGRAM, why)))
}

/// Keeps the manifests of the programs that ran, so that it can be told later what has changed in
/// them.
fn keep_manifests(session: &Session, values: &mut Values, resolved: &mut ResolvedDependencies) {
    for traced in
        resolved.used.iter_mut().filter(|traced| traced.dependency.kind == DependencyKind::Program)
    {
        for file in values.manifests(&traced.dependency) {
            traced.manifests.extend(keep_manifest(session, values, &file));
        }
    }
}

/// Keeps one manifest. Gives its name in the store.
pub fn keep_manifest(session: &Session, values: &mut Values, file: &Path) -> Option<Hash> {
    let name = KeyOf::KeptManifest.of(values.content(file)?);
    let keep = || session.store.put_blob(name, &fs::read(file).ok()?).ok();
    (session.store.has_blob(name) || keep().is_some()).then_some(name)
}

/// Whether an outcome says in which folder it came about: it would be wrong elsewhere.
fn names_its_place(session: &Session, outcome: &Outcome) -> bool {
    let is_named = |text: &[u8]| session.project.is_named_in(text);
    let in_file = |file: &LeftFile| match &file.left {
        Left::File { content, .. } => is_named(content),
        Left::Link { target } => is_named(target),
        Left::Folder { .. } | Left::Gone => false,
    };
    is_named(&outcome.stdout) || is_named(&outcome.stderr) || outcome.files.iter().any(in_file)
}

fn leave_trace(
    session: &Session,
    ran: &Ran,
    resolved: &ResolvedDependencies,
    refusals: &[Refusal],
    is_kept: bool,
) {
    let trace = Trace {
        test: session.test.identity,
        context_entries: session.test.context_entries.clone(),
        used: resolved.used.clone(),
        narrowed: None,
        refusals: refusals.iter().map(Refusal::with_code).collect(),
        exit_code: exit_code(ran.exit),
        origin: origin(session),
    };
    match latest::keep(&*session.store, session.test.name, trace, is_kept) {
        Ok(()) => note_uses(session, resolved),
        Err(error) => session.settings.log(format_args!("no trace is left: {error}")),
    }
}

/// Notes for each binary of the project which test used it last, so that an explanation of the
/// binary finds the trace.
fn note_uses(session: &Session, resolved: &ResolvedDependencies) {
    let Ok(bytes) =
        (LastUse { argv: session.test.argv(), trace: latest::name(session.test.name) }).to_bytes()
    else {
        return;
    };
    let used = resolved.used.iter().map(|traced| &traced.dependency);
    let programs = used.filter(|dependency| dependency.kind == DependencyKind::Program);
    let file_of =
        |library| session.project.library_path(library).map(|file| session.project.place(&file));
    let places = programs.flat_map(|program| {
        std::iter::once(program.place.clone()).chain(program.libraries.iter().filter_map(file_of))
    });
    let ours: BTreeSet<PortablePath> =
        places.filter(|place| matches!(place.base, Base::Root | Base::Build)).collect();
    for place in ours {
        if let Err(error) = session.store.put_blob(last_use_name(&session.project, &place), &bytes)
        {
            session.settings.log(format_args!("not noted which test used a binary: {error}"));
        }
    }
}

/// Under which name the latest use of a binary is kept. Other checkouts and projects have binaries
/// of the same names.
pub fn last_use_name(project: &Project, place: &PortablePath) -> Hash {
    keys::last_use(&project.root, place)
}

fn origin(session: &Session) -> Origin {
    let root = &session.project.root;
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    Origin {
        time: now(),
        host: host.trim_end().to_owned(),
        root: root.as_os_str().as_encoded_bytes().to_vec(),
        commit: commit(&root.join(".git")),
    }
}

/// The commit that is checked out, as far as it is easy to tell.
fn commit(git: &Path) -> Option<String> {
    let head = fs::read_to_string(git.join("HEAD")).ok()?;
    let head = head.trim_end();
    let Some(name) = head.strip_prefix("ref: ") else { return Some(head.to_owned()) };
    if let Ok(commit) = fs::read_to_string(git.join(name)) {
        return Some(commit.trim_end().to_owned());
    }
    let packed = fs::read_to_string(git.join("packed-refs")).ok()?;
    packed.lines().find_map(|line| line.strip_suffix(name)?.strip_suffix(' ').map(str::to_owned))
}
