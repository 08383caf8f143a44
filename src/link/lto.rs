//! Link-time optimisation: the code in the binary comes from objects that the linker's plugin makes and removes, and no map says of
//! which definitions. In: the placement, the files of the command line. Out: the placement without those objects, and
//! the files whose definitions are in the binary. They have records at the AST level, which need no places.
//!
//! What the plugin's objects are made of can be told only for objects that are named on the command line: of archives
//! it would have to be known which members were taken.

use super::early::Early;
use super::files::OpenFile;
use crate::elf::archive;
use crate::model::Placement;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The name of an object that a plugin made: GCC's, and LLVM's in lld.
pub fn is_product(file: &[u8]) -> bool {
    let is_named_so = file.ends_with(b".ltrans.o") || file == b"lto.tmp";
    is_named_so && !Path::new(OsStr::from_bytes(file)).exists()
}

/// Takes the plugin's objects out of the placement; gives the files that they were made of. The error is a reason to take
/// the binary as a whole.
pub fn take_apart<'e>(placement: &mut Placement, early: &'e Early) -> Result<Vec<&'e OpenFile>, String> {
    let before = placement.objects.len();
    placement.objects.retain(|(name, _)| !is_product(name.0));
    if placement.objects.len() == before {
        return Ok(Vec::new());
    }
    let mut files = Vec::new();
    for file in early.in_order().filter(|file| holds_bitcode(file.bytes())) {
        let problem = |reason: &str| format!("{}: {reason}", file.path().display());
        if archive::is_archive(file.bytes()) {
            return Err(problem("an archive of objects for link-time optimisation"));
        }
        match file.object().record() {
            Ok((record, _)) if record.bitcode => files.push(file),
            _ => return Err(problem("it holds bitcode for link-time optimisation, and no record of definitions")),
        }
    }
    if files.is_empty() {
        return Err("it was optimised when it was linked, and it cannot be told from what".to_owned());
    }
    Ok(files)
}

/// The file has bitcode of GCC's or LLVM's in it, or seems to.
fn holds_bitcode(bytes: &[u8]) -> bool {
    let signs: [&[u8]; 3] = [b".gnu.lto_", b"BC\xc0\xde", b".llvm.lto"];
    signs.iter().any(|sign| memchr::memmem::find(bytes, sign).is_some())
}
