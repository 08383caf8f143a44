//! What a test leaves behind: reports, logs, folders. Kept with its outcome, and put back when that is reused.
//!
//! In: what the run wrote or removed. Out: [`LeftFile`]s, or a reason why they cannot be kept; and the way back.

use super::project::Project;
use crate::model::{Left, LeftFile, Refusal};
use crate::observe::{Kind, Use};
use crate::process::aside;
use std::ffi::OsStr;
use std::fs::{self, File, FileTimes, Permissions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::SystemTime;

/// Which permissions are kept.
const MODE: u32 = 0o7777;

/// Takes in what a run left behind, up to `limit` bytes.
pub fn keep(project: &Project, used: &[Use], limit: usize) -> Result<Vec<LeftFile>, Refusal<'static>> {
    let mut files = Vec::new();
    let mut room = limit;
    for used in used {
        let left = match used {
            Use::Written { path, kind } => written(path, *kind, &mut room),
            Use::Removed { .. } => Ok(Left::Gone),
            _ => continue,
        };
        let path = used.path();
        let left = left.map_err(|reason| Refusal::new(path.to_string_lossy().into_owned(), reason))?;
        files.push(LeftFile { place: project.place(path), left });
    }
    Ok(files)
}

fn written(path: &Path, kind: Kind, room: &mut usize) -> Result<Left, String> {
    let unreadable = |error: io::Error| format!("is left behind and cannot be kept: {error}");
    if path.extension() == Some(OsStr::new("gcda")) {
        return Err("counts how often code ran (coverage), and would not go on counting".to_owned());
    }
    let found = fs::symlink_metadata(path).map_err(unreadable)?;
    let mode = found.permissions().mode() & MODE;
    match kind {
        Kind::Folder => Ok(Left::Folder { mode }),
        Kind::Link => {
            let target = fs::read_link(path).map_err(unreadable)?;
            Ok(Left::Link { target: target.as_os_str().as_bytes().to_vec() })
        }
        Kind::File => {
            let too_large = "is left behind and too large to be kept (limits.files in tasting.toml)";
            let size = usize::try_from(found.len()).unwrap_or(usize::MAX);
            *room = room.checked_sub(size).ok_or(too_large)?;
            let content = fs::read(path).map_err(unreadable)?;
            Ok(Left::File { mode, content })
        }
        Kind::Fifo | Kind::Socket | Kind::Device => Err("is left behind and no file that can be kept".to_owned()),
    }
}

/// Puts back what a run left behind. After an error the test has to run.
pub fn put_back(project: &Project, files: &[LeftFile]) -> io::Result<()> {
    let path_of = |file: &LeftFile| {
        project.path(&file.place).ok_or_else(|| io::Error::other("it belongs to a folder that is not here"))
    };
    // Folders before what is in them; what is gone from the inside out.
    for file in files {
        put_back_one(&path_of(file)?, &file.left)?;
    }
    for file in files.iter().rev().filter(|file| file.left == Left::Gone) {
        remove(&path_of(file)?)?;
    }
    Ok(())
}

fn put_back_one(path: &Path, left: &Left) -> io::Result<()> {
    match left {
        Left::Gone => Ok(()),
        Left::Folder { mode } => {
            if !path.is_dir() {
                fs::create_dir(path)?;
            }
            fs::set_permissions(path, Permissions::from_mode(*mode))
        }
        Left::Link { target } => {
            let target = Path::new(OsStr::from_bytes(target));
            if fs::read_link(path).is_ok_and(|now| now == target) {
                return Ok(());
            }
            remove(path)?;
            std::os::unix::fs::symlink(target, path)
        }
        Left::File { mode, content } => put_back_file(path, *mode, content),
    }
}

fn put_back_file(path: &Path, mode: u32, content: &[u8]) -> io::Result<()> {
    let found = fs::symlink_metadata(path).ok().filter(|found| found.is_file());
    let is_same = found.as_ref().is_some_and(|found| {
        found.len() == content.len() as u64
            && found.permissions().mode() & MODE == mode
            && fs::read(path).is_ok_and(|now| now == content)
    });
    if is_same {
        return File::options().append(true).open(path)?.set_times(FileTimes::new().set_modified(SystemTime::now()));
    }
    if found.is_none() {
        // A link, or nothing.
        remove(path)?;
    }
    aside::write(path, None, None, &[content])?;
    fs::set_permissions(path, Permissions::from_mode(mode))
}

fn remove(path: &Path) -> io::Result<()> {
    let removed = match fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => fs::remove_dir(path),
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
    match removed {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
