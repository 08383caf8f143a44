//! Where the manifest of a binary lies: beside it, as `BINARY.tasting`, or in the folder
//! TASTING_MANIFEST_DIR.
//!
//! In that folder binaries of the same name from different folders must not overwrite each other's
//! manifests: the file is called after the binary's name and place, and `NAME.tasting` is a link to
//! the newest of them.

use super::{Settings, atomic_write};
use crate::model::{Hash, manifest};
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf, absolute};
use std::{fs, io};

/// The manifest's file, for reading.
pub fn find(settings: &Settings, binary: &Path) -> PathBuf {
    let own = own_path(settings, binary);
    if own.exists() {
        return own;
    }
    // A library is found by a link, `libx.so.1`, to the file that was linked.
    let behind = fs::canonicalize(binary).map(|binary| plain_path(settings, &binary));
    match behind {
        Ok(behind) if behind.exists() => behind,
        // A checkout that was moved, or a binary that was copied, still has the link in the folder
        // of manifests.
        _ => plain_path(settings, binary),
    }
}

/// The manifest's file of a binary whose path leads through no link, if there is one.
pub fn beside(settings: &Settings, binary: &Path) -> Option<PathBuf> {
    [own_path(settings, binary), plain_path(settings, binary)]
        .into_iter()
        .find(|path| path.exists())
}

/// Writes the manifest of a binary.
pub fn write(settings: &Settings, binary: &Path, bytes: &[u8]) -> io::Result<()> {
    let own = own_path(settings, binary);
    let plain = plain_path(settings, binary);
    if let Some(folder) = &settings.manifest_dir {
        fs::create_dir_all(folder)?;
    }
    atomic_write::write(&own, None, None, &[bytes])?;
    if own == plain {
        return Ok(());
    }
    let mut link = own.clone().into_os_string();
    link.push(format!(".{}.link", std::process::id()));
    std::os::unix::fs::symlink(own.file_name().unwrap_or_default(), &link)?;
    fs::rename(&link, &plain)
}

/// Removes the manifest of a binary that is about to be linked anew.
pub fn remove(settings: &Settings, binary: &Path) {
    // There is none in the ordinary case; one that stays does not fit the new binary and is
    // refused.
    let _ = fs::remove_file(own_path(settings, binary));
}

fn plain_path(settings: &Settings, binary: &Path) -> PathBuf {
    with_ending(settings, binary, manifest::SUFFIX)
}

fn own_path(settings: &Settings, binary: &Path) -> PathBuf {
    if settings.manifest_dir.is_none() {
        return plain_path(settings, binary);
    }
    let place = fs::canonicalize(binary)
        .or_else(|_| absolute(binary))
        .unwrap_or_else(|_| binary.to_owned());
    let place = Hash::of(place.as_os_str().as_bytes()).to_string();
    with_ending(settings, binary, &format!("-{}{}", &place[..8], manifest::SUFFIX))
}

fn with_ending(settings: &Settings, binary: &Path, ending: &str) -> PathBuf {
    let mut path: OsString = match (&settings.manifest_dir, binary.file_name()) {
        (Some(folder), Some(name)) => folder.join(name).into(),
        _ => binary.into(),
    };
    path.push(ending);
    path.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beside_the_binary() {
        let settings = Settings::default();
        assert_eq!(find(&settings, Path::new("bin/x.y")), Path::new("bin/x.y.tasting"));
    }

    #[test]
    fn library_links_lead_to_the_manifest() {
        let folder = tempfile::tempdir().unwrap();
        let [library, link] = ["libx.so.1.0", "libx.so.1"].map(|name| folder.path().join(name));
        fs::write(&library, "").unwrap();
        std::os::unix::fs::symlink("libx.so.1.0", &link).unwrap();
        write(&Settings::default(), &library, b"manifest").unwrap();
        assert_eq!(fs::read(find(&Settings::default(), &link)).unwrap(), b"manifest");
    }

    #[test]
    fn equal_names_in_one_folder_do_not_collide() {
        let folder = tempfile::tempdir().unwrap();
        let settings =
            Settings { manifest_dir: Some(folder.path().join("manifests")), ..Settings::default() };
        for (binary, content) in [("a/test", "one"), ("b/test", "two")] {
            write(&settings, &folder.path().join(binary), content.as_bytes()).unwrap();
        }
        let read = |binary: &str| {
            fs::read_to_string(find(&settings, &folder.path().join(binary))).unwrap()
        };
        assert_eq!((read("a/test").as_str(), read("b/test").as_str()), ("one", "two"));
        assert_eq!(
            fs::read_to_string(folder.path().join("manifests/test.tasting")).unwrap(),
            "two"
        );
        remove(&settings, &folder.path().join("a/test"));
        assert_eq!(
            read("a/test"),
            "two",
            "the newest of that name is left to be held against the binary"
        );
    }
}
