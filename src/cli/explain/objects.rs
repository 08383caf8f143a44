//! `tasting explain --old`: in which lines the functions of two versions of an object differ.

use crate::change::control_flow;
use crate::elf::lines;
use crate::elf::object_file::{ObjectFile, SymbolPlace};
use crate::flow::{Flow, Flows, canonical};
use crate::model::Hash;
use crate::process::sys;
use crate::report::functions::{ShownFunction, ShownFunctions, ranges};
use anyhow::Context;
use std::collections::BTreeSet;
use std::path::Path;

pub fn explain(old: &Path, new: &Path) -> anyhow::Result<ShownFunctions> {
    let map =
        |path: &Path| sys::map(path).with_context(|| format!("cannot read {}", path.display()));
    let (old_bytes, new_bytes) = (map(old)?, map(new)?);
    let parse =
        |bytes, path: &Path| ObjectFile::parse(bytes).with_context(|| path.display().to_string());
    let (before, now) = (parse(&old_bytes, old)?, parse(&new_bytes, new)?);
    let (old_flows, new_flows) = (Flows::new(&before), Flows::new(&now));
    let mut functions = Vec::new();
    for (number, section) in
        now.sections.iter().enumerate().filter(|(_, it)| it.is_code() && it.size > 0)
    {
        let is_it = |it: &crate::elf::object_file::Section| it.name == section.name && it.is_code();
        let Some(partner) = before.sections.iter().position(is_it) else { continue };
        let shown = |changed, blocks, lines, refusal| ShownFunction {
            name: name(&now, number),
            lines,
            changed,
            blocks,
            refusal,
        };
        match (old_flows.of_function(partner), new_flows.of_function(number)) {
            (Ok(old), Ok(new)) if whole(&old) != whole(&new) => {
                let changed = control_flow::changed_blocks(&old, &new);
                let lines = lines_of(&now, number, &new, &changed);
                functions.push(shown(changed.len(), new.blocks.len(), lines, None));
            }
            (Ok(_), Ok(_)) => {}
            // Relocations and all that they lead to would have to be compared: equal bytes are
            // taken for equal functions.
            (Err(refusal), _) | (_, Err(refusal)) => {
                if before.sections[partner].data != section.data {
                    functions.push(shown(0, 0, Vec::new(), Some(refusal.reason.into_owned())));
                }
            }
        }
    }
    Ok(ShownFunctions { functions })
}

fn whole(flow: &Flow) -> Hash {
    canonical::hash(flow, &vec![true; flow.blocks.len()])
}

/// The name of the function in a section.
fn name(object: &ObjectFile, section: usize) -> String {
    let is_it = |symbol: &&crate::elf::object_file::Symbol| {
        symbol.place == SymbolPlace::Section(section)
            && !symbol.is_section()
            && !symbol.name.is_empty()
    };
    let named = object.symbols.iter().find(is_it).map(|symbol| symbol.name);
    named.unwrap_or(object.sections[section].name).to_owned()
}

/// The lines of some blocks of a function.
fn lines_of(object: &ObjectFile, section: usize, flow: &Flow, blocks: &[u32]) -> Vec<(u32, u32)> {
    let rows = lines::of_section(object, section);
    let ends = rows.iter().skip(1).map(|row| row.0).chain([u64::MAX]);
    let mut found = BTreeSet::new();
    for ((start, line), end) in rows.iter().zip(ends).filter(|((_, line), _)| *line > 0) {
        let meets = |number: &u32| {
            let range = &flow.blocks[*number as usize].range;
            *start < u64::from(range.end) && u64::from(range.start) < end
        };
        if blocks.iter().any(meets) {
            found.insert(*line);
        }
    }
    ranges(found)
}
