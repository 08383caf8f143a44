//! Which environment variables count. All of them do, since a test can read any, except those that
//! are random, that belong to the terminal or the session, or that number the runs of a build
//! server.
//!
//! In: the environment, the project's settings. Out: names and values that count.

use super::config::{Config, matches};
use super::context::Environment;
use crate::harness::ignored_variables::{OF_SERVERS, OF_SESSIONS, OF_TERMINALS};
use std::ffi::OsString;

/// Tasting's own settings, which no test is about.
pub(super) const OWN: &str = "TASTING_";

/// The lists, for people.
pub const LISTS: [(&str, &[&str]); 3] = [
    ("always", OF_SESSIONS),
    ("unless the test writes to a terminal", OF_TERMINALS),
    ("always (build servers)", OF_SERVERS),
];

/// The variables that count, sorted by name.
pub fn counted<'e>(
    all: &'e Environment,
    config: &Config,
    on_terminal: bool,
) -> Vec<&'e (OsString, OsString)> {
    let mut counted: Vec<_> = all
        .0
        .iter()
        .filter(|(name, _)| counts(&name.to_string_lossy(), config, on_terminal))
        .collect();
    // Of two variables with the same name, the first one is found.
    counted.sort_by(|one, other| one.0.cmp(&other.0));
    counted
}

/// Whether a variable counts.
pub fn counts(name: &str, config: &Config, on_terminal: bool) -> bool {
    let any = |patterns: &[String]| patterns.iter().any(|pattern| matches(pattern, name));
    if any(&config.environment.count) {
        return true;
    }
    let terminal = !on_terminal && OF_TERMINALS.contains(&name);
    let listed = OF_SESSIONS.contains(&name) || OF_SERVERS.contains(&name) || name.starts_with(OWN);
    !(any(&config.environment.ignore) || listed || terminal)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_project_has_the_last_word() {
        let mut config = Config::default();
        assert!(counts("LANG", &config, false) && !counts("MALLOC_PERTURB_", &config, false));
        assert!(
            !counts("SSH_TTY", &config, false)
                && !counts("PS1", &config, false)
                && counts("PS4", &config, false)
        );
        assert!(
            counts("_X", &config, false)
                && counts("CI", &config, false)
                && !counts("CI_JOB_ID", &config, false)
        );
        config.environment.ignore.push("LA*".into());
        config.environment.count.push("MAKEFLAGS".into());
        assert!(!counts("LANG", &config, false) && counts("MAKEFLAGS", &config, false));
    }

    #[test]
    fn lists_have_exact_names() {
        let config = Config::default();
        for (_, names) in LISTS {
            assert!(names.iter().all(|name| {
                name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
            }));
        }
        assert!(counts("CI_DB", &config, false) && counts("GITHUB_WORKSPACE", &config, false));
        assert!(!counts("TASTING_DIR", &config, false) && counts("TASTINGX", &config, false));
    }

    #[test]
    fn a_terminal_makes_its_variables_count() {
        let config = Config::default();
        assert!(counts("TERM", &config, true) && !counts("TERM", &config, false));
    }
}
