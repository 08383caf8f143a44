//! Scorched binaries test the executed rule directly: a copy of a test's binary, in which
//! everything is destroyed that its recorded execution does not cover, must behave exactly the
//! same.
//!
//! Destroyed are the atoms that do not count, and the gaps between atoms of code. What linkers make
//! themselves (tables of the dynamic loader, unwind tables) and merged literals, which have no
//! address of their own, remain.

use crate::process;
use object::read::elf::{ElfFile64, FileHeader, ProgramHeader};
use object::{LittleEndian, Object, ObjectSection, SectionFlags};
use serde::Deserialize;
use std::fs;
use std::io;
use std::ops::Range;
use std::path::PathBuf;

/// A module as `tasting cover` tells of it.
#[derive(Clone, Debug, Deserialize)]
pub struct Module {
    pub path: PathBuf,
    pub narrowed: bool,
    atoms: Vec<(u64, u64, bool, String)>,
}

/// A destroyed copy.
pub struct Scorched {
    pub bytes: Vec<u8>,
    /// How many bytes were destroyed, and how many could have been.
    pub destroyed: u64,
    pub of: u64,
}

const SHF_ALLOC: u64 = 2;
const SHF_EXECINSTR: u64 = 4;
const PT_LOAD: u32 = 1;
/// A breakpoint, on the processor that is meant.
const TRAP: u8 = 0xcc;

/// What a test covers; several programs of one test may share a library.
pub fn modules(cover: &str) -> serde_json::Result<Vec<Module>> {
    let listed: Vec<Module> = serde_json::from_str(cover)?;
    let mut merged: Vec<Module> = Vec::new();
    for module in listed {
        match merged.iter_mut().find(|known| known.path == module.path) {
            Some(known) => {
                known.narrowed &= module.narrowed;
                known.atoms.extend(module.atoms);
            }
            None => merged.push(module),
        }
    }
    // A binary that is taken as a whole has no atoms: all of it counts.
    merged.retain(|module| !module.atoms.is_empty());
    Ok(merged)
}

impl Module {
    /// Takes nothing for covered: what comes of it is not fit to run.
    pub fn forget(&mut self) {
        self.atoms.iter_mut().for_each(|atom| atom.2 = false);
    }

    /// The places that count, sorted.
    fn kept(&self) -> Vec<Range<u64>> {
        let mut kept: Vec<Range<u64>> =
            self.atoms.iter().filter(|atom| atom.2).map(|atom| atom.0..atom.0 + atom.1).collect();
        kept.sort_unstable_by_key(|range| range.start);
        kept
    }

    fn lost(&self) -> impl Iterator<Item = Range<u64>> {
        self.atoms.iter().filter(|atom| !atom.2).map(|atom| atom.0..atom.0 + atom.1)
    }

    /// Destroys what does not count. `None` if the binary cannot be read.
    pub fn scorch(&self, binary: &[u8]) -> Option<Scorched> {
        let file: ElfFile64<LittleEndian> = ElfFile64::parse(binary).ok()?;
        let mut bytes = binary.to_vec();
        let kept = self.kept();
        let (mut destroyed, mut of) = (0, 0);
        for section in file.sections() {
            let SectionFlags::Elf { sh_flags, .. } = section.flags() else { continue };
            let name = section.name().unwrap_or_default();
            if sh_flags.0 & SHF_ALLOC == 0 || !is_content(name) || section.file_range().is_none() {
                continue;
            }
            let range = section.address()..section.address() + section.size();
            of += section.size();
            let is_code = sh_flags.0 & SHF_EXECINSTR != 0;
            let lost: Vec<Range<u64>> =
                if is_code { vec![range.clone()] } else { self.lost().collect() };
            for lost in lost {
                let lost = lost.start.max(range.start)..lost.end.min(range.end);
                for hole in without(lost, &kept) {
                    let Some(offset) = file_offset(&file, hole.start) else { continue };
                    let place = offset as usize..(offset + (hole.end - hole.start)) as usize;
                    let Some(part) = bytes.get_mut(place) else { continue };
                    part.iter_mut()
                        .for_each(|byte| *byte = if is_code { TRAP } else { *byte ^ 0xa5 });
                    destroyed += hole.end - hole.start;
                }
            }
        }
        Some(Scorched { bytes, destroyed, of })
    }
}

/// Does something with copies in the place of files, and puts these back.
pub fn with_copies<T>(
    copies: &[(PathBuf, Vec<u8>)],
    act: impl FnOnce() -> io::Result<T>,
) -> io::Result<T> {
    let backup = |path: &PathBuf| {
        let mut name = path.clone().into_os_string();
        name.push(".whole");
        PathBuf::from(name)
    };
    for (path, bytes) in copies {
        fs::rename(path, backup(path))?;
        process::writing(|| fs::write(path, bytes))?;
        fs::set_permissions(path, fs::metadata(backup(path))?.permissions())?;
    }
    let done = act();
    for (path, _) in copies {
        fs::rename(backup(path), path)?;
    }
    done
}

/// Sections in which atoms of the program lie. What is executed without a call of its own (`.init`,
/// `.plt`) is the linker's.
fn is_content(name: &str) -> bool {
    let linkers = [
        ".plt",
        ".init",
        ".fini",
        ".got",
        ".dyn",
        ".interp",
        ".rela",
        ".rel.",
        ".gnu",
        ".hash",
        ".note",
        ".eh_frame",
        ".ctors",
        ".dtors",
        ".preinit",
    ];
    !linkers.iter().any(|start| name.starts_with(start))
}

/// The parts of a range that none of the others holds; these are sorted.
fn without(range: Range<u64>, others: &[Range<u64>]) -> Vec<Range<u64>> {
    let mut left = Vec::new();
    let mut at = range.start;
    for other in others {
        if other.end <= at {
            continue;
        }
        if other.start >= range.end {
            break;
        }
        if other.start > at {
            left.push(at..other.start);
        }
        at = at.max(other.end);
    }
    if at < range.end {
        left.push(at..range.end);
    }
    left
}

fn file_offset<F: FileHeader<Endian = LittleEndian>>(
    file: &object::read::elf::ElfFile<'_, F>,
    address: u64,
) -> Option<u64> {
    let endian = LittleEndian;
    file.elf_program_headers().iter().find_map(|segment| {
        let start: u64 = segment.p_vaddr(endian).into();
        let size: u64 = segment.p_filesz(endian).into();
        let offset: u64 = segment.p_offset(endian).into();
        let is_loaded = segment.p_type(endian).0 == PT_LOAD;
        (is_loaded && start <= address && address < start + size)
            .then(|| offset + (address - start))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn used_ranges_are_not_destroyed() {
        assert_eq!(without(10..20, &[0..5, 8..12, 11..13, 15..16, 19..30]), [13..15, 16..19]);
        assert_eq!(without(10..20, &[0..5, 30..40]), vec![Range { start: 10, end: 20 }]);
        assert!(without(10..20, &[0..15, 12..40]).is_empty());
    }
}
