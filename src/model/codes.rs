//! The stable names of reasons: why a test runs, and why a result is not kept. Texts may be
//! reworded at any time; these stay, and each has a section in `docs/codes.md` that says what to
//! do.

/// Why a test runs.
pub const REASONS: [&str; 27] = [
    "audit",
    "circumstances",
    "disabled",
    "disturbed",
    "failed-before",
    "failure",
    "file-changed",
    "folder-changed",
    "forgotten",
    "input-changed",
    "left-behind",
    "left-to-harness",
    "library-changed",
    "machine-changed",
    "never-reuse",
    "new",
    "output",
    "own-files",
    "place-changed",
    "program-changed",
    "quarantine",
    "recache",
    "refused",
    "settings",
    "shadow",
    "store",
    "unchanged",
];

/// It used something that cannot be watched. The code of refusals that have no narrower one.
pub const UNWATCHED: &str = "unwatched";
pub const ANOTHER_USER: &str = "another-user";
pub const CANNOT_WATCH: &str = "cannot-watch";
pub const CHANGED_MEANWHILE: &str = "changed-meanwhile";
pub const DEBUGGER: &str = "debugger";
pub const DEVICE: &str = "device";
pub const DISTURBED: &str = "disturbed";
pub const FOREIGN_PROGRAM: &str = "foreign-program";
pub const INHERITED: &str = "inherited";
pub const INTERRUPTED: &str = "interrupted";
pub const LEFT_BEHIND: &str = "left-behind";
pub const NETWORK: &str = "network";
pub const OTHER_ROOT: &str = "other-root";
pub const OUTPUT: &str = "output";
pub const OUTSIDE_PROCESS: &str = "outside-process";
pub const RENAMED_FOLDER: &str = "renamed-folder";
pub const STILL_RUNNING: &str = "still-running";
pub const STORE: &str = "store";
pub const UNKNOWN_PROGRAM: &str = "unknown-program";
pub const UNSTABLE: &str = "unstable";
/// A binary, or a part of it, was not described more finely.
pub const WHOLE: &str = "whole";

/// Why a result is not kept, or a binary not described more finely.
pub const REFUSALS: [&str; 21] = [
    ANOTHER_USER,
    CANNOT_WATCH,
    CHANGED_MEANWHILE,
    DEBUGGER,
    DEVICE,
    DISTURBED,
    FOREIGN_PROGRAM,
    INHERITED,
    INTERRUPTED,
    LEFT_BEHIND,
    NETWORK,
    OTHER_ROOT,
    OUTPUT,
    OUTSIDE_PROCESS,
    RENAMED_FOLDER,
    STILL_RUNNING,
    STORE,
    UNKNOWN_PROGRAM,
    UNSTABLE,
    UNWATCHED,
    WHOLE,
];
