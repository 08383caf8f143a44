//! Whether the functions of a test are traced, and where they start.

use super::{Session, disturbed};
use crate::elf::sanitizers;
use crate::fingerprint::{ModuleCache, execution};
use crate::model::keys::KeyOf;
use crate::model::{Code, FileIdentity, Function, Hash};
use crate::observe::agent::Agent;
use crate::observe::lead::KnownSites;
use crate::observe::patched::{self, Room};
use crate::observe::sites::Sites;
use crate::observe::tracing::{Functions, Tracing};
use crate::process::{Settings, atomic_write, manifest_file, sys};
use crate::store::{Layered, Memo};
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;

/// How to load the agent into the programs of a test, and whether to trace it; `None` if it is to
/// be without.
pub fn of(session: &Session) -> Option<Tracing> {
    let folder = session.settings.dir.as_ref()?;
    let program = super::program_file(&session.test.words, &session.project.working, None);
    let agent = Agent::open(folder)?;
    let (settings, store, modules) =
        (session.settings.clone(), session.store.clone(), session.modules.clone());
    let known = Arc::new(KnownFunctions { settings, store, modules });
    let only_leads = session.settings.notrace || disturbed::of(session).is_some();
    Some(Tracing { agent, functions: known.clone(), program, sites: known, only_leads })
}

/// A test has passed while it was traced: most likely it always will.
pub fn remember_passed(session: &Session) {
    if !has_passed(session) {
        session.store.remember(passed_name(session), Hash::of(b"passed"));
    }
}

/// Whether the test has passed before while it was traced.
pub fn has_passed(session: &Session) -> bool {
    session.store.recall(passed_name(session)).is_some()
}

fn passed_name(session: &Session) -> Hash {
    KeyOf::PassedWhileTraced.of(session.test.name)
}

/// The functions that manifests know, and that were looked up before.
struct KnownFunctions {
    settings: Settings,
    store: Arc<Layered>,
    modules: Arc<ModuleCache>,
}

impl Functions for KnownFunctions {
    fn of(&self, binary: &Path) -> Option<Code> {
        let manifest = manifest_file::beside(&self.settings, binary)?;
        let name = name(binary, &manifest);
        if let Some(code) = name.and_then(|name| decode(&self.store.blob(name).ok()??)) {
            return Some(code);
        }
        // Of what cannot be traced it is remembered that there is nothing: finding that out takes
        // longer than starting it.
        let code = execution::code(binary, &self.settings).ok()?.unwrap_or_default();
        if let Some(name) = name {
            // Looked up again next time, if it cannot be kept.
            let _ = self.store.put_blob(name, &encode(&code));
        }
        Some(code)
    }

    /// Not sooner: what the test waits for comes first.
    fn expect(&self, binary: &Path) {
        self.modules.read_ahead(binary, &self.settings);
    }

    /// What was found out is remembered.
    fn has_sanitizer(&self, program: &Path) -> bool {
        let Ok((content, found)) = sys::map_with_metadata(program) else { return false };
        let identity = FileIdentity::of(&found);
        let name = KeyOf::HasSanitizer.of_file(&identity);
        let [yes, no] = [Hash::of(b"yes"), Hash::of(b"no")];
        if let Some(known) = self.store.recall(name) {
            return known == yes;
        }
        let has_sanitizer = sanitizers::has_runtime(&content);
        if identity.is_settled() {
            self.store.remember(name, if has_sanitizer { yes } else { no });
        }
        has_sanitizer
    }
}

impl KnownSites for KnownFunctions {
    fn of(&self, library: &Path) -> Option<Sites> {
        let (content, found) = sys::map_with_metadata(library).ok()?;
        let identity = FileIdentity::of(&found);
        let name = identity.is_settled().then(|| KeyOf::CallSites.of_file(&identity));
        if let Some(sites) = name.and_then(|name| Sites::decode(&self.store.blob(name).ok()??)) {
            return Some(sites);
        }
        let sites = Sites::of(&content)?;
        if let Some(name) = name {
            // Looked for again next time, if they cannot be kept.
            let _ = self.store.put_blob(name, &sites.encode());
        }
        Some(sites)
    }

    /// Beside the agent: where its code can be mapped, so can this.
    fn patched(&self, library: &Path, sites: &Sites) -> Option<(File, Room)> {
        let (content, found) = sys::map_with_metadata(library).ok()?;
        let identity = FileIdentity::of(&found);
        let room = patched::room(&content, sites).filter(|_| identity.is_settled())?;
        let mut hasher = KeyOf::PatchedLibrary.hasher();
        hasher.hash(identity.hash()).bytes(&sites.encode());
        let folder = format!("{}{}", patched::FOLDER, &hasher.finish().to_string()[..16]);
        let path = self.settings.dir.as_ref()?.join(folder).join(library.file_name()?);
        Some((patched_file(&path, &content, sites, &room)?, room))
    }
}

/// Opens the copy of a library in a file, or makes it.
fn patched_file(path: &Path, library: &[u8], sites: &Sites, room: &Room) -> Option<File> {
    let length = library.len() as u64;
    opened_copy(path, length).or_else(|| {
        let copy = patched::patched(library, sites, room)?;
        fs::create_dir_all(path.parent()?).ok()?;
        atomic_write::write(path, None, None, &[&copy]).ok()?;
        opened_copy(path, length)
    })
}

/// The copy at a path, if it is whole, and if nobody else can have written it: it is code that
/// tests run.
fn opened_copy(path: &Path, length: u64) -> Option<File> {
    const OTHERS_WRITE: u32 = 0o022;
    let file = File::open(path).ok()?;
    let found = file.metadata().ok()?;
    let is_own = found.uid() == sys::user() && found.mode() & OTHERS_WRITE == 0;
    (is_own && found.len() == length).then_some(file)
}

/// Under which name the functions of a binary are kept; `None` if its files are too young.
fn name(binary: &Path, manifest: &Path) -> Option<Hash> {
    /// Raised when other binaries are traced than before, or other functions.
    const RULES: u64 = 2;
    let mut hasher = KeyOf::CodeOfBinary.hasher();
    hasher.number(RULES);
    for file in [binary, manifest] {
        let identity = FileIdentity::of(&fs::metadata(file).ok()?);
        hasher.hash(identity.is_settled().then(|| identity.hash())?);
    }
    Some(hasher.finish())
}

fn encode(code: &Code) -> Vec<u8> {
    let head = [code.start, code.length, code.offset];
    let functions = code.functions.iter().map(|function| {
        u64::from(function.place) << 32
            | u64::from(function.size) << 1
            | u64::from(function.is_called)
    });
    head.into_iter().chain(functions).flat_map(u64::to_le_bytes).collect()
}

fn decode(bytes: &[u8]) -> Option<Code> {
    let mut numbers = bytes.as_chunks::<8>().0.iter().map(|bytes| u64::from_le_bytes(*bytes));
    let [start, length, offset] = [numbers.next()?, numbers.next()?, numbers.next()?];
    let functions = numbers.map(|number| Function {
        place: (number >> 32) as u32,
        size: number as u32 >> 1,
        is_called: number & 1 != 0,
    });
    Some(Code { start, length, offset, functions: functions.collect() })
}
