//! What the symbols, relocations and groups of an object say about its sections: the name of each,
//! whether it can be entered only at its first byte, whether anything refers to it.

use super::arch;
use super::object_file::{ObjectFile, Relocation, SymbolPlace};
use object::elf;

/// What the symbols of a section say about it.
#[derive(Clone, Default)]
pub struct Labels<'a> {
    /// The best name at the section's front, and how good it is.
    pub name: Option<(u8, &'a str)>,
    /// A function starts at the front.
    pub function: bool,
    /// How far that function goes.
    pub extent: u64,
    /// Something is named, or entered from elsewhere, behind the front.
    pub inside: bool,
    /// A function here decides at start-up what a symbol means.
    pub resolver: bool,
    /// Something outside of the section refers to it or is defined in it.
    pub used: bool,
    /// Of code: where something with a name of its own starts behind the front, sorted.
    pub named: Vec<u64>,
    /// Of code: the sections of data that it refers to, sorted.
    pub reads: Vec<usize>,
}

/// Reads off the symbols and relocations what is known of each section.
pub fn labels<'a>(object: &ObjectFile<'a>) -> Vec<Labels<'a>> {
    let mut labels = vec![Labels::default(); object.sections.len()];
    for symbol in object.symbols.iter().filter(|symbol| !symbol.is_section()) {
        let SymbolPlace::Section(index) = symbol.place else { continue };
        let label = &mut labels[index];
        let is_function = [elf::STT_FUNC.0, elf::STT_GNU_IFUNC.0].contains(&symbol.kind);
        label.resolver |= symbol.kind == elf::STT_GNU_IFUNC.0;
        label.used |= !symbol.is_local();
        // `.L` labels and the mapping symbols of AArch64 (`$x`, `$d`) name nothing that could be
        // entered.
        if symbol.name.is_empty() || symbol.name.starts_with(".L") || symbol.name.starts_with('$') {
            continue;
        }
        if symbol.value != 0 {
            label.inside = true;
            if object.sections[index].is_code() {
                label.named.push(symbol.value);
            }
            continue;
        }
        label.function |= is_function;
        if is_function {
            label.extent = label.extent.max(symbol.size);
        }
        let quality =
            2 * u8::from(!symbol.is_local()) + u8::from(symbol.kind != elf::STT_NOTYPE.0) + 1;
        if label.name.is_none_or(|(best, _)| quality > best) {
            label.name = Some((quality, symbol.name));
        }
    }
    mark_uses(object, &mut labels);
    for label in &mut labels {
        label.named.sort_unstable();
        label.reads.sort_unstable();
        label.reads.dedup();
    }
    labels
}

/// Marks the sections that relocations of others refer to, those that other code enters behind the
/// front, and the data that code refers to.
fn mark_uses(object: &ObjectFile, labels: &mut [Labels]) {
    for (index, section) in object.sections.iter().enumerate() {
        if !section.is_allocated() || section.is_unwind() {
            continue;
        }
        for relocation in &section.relocations {
            let symbol = &object.symbols[relocation.symbol as usize];
            let SymbolPlace::Section(target) = symbol.place else { continue };
            if target == index {
                continue;
            }
            labels[target].used = true;
            if section.is_code() && !object.sections[target].is_code() {
                labels[index].reads.push(target);
            }
            let is_cold_part = labels[index].name.is_some_and(|(_, name)| name.contains(".cold"));
            if section.is_code()
                && symbol.is_section()
                && !is_cold_part
                && !is_front(object, relocation)
            {
                labels[target].inside = true;
            }
        }
    }
}

/// The relocation means the first byte of its section.
fn is_front(object: &ObjectFile, relocation: &Relocation) -> bool {
    relocation.addend == arch::of(object.machine).addend_of_front(relocation.kind)
}

/// Where the symbols of each section that have a size start, and that size: relocations can ask for
/// it, and the loader copies as much of a library's variable into a program.
pub fn sizes(object: &ObjectFile) -> Vec<Vec<(u64, u64)>> {
    let mut sizes = vec![Vec::new(); object.sections.len()];
    // The loader sees no local symbols, and `strip` may take them away.
    let counts_locals = asks_for_sizes(object);
    for symbol in object
        .symbols
        .iter()
        .filter(|symbol| symbol.size != 0 && (counts_locals || !symbol.is_local()))
    {
        if let SymbolPlace::Section(section) = symbol.place {
            sizes[section].push((symbol.value, symbol.size));
        }
    }
    for sizes in &mut sizes {
        sizes.sort_unstable();
        sizes.dedup();
    }
    sizes
}

/// The group of each section, by the index of the section that lists its members.
pub fn groups(object: &ObjectFile) -> Vec<u32> {
    let mut group_of = vec![0; object.sections.len()];
    let groups =
        object.sections.iter().enumerate().filter(|(_, section)| section.kind == elf::SHT_GROUP.0);
    for (index, group) in groups {
        // The first word is the group's flags.
        for word in group.data.chunks_exact(4).skip(1) {
            let bytes = [word[0], word[1], word[2], word[3]];
            let little = object.endian == object::Endianness::Little;
            let member = if little { u32::from_le_bytes(bytes) } else { u32::from_be_bytes(bytes) };
            if let Some(group_of) = group_of.get_mut(member as usize) {
                *group_of = index as u32;
            }
        }
    }
    group_of
}

/// Whether a relocation stands for the size of a symbol, or may do so.
fn asks_for_sizes(object: &ObjectFile) -> bool {
    let Some(of_size) = arch::of(object.machine).size_relocations() else { return true };
    let mut relocations = object.sections.iter().flat_map(|section| &section.relocations);
    relocations.any(|relocation| of_size.contains(&relocation.kind))
}
