//! What a section is, apart from its content.
//!
//! In: a section's header. Out: the kind of its atom, and its part of the local hash.

use super::object_file::Section;
use crate::model::{AtomKind, Hasher};
use object::elf;

/// Flags that change neither the bytes in memory nor what they may be used for.
const FLAGS_WITHOUT_EFFECT: u64 =
    elf::SHF_GROUP.0 | elf::SHF_INFO_LINK.0 | elf::SHF_LINK_ORDER.0 | elf::SHF_GNU_RETAIN.0;

/// What a section is to the program.
pub fn atom_kind(section: &Section, resolver: bool) -> AtomKind {
    if section.is_code() {
        if resolver { AtomKind::Resolver } else { AtomKind::Function }
    } else if section.flags & elf::SHF_TLS.0 != 0 {
        AtomKind::ThreadLocal
    } else if section.kind == elf::SHT_NOBITS.0 {
        AtomKind::Zeroed
    } else {
        AtomKind::Data
    }
}

/// Hashes what a section is, without its content.
pub fn hash_shape<'h>(hasher: &'h mut Hasher, section: &Section) -> &'h mut Hasher {
    hasher.number(section.kind.into()).number(section.flags & !FLAGS_WITHOUT_EFFECT);
    hasher.number(section.align.max(1)).number(section.entry_size)
}
