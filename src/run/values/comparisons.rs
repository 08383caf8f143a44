//! Values of programs without a walk: beside each execution is kept what the walk went into, in
//! which build, and which value that had. Two builds are compared once for all executions
//! (`fingerprint/comparison`); those that went into nothing that is different keep their value.
//!
//! In: an execution of a program. Out: its value now; `None` where somebody has to walk. All of it
//! is kept on this machine alone, and what is lost is found out again.

use super::Values;
use super::programs::{Comparison, Located, Program, content_of, digest, shared};
use crate::fingerprint::comparison::Differences;
use crate::fingerprint::execution::builds::Build;
use crate::fingerprint::execution::{Extent, Program as ReadProgram};
use crate::fingerprint::visit::Visit;
use crate::fingerprint::walk::NodeSet;
use crate::model::keys::KeyOf;
use crate::model::{Dependency, FileIdentity, Hash};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::sync::atomic::Ordering;

/// How many executions of one build are walked before it is compared: a comparison takes as long as
/// some walks. What was walked is kept as of the build at hand, so that earlier builds of which only
/// few executions are left are not compared again after each edit.
const WALKS: usize = 2;

/// What a walk went into, kept beside the execution that it belongs to.
#[derive(Serialize, Deserialize)]
struct KeptVisit {
    /// The build that was walked through.
    build: Hash,
    /// The value of the program in that build.
    value: Hash,
    covered: Vec<bool>,
    visit: Visit,
}

impl Values<'_> {
    /// The value of a program of which only what was executed counts.
    pub(super) fn executed_in_part(
        &mut self,
        dependency: &Dependency,
        located: &Located,
    ) -> Result<Program, String> {
        let set = NodeSet::from_bytes(&dependency.executed);
        let kept: Option<KeptVisit> =
            self.kept(self.visit_name(dependency, located.entry.as_deref()));
        if let Some(program) = kept.as_ref().and_then(|kept| self.unchanged(kept, located)) {
            if cfg!(debug_assertions) {
                let walked = self.walked(located, Extent::Set(&set));
                assert_walked(&program, walked.map(|(program, _)| program));
            }
            return Ok(program);
        }
        let (program, execution) = self.walked(located, Extent::Set(&set))?;
        // One that is different may be that of a branch, to which somebody comes back.
        if kept.is_none_or(|kept| !self.has_stamps && kept.value == program.value) {
            let opened = self.opened(&located.path, &located.libraries)?;
            self.keep_visit(
                dependency,
                located.entry.as_deref(),
                &opened,
                &program,
                execution.visit,
            );
        }
        Ok(program)
    }

    /// The value that was kept, if the program now has it too.
    fn unchanged(&mut self, kept: &KeptVisit, located: &Located) -> Option<Program> {
        let Located { path, libraries, entry } = located;
        let build = (kept.build, entry.clone(), self.named(path, libraries));
        let comparison = shared(&self.opened.compared, build);
        let differences = self.differences(&comparison, kept.build, located)?;
        let is_unchanged = kept.covered.len() == libraries.len() && !differences.touch(&kept.visit);
        is_unchanged.then(|| Program { value: kept.value, covered: kept.covered.clone() })
    }

    /// What is not the same as in an earlier build, where that is known or worth finding out.
    fn differences<'c>(
        &mut self,
        comparison: &'c Comparison,
        earlier: Hash,
        located: &Located,
    ) -> Option<&'c Differences> {
        if let Some(known) = comparison.differences.get() {
            return known.as_ref();
        }
        let Located { path, libraries, entry } = located;
        let files = self.memory_name(path, libraries, entry.as_deref(), &[]);
        let name =
            files.map(|files| KeyOf::Differences.hasher().hash(earlier).hash(files).finish());
        let asked = comparison.asked.fetch_add(1, Ordering::Relaxed);
        if asked == 0
            && let Some(known) = name.and_then(|name| self.kept(name))
        {
            return comparison.differences.get_or_init(|| known).as_ref();
        }
        let is_worth_it = match self.has_stamps {
            // Other tests have asked, and more will.
            true => name.is_some_and(|name| self.is_asked_again(name)),
            false => asked >= WALKS,
        };
        // Debug builds check each answer, and so want many.
        if !is_worth_it && !cfg!(debug_assertions) {
            return None;
        }
        let compare = || {
            let differences = self.compare(earlier, located);
            if let Some(name) = name {
                self.keep(name, &differences);
            }
            differences
        };
        comparison.differences.get_or_init(compare).as_ref()
    }

    /// Whether a comparison was asked for before, by another process.
    fn is_asked_again(&self, name: Hash) -> bool {
        let asked = Hash::of(b"asked");
        let is_asked_again = self.store.recall(name) == Some(asked);
        self.store.remember(name, asked);
        is_asked_again
    }

    fn compare(&mut self, earlier: Hash, located: &Located) -> Option<Differences> {
        let bytes = self.store.blob(KeyOf::Build.of(earlier)).ok()??;
        let earlier: Build =
            postcard::from_bytes(&bytes).ok().filter(|_| Hash::of(&bytes) == earlier)?;
        let manifest = |content: Hash| {
            let bytes = self.store.blob(KeyOf::KeptManifest.of(content)).ok()??;
            (Hash::of(&bytes) == content).then_some(bytes)
        };
        let manifests: Vec<Vec<u8>> = earlier.manifests().map(manifest).collect::<Option<_>>()?;
        let opened = self.opened(&located.path, &located.libraries).ok()?;
        let own = self.build(&opened)?;
        let differences = opened.differences(&own, &earlier, &manifests, located.entry.as_deref());
        let outcome = if differences.is_some() { "compared" } else { "cannot be compared" };
        let path = located.path.display();
        self.settings.log(format_args!("{path}: {outcome} with an earlier build"));
        differences
    }

    fn build(&self, program: &ReadProgram) -> Option<Build> {
        let content = |identity: FileIdentity, make: &dyn Fn() -> Hash| {
            // As it is remembered of any file that was read.
            content_of(self.store, identity.hash(), identity, make)
        };
        let library = |identity: FileIdentity, make: &dyn Fn() -> Hash| {
            digest(self.store, KeyOf::LibraryDigest, identity, make)
        };
        program.build(&content, &library)
    }

    /// Keeps what a walk went into, and the build that it went through.
    pub(super) fn keep_visit(
        &self,
        dependency: &Dependency,
        entry: Option<&str>,
        program: &ReadProgram,
        found: &Program,
        visit: Visit,
    ) {
        let Some(build) = self.build(program) else { return };
        let Ok(bytes) = postcard::to_stdvec(&build) else { return };
        for (content, bytes) in build.manifests().zip(program.manifests()) {
            let name = KeyOf::KeptManifest.of(content);
            if !self.store.has_blob(name) {
                let _ = self.store.put_blob(name, bytes);
            }
        }
        let name = Hash::of(&bytes);
        if !self.store.has_blob(KeyOf::Build.of(name)) {
            let _ = self.store.put_blob(KeyOf::Build.of(name), &bytes);
        }
        let kept =
            KeptVisit { build: name, value: found.value, covered: found.covered.clone(), visit };
        self.keep(self.visit_name(dependency, entry), &kept);
    }

    /// A name for all that the value of a program follows from but the files.
    fn visit_name(&self, dependency: &Dependency, entry: Option<&str>) -> Hash {
        let mut hasher = KeyOf::Visit.hasher();
        hasher.code(self.project.config.sharing.system_libraries);
        hasher.place(&dependency.place).bytes(&dependency.executed);
        hasher.number(dependency.libraries.len() as u64);
        dependency.libraries.iter().for_each(|library| _ = hasher.place(library));
        hasher.bytes(entry.unwrap_or_default().as_bytes());
        self.project.hash_folders(&mut hasher);
        hasher.finish()
    }

    fn kept<T: DeserializeOwned>(&self, name: Hash) -> Option<T> {
        postcard::from_bytes(&self.store.blob(name).ok()??).ok()
    }

    /// What cannot be kept is found out again.
    fn keep<T: Serialize>(&self, name: Hash, value: &T) {
        if let Ok(bytes) = postcard::to_stdvec(value) {
            let _ = self.store.put_blob(name, &bytes);
        }
    }
}

/// Ends the process if a walk gives another value. Whatever else would be made of it, a test would
/// merely run, and nobody would notice.
fn assert_walked(compared: &Program, walked: Result<Program, String>) {
    if let Ok(walked) = walked
        && (walked.value, &walked.covered) != (compared.value, &compared.covered)
    {
        eprintln!("tasting: a comparison of builds takes a changed program for an unchanged one");
        std::process::abort();
    }
}
