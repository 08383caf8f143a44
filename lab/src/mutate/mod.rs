//! Mutations: one random small change of a program's text, of the order of its link, or of the
//! options it is built with.

mod declaration_sites;
pub mod files;
mod layout_sites;
pub mod lexer;
mod sites;
mod source;

use crate::dice::Dice;
use crate::program::{Packaging, Program};
use source::Source;
use std::ops::Range;

/// Pieces of a text and what they become, in order.
pub type Edits = Vec<(Range<usize>, String)>;

/// What is done to a program at one time.
#[derive(Clone, Debug)]
pub enum Step {
    /// One mutation of each of some tests.
    Each(Vec<Mutation>),
    /// A change that concerns all of them.
    Whole { kind: &'static str, change: Change },
}

/// A part of a unit that has another text.
#[derive(Clone, Debug)]
pub struct Mutation {
    pub kind: &'static str,
    pub owner: usize,
    pub unit: usize,
    pub segment: usize,
    pub text: String,
}

#[derive(Clone, Debug)]
pub enum Change {
    /// A unit has another text in a part that belongs to all.
    Unit { index: usize, text: String },
    /// A header has another text: all units are compiled again.
    Header { index: usize, text: String },
    /// A unit is compiled with more options.
    Options { index: usize, flags: Vec<String> },
    /// The objects are linked in another order.
    Order(Vec<usize>),
    /// The link gets more options.
    Link(Vec<String>),
    /// All units are compiled by a wrapper that adds options.
    Wrapper(Vec<String>),
}

/// How often each kind is tried; within a text the place is chosen among all that there are.
const KINDS: [(&str, usize, Find); 23] = [
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
    ("attribute", 3, declaration_sites::attributes),
    ("qualifier", 3, declaration_sites::qualifiers),
    ("macro", 3, declaration_sites::macros),
    ("return", 3, sites::returns),
    ("entries swapped", 3, sites::swapped_entries),
    ("variable", 5, sites::other_variables),
    ("definitions exchanged", 8, layout_sites::exchanged_definitions),
    ("line moved", 4, layout_sites::moved_lines),
    ("blank inserted", 4, layout_sites::inserted_blanks),
];

type Find = fn(&Source, &mut Dice) -> Vec<Edits>;

/// Kinds that are not in the text of a unit, in shares of a hundred.
const HEADER: usize = 6;
const OPTIONS: usize = 5;
const LINK: usize = 4;
const ORDER: usize = 4;
const INCLUDE: usize = 2;

/// A random step; `None` if the throw found no place for its kind.
pub fn step(dice: &mut Dice, program: &Program) -> Option<Step> {
    let throw = dice.below(100);
    if throw < ORDER {
        return order(dice, program);
    }
    if throw >= 100 - INCLUDE {
        return include(dice, program);
    }
    if throw < ORDER + LINK {
        return Some(link_options(dice, program));
    }
    if throw < ORDER + LINK + OPTIONS {
        return Some(compiler_options(dice, program));
    }
    if throw < ORDER + LINK + OPTIONS + HEADER {
        let index = dice.below(program.headers.len());
        let alike = &dice.pick(&program.tests).alike;
        let (kind, text) = edited(dice, alike, &program.headers[index].text)?;
        let kind = if kind == "macro" { kind } else { "header" };
        return Some(Step::Whole { kind, change: Change::Header { index, text } });
    }
    let mutations = (0..program.tests.len()).filter_map(|owner| mutation(dice, program, owner));
    Some(Step::Each(mutations.collect()))
}

/// A mutation of a test: somewhere in its text, the longer parts more often.
fn mutation(dice: &mut Dice, program: &Program, owner: usize) -> Option<Mutation> {
    let mut places = Vec::new();
    for (unit, segments) in program.units.iter().map(|unit| &unit.segments).enumerate() {
        for (segment, content) in
            segments.iter().enumerate().filter(|(_, content)| content.owner == Some(owner))
        {
            places.extend(std::iter::repeat_n((unit, segment), content.text.len().div_ceil(64)));
        }
    }
    let (unit, segment) = *dice.pick(&places);
    // A kind that has no place there is followed by another one.
    let given = &program.units[unit].segments[segment].text;
    let (kind, text) = (0..4).find_map(|_| edited(dice, &program.tests[owner].alike, given))?;
    Some(Mutation { kind, owner, unit, segment, text })
}

fn edited(dice: &mut Dice, alike: &[String], text: &str) -> Option<(&'static str, String)> {
    let source = Source::new(text, alike);
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

fn order(dice: &mut Dice, program: &Program) -> Option<Step> {
    let given: Vec<usize> = (0..program.units.len()).collect();
    let mut order = given.clone();
    if dice.percent(50) {
        let (one, other) = (dice.below(order.len()), dice.below(order.len()));
        order.swap(one, other);
        return (order != given)
            .then_some(Step::Whole { kind: "objects exchanged", change: Change::Order(order) });
    }
    dice.shuffle(&mut order);
    (order != given).then_some(Step::Whole { kind: "link order", change: Change::Order(order) })
}

/// Another header in the place of one.
fn include(dice: &mut Dice, program: &Program) -> Option<Step> {
    let index = dice.below(program.units.len());
    let given = program.units[index].text();
    let places = declaration_sites::includes(&Source::new(&given, &[]), dice);
    let text = apply(&given, places.first()?);
    Some(Step::Whole { kind: "include", change: Change::Unit { index, text } })
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

fn compiler_options(dice: &mut Dice, program: &Program) -> Step {
    let flags = dice.pick(&COMPILER_OPTIONS).iter().map(|flag| flag.to_string()).collect();
    if dice.percent(20) {
        return Step::Whole { kind: "wrapper", change: Change::Wrapper(flags) };
    }
    Step::Whole {
        kind: "option",
        change: Change::Options { index: dice.below(program.units.len()), flags },
    }
}

fn link_options(dice: &mut Dice, program: &Program) -> Step {
    let mut choices: Vec<Vec<String>> = [
        "-Wl,-z,now",
        "-Wl,-z,norelro",
        "-rdynamic",
        "-Wl,-Bsymbolic",
        "-s",
        "-no-pie",
        "-Wl,--gc-sections",
    ]
    .map(|option| vec![option.to_owned()])
    .to_vec();
    let alike = &dice.pick(&program.tests).alike;
    if alike.len() > 1 {
        let [one, other] = [dice.pick(alike), dice.pick(alike)];
        choices
            .push(vec![format!("-Wl,--wrap={one}"), format!("-Wl,--defsym=__wrap_{one}={other}")]);
        choices.push(vec![format!("-Wl,--defsym={one}={other}")]);
    }
    if program.has(Packaging::Library) {
        choices.push(vec!["-Wl,--no-as-needed".to_owned()]);
    }
    Step::Whole { kind: "link option", change: Change::Link(dice.pick(&choices).clone()) }
}
