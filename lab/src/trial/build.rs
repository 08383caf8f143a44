//! Mutations that are built together. In: the mutations of a step. Out: what was compiled and
//! linked, and the mutations that are in it.

use super::Trial;
use crate::bench::Built;
use crate::mutate::Mutation;
use crate::program::{Segment, Unit};
use std::io;

impl Trial<'_> {
    /// Links the units of mutations; if that does not work, without one of them. Gives nothing, and
    /// takes all mutations for refused, if that does not work either.
    pub(super) fn link(
        &mut self,
        alive: &mut Vec<Mutation>,
        compiled: Vec<usize>,
    ) -> io::Result<Option<Built>> {
        if alive.is_empty() {
            return Ok(None);
        }
        if let Some(built) = self.bench.relink(compiled.clone(), None, &[])? {
            return Ok(Some(built));
        }
        for unit in &compiled {
            let rest: Vec<usize> = compiled.iter().copied().filter(|other| other != unit).collect();
            if rest.is_empty() {
                break;
            }
            if let Some(built) = self.bench.relink(rest, None, &[])? {
                alive.retain(|mutation| mutation.unit != *unit);
                return Ok(Some(built));
            }
        }
        alive.clear();
        Ok(None)
    }

    /// Compiles the units of mutations, less those mutations that the compiler complains about.
    /// Gives the others, and the units.
    pub(super) fn compile(
        &self,
        mutations: &[Mutation],
    ) -> io::Result<(Vec<Mutation>, Vec<usize>)> {
        let (mut alive, mut compiled) = (mutations.to_vec(), Vec::new());
        for (index, unit) in self.bench.program.units.iter().enumerate() {
            while alive.iter().any(|mutation| mutation.unit == index) {
                let texts = texts(unit, index, &alive);
                let Err(lines) = self.bench.compile_text(index, &texts.concat())? else {
                    compiled.push(index);
                    break;
                };
                let faulty = segments_of(&texts, &lines);
                let is_faulty = |mutation: &Mutation| {
                    mutation.unit == index && faulty.contains(&mutation.segment)
                };
                let known = alive.iter().any(is_faulty);
                alive.retain(
                    |mutation| if known { !is_faulty(mutation) } else { mutation.unit != index },
                );
            }
        }
        Ok((alive, compiled))
    }
}

/// The parts of a unit, with mutations.
pub(super) fn texts<'m>(unit: &'m Unit, index: usize, mutations: &'m [Mutation]) -> Vec<&'m str> {
    let text = |(number, segment): (usize, &'m Segment)| {
        let other =
            mutations.iter().find(|mutation| (mutation.unit, mutation.segment) == (index, number));
        other.map_or(segment.text.as_str(), |mutation| mutation.text.as_str())
    };
    unit.segments.iter().enumerate().map(text).collect()
}

/// The parts that hold these lines, which are counted from one.
pub(super) fn segments_of(texts: &[&str], lines: &[usize]) -> Vec<usize> {
    let mut end = 0;
    let mut found = Vec::new();
    for (number, text) in texts.iter().enumerate() {
        let start = end;
        end += text.matches('\n').count();
        if lines.iter().any(|line| (start + 1..=end).contains(line)) {
            found.push(number);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_belong_to_parts() {
        let texts = ["one\ntwo\n", "", "three\n", "four\nfive\n"];
        assert_eq!(segments_of(&texts, &[2, 4]), [0, 3]);
        assert_eq!(segments_of(&texts, &[3]), [2]);
        assert_eq!(segments_of(&texts, &[9]), Vec::<usize>::new());
    }
}
