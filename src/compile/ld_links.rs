//! The folder of links `ld`, `ld.gold`, … to our `tasting-ld`, by which a driver reaches the
//! linker's shim: it looks into the folders of `COMPILER_PATH` before `PATH`.
//!
//! In: the name under which the driver will look for the linker. Out: a folder that holds it, or
//! none, and then the driver runs without us.

use crate::model::Hash;
use crate::process::{Settings, search, sys};
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, symlink};
use std::path::{Path, PathBuf};

/// The linkers that a folder made on demand offers from the start, where the machine has them.
/// Others are added when a user asks for them. (Offering one that is not there would change the
/// driver's error.)
const LINKERS: [&str; 4] = ["ld.bfd", "ld.gold", "ld.lld", "ld.mold"];

/// A folder with the links `ld` and `name`.
pub fn folder(settings: &Settings, name: &OsStr) -> Option<PathBuf> {
    let own = std::env::current_exe().ok()?;
    let shim = own.with_file_name("tasting-ld");
    if !looks_like_linker(name) || !shim.exists() {
        return None;
    }
    let installed = own.parent()?.parent().map(|prefix| prefix.join("libexec/tasting/ld"));
    let serves = |folder: &PathBuf| {
        search::is_shim(&folder.join("ld")) && search::is_shim(&folder.join(name))
    };
    installed.filter(serves).or_else(|| {
        places(settings, &shim)
            .into_iter()
            .find(|place| provide(place, &shim, name).is_ok())
            .map(|place| place.path)
    })
}

/// `ld`, or `ld.` with a plain word.
fn looks_like_linker(name: &OsStr) -> bool {
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.+".contains(byte);
    match name.as_bytes().strip_prefix(b"ld") {
        Some([]) => true,
        Some([b'.', word @ ..]) => !word.is_empty() && word.iter().all(is_word),
        _ => false,
    }
}

/// Where a folder of links may be made.
struct LinkFolder {
    path: PathBuf,
    kind: PlaceKind,
}

#[derive(PartialEq, Eq)]
enum PlaceKind {
    Own,
    /// It is taken as it is found.
    ReadOnly,
    /// Others can write beside it, so it counts only if it is ours alone.
    Shared,
}

impl PlaceKind {
    fn of_store(settings: &Settings) -> Self {
        if settings.readonly { PlaceKind::ReadOnly } else { PlaceKind::Own }
    }
}

/// The store; where that cannot be written to, the user's run-time folder; at last `/tmp`. The name
/// tells which installation's links they are.
fn places(settings: &Settings, shim: &Path) -> Vec<LinkFolder> {
    let hash = Hash::of(shim.as_os_str().as_bytes()).to_string();
    let name = format!("ld-{}", &hash[..16]);
    let own = settings
        .dir
        .iter()
        .map(|dir| LinkFolder { path: dir.join(&name), kind: PlaceKind::of_store(settings) });
    let runtime =
        std::env::var_os("XDG_RUNTIME_DIR").filter(|dir| !dir.is_empty()).map(PathBuf::from);
    let user = format!("tasting-{}-{name}", sys::user());
    let shared = runtime.into_iter().chain([std::env::temp_dir()]);
    own.chain(shared.map(|dir| LinkFolder { path: dir.join(&user), kind: PlaceKind::Shared }))
        .collect()
}

/// Makes sure that the links are there. Any number of processes may do this at the same time.
fn provide(place: &LinkFolder, shim: &Path, name: &OsStr) -> io::Result<()> {
    let folder = &place.path;
    if place.kind == PlaceKind::Shared {
        claim(folder)?;
    }
    let is_there =
        |name: &OsStr| fs::read_link(folder.join(name)).is_ok_and(|target| target == shim);
    let plain = OsStr::new("ld");
    if is_there(plain) && is_there(name) {
        return Ok(());
    }
    if place.kind == PlaceKind::ReadOnly {
        return Err(io::ErrorKind::ReadOnlyFilesystem.into());
    }
    fs::create_dir_all(folder)?;
    let others = LINKERS
        .iter()
        .map(OsStr::new)
        .filter(|other| !is_there(plain) && search::on_path(other).is_some());
    for name in others.chain([name, plain]) {
        link(folder, shim, name)?;
    }
    Ok(())
}

/// Makes one link, in place of whatever had its name.
fn link(folder: &Path, shim: &Path, name: &OsStr) -> io::Result<()> {
    let path = folder.join(name);
    match symlink(shim, &path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            if fs::read_link(&path).is_ok_and(|target| target == shim) {
                return Ok(());
            }
            let temporary = folder.join(format!(".{}", std::process::id()));
            symlink(shim, &temporary)?;
            fs::rename(temporary, path)
        }
        made => made,
    }
}

/// Makes a folder that only we can write to, or checks that it is one.
fn claim(folder: &Path) -> io::Result<()> {
    match fs::DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let found = fs::symlink_metadata(folder)?;
    if found.is_dir() && found.uid() == sys::user() && found.mode() & 0o022 == 0 {
        Ok(())
    } else {
        Err(io::ErrorKind::PermissionDenied.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_linkers() {
        for name in ["ld", "ld.gold", "ld.lld-14", "ld.wild"] {
            assert!(looks_like_linker(OsStr::new(name)), "{name}");
        }
        for name in ["", "lld", "ld.", "ldd", "ld./x", "../ld", "ld/../x"] {
            assert!(!looks_like_linker(OsStr::new(name)), "{name}");
        }
    }

    #[test]
    fn links_are_made_once_and_mended() {
        let folder = tempfile::tempdir().unwrap();
        let shim = folder.path().join("tasting-ld");
        fs::write(&shim, "").unwrap();
        let place = LinkFolder { path: folder.path().join("links"), kind: PlaceKind::Shared };
        let read_only = LinkFolder { path: place.path.clone(), kind: PlaceKind::ReadOnly };
        assert!(provide(&read_only, &shim, OsStr::new("ld")).is_err());
        provide(&place, &shim, OsStr::new("ld.gold")).unwrap();
        fs::remove_file(place.path.join("ld")).unwrap();
        symlink("elsewhere", place.path.join("ld")).unwrap();
        provide(&place, &shim, OsStr::new("ld.wild")).unwrap();
        for name in ["ld", "ld.gold", "ld.wild"] {
            assert_eq!(fs::read_link(place.path.join(name)).unwrap(), shim, "{name}");
        }
        assert!(provide(&read_only, &shim, OsStr::new("ld.wild")).is_ok());
    }

    #[test]
    fn a_folder_of_somebody_else_is_not_taken() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
        assert!(claim(folder.path()).is_err());
    }
}
