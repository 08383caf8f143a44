//! Which binaries read the code of their own functions: what `elf::code_reads` has to know, from
//! the manifest.

use crate::elf::binary::Binary;
use crate::elf::code_reads::{self, Function, Image};
use crate::elf::runtime;
use crate::model::AtomKind;
use crate::model::manifest::{Manifest, Node};
use object::elf;
use std::ops::Range;

/// Whether a binary may read code of its own as data. Of other processors than x86-64 it is not
/// known.
pub fn reads_code(binary: &Binary, manifest: &Manifest) -> bool {
    if binary.machine != elf::EM_X86_64.0 {
        return false;
    }
    let is_followed: Vec<bool> = manifest
        .inputs
        .iter()
        .map(|label| !runtime::is_of_runtime(label) && !runtime::is_of_rust(label))
        .collect();
    let (variables, number_of) = variables(manifest);
    let starts = manifest.edge_starts();
    let mut functions: Vec<Function> = Vec::new();
    for (index, node) in manifest.nodes.iter().enumerate() {
        let Some(range) = place(node).filter(|_| node.kind == AtomKind::Function) else { continue };
        let edges = &manifest.edges[starts[index] as usize..starts[index + 1] as usize];
        let mut named: Vec<u32> =
            edges.iter().filter_map(|edge| number_of[edge.node as usize]).collect();
        named.sort_unstable();
        named.dedup();
        let is_followed =
            (node.input as usize).checked_sub(1).is_none_or(|input| is_followed[input]);
        functions.push(Function { range, is_traced: node.traceable, is_followed, named });
    }
    functions.sort_unstable_by_key(|function| (function.range.start, function.range.end));
    functions.dedup_by_key(|function| function.range.start);
    let is_fixed = binary.kind == elf::ET_EXEC.0;
    code_reads::reader(&Image { sections: &binary.sections, functions, variables, is_fixed })
        .is_some()
}

/// Where variables lie, sorted; of each node, the number of the variable that it is.
fn variables(manifest: &Manifest) -> (Vec<Range<u64>>, Vec<Option<u32>>) {
    let is_code = |node: &Node| node.kind == AtomKind::Function;
    let places = manifest.nodes.iter().enumerate().filter(|(_, node)| !is_code(node));
    let mut places: Vec<(Range<u64>, usize)> =
        places.filter_map(|(index, node)| Some((place(node)?, index))).collect();
    places.sort_unstable_by_key(|(range, _)| (range.start, range.end));
    let mut ranges: Vec<Range<u64>> = Vec::with_capacity(places.len());
    let mut number_of = vec![None; manifest.nodes.len()];
    for (range, node) in places {
        if ranges.last().is_none_or(|last| last.start != range.start) {
            ranges.push(range);
        }
        number_of[node] = Some(ranges.len() as u32 - 1);
    }
    (ranges, number_of)
}

fn place(node: &Node) -> Option<Range<u64>> {
    let is_placed = node.address != 0 && node.size != 0 && node.kind != AtomKind::ThreadLocal;
    is_placed.then(|| node.address..node.address.saturating_add(node.size))
}
