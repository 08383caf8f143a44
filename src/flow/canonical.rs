//! Graphs of blocks as content addresses. In: a graph whose vertices have contents and labelled
//! exits, and which of them count. Out: a hash that is the same for two graphs exactly if no path
//! through the one can be distinguished from a path through the other: duplicate blocks with the
//! same continuation count once, and a block that does not count is represented by a number alone.

use super::{Block, Exit, Flow};
use crate::model::{Hash, Hasher};
use rustc_hash::FxHashMap;

/// For each block the class of blocks from which everything goes on alike. Blocks that do not count
/// are alone.
pub fn classes(flow: &Flow, counts: &[bool]) -> Vec<u32> {
    let is_counted = |number: usize| counts.get(number) == Some(&true);
    let mut known: FxHashMap<Hash, u32> = FxHashMap::default();
    let mut classes: Vec<u32> = Vec::with_capacity(flow.blocks.len());
    for (number, block) in flow.blocks.iter().enumerate() {
        let next = known.len() as u32;
        let content = if is_counted(number) { content(block) } else { alone(number) };
        classes.push(*known.entry(content).or_insert(next));
    }
    loop {
        let mut refined: FxHashMap<(u32, Vec<u32>), u32> = FxHashMap::default();
        let mut finer = Vec::with_capacity(classes.len());
        for (number, block) in flow.blocks.iter().enumerate() {
            let next = refined.len() as u32;
            let exits = if is_counted(number) { exits(block, &classes) } else { Vec::new() };
            finer.push(*refined.entry((classes[number], exits)).or_insert(next));
        }
        let is_stable =
            refined.len() == classes.iter().copied().max().map_or(0, |most| most as usize + 1);
        classes = finer;
        if is_stable {
            return classes;
        }
    }
}

/// The hash of the part of a function that counts, from where the function is entered.
pub fn hash(flow: &Flow, counts: &[bool]) -> Hash {
    let classes = classes(flow, counts);
    let mut numbers: FxHashMap<u32, u64> = FxHashMap::default();
    let mut hasher = Hasher::new("flow");
    let entries = flow
        .blocks
        .iter()
        .enumerate()
        .filter(|(_, block)| block.is_entry)
        .map(|(number, _)| number);
    for entry in entries {
        let mut open = vec![entry];
        hasher.number(u64::MAX);
        while let Some(number) = open.pop() {
            let next = numbers.len() as u64;
            let known = *numbers.entry(classes[number]).or_insert(next);
            hasher.number(known);
            if known != next || counts.get(number) != Some(&true) {
                continue;
            }
            let block = &flow.blocks[number];
            hasher.bytes(&content(block).0);
            for exit in block.exits.iter().rev() {
                match exit {
                    Exit::Block(to) => open.push(*to as usize),
                    Exit::Outside => {}
                }
            }
        }
    }
    hasher.finish()
}

/// What a block does and refers to, and which of its exits stay in the function.
pub fn content(block: &Block) -> Hash {
    let mut hasher = Hasher::new("block content");
    hasher.bytes(&block.hash.0).number(block.references.len() as u64);
    for reference in &block.references {
        hasher.bytes(&reference.identity.0);
    }
    for exit in &block.exits {
        hasher.number(u64::from(*exit == Exit::Outside));
    }
    hasher.finish()
}

fn alone(number: usize) -> Hash {
    Hasher::new("not counted").number(number as u64).finish()
}

fn exits(block: &Block, classes: &[u32]) -> Vec<u32> {
    let class = |exit: &Exit| match exit {
        Exit::Block(to) => classes[*to as usize],
        Exit::Outside => u32::MAX,
    };
    block.exits.iter().map(class).collect()
}
