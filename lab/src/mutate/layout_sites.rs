//! Mutations of the layout of a text: definitions in another order, lines that move, blanks.

use super::Edits;
use super::source::Source;
use crate::dice::Dice;

/// Two neighbouring definitions change places.
pub fn exchanged_definitions(source: &Source, _: &mut Dice) -> Vec<Edits> {
    let definitions = source.definitions();
    definitions.windows(2).map(|pair| source.swap(&pair[0], &pair[1])).collect()
}

/// An empty line before a line.
pub fn moved_lines(source: &Source, _: &mut Dice) -> Vec<Edits> {
    let starts = source.text.match_indices('\n').map(|(at, _)| at + 1);
    [0].into_iter().chain(starts).map(|at| vec![(at..at, "\n".to_owned())]).collect()
}

/// A blank before a word.
pub fn inserted_blanks(source: &Source, _: &mut Dice) -> Vec<Edits> {
    source.starts().map(|at| vec![(at..at, " ".to_owned())]).collect()
}
