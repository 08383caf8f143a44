//! What a row of the table of system calls says: what the call does, where its arguments are, and
//! when it is looked at.

/// What a call does, and where its arguments are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// `open` and its kin; `folder` is the argument with the folder's descriptor.
    Open {
        folder: Option<usize>,
        path: usize,
        flags: usize,
    },
    Create {
        path: usize,
    },
    /// `openat2`: the flags are in memory.
    OpenHow,
    /// Asks for a file's attributes; `flags` is the argument with AT_SYMLINK_NOFOLLOW and
    /// AT_EMPTY_PATH.
    Ask {
        folder: Option<usize>,
        path: usize,
        follow: bool,
        flags: Option<usize>,
    },
    /// Asks for extended attributes; by a path, or by the descriptor in argument 0.
    AskExtended {
        folder: Option<usize>,
        path: usize,
        follow: bool,
        flags: Option<usize>,
    },
    AskExtendedOf,
    ReadLink {
        folder: Option<usize>,
        path: usize,
    },
    Execute {
        folder: Option<usize>,
        path: usize,
        flags: Option<usize>,
    },
    ChangeFolder {
        path: usize,
    },
    /// Changes to the folder of a descriptor.
    EnterFolder,
    /// Reads a folder's entries.
    List,
    Rename {
        from: Option<usize>,
        old: usize,
        to: Option<usize>,
        new: usize,
        flags: Option<usize>,
    },
    HardLink {
        from: Option<usize>,
        old: usize,
        to: Option<usize>,
        new: usize,
        flags: Option<usize>,
    },
    /// Makes something that must not be there before: a symbolic link, a node.
    Make {
        folder: Option<usize>,
        path: usize,
    },
    MakeFolder {
        folder: Option<usize>,
        path: usize,
    },
    Remove {
        folder: Option<usize>,
        path: usize,
        flags: Option<usize>,
    },
    RemoveFolder {
        path: usize,
    },
    /// Changes content or attributes of what is there.
    Change {
        folder: Option<usize>,
        path: usize,
        follow: bool,
        flags: Option<usize>,
    },
    Socket,
    Connect,
    Bind,
    Listen,
    /// Sends to the address in arguments 4 and 5.
    SendTo,
    /// Sends to the address in a header in memory; or in many.
    SendMessage {
        many: bool,
    },
    /// A key of System V IPC, listed in this file of `/proc/sysvipc`.
    Key(&'static str),
    Queue,
    RemoveQueue,
    /// `clone3`: the flags are in memory.
    CloneHow,
    /// A process gets a debugger.
    Debug,
    /// Sends a signal, or has the kernel send one later (`interrupts.rs`).
    Signals,
    /// Locks the file in argument 0 (`locks.rs`).
    Lock,
    /// Looks into the process of this argument, or asks whether it is there.
    LookInto {
        process: usize,
    },
    /// Asks for the priority of a process, a group or a user, or changes it: argument 0 says which,
    /// argument 1 whose. `process` is the value of argument 0 that means a process.
    Priority {
        process: u32,
    },
    /// Waits for connections to the socket in argument 0.
    Accept,
    /// Installs a filter of its own; the flags, or `None` for prctl.
    Filter {
        flags: Option<usize>,
    },
    /// Becomes another user; so many arguments.
    Become {
        group: bool,
        count: usize,
    },
    /// Installs a signal handler.
    Handler,
    /// Asks a device for something, or changes it: `CONTROLS`.
    Control,
    /// Uses an inherited descriptor: only with `When::Foreign` and `When::AnyForeign`.
    Inherited,
    /// Cannot be watched.
    Refuse(&'static str),
}

/// When a call is looked at; any one of a row's conditions is enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    Always,
    /// The argument is not a null pointer.
    NotNull(usize),
    HasBits(usize, u32),
    /// The argument, under the mask, is one of these.
    IsAny(usize, u32, &'static [u32]),
    /// The argument, under the mask, is none of these.
    IsNot(usize, u32, &'static [u32]),
    /// The argument is a descriptor that the test inherited from outside.
    Foreign(usize),
    /// The test inherited any descriptor from outside: the call names descriptors in memory.
    AnyForeign,
}

/// One watched call.
pub type Row = (i64, Act, &'static [When]);

/// A folder's descriptor in argument 0; the working folder.
pub(super) const AT: Option<usize> = Some(0);
pub(super) const CWD: Option<usize> = None;
pub(super) const ALWAYS: &[When] = &[When::Always];
pub(super) const READS: &[When] = &[When::Foreign(0)];
pub(super) const WAITS: &[When] = &[When::AnyForeign];
