//! Real programs under watch: what they use is seen, what cannot be compared is refused, and how
//! they end stays as it is.

mod descriptors;
mod ends;
mod files;
mod outside;
mod processes;

use crate::workshop::{Workshop, succeed, tool};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::LazyLock;
use tasting::model::Hash;
use tasting::observe::tracing::Tracing;
use tasting::observe::{Kind, Use, Watch, Watched, What, watch};
use tempfile::TempDir;

/// What a watched command did, seen from the folder of its workshop.
pub struct Seen {
    folder: PathBuf,
    pub watched: Watched,
}

/// Runs a command of the workshop under watch.
pub fn see(shop: &Workshop, mut command: Command) -> Seen {
    static FOLDER: LazyLock<TempDir> =
        LazyLock::new(|| tempfile::tempdir().expect("a temporary folder can be made"));
    command.stdin(Stdio::null()).stdout(Stdio::null());
    let how = Watch {
        inherits_input: false,
        tracing: Tracing::that_only_leads(FOLDER.path()),
        ..Watch::default()
    };
    let watched = watch(command, &how).unwrap_or_else(|error| panic!("{error:?}"));
    Seen { folder: shop.path("").canonicalize().expect("the workshop is there"), watched }
}

/// The same for a line of shell.
pub fn see_shell(shop: &Workshop, script: &str) -> Seen {
    let mut command = shop.command("/bin/sh");
    command.args(["-c", script]);
    see(shop, command)
}

/// The same for a C program, which is built first.
pub fn see_c(shop: &Workshop, source: &str, arguments: &[&str]) -> Seen {
    let program = build(shop, "cc", source, &[]);
    let mut command = shop.command(program);
    command.args(arguments);
    see(shop, command)
}

/// Builds a C program.
pub fn build(shop: &Workshop, compiler: &str, source: &str, flags: &[&str]) -> PathBuf {
    let compiler = tool(compiler);
    let (from, to) = (shop.write("program.c", source), shop.path("program"));
    let mut command = shop.command(compiler);
    command.arg("-D_GNU_SOURCE").arg("-o").arg(&to).arg(from).arg("-pthread").args(flags);
    succeed(&mut command).unwrap_or_else(|error| panic!("{error}"));
    to
}

impl Seen {
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    pub fn has(&self, used: &Use) -> bool {
        self.watched.used.contains(used)
    }

    /// Read, with this content.
    pub fn read(&self, name: &str, content: &str) -> bool {
        self.has(&Use::Read { path: self.path(name), content: Hash::of(content.as_bytes()) })
    }

    pub fn absent(&self, name: &str) -> bool {
        self.has(&Use::Absent { path: self.path(name) })
    }

    pub fn link(&self, name: &str, target: &str) -> bool {
        self.has(&Use::Link { path: self.path(name), target: target.into() })
    }

    pub fn folder(&self, name: &str) -> bool {
        self.has(&Use::Exists { path: self.path(name), what: What::kind(Kind::Folder) })
    }

    pub fn written(&self, name: &str) -> bool {
        self.has(&Use::Written { path: self.path(name), kind: Kind::File })
    }

    pub fn executed(&self, name: impl AsRef<Path>) -> bool {
        let path = self.folder.join(name);
        self.watched
            .used
            .iter()
            .any(|used| matches!(used, Use::Executed { path: found, .. } if *found == path))
    }

    /// Whether it is used in any way.
    pub fn mentions(&self, name: &str) -> bool {
        let path = self.path(name);
        self.watched.used.iter().any(|used| used.path() == path)
    }

    pub fn refused(&self, words: &str) -> bool {
        self.watched.refusals.iter().any(|refusal| refusal.to_string().contains(words))
    }

    /// Succeeded, and can be reused.
    pub fn is_fine(&self) -> bool {
        let fine = self.watched.status.success()
            && self.watched.refusals.is_empty()
            && !self.watched.disturbed;
        if !fine {
            eprintln!("{:?} {:#?}", self.watched.status, self.watched.refusals);
        }
        fine
    }
}
