//! What an execution used, with the values that were observed while it ran.

use super::hashes::{attributes_value, file_value, input_value, listing_value, program_value};
use super::{ResolvedDependencies, Values, is_loader_cache};
use crate::model::keys::PlainState;
use crate::model::{
    Base, Dependency, DependencyKind, DependencySet, Hash, PortablePath, RecordedDependency,
};
use crate::observe::Use;
use crate::observe::targets::Target;
use crate::observe::tracing::Executed;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

impl Values<'_> {
    /// What an execution used, from what was observed of it.
    pub fn observed(
        &mut self,
        used: &[Use],
        executed: &Executed,
        declared: Vec<RecordedDependency>,
    ) -> ResolvedDependencies {
        let mut resolved = declared;
        resolved.push(self.traced_input());
        self.library_names.extend(used.iter().filter_map(|used| match used {
            Use::Loaded { path, name, .. } => Some((path.clone(), name.clone())),
            _ => None,
        }));
        for used in used {
            resolved.extend(self.traced(used, executed));
        }
        resolved.sort_unstable_by(|one, other| one.dependency.cmp(&other.dependency));
        resolved.dedup_by(|one, other| one.dependency == other.dependency);
        let dependency_set = DependencySet {
            dependencies: resolved.iter().map(|traced| traced.dependency.clone()).collect(),
        };
        let covered = self.covered(&dependency_set);
        for traced in &mut resolved {
            if self.counts_by_name(&traced.dependency) {
                traced.value = PlainState::OfTheSystem.value();
            } else if traced.dependency.kind != DependencyKind::Library {
                continue;
            } else if is_loader_cache(&traced.dependency.place) {
                traced.value = self.loader_cache(&dependency_set);
            } else if covered.contains(&traced.dependency.place) {
                traced.value = PlainState::Covered.value();
            }
        }
        ResolvedDependencies { used: resolved }
    }

    fn traced_input(&self) -> RecordedDependency {
        traced(
            input_value(&self.input),
            Dependency::on(DependencyKind::Input, PortablePath::default()),
        )
    }

    /// What was observed of one thing. What the run left behind is no dependency.
    fn traced(&mut self, used: &Use, executed: &Executed) -> Option<RecordedDependency> {
        let (kind, value) = match used {
            Use::Read { content, .. } => (DependencyKind::File, file_value(*content)),
            Use::Loaded { content, .. } => (DependencyKind::Library, file_value(*content)),
            Use::Exists { what, .. } if what.details.is_none() => {
                (DependencyKind::Exists, attributes_value(*what))
            }
            Use::Exists { what, .. } => (DependencyKind::Attributes, attributes_value(*what)),
            Use::Absent { .. } => (DependencyKind::Absent, PlainState::Absent.value()),
            Use::Denied { .. } => (DependencyKind::Denied, PlainState::Denied.value()),
            Use::Listed { listing, .. } => (DependencyKind::Folder, listing_value(*listing)),
            Use::Link { target, .. } => (DependencyKind::Link, self.link_value(target)),
            Use::Extended { attributes, .. } => (DependencyKind::Extended, *attributes),
            Use::Target { target, state, .. } => (target_kind(*target), *state),
            Use::Fact { path, value } => {
                let place =
                    PortablePath { base: Base::None, path: path.as_os_str().as_bytes().to_vec() };
                return Some(traced(*value, Dependency::on(DependencyKind::Fact, place)));
            }
            Use::Executed { path, content, libraries } => {
                return Some(self.traced_program(path, *content, libraries, executed));
            }
            Use::Written { .. } | Use::Removed { .. } => return None,
        };
        let place = match kind {
            DependencyKind::Library => self.library_place(used.path()),
            _ => self.project.place(used.path()),
        };
        Some(traced(value, Dependency::on(kind, place)))
    }

    /// A library's place: that of the name under which it was opened.
    fn library_place(&self, library: &Path) -> PortablePath {
        self.project.place(self.library_names.get(library).map_or(library, PathBuf::as_path))
    }

    fn traced_program(
        &mut self,
        path: &Path,
        content: Hash,
        libraries: &[PathBuf],
        executed: &Executed,
    ) -> RecordedDependency {
        let places = libraries.iter().map(|library| self.library_place(library)).collect();
        let place = self.project.place(path);
        let whole =
            Dependency { libraries: places, ..Dependency::on(DependencyKind::Program, place) };
        let narrowed = self.narrowed(&whole, path, libraries, executed);
        let dependency = narrowed.unwrap_or(whole);
        match self.execution(&dependency) {
            Ok(program) => traced(program.value, dependency),
            Err(note) => RecordedDependency { note, ..traced(program_value(content), dependency) },
        }
    }

    /// Whether programs and libraries are what they were when they ran. To be asked when all values
    /// are known.
    pub fn code_is_unchanged(&mut self, used: &[Use]) -> bool {
        let mut is_still = |path: &Path, content: Hash| {
            fs::symlink_metadata(path).is_ok_and(|now| self.contents.is(path, &now, content))
        };
        used.iter().all(|used| match used {
            Use::Executed { path, content, .. } | Use::Loaded { path, content, .. } => {
                is_still(path, *content)
            }
            _ => true,
        })
    }

    /// The files that the project declares as inputs, as they are now.
    pub fn declared(&mut self) -> Vec<RecordedDependency> {
        let patterns = self.project.config.inputs.clone();
        let declared = patterns.into_iter().map(|pattern| {
            let place = PortablePath { base: Base::Root, path: pattern.into_bytes() };
            Dependency::on(DependencyKind::Declared, place)
        });
        declared.map(|dependency| traced(self.value(&dependency), dependency)).collect()
    }
}

fn target_kind(target: Target) -> DependencyKind {
    match target {
        Target::Overwritten => DependencyKind::Overwritten,
        Target::Permissions => DependencyKind::Permissions,
        Target::Time => DependencyKind::Time,
        Target::Replaced => DependencyKind::Replaced,
        Target::Writable => DependencyKind::Writable,
        Target::Locked => DependencyKind::Locked,
    }
}

fn traced(value: Hash, dependency: Dependency) -> RecordedDependency {
    RecordedDependency { dependency, value, manifests: Vec::new(), note: String::new() }
}
