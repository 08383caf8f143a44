//! Where the dynamic loader finds a library: DT_RPATH, LD_LIBRARY_PATH, DT_RUNPATH, the cache of
//! `ldconfig`, the standard folders, as `ld.so(8)` has it. In: a library's name and who asks for
//! it. Out: its path.

use crate::elf::dynamic::Dynamic;
use crate::model::{Hash, Hasher};
use crate::process::sys::{self, Mapped};
use object::elf;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Where `ldconfig` leaves what it has found.
pub const CACHE: &str = "/etc/ld.so.cache";
const CACHE_MAGIC: &[u8] = b"glibc-ld.so.cache1.1";
const STANDARD: [&str; 4] = ["/lib64", "/usr/lib64", "/lib", "/usr/lib"];

/// Where Debian's cross compilers keep the libraries of their targets, which an emulator is told to
/// use.
const OF_OTHER_MACHINES: [(elf::Machine, &str); 8] = [
    (elf::EM_386, "/usr/i686-linux-gnu/lib"),
    (elf::EM_AARCH64, "/usr/aarch64-linux-gnu/lib"),
    (elf::EM_ARM, "/usr/arm-linux-gnueabihf/lib"),
    (elf::EM_LOONGARCH, "/usr/loongarch64-linux-gnu/lib"),
    (elf::EM_PPC64, "/usr/powerpc64le-linux-gnu/lib"),
    (elf::EM_RISCV, "/usr/riscv64-linux-gnu/lib"),
    (elf::EM_S390, "/usr/s390x-linux-gnu/lib"),
    (elf::EM_X86_64, "/usr/x86_64-linux-gnu/lib"),
];

/// Who asks for a library.
pub struct Seeker<'s, 'a> {
    pub machine: u16,
    pub dynamic: &'s Dynamic<'a>,
    /// What `$ORIGIN` stands for.
    pub origin: &'s Path,
    /// The DT_RPATHs that hold for it: its own, then those of whoever loaded it, and so on.
    pub rpaths: &'s [PathBuf],
}

/// The places that are the same for all seekers.
pub struct Search {
    library_path: Vec<PathBuf>,
    cache: Option<Mapped>,
}

impl Search {
    /// The places that this process's environment names, for a program in the folder `origin`.
    pub fn from_environment(origin: &Path) -> Option<Self> {
        let variable = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
        Some(Search {
            library_path: folders(variable.as_bytes(), origin)?,
            cache: sys::map(Path::new(CACHE)).ok(),
        })
    }

    /// The path of a library. `None`: it is not there, or it cannot be told where the loader would
    /// look.
    pub fn find(&self, name: &[u8], seeker: &Seeker) -> Option<PathBuf> {
        if name.contains(&b'/') {
            return folders(name, seeker.origin)?.pop();
        }
        let name_as_path = OsStr::from_bytes(name);
        let runpath = match seeker.dynamic.runpath {
            Some(runpath) => folders(runpath, seeker.origin)?,
            None => Vec::new(),
        };
        let rpaths = if seeker.dynamic.runpath.is_none() { seeker.rpaths } else { &[] };
        let named = rpaths.iter().chain(&self.library_path).chain(&runpath);
        let mut candidates: Vec<PathBuf> =
            named.flat_map(|folder| within(folder, name_as_path)).collect();
        candidates
            .extend(self.cache.as_deref().map(|cache| cached(cache, name)).unwrap_or_default());
        candidates
            .extend(STANDARD.iter().flat_map(|folder| within(Path::new(folder), name_as_path)));
        let others = OF_OTHER_MACHINES.iter().filter(|(machine, _)| machine.0 == seeker.machine);
        candidates.extend(others.map(|(_, folder)| Path::new(folder).join(name_as_path)));
        candidates.into_iter().find(|path| machine_of(path) == Some(seeker.machine))
    }
}

/// Which files the loader's cache names for libraries of these names.
pub fn in_cache(names: &BTreeSet<&OsStr>) -> Hash {
    let mut hasher = Hasher::new("loader cache");
    if let Ok(cache) = sys::map(Path::new(CACHE)) {
        for name in names {
            let found = cached(&cache, name.as_bytes());
            hasher.bytes(name.as_bytes()).number(found.len() as u64);
            found.iter().for_each(|path| _ = hasher.bytes(path.as_os_str().as_bytes()));
        }
    }
    hasher.finish()
}

/// The DT_RPATHs of a module; one that has a DT_RUNPATH has none.
pub fn rpaths(dynamic: &Dynamic, origin: &Path) -> Option<Vec<PathBuf>> {
    match (dynamic.rpath, dynamic.runpath) {
        (Some(rpath), None) => folders(rpath, origin),
        _ => Some(Vec::new()),
    }
}

/// The folder that `$ORIGIN` stands for in a library: where it was found, whatever that is a link
/// to.
pub fn origin(path: &Path) -> PathBuf {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    path.parent().unwrap_or(Path::new("/")).to_owned()
}

/// A library's places in a folder, best first: its builds for newer processors, then the plain one.
fn within(folder: &Path, name: &OsStr) -> impl Iterator<Item = PathBuf> {
    let levels = PROCESSORS.iter().filter(|(_, is_ours)| is_ours()).map(|(level, _)| *level);
    let folder = folder.to_owned();
    let name = name.to_owned();
    levels.map(Some).chain([None]).map(move |level| match level {
        Some(level) => folder.join("glibc-hwcaps").join(level).join(&name),
        None => folder.join(&name),
    })
}

/// A folder's name, and whether it is for this processor.
type Processor = (&'static str, fn() -> bool);

/// The levels of processors for which the loader knows folders of their own, best first.
#[cfg(target_arch = "x86_64")]
const PROCESSORS: [Processor; 3] = [
    ("x86-64-v4", || is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512vl")),
    ("x86-64-v3", || is_x86_feature_detected!("avx2") && is_x86_feature_detected!("bmi2")),
    ("x86-64-v2", || is_x86_feature_detected!("sse4.2") && is_x86_feature_detected!("popcnt")),
];
/// glibc knows none for others.
#[cfg(target_arch = "aarch64")]
const PROCESSORS: [Processor; 0] = [];

/// The folders of a search path, with `$ORIGIN` and `$LIB` put in; an empty one is the current
/// folder. `None` where something else is to be put in.
fn folders(text: &[u8], origin: &Path) -> Option<Vec<PathBuf>> {
    let of_debian = format!("lib/{}-linux-gnu", std::env::consts::ARCH);
    let is_debian = Path::new("/").join(&of_debian).exists();
    let library_folder = if is_debian { of_debian.as_str() } else { "lib64" };
    let expand = |folder: &[u8]| -> Option<PathBuf> {
        let mut path = folder.to_vec();
        for (token, value) in
            [("ORIGIN", origin.as_os_str().as_bytes()), ("LIB", library_folder.as_bytes())]
        {
            for token in [format!("${{{token}}}"), format!("${token}")] {
                path = replaced(&path, token.as_bytes(), value);
            }
        }
        let path = if path.is_empty() { b".".to_vec() } else { path };
        (!path.contains(&b'$')).then(|| PathBuf::from(OsStr::from_bytes(&path)))
    };
    if text.is_empty() {
        return Some(Vec::new());
    }
    text.split(|&byte| byte == b':' || byte == b';').map(expand).collect()
}

fn replaced(text: &[u8], token: &[u8], value: &[u8]) -> Vec<u8> {
    let mut result = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.windows(token.len()).position(|window| window == token) {
        result.extend_from_slice(&rest[..at]);
        result.extend_from_slice(value);
        rest = &rest[at + token.len()..];
    }
    result.extend_from_slice(rest);
    result
}

/// The paths that the cache of `ldconfig` has for a name, best first.
fn cached(cache: &[u8], name: &[u8]) -> Vec<PathBuf> {
    // The new format may follow an old one; it starts at its magic.
    let Some(start) = cache.windows(CACHE_MAGIC.len()).position(|window| window == CACHE_MAGIC)
    else {
        return Vec::new();
    };
    let cache = &cache[start..];
    let number = |at: usize| -> Option<usize> {
        Some(u32::from_ne_bytes(cache.get(at..at + 4)?.try_into().ok()?) as usize)
    };
    let text = |at: usize| cache.get(at..)?.split(|&byte| byte == 0).next();
    let entry = |index: usize| -> Option<(&[u8], &[u8])> {
        let at = 48 + index.checked_mul(24)?;
        Some((text(number(at + 4)?)?, text(number(at + 8)?)?))
    };
    let count = number(CACHE_MAGIC.len()).unwrap_or(0);
    let entries = (0..count).map_while(entry);
    entries
        .filter(|(key, _)| *key == name)
        .map(|(_, path)| PathBuf::from(OsStr::from_bytes(path)))
        .collect()
}

/// The machine that an ELF file is for, in this machine's byte order.
pub fn machine_of(path: &Path) -> Option<u16> {
    let mut header = [0; 20];
    File::open(path).ok()?.read_exact(&mut header).ok()?;
    let bytes = [header[18], header[19]];
    let little = header[5] == 1;
    header
        .starts_with(b"\x7fELF")
        .then(|| if little { u16::from_le_bytes(bytes) } else { u16::from_be_bytes(bytes) })
}
