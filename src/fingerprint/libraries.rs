//! Where the dynamic loader finds a library: DT_RPATH, LD_LIBRARY_PATH, DT_RUNPATH, the cache of `ldconfig`, the
//! standard folders, as `ld.so(8)` has it. In: a library's name and who asks for it. Out: its path.

use crate::elf::dynamic::Dynamic;
use crate::process::sys::{self, Mapped};
use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

const CACHE: &str = "/etc/ld.so.cache";
const CACHE_MAGIC: &[u8] = b"glibc-ld.so.cache1.1";
const STANDARD: [&str; 4] = ["/lib64", "/usr/lib64", "/lib", "/usr/lib"];

/// Who asks for a library.
pub struct Seeker<'s, 'a> {
    pub path: &'s Path,
    pub machine: u16,
    pub dynamic: &'s Dynamic<'a>,
}

/// The places that are the same for all seekers.
pub struct Search {
    library_path: Vec<PathBuf>,
    cache: Option<Mapped>,
    /// The DT_RPATHs of those who asked before: they hold for what they load as well.
    inherited: Vec<PathBuf>,
}

impl Search {
    /// The places that this process's environment names.
    pub fn from_environment() -> Self {
        let variable = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
        Search {
            library_path: folders(variable.as_bytes(), Path::new("")),
            cache: sys::map(Path::new(CACHE)).ok(),
            inherited: Vec::new(),
        }
    }

    /// The path of a library.
    pub fn find(&mut self, name: &[u8], seeker: &Seeker) -> Option<PathBuf> {
        if name.contains(&b'/') {
            return Some(PathBuf::from(OsStr::from_bytes(name)));
        }
        let origin = std::fs::canonicalize(seeker.path).ok()?.parent()?.to_owned();
        let runpath = folders(seeker.dynamic.runpath.unwrap_or_default(), &origin);
        if seeker.dynamic.runpath.is_none() {
            let own = folders(seeker.dynamic.rpath.unwrap_or_default(), &origin);
            own.into_iter().for_each(|folder| {
                if !self.inherited.contains(&folder) {
                    self.inherited.push(folder)
                }
            });
        }
        let mut candidates: Vec<PathBuf> = Vec::new();
        let name_as_path = OsStr::from_bytes(name);
        if seeker.dynamic.runpath.is_none() {
            candidates.extend(self.inherited.iter().map(|folder| folder.join(name_as_path)));
        }
        candidates.extend(self.library_path.iter().chain(&runpath).map(|folder| folder.join(name_as_path)));
        candidates.extend(self.cache.as_deref().map(|cache| cached(cache, name)).unwrap_or_default());
        candidates.extend(STANDARD.iter().map(|folder| Path::new(folder).join(name_as_path)));
        candidates.into_iter().find(|path| machine_of(path) == Some(seeker.machine))
    }
}

/// The folders of a search path, with `$ORIGIN` put in.
fn folders(text: &[u8], origin: &Path) -> Vec<PathBuf> {
    let expand = |folder: &[u8]| -> PathBuf {
        for token in [&b"$ORIGIN"[..], b"${ORIGIN}"] {
            if let Some(rest) = folder.strip_prefix(token) {
                let mut path = origin.as_os_str().as_bytes().to_vec();
                path.extend_from_slice(rest);
                return PathBuf::from(OsStr::from_bytes(&path));
            }
        }
        PathBuf::from(OsStr::from_bytes(folder))
    };
    text.split(|&byte| byte == b':' || byte == b';').filter(|folder| !folder.is_empty()).map(expand).collect()
}

/// The paths that the cache of `ldconfig` has for a name, best first.
fn cached(cache: &[u8], name: &[u8]) -> Vec<PathBuf> {
    // The new format may follow an old one; it starts at its magic.
    let Some(start) = cache.windows(CACHE_MAGIC.len()).position(|window| window == CACHE_MAGIC) else {
        return Vec::new();
    };
    let cache = &cache[start..];
    let number =
        |at: usize| -> Option<usize> { Some(u32::from_ne_bytes(cache.get(at..at + 4)?.try_into().ok()?) as usize) };
    let text = |at: usize| cache.get(at..)?.split(|&byte| byte == 0).next();
    let entry = |index: usize| -> Option<(&[u8], &[u8])> {
        let at = 48 + index.checked_mul(24)?;
        Some((text(number(at + 4)?)?, text(number(at + 8)?)?))
    };
    let count = number(CACHE_MAGIC.len()).unwrap_or(0);
    let entries = (0..count).map_while(entry);
    entries.filter(|(key, _)| *key == name).map(|(_, path)| PathBuf::from(OsStr::from_bytes(path))).collect()
}

/// The machine that an ELF file is for, in this machine's byte order.
fn machine_of(path: &Path) -> Option<u16> {
    let mut header = [0; 20];
    File::open(path).ok()?.read_exact(&mut header).ok()?;
    let bytes = [header[18], header[19]];
    let little = header[5] == 1;
    header.starts_with(b"\x7fELF").then(|| if little { u16::from_le_bytes(bytes) } else { u16::from_be_bytes(bytes) })
}
