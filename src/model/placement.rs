//! Placement: which input sections ended in the binary, and where, as the linker's own map tells
//! it.

use rustc_hash::FxHashMap;

/// A file and member, as the map names them.
pub type Name<'a> = (&'a [u8], Option<&'a [u8]>);

/// All that one map says, in the map's order, which is the order of addresses within an output
/// section.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Placement<'a> {
    /// The input sections that were kept. Sections of size 0 may be missing.
    pub sections: Vec<PlacedSection<'a>>,
    /// The objects that they are of, and for each of them which of the sections are its own. What
    /// the linker made itself is of no object.
    pub objects: Vec<(Name<'a>, Vec<u32>)>,
    numbers: FxHashMap<Name<'a>, usize>,
    /// The object of the last section: the sections of one object often stand together.
    last: usize,
}

impl<'a> Placement<'a> {
    /// Adds the section that comes next.
    pub fn push(&mut self, section: PlacedSection<'a>) {
        let line = self.sections.len() as u32;
        self.sections.push(section);
        if section.file.starts_with(b"<") {
            return;
        }
        let name = (section.file, section.member);
        if self.objects.get(self.last).is_none_or(|last| last.0 != name) {
            self.last = *self.numbers.entry(name).or_insert_with(|| {
                self.objects.push((name, Vec::new()));
                self.objects.len() - 1
            });
        }
        self.objects[self.last].1.push(line);
    }
}

/// One input section that the linker kept. The slices point into the map's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlacedSection<'a> {
    /// The output section, such as `.text`.
    pub output: &'a [u8],
    /// The input section, such as `.text.main` (`COMMON` for common symbols).
    pub name: &'a [u8],
    /// Its address in the binary's own numbering (0 based for PIE and shared libraries).
    pub address: u64,
    /// Its size in bytes.
    pub size: u64,
    /// The object or archive, spelled as the map spells it.
    pub file: &'a [u8],
    /// The archive's member.
    pub member: Option<&'a [u8]>,
}
