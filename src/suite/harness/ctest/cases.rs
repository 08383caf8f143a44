//! A test as CTest lists it. In: its name, command and properties (`json-v1`). Out: the test case,
//! and why CTest has to judge it where that is so.

use crate::harness::HarnessHints;
use crate::suite::TestCase;
use serde::Deserialize;
use serde_json::Value;
use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::path::Path;

/// Properties that change nothing about what is decided, or that are looked at below.
const UNDERSTOOD: &[&str] = &[
    "ATTACHED_FILES",
    "ATTACHED_FILES_ON_FAIL",
    "COST",
    "DEPENDS",
    "DISABLED",
    "ENVIRONMENT",
    "FIXTURES_CLEANUP",
    "FIXTURES_REQUIRED",
    "FIXTURES_SETUP",
    "LABELS",
    "MEASUREMENT",
    "PROCESSORS",
    "RESOURCE_LOCK",
    "RUN_SERIAL",
    "SKIP_REGULAR_EXPRESSION",
    "SKIP_RETURN_CODE",
    "TIMEOUT",
    "TIMEOUT_SIGNAL_NAME",
    "TIMEOUT_SIGNAL_GRACE_PERIOD",
    "WILL_FAIL",
    "WORKING_DIRECTORY",
    "REQUIRED_FILES",
];

/// By this text in its output GoogleTest says that a test was skipped; it is the regular expression
/// of all its tests.
const GOOGLETEST_SKIPS: (&str, &str) = (r"\[  SKIPPED \]", "[  SKIPPED ]");

#[derive(Deserialize)]
pub(super) struct Info {
    pub(super) tests: Vec<InfoTest>,
}

#[derive(Deserialize)]
pub(super) struct InfoTest {
    pub(super) name: String,
    #[serde(default)]
    command: Vec<String>,
    #[serde(default)]
    properties: Vec<Property>,
}

#[derive(Deserialize)]
struct Property {
    name: String,
    value: Value,
}

impl InfoTest {
    fn property(&self, name: &str) -> Option<&Value> {
        self.properties
            .iter()
            .find(|property| property.name == name)
            .map(|property| &property.value)
    }

    fn texts(&self, name: &str) -> Vec<String> {
        match self.property(name) {
            Some(Value::Array(values)) => {
                values.iter().filter_map(|value| value.as_str().map(str::to_owned)).collect()
            }
            Some(Value::String(value)) => vec![value.clone()],
            _ => Vec::new(),
        }
    }

    fn is_set(&self, name: &str) -> bool {
        self.property(name).is_some_and(|value| value.as_bool().unwrap_or(true))
    }

    pub(super) fn case(
        &self,
        places: &HashMap<&str, usize>,
        failed: &HashSet<String>,
        own: &Path,
    ) -> TestCase {
        let (words, hook) = self.hooked(own);
        let working =
            self.property("WORKING_DIRECTORY").and_then(Value::as_str).unwrap_or_default();
        let is_meant_to_fail = self.is_set("WILL_FAIL");
        let harness = HarnessHints {
            measurement: false,
            reuse_failures: is_meant_to_fail,
            again: is_meant_to_fail && failed.contains(&self.name),
        };
        let change = |text: String| match text.split_once('=') {
            Some((name, value)) => (name.into(), Some(value.into())),
            None => (text.into(), None),
        };
        TestCase {
            name: self.name.clone(),
            working: working.into(),
            changes: self.texts("ENVIRONMENT").into_iter().map(change).collect(),
            options: crate::run::Options { harness, ..Default::default() },
            after: self
                .texts("DEPENDS")
                .iter()
                .filter_map(|name| places.get(name.as_str()).copied())
                .collect(),
            sets_up: self.texts("FIXTURES_SETUP"),
            requires: self.texts("FIXTURES_REQUIRED"),
            cleans_up: self.texts("FIXTURES_CLEANUP"),
            left_to_harness: hook.err().or_else(|| self.obstacle()),
            is_disabled: self.is_set("DISABLED"),
            skip_code: self
                .property("SKIP_RETURN_CODE")
                .and_then(Value::as_i64)
                .and_then(|code| code.try_into().ok()),
            skip_text: self.property("SKIP_REGULAR_EXPRESSION").map(|_| GOOGLETEST_SKIPS.1),
            is_meant_to_fail,
            words,
            number: 0,
            trace: None,
        }
    }

    /// The command behind `tasting run`; or why there is none.
    fn hooked(&self, own: &Path) -> (Vec<OsString>, Result<(), String>) {
        let plain = || self.command.iter().map(OsString::from).collect();
        let is_own = self
            .command
            .first()
            .is_some_and(|program| std::fs::canonicalize(program).is_ok_and(|path| path == own));
        match self.command.as_slice() {
            [_, run, option, _, end, words @ ..]
                if is_own && run == "run" && option == "--ctest" && end == "--" =>
            {
                (words.iter().map(OsString::from).collect(), Ok(()))
            }
            [_, run, end, words @ ..] if is_own && run == "run" && end == "--" => {
                (words.iter().map(OsString::from).collect(), Ok(()))
            }
            [_, run, ..] if run == "run" && is_own => {
                (plain(), Err("its `tasting run` has options".to_owned()))
            }
            [] => (plain(), Err("CTest finds no program for it".to_owned())),
            _ => (
                plain(),
                Err("CTest starts it without `tasting run`: configure with tasting.cmake"
                    .to_owned()),
            ),
        }
    }

    /// Why CTest has to judge it.
    fn obstacle(&self) -> Option<String> {
        let is_known = |property: &&Property| !UNDERSTOOD.contains(&property.name.as_str());
        if let Some(property) = self.properties.iter().find(is_known) {
            return Some(format!("CTest judges it by its property {}", property.name));
        }
        let skips = self.texts("SKIP_REGULAR_EXPRESSION");
        if skips.iter().any(|expression| expression != GOOGLETEST_SKIPS.0) {
            return Some("CTest judges it by its property SKIP_REGULAR_EXPRESSION".to_owned());
        }
        let missing =
            self.texts("REQUIRED_FILES").into_iter().find(|file| !Path::new(file).exists());
        missing.map(|file| format!("the file {file}, which it requires, is not there"))
    }
}
