//! Which test it is: the command, where it is started, and the circumstances that it can see without opening a file. What
//! belongs to the checkout, the user or the machine alone is left out.
//!
//! In: the command line, the project. Out: the identity under which executions are looked up.

use super::connection::Connection;
use super::environment;
use super::project::{Project, logical_folder};
use crate::model::{Hash, Hasher};
use crate::observe::inherited;
use crate::process::sys;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

/// Results of other versions of the key are not looked at.
const VERSION: u64 = 1;

/// One test.
#[derive(Clone, Debug)]
pub struct Test {
    pub words: Vec<OsString>,
    /// The command and its place: what people call the test.
    pub name: Hash,
    /// The same, with all circumstances.
    pub identity: Hash,
    /// The circumstances one by one, for people: a name and the hash of a value.
    pub circumstances: Vec<(String, Hash)>,
}

impl Test {
    /// The test that a command is.
    pub fn of(words: &[OsString], project: &Project, connection: Connection) -> Test {
        let mut hasher = Hasher::new("test");
        hasher.number(VERSION).number(words.len() as u64);
        words.iter().for_each(|word| project.hash_text(word.as_bytes(), &mut hasher));
        let place = project.place(&project.working);
        let name = hasher.number(place.base as u64).bytes(&place.path).finish();
        let circumstances = circumstances(project, connection);
        for (name, value) in &circumstances {
            hasher.bytes(name.as_bytes()).hash(*value);
        }
        Test { words: words.to_vec(), name, identity: hasher.finish(), circumstances }
    }

    /// The command for people.
    pub fn argv(&self) -> Vec<String> {
        self.words.iter().map(|word| word.to_string_lossy().into_owned()).collect()
    }
}

/// Where the output goes, as a circumstance.
pub fn output_circumstance(connection: Connection) -> (String, Hash) {
    ("where the output goes".to_owned(), value(&format!("{connection:?}")))
}

fn value(text: &str) -> Hash {
    Hasher::new("circumstance").bytes(text.as_bytes()).finish()
}

fn circumstances(project: &Project, connection: Connection) -> Vec<(String, Hash)> {
    let mut circumstances = vec![
        ("the machine's architecture".to_owned(), value(std::env::consts::ARCH)),
        ("the user (root or not)".to_owned(), value(if sys::user() == 0 { "root" } else { "not" })),
        ("the limits of processes (ulimit, umask)".to_owned(), value(&format!("{:?}", sys::limits()))),
        ("signals that are ignored or blocked".to_owned(), value(&format!("{:?}", sys::given_signals()))),
        ("capabilities and personality (setpriv, setarch)".to_owned(), value(&format!("{:?}", sys::powers()))),
        output_circumstance(connection),
    ];
    if let Some(size) = connection.size() {
        circumstances.push(("the size of the terminal".to_owned(), value(&format!("{size:?}"))));
    }
    // A test can see that a descriptor is closed, without any call that is watched.
    let others: Vec<i32> = inherited::others().iter().map(|foreign| foreign.number).collect();
    circumstances.push(("which descriptors are inherited".to_owned(), value(&format!("{others:?}"))));
    for (number, path) in inherited::known() {
        let mut hasher = Hasher::new("descriptor");
        project.hash_text(path.as_os_str().as_bytes(), &mut hasher);
        circumstances.push((format!("the descriptor {number}"), hasher.finish()));
    }
    let mut nesting = Hasher::new("nesting");
    project.hash_nesting(&mut nesting);
    circumstances.push(("how HOME, TMPDIR and the build folder lie to the project".to_owned(), nesting.finish()));
    if let Some(logical) = logical_folder(&project.working) {
        // `cd ..` means something else then.
        let mut hasher = Hasher::new("logical folder");
        project.hash_text(logical.as_os_str().as_bytes(), &mut hasher);
        circumstances.push(("the variable PWD".to_owned(), hasher.finish()));
    }
    for (name, text) in environment::counted(&project.config, connection.on_terminal()) {
        let mut hasher = Hasher::new("variable");
        hasher.bytes(name.as_bytes());
        project.hash_text(text.as_bytes(), &mut hasher);
        circumstances.push((format!("the variable {}", name.to_string_lossy()), hasher.finish()));
    }
    circumstances
}
