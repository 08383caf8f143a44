//! Mutations: one random small change of a program's text, of the order of its link, or of the options it is built with.

pub mod lexer;
mod sites;

use crate::dice::Dice;
use crate::program::{Place, Program};
use sites::Source;
use std::ops::Range;

/// Pieces of a text and what they become, in order.
pub type Edits = Vec<(Range<usize>, String)>;

/// A program that was changed.
#[derive(Clone, Debug)]
pub struct Mutant {
    pub kind: &'static str,
    pub change: Change,
}

#[derive(Clone, Debug)]
pub enum Change {
    /// A unit has another text.
    Unit { index: usize, text: String },
    /// A header has another text: all units are compiled again.
    Header { index: usize, text: String },
    /// A unit is compiled with more options.
    Options { index: usize, flags: Vec<String> },
    /// The objects are linked in another order.
    Order(Vec<usize>),
    /// The link gets more options.
    Link(Vec<String>),
}

/// How often each kind is tried; within a text the place is chosen among all that there are.
const KINDS: [(&str, usize, Find); 21] = [
    ("operator", 14, sites::operators),
    ("constant", 14, sites::constants),
    ("comparison", 8, sites::comparisons),
    ("initialiser", 9, sites::initialisers),
    ("string", 4, sites::strings),
    ("cast", 5, sites::casts),
    ("cast added", 4, sites::added_casts),
    ("type", 5, sites::types),
    ("statement deleted", 6, sites::deleted_statements),
    ("statements swapped", 4, sites::swapped_statements),
    ("arguments swapped", 5, sites::swapped_arguments),
    ("other function", 6, sites::other_functions),
    ("functions exchanged", 3, sites::exchanged_functions),
    ("function renamed", 2, sites::renamed_functions),
    ("attribute", 3, sites::attributes),
    ("qualifier", 3, sites::qualifiers),
    ("macro", 3, sites::macros),
    ("include", 2, sites::includes),
    ("return", 3, sites::returns),
    ("entries swapped", 3, sites::swapped_entries),
    ("variable", 5, sites::other_variables),
];

type Find = fn(&Source, &mut Dice) -> Vec<Edits>;

/// Kinds that are not in the text of a unit, in shares of a hundred.
const HEADER: usize = 6;
const OPTIONS: usize = 4;
const LINK: usize = 3;
const ORDER: usize = 3;

/// A random mutation; `None` if the throw found no place for its kind.
pub fn mutant(dice: &mut Dice, program: &Program) -> Option<Mutant> {
    let throw = dice.below(100);
    if throw < ORDER {
        return order(dice, program);
    }
    if throw < ORDER + LINK {
        return Some(link_options(dice, program));
    }
    if throw < ORDER + LINK + OPTIONS {
        return Some(compiler_options(dice, program));
    }
    if throw < ORDER + LINK + OPTIONS + HEADER {
        let index = dice.below(program.headers.len());
        let (kind, text) = edited(dice, program, &program.headers[index].text)?;
        return Some(Mutant { kind: if kind == "macro" { kind } else { "header" }, change: Change::Header { index, text } });
    }
    let index = dice.below(program.units.len());
    let (kind, text) = edited(dice, program, &program.units[index].file.text)?;
    Some(Mutant { kind, change: Change::Unit { index, text } })
}

fn edited(dice: &mut Dice, program: &Program, text: &str) -> Option<(&'static str, String)> {
    let source = Source::new(text, &program.alike);
    let sum = KINDS.iter().map(|(_, weight, _)| weight).sum();
    let mut throw = dice.below(sum);
    let (kind, _, find) = KINDS.iter().find(|(_, weight, _)| {
        let is_it = throw < *weight;
        throw = throw.wrapping_sub(*weight);
        is_it
    })?;
    let places = find(&source, dice);
    if places.is_empty() {
        return None;
    }
    let changed = apply(text, dice.pick(&places));
    (changed != text).then_some((kind, changed))
}

/// The text with its edits.
pub fn apply(text: &str, edits: &Edits) -> String {
    let (mut changed, mut at) = (String::with_capacity(text.len() + 16), 0);
    for (range, replacement) in edits {
        changed += &text[at..range.start];
        changed += replacement;
        at = range.end;
    }
    changed + &text[at..]
}

fn order(dice: &mut Dice, program: &Program) -> Option<Mutant> {
    let given: Vec<usize> = (0..program.units.len()).collect();
    let mut order = given.clone();
    dice.shuffle(&mut order);
    (order != given).then_some(Mutant { kind: "link order", change: Change::Order(order) })
}

const COMPILER_OPTIONS: [&[&str]; 16] = [
    &["-funsigned-char"],
    &["-fwrapv"],
    &["-fno-inline"],
    &["-DSCALE=11"],
    &["-DOFFSET=3", "-Wno-macro-redefined"],
    &["-O0"],
    &["-O1"],
    &["-O2"],
    &["-O3"],
    &["-Os"],
    &["-fno-omit-frame-pointer"],
    &["-fshort-enums"],
    &["-fstack-protector-all"],
    &["-fno-common"],
    &["-fno-builtin"],
    &["-g"],
];

fn compiler_options(dice: &mut Dice, program: &Program) -> Mutant {
    let flags = dice.pick(&COMPILER_OPTIONS).iter().map(|flag| flag.to_string()).collect();
    Mutant { kind: "option", change: Change::Options { index: dice.below(program.units.len()), flags } }
}

fn link_options(dice: &mut Dice, program: &Program) -> Mutant {
    let mut choices: Vec<Vec<String>> = ["-Wl,-z,now", "-Wl,-z,norelro", "-rdynamic", "-Wl,-Bsymbolic", "-s", "-no-pie", "-Wl,--gc-sections"]
        .map(|option| vec![option.to_owned()])
        .to_vec();
    if program.alike.len() > 1 {
        let [one, other] = [dice.pick(&program.alike), dice.pick(&program.alike)];
        choices.push(vec![format!("-Wl,--wrap={one}"), format!("-Wl,--defsym=__wrap_{one}={other}")]);
        choices.push(vec![format!("-Wl,--defsym={one}={other}")]);
    }
    if program.has(Place::Library) {
        choices.push(vec!["-Wl,--no-as-needed".to_owned()]);
    }
    Mutant { kind: "link option", change: Change::Link(dice.pick(&choices).clone()) }
}
