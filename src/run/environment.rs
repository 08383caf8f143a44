//! Which variables of the environment count. All of them do, for a test can read any; except those that are random, that
//! belong to the terminal or the session, or that number the runs of a build server.
//!
//! In: the environment, the project's settings. Out: names and values that count.

use super::config::{Config, matches};
use std::ffi::OsString;

/// Ignored always: what harnesses and shells set anew each time, and what describes who is logged in from where.
const IGNORED: &[&str] = &[
    "MALLOC_PERTURB_",
    "MESON_TEST_ITERATION",
    "MAKEFLAGS",
    "MFLAGS",
    "GNUMAKEFLAGS",
    "MAKELEVEL",
    "MAKEOVERRIDES",
    "MAKE_TERMOUT",
    "MAKE_TERMERR",
    "MAKE_HOST",
    "CARGO_MAKEFLAGS",
    "NINJA_STATUS",
    "NEXTEST_RUN_ID",
    "NEXTEST_ATTEMPT_ID",
    "NEXTEST_TEST_GLOBAL_SLOT",
    "NEXTEST_TEST_GROUP_SLOT",
    "TASTING_*",
    "_",
    "PWD",
    "OLDPWD",
    "SHLVL",
    "BASHPID",
    "PS[1-4]",
    "PROMPT*",
    "HIST*",
    "LS_COLORS",
    "USER",
    "LOGNAME",
    "USERNAME",
    "MAIL",
    "HOSTNAME",
    "SUDO_*",
    "SSH_*",
    "GPG_*",
    "XDG_SESSION_*",
    "XDG_SEAT*",
    "XDG_VTNR",
    "DBUS_SESSION_BUS_ADDRESS",
    "INVOCATION_ID",
    "JOURNAL_STREAM",
    "SYSTEMD_EXEC_PID",
    "MANAGERPID",
    "WINDOWID",
    "VTE_VERSION",
    "TMUX*",
    "STY",
    "KONSOLE_*",
    "GNOME_TERMINAL_*",
    "ITERM_*",
    "TERM_PROGRAM*",
    "TERM_SESSION_ID",
];

/// Ignored unless the test writes to a terminal.
/// (`COLUMNS` and `LINES` count: much that wraps text goes by them, and they are exported only by who means it.)
const OF_TERMINALS: &[&str] = &["TERM", "COLORTERM"];

/// Ignored always: what build servers number and name their runs by. (`CI` itself counts.)
const OF_SERVERS: &[&str] = &[
    "GITHUB_*",
    "RUNNER_*",
    "ACTIONS_*",
    "CI_*",
    "GITLAB_*",
    "BUILD_ID",
    "BUILD_NUMBER",
    "BUILD_TAG",
    "BUILD_URL",
    "BUILD_DISPLAY_NAME",
    "JENKINS_*",
    "HUDSON_*",
    "JOB_NAME",
    "JOB_URL",
    "JOB_BASE_NAME",
    "RUN_*_URL",
    "EXECUTOR_NUMBER",
    "NODE_NAME",
    "BUILDKITE*",
    "CIRCLE_*",
    "TRAVIS_*",
    "DRONE_*",
];

/// The lists, for people.
pub const LISTS: [(&str, &[&str]); 3] = [
    ("always", IGNORED),
    ("unless the test writes to a terminal", OF_TERMINALS),
    ("always (build servers)", OF_SERVERS),
];

/// The variables that count, sorted by name.
pub fn counted(config: &Config, on_terminal: bool) -> Vec<(OsString, OsString)> {
    let mut counted: Vec<_> =
        std::env::vars_os().filter(|(name, _)| counts(&name.to_string_lossy(), config, on_terminal)).collect();
    // Of two variables with the same name, the first one is found.
    counted.sort_by(|one, other| one.0.cmp(&other.0));
    counted
}

/// Whether a variable counts.
pub fn counts(name: &str, config: &Config, on_terminal: bool) -> bool {
    let any = |patterns: &[String]| patterns.iter().any(|pattern| matches(pattern, name));
    let listed = |list: &[&str]| list.iter().any(|pattern| fits(pattern, name));
    if any(&config.environment.count) {
        return true;
    }
    let terminal = !on_terminal && listed(OF_TERMINALS);
    !(any(&config.environment.ignore) || listed(IGNORED) || listed(OF_SERVERS) || terminal)
}

/// Whether a name fits an entry of the lists; most of them are plain names, and looked at for every variable.
fn fits(pattern: &str, name: &str) -> bool {
    if pattern.as_bytes().first() != name.as_bytes().first() {
        return false;
    }
    match pattern.strip_suffix('*') {
        Some(start) if !start.contains(['*', '[']) => name.starts_with(start),
        None if !pattern.contains(['*', '[']) => name == pattern,
        _ => matches(pattern, name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_project_has_the_last_word() {
        let mut config = Config::default();
        assert!(counts("LANG", &config, false) && !counts("MALLOC_PERTURB_", &config, false));
        assert!(!counts("SSH_TTY", &config, false) && !counts("PS1", &config, false) && counts("PS5", &config, false));
        assert!(counts("_X", &config, false) && counts("CI", &config, false) && !counts("CI_JOB_ID", &config, false));
        config.environment.ignore.push("LA*".into());
        config.environment.count.push("MAKEFLAGS".into());
        assert!(!counts("LANG", &config, false) && counts("MAKEFLAGS", &config, false));
    }

    #[test]
    fn a_terminal_makes_its_variables_count() {
        let config = Config::default();
        assert!(counts("TERM", &config, true) && !counts("TERM", &config, false));
    }
}
