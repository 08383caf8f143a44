//! What holds for a binary as a whole, whichever of its atoms are reached: machine and kind, loader flags, interpreter,
//! notes, the stack, the options that matter.

use super::Options;
use crate::elf::binary::{Binary, Segment};
use crate::model::{Hash, Hasher};

/// What holds for the binary as a whole.
pub fn frame(binary: &Binary, options: &Options) -> Hash {
    let mut hasher = Hasher::new("frame");
    hasher.number(binary.machine.into()).number(binary.kind.into()).number(binary.flags.into());
    // The base address: programs that keep pointers in 32 bits see where they lie.
    let first = binary.segments.iter().find(|segment| segment.kind == object::elf::PT_LOAD.0);
    hasher.number(first.map_or(0, |segment| segment.address));
    hasher.number(binary.dynamic.flags[0]).number(binary.dynamic.flags[1]);
    hasher.bytes(binary.dynamic.soname.unwrap_or_default());
    hasher.number(binary.dynamic.needed.len() as u64);
    for name in binary.dynamic.needed.iter().chain(&binary.dynamic.companions) {
        // A library that is needed by its path is found by content: the folder does not count.
        hasher.bytes(name.rsplit(|&byte| byte == b'/').next().unwrap_or_default());
    }
    for segment in binary.segments.iter().filter(|segment| segment.kind == object::elf::PT_GNU_STACK.0) {
        hasher.number(segment.flags.into()).number(segment.size);
    }
    // Without it no exception finds its handler.
    let leads_unwinder = |segment: &Segment| segment.kind == object::elf::PT_GNU_EH_FRAME.0;
    hasher.number(binary.segments.iter().any(leads_unwinder).into());
    // Notes tell the loader and the kernel what the program needs, and it may read them itself.
    for section in binary.sections.iter().filter(|section| section.is_note() || section.name == b".interp") {
        hasher.bytes(section.data);
    }
    for option in &options.frame {
        hasher.bytes(option);
    }
    hasher.finish()
}

/// The names of the libraries that the binary asks for.
pub fn needed<'a>(binary: &Binary<'a>) -> Vec<&'a str> {
    binary.dynamic.needed.iter().filter_map(|name| std::str::from_utf8(name).ok()).collect()
}
