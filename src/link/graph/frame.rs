//! What holds for a binary as a whole, whichever of its atoms are reached: machine and kind, loader
//! flags, interpreter, notes, the stack, how much memory it takes, the options that matter.

use super::Options;
use crate::elf::binary::{Binary, Section, Segment};
use crate::model::{Hash, Hasher};
use std::borrow::Cow;

/// Sizes count in multiples of 16 MiB, those of variables of threads of 1 KiB: edits seldom cross
/// them.
const LOADED_UNIT: u32 = 24;
const THREAD_LOCAL_UNIT: u32 = 10;

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
    for segment in
        binary.segments.iter().filter(|segment| segment.kind == object::elf::PT_GNU_STACK.0)
    {
        hasher.number(segment.flags.into()).number(segment.size);
    }
    // What is too large for its limits does not start, whatever of it is used: threads with small
    // stacks and libraries that are opened late have to find room for variables of threads.
    hasher.number(room(binary, object::elf::PT_LOAD.0) >> LOADED_UNIT);
    hasher.number(room(binary, object::elf::PT_TLS.0) >> THREAD_LOCAL_UNIT);
    // Without it no exception finds its handler.
    let leads_unwinder = |segment: &Segment| segment.kind == object::elf::PT_GNU_EH_FRAME.0;
    hasher.number(binary.segments.iter().any(leads_unwinder).into());
    // Notes tell the loader and the kernel what the program needs, and it may read them itself.
    // Linkers differ in their order.
    let is_note = |section: &&Section| section.is_note() || section.name == b".interp";
    let mut notes: Vec<(&[u8], Cow<[u8]>)> = binary
        .sections
        .iter()
        .filter(is_note)
        .map(|section| (section.name, content(binary, section)))
        .collect();
    notes.retain(|(_, content)| !content.is_empty());
    notes.sort();
    for (_, note) in notes {
        hasher.bytes(&note);
    }
    for option in &options.frame {
        hasher.bytes(option);
    }
    hasher.finish()
}

/// The memory that the segments of one kind take.
fn room(binary: &Binary, kind: u32) -> u64 {
    let sizes =
        binary.segments.iter().filter(|segment| segment.kind == kind).map(|segment| segment.size);
    sizes.fold(0, u64::saturating_add)
}

/// What of a note counts. Of the list of properties those that the kernel and the loader act on;
/// not which processors the code was made for, which some linkers leave out, as long as every
/// processor will do.
fn content<'a>(binary: &Binary<'a>, section: &Section<'a>) -> Cow<'a, [u8]> {
    const FEATURES: [u32; 2] = [0xc000_0000, 0xc000_0002];
    // What glibc does not start the program without. The first bit stands for what they all have.
    const NEEDED: u32 = 0xc000_8002;
    const MADE_FOR: [u32; 5] = [0xc000_8000, 0xc000_8001, 0xc001_0000, 0xc001_0001, 0xc001_0002];
    let is_list =
        section.name == b".note.gnu.property" && binary.machine == object::elf::EM_X86_64.0;
    // The header and the owner's name; then type, size and value of each, on multiples of eight.
    let Some(mut left) = section.data.get(16..).filter(|_| is_list) else {
        return Cow::Borrowed(section.data);
    };
    let mut counts = Vec::new();
    while let Some((head, rest)) = left.split_first_chunk::<8>() {
        let [kind, size] = [&head[..4], &head[4..]]
            .map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]]));
        let padded = (size as usize).next_multiple_of(8);
        let Some(value) = rest.get(..padded) else { return Cow::Borrowed(section.data) };
        let is_every_processor =
            kind == NEEDED && value.first() == Some(&1) && value[1..].iter().all(|&byte| byte == 0);
        if FEATURES.contains(&kind) || kind == NEEDED && !is_every_processor {
            counts.extend_from_slice(head);
            counts.extend_from_slice(value);
        } else if !is_every_processor && !MADE_FOR.contains(&kind) {
            return Cow::Borrowed(section.data);
        }
        left = &rest[padded..];
    }
    Cow::Owned(counts)
}

/// The names of the libraries that the binary asks for.
pub fn needed<'a>(binary: &Binary<'a>) -> Vec<&'a str> {
    binary.dynamic.needed.iter().filter_map(|name| std::str::from_utf8(name).ok()).collect()
}
