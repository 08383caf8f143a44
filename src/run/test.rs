//! The identity of a test: its command, the folder where it is started, and its invocation context.
//! What is specific to the checkout, the user or the machine is left out.
//!
//! In: the command line, the project. Out: the identity under which executions are looked up.

use super::connection::Connection;
use super::context::InvocationContext;
use super::environment;
use super::project::{Project, logical_folder};
use crate::model::keys::KeyOf;
use crate::model::{Hash, Hasher};
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

/// One test.
#[derive(Clone, Debug)]
pub struct Test {
    pub words: Vec<OsString>,
    /// The command and its place: what people call the test.
    pub name: Hash,
    /// The same, with the whole invocation context.
    pub identity: Hash,
    /// The entries of the invocation context, for people: a name and the hash of a value.
    pub context_entries: Vec<(String, Hash)>,
}

impl Test {
    /// The test that a command is.
    pub fn of(words: &[OsString], project: &Project, context: &InvocationContext) -> Test {
        let mut hasher = KeyOf::Test.hasher();
        hasher.number(words.len() as u64);
        words.iter().for_each(|word| project.hash_text(word.as_bytes(), &mut hasher));
        let name = hasher.place(&project.place(&project.working)).finish();
        let context_entries = context_entries(project, context);
        for (_, value) in &context_entries {
            hasher.hash(*value);
        }
        Test { words: words.to_vec(), name, identity: hasher.finish(), context_entries }
    }

    /// The command for people.
    pub fn argv(&self) -> Vec<String> {
        self.words.iter().map(|word| word.to_string_lossy().into_owned()).collect()
    }
}

/// Something that a test can see without opening a file. Its number is part of keys; its label is
/// for people alone.
enum Aspect {
    Architecture,
    User,
    Limits,
    Signals,
    Powers,
    Output,
    TerminalSize,
    Descriptors,
    Descriptor(u64),
    Nesting,
    LogicalFolder,
    Variable(OsString),
}

impl Aspect {
    fn hasher(&self) -> Hasher {
        let mut hasher = Hasher::new("circumstance");
        match self {
            Aspect::Architecture => hasher.number(0),
            Aspect::User => hasher.number(1),
            Aspect::Limits => hasher.number(2),
            Aspect::Signals => hasher.number(3),
            Aspect::Powers => hasher.number(4),
            Aspect::Output => hasher.number(5),
            Aspect::TerminalSize => hasher.number(6),
            Aspect::Descriptors => hasher.number(7),
            Aspect::Descriptor(number) => hasher.number(8).number(*number),
            Aspect::Nesting => hasher.number(9),
            Aspect::LogicalFolder => hasher.number(10),
            Aspect::Variable(name) => hasher.number(11).bytes(name.as_bytes()),
        };
        hasher
    }

    fn label(&self) -> String {
        match self {
            Aspect::Architecture => "the machine's architecture".to_owned(),
            Aspect::User => "the user (root or not)".to_owned(),
            Aspect::Limits => "the limits of processes (ulimit, umask)".to_owned(),
            Aspect::Signals => "signals that are ignored or blocked".to_owned(),
            Aspect::Powers => "capabilities and personality (setpriv, setarch)".to_owned(),
            Aspect::Output => "where the output goes".to_owned(),
            Aspect::TerminalSize => "the size of the terminal".to_owned(),
            Aspect::Descriptors => "which descriptors are inherited".to_owned(),
            Aspect::Descriptor(number) => format!("the descriptor {number}"),
            Aspect::Nesting => {
                "how HOME, TMPDIR and the build folder lie to the project".to_owned()
            }
            Aspect::LogicalFolder => "the variable PWD".to_owned(),
            Aspect::Variable(name) => format!("the variable {}", name.to_string_lossy()),
        }
    }

    fn numbers(self, numbers: &[u64]) -> (String, Hash) {
        (self.label(), self.hasher().numbers(numbers).finish())
    }

    fn text(self, project: &Project, text: &[u8]) -> (String, Hash) {
        let mut hasher = self.hasher();
        project.hash_text(text, &mut hasher);
        (self.label(), hasher.finish())
    }
}

/// Where the output goes, as an entry of the invocation context.
pub fn output_entry(connection: Connection) -> (String, Hash) {
    let Connection { terminals, is_one, files } = connection;
    Aspect::Output.numbers(&[terminals[0], terminals[1], is_one, files[0], files[1]].map(u64::from))
}

/// Whether an entry of the invocation context says which signals are ignored or blocked.
pub fn is_about_signals((label, _): &(String, Hash)) -> bool {
    *label == Aspect::Signals.label()
}

/// Whether an entry of the invocation context is about descriptors beside the standard ones.
pub fn is_about_descriptors((label, _): &(String, Hash)) -> bool {
    *label == Aspect::Descriptors.label() || label.starts_with("the descriptor ")
}

fn context_entries(project: &Project, context: &InvocationContext) -> Vec<(String, Hash)> {
    let (ignored, blocked) = context.signals;
    let mut context_entries = vec![
        Aspect::Architecture.text(project, std::env::consts::ARCH.as_bytes()),
        Aspect::User.numbers(&[(context.user == 0).into()]),
        Aspect::Limits.numbers(&limits(context)),
        Aspect::Signals.numbers(&[ignored, blocked]),
        Aspect::Powers.numbers(&powers(context)),
        output_entry(context.connection),
    ];
    context_entries.extend(
        context
            .size
            .map(|(rows, columns)| Aspect::TerminalSize.numbers(&[rows.into(), columns.into()])),
    );
    // A test can see that a descriptor is closed, without any call that is watched.
    let others: Vec<u64> = context.inherited.iter().map(|number| *number as u64).collect();
    context_entries.push(Aspect::Descriptors.numbers(&others));
    for (number, path) in &context.known {
        context_entries
            .push(Aspect::Descriptor(*number as u64).text(project, path.as_os_str().as_bytes()));
    }
    let mut nesting = Aspect::Nesting.hasher();
    project.hash_nesting(&mut nesting);
    context_entries.push((Aspect::Nesting.label(), nesting.finish()));
    if let Some(logical) = logical_folder(&project.working, &project.environment) {
        // `cd ..` means something else then.
        context_entries.push(Aspect::LogicalFolder.text(project, logical.as_os_str().as_bytes()));
    }
    for (name, text) in environment::counted(
        &project.environment,
        &project.config,
        context.connection.on_terminal(),
    ) {
        context_entries.push(Aspect::Variable(name.clone()).text(project, text.as_bytes()));
    }
    context_entries
}

fn limits(context: &InvocationContext) -> Vec<u64> {
    let (limits, mask) = context.limits;
    limits.into_iter().flat_map(|(soft, hard)| [soft, hard]).chain([mask.into()]).collect()
}

fn powers(context: &InvocationContext) -> Vec<u64> {
    let (sets, has_no_new_privileges, personality) = context.powers;
    sets.map(u64::from)
        .into_iter()
        .chain([has_no_new_privileges.into(), personality as u64])
        .collect()
}
