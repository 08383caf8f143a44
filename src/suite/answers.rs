//! What a harness prints when it is asked something. It is asked through `tasting run`, as a test
//! is run, so that an answer is known for as long as nothing has changed that it was made of; all
//! variables count here. What follows from the same things, and is found out otherwise, can be
//! remembered under an answer's name.
//!
//! In: the words of a command that prints. Out: what it prints, and a name for all that this
//! follows from.

use super::{SuiteError, start};
use crate::model::keys::KeyOf;
use crate::model::{Exit, Hash, Hasher};
use crate::process::Settings;
use crate::run::batch::{self, Decided, Start};
use crate::run::connection::Connection;
use crate::run::context::InvocationContext;
use crate::run::{UNLOGGED, local_store};
use crate::store::Memo;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::process::Stdio;
use std::sync::Arc;

/// What a harness prints.
pub struct Answer {
    pub text: Vec<u8>,
    /// A name for all that it follows from; `None` if that cannot be told.
    pub name: Option<Hash>,
}

/// Asks a harness, with a variable set that tells it who asks.
pub fn ask(variable: &str, program: &OsStr, words: &[OsString]) -> Result<Answer, SuiteError> {
    let asked = question(variable, program, words);
    if let Some(answer) = known(&asked) {
        return Ok(answer);
    }
    let own = std::env::current_exe().map_err(|error| start::not_started(program, error))?;
    let mut command = start::command(own.as_os_str());
    command.args(["run", UNLOGGED, "--"]).args(&asked).stdin(Stdio::null()).stderr(Stdio::null());
    let output = command.output().map_err(|error| start::not_started(program, error))?;
    if !output.status.success() {
        return Err(start::no_list(program, format_args!("it ends with {}", output.status)));
    }
    let name =
        known(&asked).filter(|answer| answer.text == output.stdout).and_then(|answer| answer.name);
    Ok(Answer { text: output.stdout, name })
}

/// The answer, if it is known.
pub fn recall(variable: &str, program: &OsStr, words: &[OsString]) -> Option<Answer> {
    known(&question(variable, program, words))
}

/// The command that is run: the value of its variable stands for the environment as a whole.
fn question(variable: &str, program: &OsStr, words: &[OsString]) -> Vec<OsString> {
    let mut all: Vec<_> = std::env::vars_os().collect();
    all.sort();
    let mut hasher = Hasher::new("whole environment");
    all.iter().for_each(|(name, value)| _ = hasher.bytes(name.as_bytes()).bytes(value.as_bytes()));
    let setting = format!("{variable}={}", hasher.finish());
    [&["env".into(), setting.into(), program.to_owned()], words].concat()
}

fn known(asked: &[OsString]) -> Option<Answer> {
    // As it is started above.
    let context = InvocationContext {
        connection: Connection { terminals: [false; 2], is_one: false, files: [false; 2] },
        size: None,
        obstacle: None,
        has_empty_input: true,
        ..InvocationContext::own()
    };
    let working = std::env::current_dir().ok()?;
    let options = crate::run::Options::default();
    let start = Start { words: asked.to_vec(), working, context: Arc::new(context), options };
    match batch::decide(&[start]).pop()? {
        Decided::Reuse(reusable) if reusable.exit() == Exit::Code(0) => {
            Some(Answer { text: reusable.output()[0].to_vec(), name: reusable.key() })
        }
        _ => None,
    }
}

/// What was remembered under a name, if it still holds for the process that asks.
pub fn remembered(name: Hash) -> Option<Vec<u8>> {
    local_store(&Settings::from_environment())?.blob(place(name)?).ok()?
}

/// Remembers something under a name. What cannot be written is not known the next time.
pub fn remember(name: Hash, bytes: &[u8]) {
    if let (Some(store), Some(place)) = (local_store(&Settings::from_environment()), place(name)) {
        let _ = store.put_blob(place, bytes);
    }
}

fn place(name: Hash) -> Option<Hash> {
    let own = InvocationContext::probed().to_bytes().ok()?;
    Some(KeyOf::SuiteStarts.hasher().bytes(b"under an answer").hash(name).bytes(&own).finish())
}
