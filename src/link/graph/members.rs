//! The members of output sections. In: the lines of the map. Out: edges to all that an output
//! section holds.

use super::Builder;
use crate::link::lto;
use crate::model::manifest::Edge;
use crate::model::{PlacedSection, Placement};
use rustc_hash::FxHashMap;

impl<'a> Builder<'a> {
    /// The members of an output section, in the order of their addresses. `section` is one of its
    /// lines.
    pub(super) fn add_members(&mut self, section: u32) {
        let output = self.placement.sections[section as usize].output;
        let is_member = |line: &&PlacedSection| line.output == output && line.size > 0;
        let mut members: Vec<&PlacedSection> =
            self.placement.sections.iter().filter(is_member).collect();
        members.sort_by_key(|line| line.address);
        let mut is_explained = true;
        for line in members {
            if lto::is_product(line.file) {
                let optimised = self.optimised();
                self.edges.push(optimised);
                continue;
            }
            match self.at_line(line) {
                Some(edge) => self.edges.push(edge),
                None => is_explained = false,
            }
            // The other entries of a constant pool.
            let from = self.by_address.partition_point(|&(start, _)| start <= line.address);
            let inside = self.by_address[from..]
                .iter()
                .take_while(|&&(start, _)| start - line.address < line.size);
            self.edges.extend(inside.map(|&(_, node)| Edge {
                node,
                offset: 0,
                takes_address: false,
            }));
        }
        // Merged strings, common symbols and what the linker makes are no placed atoms: then the
        // bytes themselves count.
        if !is_explained
            && let Some(section) =
                self.binary.sections.iter().find(|section| section.name == output)
        {
            let residue = self.residue(section);
            self.edges.push(residue);
        }
    }
}

/// The first line of each output section that has content. To look for it anew for every member
/// would be quadratic: coverage and sanitizers give every function some data in sections of their
/// own.
pub(super) fn first_members<'a>(placement: &Placement<'a>) -> FxHashMap<&'a [u8], u32> {
    let mut first = FxHashMap::default();
    let mut last: &[u8] = b"";
    for (index, line) in placement.sections.iter().enumerate().filter(|(_, line)| line.size > 0) {
        // Most lines follow others of their output section.
        if line.output != last {
            first.entry(line.output).or_insert(index as u32);
            last = line.output;
        }
    }
    first
}
