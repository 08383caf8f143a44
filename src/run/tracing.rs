//! Tracing the functions of a test: whether, and where they start.

use super::Session;
use crate::fingerprint::execution;
use crate::model::{Code, FileIdentity, Function, Hash, Hasher};
use crate::observe::agent;
use crate::observe::tracing::{Functions, Tracing};
use crate::process::{Settings, manifest_file, sys};
use crate::store::{Layered, Store};
use memchr::memmem;
use std::fs;
use std::path::Path;
use std::sync::Arc;

/// Sanitizers that insist on being loaded before anything else.
const FIRST: [&[u8]; 4] = [b"libasan.so", b"libhwasan.so", b"liblsan.so", b"libtsan.so"];

/// How to trace a test; `None` if it is not to be traced.
pub fn of(session: &Session) -> Option<Tracing> {
    let folder = session.settings.dir.as_ref()?;
    let program = super::program_file(&session.test.words, &session.project.working);
    let is_first = program.as_ref().is_some_and(|program| wants_to_be_first(session, program));
    if session.settings.notrace || is_first || is_disturbed(session) {
        return None;
    }
    let agent = fs::canonicalize(agent::file(folder)?).ok()?;
    let functions = Arc::new(Known { settings: session.settings.clone(), store: session.store.clone() });
    Some(Tracing { agent, functions, program })
}

/// Remembers that a test ends differently when it is traced: it is not traced again.
pub fn disturbs(session: &Session) {
    session.store.remember(disturbed_name(session), Hash::of(DISTURBED));
}

/// A test that is not traced has failed all the same.
pub fn has_nothing_to_do_with_it(session: &Session) {
    if is_disturbed(session) {
        session.store.remember(disturbed_name(session), Hash::of(b"fine"));
    }
}

const DISTURBED: &[u8] = b"disturbed";

fn is_disturbed(session: &Session) -> bool {
    session.store.recall(disturbed_name(session)) == Some(Hash::of(DISTURBED))
}

fn disturbed_name(session: &Session) -> Hash {
    Hasher::new("not to be traced").hash(session.test.name).finish()
}

/// Whether the test's program would not start with anything else before it. What was found out is remembered.
fn wants_to_be_first(session: &Session, program: &Path) -> bool {
    let Ok((content, found)) = sys::map_with_metadata(program) else { return false };
    let identity = FileIdentity::of(&found);
    let name = Hasher::new("insists on being first").hash(identity.hash()).finish();
    let [yes, no] = [Hash::of(b"yes"), Hash::of(b"no")];
    if let Some(known) = session.store.recall(name) {
        return known == yes;
    }
    let is_first =
        content.starts_with(b"\x7fELF") && FIRST.iter().any(|library| memmem::find(&content, library).is_some());
    if identity.is_settled() {
        session.store.remember(name, if is_first { yes } else { no });
    }
    is_first
}

/// The functions that manifests know, and that were looked up before.
struct Known {
    settings: Settings,
    store: Arc<Layered>,
}

impl Functions for Known {
    fn of(&self, binary: &Path) -> Option<Code> {
        let manifest = manifest_file::beside(&self.settings, binary)?;
        let name = name(binary, &manifest);
        if let Some(code) = name.and_then(|name| decode(&self.store.blob(name).ok()??)) {
            return Some(code);
        }
        let code = execution::code(binary, &self.settings).ok()??;
        if let Some(name) = name {
            // Looked up again next time, if it cannot be kept.
            let _ = self.store.put_blob(name, &encode(&code));
        }
        Some(code)
    }

    /// Not sooner: what the test waits for comes first.
    fn expect(&self, binary: &Path) {
        execution::read_ahead(binary, &self.settings);
    }
}

/// Under which name the functions of a binary are kept; `None` if its files are too young.
fn name(binary: &Path, manifest: &Path) -> Option<Hash> {
    let mut hasher = Hasher::new("code 2");
    for file in [binary, manifest] {
        let identity = FileIdentity::of(&fs::metadata(file).ok()?);
        hasher.hash(identity.is_settled().then(|| identity.hash())?);
    }
    Some(hasher.finish())
}

fn encode(code: &Code) -> Vec<u8> {
    let head = [code.start, code.length, code.offset];
    let functions = code.functions.iter().map(|function| {
        u64::from(function.place) << 32 | u64::from(function.size) << 1 | u64::from(function.is_called)
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
