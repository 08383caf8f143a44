//! Blocks of instructions, with their exits. In: the instructions of a function. Out: its [`Flow`].

use super::content::Writer;
use super::decode::{Code, Step, StepFlow};
use super::exceptions::Handlers;
use super::tables::{JumpTarget, Tables};
use super::{Block, Exit, Flow, NotUnderstood};
use iced_x86::{ConditionCode, Mnemonic};
use std::collections::BTreeSet;

pub fn build(
    code: &Code,
    tables: &Tables,
    entries: &BTreeSet<u32>,
    handlers: &Handlers,
) -> Result<Flow, NotUnderstood> {
    let starts: Vec<u32> = code.starts.iter().copied().collect();
    let builder = Builder { code, tables, handlers, starts };
    let mut blocks = Vec::with_capacity(builder.starts.len());
    let mut rest = &code.steps[..];
    for (number, &start) in builder.starts.iter().enumerate() {
        let next = builder.starts.get(number + 1).copied();
        let length = rest.partition_point(|step| next.is_none_or(|next| step.at < next));
        let (steps, behind) = rest.split_at(length);
        rest = behind;
        if steps.first().is_none_or(|step| step.at != start) {
            return Err("a jump leads into the middle of an instruction");
        }
        let is_entry = start == 0 || entries.contains(&start);
        blocks.push(Block { is_entry, ..builder.block(steps)? });
    }
    Ok(Flow { blocks: without_empty_blocks(blocks) })
}

/// Leaves out the blocks that do nothing but lead on: where compilers put them is a matter of
/// layout.
fn without_empty_blocks(blocks: Vec<Block>) -> Vec<Block> {
    let nothing = Writer::of_nothing();
    let next = |block: &Block| match block.exits[..] {
        [Exit::Block(to)] if block.hash == nothing && !block.is_entry => Some(to),
        _ => None,
    };
    // A circle of them does something: it never ends.
    let end = |start: u32| {
        let mut at = start;
        for _ in 0..blocks.len() {
            match next(&blocks[at as usize]) {
                Some(to) => at = to,
                None => return at,
            }
        }
        start
    };
    let ends: Vec<u32> = (0..blocks.len() as u32).map(end).collect();
    let is_kept = |number: &u32| ends[*number as usize] == *number;
    let kept: Vec<u32> = (0..blocks.len() as u32).filter(is_kept).collect();
    let number = |old: u32| {
        kept.binary_search(&ends[old as usize]).map_or(Exit::Outside, |new| Exit::Block(new as u32))
    };
    let lead_on = |exit: &Exit| match exit {
        Exit::Block(to) => number(*to),
        Exit::Outside => Exit::Outside,
    };
    let kept_blocks = kept.iter().map(|&old| {
        let block = &blocks[old as usize];
        Block { exits: block.exits.iter().map(lead_on).collect(), ..block.clone() }
    });
    kept_blocks.collect()
}

struct Builder<'c, 'o, 'a> {
    code: &'c Code<'o, 'a>,
    tables: &'c Tables,
    handlers: &'c Handlers,
    /// Where each block starts.
    starts: Vec<u32>,
}

impl Builder<'_, '_, '_> {
    fn number(&self, start: u32) -> Result<Exit, NotUnderstood> {
        let number = self
            .starts
            .binary_search(&start)
            .map_err(|_| "a way leads into the middle of a block")?;
        Ok(Exit::Block(number as u32))
    }

    fn block(&self, steps: &[Step]) -> Result<Block, NotUnderstood> {
        let mut writer = Writer::new(self.code, self.tables);
        let mut exits = Vec::new();
        let last = steps[steps.len() - 1];
        let kept: Vec<Step> = steps.iter().filter(|step| !is_padding(step)).copied().collect();
        for step in &kept {
            writer.step(step)?;
        }
        self.add_exits(&last, &mut writer, &mut exits)?;
        self.add_landing_pads(&kept, &mut writer, &mut exits)?;
        let end = kept.last().map_or(steps[0].at, |step| step.end);
        let (hash, references) = writer.finish(exits.len());
        Ok(Block { range: steps[0].at..end, hash, references, exits, is_entry: false })
    }

    /// The ways on from the last instruction. Of two that a condition decides about, that of the
    /// condition which is not negated comes first, so that it does not matter which of them the
    /// compiler has laid out behind the branch.
    fn add_exits(
        &self,
        last: &Step,
        writer: &mut Writer,
        exits: &mut Vec<Exit>,
    ) -> Result<(), NotUnderstood> {
        match last.flow {
            StepFlow::On => exits.push(self.number(last.end)?),
            StepFlow::Jump(to) => exits.push(self.number(to)?),
            StepFlow::Leave => exits.push(Exit::Outside),
            StepFlow::Branch(to) => exits.extend([self.number(to)?, self.number(last.end)?]),
            StepFlow::BranchOutside => exits.extend([Exit::Outside, self.number(last.end)?]),
            StepFlow::Indirect => {
                for (number, table) in self.tables.all.iter().enumerate() {
                    writer.table(number, table.entries.len());
                    for entry in &table.entries {
                        exits.push(match entry {
                            JumpTarget::Inside(to) => self.number(*to)?,
                            JumpTarget::Elsewhere { symbol, offset } => {
                                writer.outside(exits.len(), *symbol, *offset);
                                Exit::Outside
                            }
                        });
                    }
                }
                exits.push(Exit::Outside);
            }
        }
        if matches!(last.flow, StepFlow::Branch(_)) && is_negated(last.instruction.condition_code())
        {
            exits.swap(0, 1);
        }
        Ok(())
    }

    /// Adds a way to each landing pad of the block's instructions, and notes which instruction has
    /// which.
    fn add_landing_pads(
        &self,
        steps: &[Step],
        writer: &mut Writer,
        exits: &mut Vec<Exit>,
    ) -> Result<(), NotUnderstood> {
        if !self.handlers.is_present {
            return Ok(());
        }
        let ordinary = exits.len();
        for (position, step) in
            steps.iter().filter(|step| !matches!(step.flow, StepFlow::Jump(_))).enumerate()
        {
            let site =
                self.handlers.site(u64::from(step.end)).map(|site| &self.handlers.sites[site]);
            let exit = match site.and_then(|site| site.pad) {
                Some(pad) => {
                    let exit = self.number(pad)?;
                    let known = exits[ordinary..].iter().position(|known| *known == exit);
                    let label = known.unwrap_or_else(|| {
                        exits.push(exit);
                        exits.len() - 1 - ordinary
                    });
                    Some(label)
                }
                None => None,
            };
            writer.handler(position, site, exit);
        }
        Ok(())
    }
}

/// Whether an instruction does nothing, wherever it stands: compilers align with such.
fn is_padding(step: &Step) -> bool {
    step.instruction.mnemonic() == Mnemonic::Nop && step.flow == StepFlow::On
}

/// Conditions come in pairs.
pub fn is_negated(condition: ConditionCode) -> bool {
    matches!(
        condition,
        ConditionCode::no
            | ConditionCode::ae
            | ConditionCode::ne
            | ConditionCode::a
            | ConditionCode::ns
            | ConditionCode::np
            | ConditionCode::ge
            | ConditionCode::g
    )
}
