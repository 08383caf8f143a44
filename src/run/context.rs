//! What a test can see without opening a file: its environment, its limits, its signals, its
//! descriptors, and where its output goes. `tasting run` has it from its own process;
//! `tasting suite` from a process that the harness has started.
//!
//! In: this process. Out: [`InvocationContext`], also as bytes that another process can read.

use super::connection::{self, Connection};
use crate::model::FormatError;
use crate::model::envelope::Format;
use crate::observe::{Contents, Forgetful, Input, inherited};
use crate::process::sys;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::sync::Arc;

/// Where `tasting suite` wants starts of tests to be noted. No test sees it.
pub const STARTED: &str = "TASTING_STARTED";

const FORMAT: Format = Format { magic: *b"TASTECTX", version: 1 };

/// The variables of an environment, in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Environment(pub Vec<(OsString, OsString)>);

impl Environment {
    /// That of this process.
    pub fn own() -> Arc<Environment> {
        Arc::new(Environment(std::env::vars_os().filter(|(name, _)| name != STARTED).collect()))
    }

    /// The value of a variable. Of two with the same name, the first one is found.
    pub fn get(&self, name: impl AsRef<OsStr>) -> Option<&OsString> {
        self.0.iter().find(|(known, _)| known == name.as_ref()).map(|(_, value)| value)
    }

    /// Sets a variable, in its place if it is there.
    pub fn set(&mut self, name: &OsStr, value: &OsStr) {
        match self.0.iter_mut().find(|(known, _)| known == name) {
            Some((_, old)) => value.clone_into(old),
            None => self.0.push((name.to_owned(), value.to_owned())),
        }
    }

    /// Removes a variable.
    pub fn unset(&mut self, name: &OsStr) {
        self.0.retain(|(known, _)| known != name);
    }
}

fn serialize_shared<S: Serializer>(
    environment: &Arc<Environment>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    environment.as_ref().serialize(serializer)
}

fn deserialize_shared<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Arc<Environment>, D::Error> {
    Environment::deserialize(deserializer).map(Arc::new)
}

/// Everything that counts of the process that a test is to become.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct InvocationContext {
    #[serde(serialize_with = "serialize_shared", deserialize_with = "deserialize_shared")]
    pub environment: Arc<Environment>,
    pub connection: Connection,
    /// Rows and columns of the terminal that the output goes to, if any.
    pub size: Option<(u16, u16)>,
    pub user: u32,
    pub limits: ([(u64, u64); 10], u32),
    pub signals: (u64, u64),
    pub powers: ([u32; 6], bool, i32),
    /// The numbers of descriptors that are passed on.
    pub inherited: Vec<i32>,
    /// Those whose files have a path.
    pub known: Vec<(i32, PathBuf)>,
    /// Why output cannot be taken down, if so.
    pub obstacle: Option<String>,
    /// Nothing can come from standard input.
    pub has_empty_input: bool,
    /// There is no memory to watch a test with, or somebody else watches it.
    pub is_plain: bool,
}

impl InvocationContext {
    /// That of this process.
    pub fn own() -> InvocationContext {
        let connection = Connection::own();
        InvocationContext {
            environment: Environment::own(),
            connection,
            size: connection.size(),
            user: sys::user(),
            limits: sys::limits(),
            signals: sys::given_signals(),
            powers: sys::powers(),
            inherited: inherited::others().iter().map(|foreign| foreign.number).collect(),
            known: inherited::known(),
            obstacle: connection::obstacle().map(str::to_owned),
            has_empty_input: false,
            is_plain: false,
        }
    }

    /// That of this process, with what another one that reads it cannot find out by itself.
    pub fn probed() -> InvocationContext {
        let (input, _) = inherited::standard_input(&mut Contents::new(Arc::new(Forgetful)));
        InvocationContext {
            has_empty_input: input == Input::Empty,
            is_plain: sys::lacks_memory() || crate::observe::is_watched(),
            ..InvocationContext::own()
        }
    }

    /// The same with another environment.
    pub fn with_environment(&self, environment: Arc<Environment>) -> InvocationContext {
        InvocationContext { environment, ..self.clone() }
    }

    pub fn to_bytes(&self) -> Result<Vec<u8>, FormatError> {
        FORMAT.encode(self)
    }

    pub fn from_bytes(bytes: &[u8]) -> Result<InvocationContext, FormatError> {
        FORMAT.decode(bytes).map(|(context, _)| context)
    }
}
