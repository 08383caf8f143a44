//! What instructions load and store. In: the value that is used as an address. Out: the value that
//! is there, or the part of a variable that is not known any more.

use super::{Memory, POINTER, Word};
use crate::elf::code_reads::value::{UNKNOWN, Value, ValueBase, gcd};
use std::ops::Range;

impl Memory<'_> {
    /// What a pointer in data may hold.
    pub fn load(&mut self, from: Value) -> Value {
        match from.place {
            ValueBase::Data(group) => {
                let members = self.groups[group as usize].clone();
                members.into_iter().fold(UNKNOWN, |found, member| {
                    let here = self.load_variable(member, from);
                    self.join(found, here)
                })
            }
            ValueBase::Number if from.step == 0 => {
                let stored =
                    self.variable(from.at as u64).and_then(|found| self.stored_at(found, from));
                let there = self.word(from.at as u64);
                self.join(stored.unwrap_or(UNKNOWN), there)
            }
            _ => UNKNOWN,
        }
    }

    fn load_variable(&mut self, variable: u32, from: Value) -> Value {
        let range = self.variable_range(variable);
        let size = range.end - range.start;
        let relative = Value {
            place: ValueBase::Number,
            at: (range.start as i64).wrapping_add(from.at),
            ..from
        };
        let mut found = self.stored_at(variable, relative).unwrap_or(UNKNOWN);
        if from.step == 0 {
            let there = self.word(range.start.wrapping_add_signed(from.at));
            return self.join(found, there);
        }
        let step = if from.step.is_multiple_of(POINTER) { from.step } else { POINTER };
        let mut at = from.at.rem_euclid(step as i64) as u64;
        while at < size {
            let there = self.word(range.start + at);
            found = self.join(found, there);
            at += step;
        }
        found
    }

    pub(super) fn word(&mut self, at: u64) -> Value {
        match self.words.get(&at).copied() {
            Some(Word::Address(to)) => self.classify(to),
            Some(Word::Import(import)) => Value::exact(ValueBase::Import(import), 0),
            None => match self.number(at).filter(|number| self.is_address(*number)) {
                Some(number) => self.classify(number),
                None => UNKNOWN,
            },
        }
    }

    pub(super) fn number(&self, at: u64) -> Option<u64> {
        let section = self.section(at)?;
        let bytes = section.data.get((at - section.address) as usize..)?;
        let mut number = [0; 8];
        let length = bytes.len().min(8);
        number[..length].copy_from_slice(&bytes[..length]);
        (length >= 4).then(|| u64::from_le_bytes(number))
    }

    fn stored_at(&self, variable: u32, at: Value) -> Option<Value> {
        let stored = self.stored.get(&variable)?;
        let meets = |place: &&Value| match gcd(place.step, at.step) {
            0 => place.at == at.at,
            step => place.at.wrapping_sub(at.at).unsigned_abs().is_multiple_of(step),
        };
        stored.iter().find(meets).map(|_| Value { step: 1, ..Value::exact(ValueBase::Code, 0) })
    }

    /// An address of code is stored in a variable. `Some` if that was not known.
    pub fn store(&mut self, to: Value) -> Option<Range<u64>> {
        let place = match to.place {
            ValueBase::Number => to,
            ValueBase::Data(group) => {
                let [variable] = self.groups[group as usize][..] else { return None };
                let start = self.variable_range(variable).start as i64;
                Value { place: ValueBase::Number, at: start.wrapping_add(to.at), ..to }
            }
            _ => return None,
        };
        let variable = self.variable(place.at as u64)?;
        let place = Value { source: 0, ..place };
        let stored = self.stored.entry(variable).or_default();
        if stored.contains(&place) {
            return None;
        }
        stored.push(place);
        self.leads[variable as usize] = true;
        Some(self.variable_range(variable))
    }
}
