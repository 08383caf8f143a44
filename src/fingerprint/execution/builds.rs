//! Builds of a program: names for all that a walk reads of its modules, by which an earlier build
//! is known, and the comparison with one.

use super::Program;
use crate::fingerprint::comparison::{self, Differences};
use crate::fingerprint::modules::Digest;
use crate::fingerprint::walk::{Module, ModuleGraph, Start};
use crate::model::{Hash, Manifest, bytes};
use serde::{Deserialize, Serialize};

/// A program with its libraries, as a walk sees them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Build {
    modules: Vec<BuildModule>,
    /// For each library, whether the fingerprint covers it.
    pub covered: Vec<bool>,
    #[serde(with = "bytes")]
    search_paths: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum BuildModule {
    /// By the content of its manifest.
    Known(Hash),
    Late(Hash),
    /// By what counts of it, and by all that is loaded: the symbols are in that.
    Foreign(Hash, Hash),
}

impl Build {
    /// The contents of the manifests, in the order of the modules that have one.
    pub fn manifests(&self) -> impl Iterator<Item = Hash> {
        self.modules.iter().filter_map(|module| match module {
            BuildModule::Known(content) | BuildModule::Late(content) => Some(*content),
            BuildModule::Foreign(..) => None,
        })
    }

    /// Whether nothing is different but what is in the manifests.
    fn is_of_same_kind(&self, other: &Build) -> bool {
        let is_same = |(one, other): (&BuildModule, &BuildModule)| match (one, other) {
            (BuildModule::Known(_), BuildModule::Known(_))
            | (BuildModule::Late(_), BuildModule::Late(_)) => true,
            _ => one == other,
        };
        self.modules.len() == other.modules.len()
            && self.modules.iter().zip(&other.modules).all(is_same)
            && self.covered == other.covered
            && self.search_paths == other.search_paths
    }
}

impl Program {
    /// The build that it is. `content` knows the contents of manifests, and `digest` the digests of
    /// other files, or they have them made.
    pub fn build(&self, content: &Digest, digest: &Digest) -> Option<Build> {
        let modules = self.loaded.modules().zip(&self.loaded.graph().modules);
        let name = |(read, module): (&_, &Module)| {
            let read: &crate::fingerprint::modules::ReadModule = read;
            let manifest = || {
                let (bytes, identity) = read.manifest_file()?;
                Some(content(identity, &|| Hash::of(bytes)))
            };
            Some(match module {
                Module::Known(_) => BuildModule::Known(manifest()?),
                Module::Late(_) => BuildModule::Late(manifest()?),
                Module::Foreign { content, .. } => {
                    BuildModule::Foreign(*content, read.behaviour(digest))
                }
            })
        };
        Some(Build {
            modules: modules.map(name).collect::<Option<_>>()?,
            covered: self.covered.clone(),
            search_paths: self.search_paths.clone(),
        })
    }

    /// The manifests that a walk reads, as in `Build::manifests`.
    pub fn manifests(&self) -> impl Iterator<Item = &[u8]> {
        let modules = self.loaded.modules().zip(&self.loaded.graph().modules);
        let known = modules.filter(|(_, module)| !matches!(module, Module::Foreign { .. }));
        known.filter_map(|(read, _)| Some(read.manifest_file()?.0))
    }

    /// What is not the same as in an earlier build, of which these are the manifests. `None` if
    /// nothing can be said.
    pub fn differences(
        &self,
        own: &Build,
        earlier: &Build,
        manifests: &[Vec<u8>],
        entry: Option<&str>,
    ) -> Option<Differences> {
        if !own.is_of_same_kind(earlier) {
            return None;
        }
        let decoded = manifests.iter().map(|bytes| Manifest::decode(bytes));
        let decoded: Vec<Manifest> = decoded.collect::<Result<_, _>>().ok()?;
        let mut decoded = decoded.iter();
        let modules = self.loaded.graph().modules.iter().map(|module| match module {
            Module::Known(_) => decoded.next().map(Module::Known),
            Module::Late(_) => decoded.next().map(Module::Late),
            // Both builds have the same one.
            Module::Foreign { .. } => Some(*module),
        });
        let before = ModuleGraph::new(modules.collect::<Option<_>>()?);
        let start = entry.map_or(Start::Program, Start::Entry);
        comparison::compare(&before, self.loaded.graph(), start)
    }
}
