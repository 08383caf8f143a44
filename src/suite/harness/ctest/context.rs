//! What CTest's tests see of where they are started. In: a call of `ctest`. Out: the invocation
//! context, from a probe in place of a test, or as it was found before.

use super::options::{CHOOSING, FILTERS, FIXTURES, JUNIT, LOG, TEST_FOLDER};
use super::{ASKING, CTest, CUSTOM, LISTING};
use crate::model::Hash;
use crate::run::context::{Environment, InvocationContext};
use crate::suite::answers::{self, Answer};
use crate::suite::options::without;
use crate::suite::probe::Folder;
use std::ffi::OsString;
use std::process::Stdio;

/// What CTest gives to all tests.
const EXPECTED: &str = "CTEST_INTERACTIVE_DEBUG_MODE";

/// A text as CMake reads it.
fn quote(text: &str) -> Option<String> {
    // A bracket argument is taken as it is.
    (!text.contains("]==]")).then(|| format!("[==[{text}]==]"))
}

impl CTest {
    /// What a test can see: all files with tests are read, as for the tests themselves, since they
    /// can set variables.
    pub(super) fn probe(&self) -> Result<InvocationContext, String> {
        let folder = Folder::new().map_err(|error| error.to_string())?;
        let real = std::fs::canonicalize(self.folder()).map_err(|error| error.to_string())?;
        let command = folder.command()?;
        let texts = command.iter().map(|word| word.to_str()).collect::<Option<Vec<_>>>();
        let quoted =
            texts.and_then(|words| words.into_iter().map(quote).collect::<Option<Vec<_>>>());
        let (words, real_text) =
            quoted.zip(real.to_str().and_then(quote)).ok_or("a path that CMake cannot read")?;
        // Before the others: they may redefine add_test.
        let tests =
            format!("add_test(tasting-context {})\nsubdirs({real_text})\n", words.join(" "));
        std::fs::write(folder.path().join("CTestTestfile.cmake"), tests)
            .map_err(|error| error.to_string())?;
        for name in CUSTOM.iter().chain(&["DartConfiguration.tcl"]) {
            if real.join(name).exists() {
                std::os::unix::fs::symlink(real.join(name), folder.path().join(name))
                    .map_err(|error| error.to_string())?;
            }
        }
        let mut words = [FILTERS, CHOOSING, FIXTURES, LOG, &[(TEST_FOLDER, 1), (JUNIT, 1)]]
            .iter()
            .fold(self.words.clone(), |words, options| without(&words, options));
        words.extend([
            TEST_FOLDER.into(),
            folder.path().into(),
            "-R".into(),
            "^tasting-context$".into(),
        ]);
        let mut command = self.command(&words);
        command.stdin(Stdio::inherit()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.output().map_err(|error| error.to_string())?;
        folder.context()
    }

    /// The same as it was found twice, while nothing has changed that CTest reads.
    pub(super) fn known_context(&self, name: Hash) -> Option<InvocationContext> {
        let (bytes, is_certain) =
            postcard::from_bytes::<(Vec<u8>, bool)>(&answers::remembered(name)?).ok()?;
        InvocationContext::from_bytes(&bytes).ok().filter(|_| is_certain)
    }

    /// Remembers what a test can see, if nothing has changed since CTest was asked for its tests.
    pub(super) fn learn_context(&self, context: &InvocationContext, answer: &Answer) {
        let recall = || answers::recall(ASKING, &self.program, &self.asking(LISTING))?.name;
        let (Some(name), Ok(bytes)) =
            (answer.name.filter(|name| recall() == Some(*name)), context.to_bytes())
        else {
            return;
        };
        let before = answers::remembered(name)
            .and_then(|bytes| postcard::from_bytes::<(Vec<u8>, bool)>(&bytes).ok());
        // Other variables may be made of what nobody sees, such as the time.
        let own = Environment::own();
        let is_expected =
            |(name, value): &(OsString, OsString)| EXPECTED == name || own.get(name) == Some(value);
        let is_certain = context.environment.0.iter().all(is_expected)
            || before.is_some_and(|(known, _)| known == bytes);
        if let Ok(bytes) = postcard::to_stdvec(&(bytes, is_certain)) {
            answers::remember(name, &bytes);
        }
    }
}
