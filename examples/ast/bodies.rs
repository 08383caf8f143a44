//! A changed token of a body changes the hash of its function, and of no other.

use crate::Options;
use crate::random::Random;
use crate::text::{Item, is_word, items, tokens};
use tasting::ast::{self, Unit};
use tasting::model::Hash;

/// Changes tokens, and counts what does not hold.
pub fn check(options: &Options) -> bool {
    let mut random = Random(options.seed);
    let (mut tried, mut refused, mut unused, mut wrong) = (0, 0, 0, 0);
    while tried + refused + unused < options.count {
        let path = random.choice(&options.files);
        let text = std::fs::read_to_string(path).expect("a unit of text");
        let Ok(unit) = ast::read(text.as_bytes()) else {
            refused += 1;
            continue;
        };
        let tokens = tokens(&text);
        let items = items(&text, &tokens);
        // Headers have inline functions that nothing uses, which would be most of the bodies.
        let is_inline = |item: &&Item| {
            tokens[item.tokens.clone()]
                .iter()
                .take(8)
                .any(|range| text[range.clone()].contains("inline"))
        };
        let has_body = |item: &&Item| item.body.as_ref().is_some_and(|body| !body.is_empty());
        let bodies: Vec<_> =
            items.iter().filter(|item| has_body(item) && !is_inline(item)).collect();
        // Units take time to read, and have many bodies.
        for _ in 0..20.min(bodies.len()) {
            let item = random.choice(&bodies);
            let body = item.body.clone().expect("a body");
            let range = tokens[body.start + random.below(body.len())].clone();
            let Some(new) =
                other(&text[range.clone()], &mut random).filter(|new| *new != text[range.clone()])
            else {
                continue;
            };
            let changed = format!("{} {new} {}", &text[..range.start], &text[range.end..]);
            let Ok(other) = ast::read(changed.as_bytes()) else {
                refused += 1;
                continue;
            };
            let head = &text[tokens[item.tokens.start].start..tokens[body.start].start];
            match different(&unit, &other)[..] {
                [ref name]
                    if head.contains(name.as_str()) || head.trim_start().starts_with('{') =>
                {
                    tried += 1
                }
                [] if head.contains("inline") => unused += 1,
                ref names => {
                    println!(
                        "WRONG: {path}: `{}` became `{new}` in {head}: {names:?} changed",
                        &text[range]
                    );
                    wrong += 1;
                    tried += 1;
                }
            }
        }
    }
    println!(
        "{tried} changed tokens of bodies (seed {}): {wrong} WRONG; {refused} refused, {unused} in functions that are not used",
        options.seed
    );
    wrong == 0
}

/// Another token for one, where that is likely to be C again.
fn other(token: &str, random: &mut Random) -> Option<String> {
    let others: &[&str] = match token {
        "+" => &["-", "*"],
        "-" => &["+", "/"],
        "==" => &["!="],
        "<" => &[">", "<="],
        "=" => &["+=", "-="],
        "&&" => &["||"],
        "->" => &[" [0] ."],
        "0" => &["1"],
        _ if token.as_bytes()[0].is_ascii_digit() => &["0", "2147483647"],
        _ if token.starts_with('"') => &["\"other\""],
        _ if is_word(token.as_bytes()[0]) => &["another_name", "errno", "x"],
        _ => return None,
    };
    Some((*random.choice(others)).to_owned())
}

/// The definitions of both whose hashes differ.
fn different(one: &Unit, other: &Unit) -> Vec<String> {
    let hashes = |unit: &Unit| {
        unit.definitions
            .iter()
            .map(|found| (found.name.clone(), found.hash))
            .collect::<Vec<(String, Hash)>>()
    };
    let others: std::collections::HashMap<_, _> = hashes(other).into_iter().collect();
    let one = hashes(one).into_iter();
    one.filter(|(name, hash)| others.get(name).is_some_and(|other| other != hash))
        .map(|(name, _)| name)
        .collect()
}
