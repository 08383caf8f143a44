//! The store's folder and the project's settings.

use crate::process::{Settings, sys};
use crate::report::findings::Finding;
use crate::report::units::size;
use crate::run::config::FILE;
use crate::run::project::Project;
use crate::store::DEFAULT_LIMIT;
use rustix::fs::{statfs, statvfs};
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Less space than this is soon gone.
const LITTLE: u64 = 256 << 20;

/// File systems by their numbers, and what is good to know of them.
const FILE_SYSTEMS: [(u64, &str, &str); 11] = [
    (0xef53, "ext4", ""),
    (0x5846_5342, "xfs", ""),
    (0x9123_683e, "btrfs", ""),
    (0x2fc1_2fc1, "zfs", ""),
    (0x794c_7630, "overlay", "it goes with the container"),
    (0x0102_1994, "tmpfs", "it is gone after a restart"),
    (0x6969, "nfs", "a folder on the network is slow, and remembered contents are less certain"),
    (
        0xfe53_4d42,
        "smb",
        "a folder on the network is slow, and remembered contents are less certain",
    ),
    (
        0xff53_4d42,
        "cifs",
        "a folder on the network is slow, and remembered contents are less certain",
    ),
    (0x6573_5546, "fuse", "it is as good as whoever serves it"),
    (0x0102_1997, "9p", "a folder of the host is slow, and remembered contents are less certain"),
];

pub fn store(settings: &Settings) -> Vec<Finding> {
    let Some(folder) = &settings.dir else {
        return vec![Finding::broken(
            "store",
            "there is no folder for it: set TASTING_DIR or HOME",
        )];
    };
    let mut found = vec![rights(folder, settings)];
    found.extend(others(folder));
    found.extend(space(folder, settings.max_size.unwrap_or(DEFAULT_LIMIT)));
    found
}

/// Whether results can be put there.
fn rights(folder: &Path, settings: &Settings) -> Finding {
    let place = folder.display();
    if settings.readonly {
        return Finding::note("store", format!("{place} is only read (TASTING_READONLY)"));
    }
    match try_writing(folder) {
        Ok(()) => Finding::works("store", format!("{place} can be written")),
        Err(error) => Finding::broken(
            "store",
            format!("{place} cannot be written ({error}): nothing is remembered"),
        ),
    }
}

/// Writes something, and takes it away again, with the folders that had to be made for it.
fn try_writing(folder: &Path) -> io::Result<()> {
    let made = folder.ancestors().take_while(|folder| !folder.exists()).collect::<Vec<_>>();
    let file = folder.join(format!("doctor-{}.new", std::process::id()));
    let written = fs::create_dir_all(folder).and_then(|()| fs::write(&file, "x"));
    let removed = fs::remove_file(&file);
    for folder in made {
        // Somebody may have begun to use it.
        let _ = fs::remove_dir(folder);
    }
    written.and(removed)
}

/// The nearest folder that is there.
fn existing(folder: &Path) -> Option<&Path> {
    folder.ancestors().find(|folder| folder.exists())
}

/// Whether somebody else could put results there.
fn others(folder: &Path) -> Option<Finding> {
    let found = fs::metadata(folder).ok()?;
    let place = folder.display();
    match found {
        found if found.uid() != sys::user() => Some(Finding::note(
            "store: rights",
            format!("{place} belongs to another user, whose results you reuse"),
        )),
        found if found.mode() & 0o022 != 0 => Some(Finding::note(
            "store: rights",
            format!("others can write to {place}, and you reuse their results"),
        )),
        _ => None,
    }
}

fn space(folder: &Path, limit: u64) -> Option<Finding> {
    let folder = existing(folder)?;
    let free = statvfs(folder).map(|found| found.f_bavail.saturating_mul(found.f_frsize)).ok()?;
    let number = statfs(folder).map(|found| found.f_type as u64 & 0xffff_ffff).ok()?;
    let known = FILE_SYSTEMS.iter().find(|(known, ..)| *known == number);
    let (name, hint) = known.map_or(("another file system", ""), |(_, name, hint)| (*name, *hint));
    let text = format!("{} free on {name}, and no more than {} are used", size(free), size(limit));
    Some(match hint {
        _ if free < LITTLE => {
            Finding::note("store: space", format!("only {text}: results are lost when it is full"))
        }
        "" => Finding::works("store: space", text),
        hint => Finding::note("store: space", format!("{text}; {hint}")),
    })
}

pub fn project(settings: &Settings) -> Option<Finding> {
    let working = std::env::current_dir().ok()?;
    let root = Project::root(&working, settings);
    Some(match Project::find(&working, None, settings) {
        Err(problem) => {
            Finding::broken("project", format!("{problem}: every test runs, and none is reused"))
        }
        Ok(_) if root.join(FILE).exists() => {
            Finding::works("project", format!("{} is understood", root.join(FILE).display()))
        }
        Ok(_) => {
            Finding::works("project", format!("the root is {}, without a {FILE}", root.display()))
        }
    })
}
