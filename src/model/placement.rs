//! Placement: which input sections ended in the binary, and where, as the linker's own map tells it.

/// All that one map says, in the map's order, which is the order of addresses within an output section.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Placement<'a> {
    /// The input sections that were kept. Sections of size 0 may be missing.
    pub sections: Vec<PlacedSection<'a>>,
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
