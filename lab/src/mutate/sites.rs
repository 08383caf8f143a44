//! Where in a text what can be changed, and into what. Each function lists all places of its kind.

use super::Edits;
use super::lexer::TokenKind;
use super::source::{KEPT, NUMBER_TYPES, Source, TYPE_WORDS, swapped};
use crate::dice::Dice;
use std::collections::BTreeSet;

pub fn operators(source: &Source, _: &mut Dice) -> Vec<Edits> {
    let mut found = Vec::new();
    for at in source.of_kind(TokenKind::Sign) {
        let others: &[&str] = match source.word(at) {
            "+" if source.is_binary(at) => &["-", "*", "^"],
            "-" if source.is_binary(at) => &["+"],
            "*" if source.is_binary(at) && source.tokens[at].depth > 0 => &["+", "/"],
            "/" => &["*", "%"],
            "%" => &["/", "*"],
            "&" if source.is_binary(at) => &["|", "^"],
            "|" => &["&", "^"],
            "^" => &["|", "&", "+"],
            "<<" => &[">>"],
            ">>" => &["<<"],
            "&&" if source.is_binary(at) => &["||"],
            "||" => &["&&"],
            "+=" => &["-=", "^=", "="],
            "-=" => &["+="],
            "^=" => &["+=", "|="],
            "++" => &["--"],
            "!" => &[" "],
            "?" => &["== 0 ?"],
            _ => &[],
        };
        found.extend(others.iter().map(|other| source.replace(at, *other)));
    }
    found
}

pub fn comparisons(source: &Source, _: &mut Dice) -> Vec<Edits> {
    let mut found = Vec::new();
    for at in source.of_kind(TokenKind::Sign) {
        let others: &[&str] = match source.word(at) {
            "<" => &["<=", ">", "!="],
            "<=" => &["<", ">="],
            ">" => &[">=", "<"],
            ">=" => &[">", "<="],
            "==" => &["!=", "<="],
            "!=" => &["==", ">"],
            _ => &[],
        };
        found.extend(others.iter().map(|other| source.replace(at, *other)));
    }
    found
}

/// Another number than this one, written in the same way.
pub fn other_number(text: &str, dice: &mut Dice) -> Option<String> {
    let (digits, radix) = text
        .strip_prefix("0x")
        .or(text.strip_prefix("0X"))
        .map_or((text, 10), |digits| (digits, 16));
    if radix == 10 && text.contains('.') {
        let (number, suffix) = text.strip_suffix('f').map_or((text, ""), |number| (number, "f"));
        let value: f64 = number.parse().ok()?;
        return Some(format!("{:.2}{suffix}", value * 2.0 + 0.5));
    }
    let suffix_at = digits.find(|letter: char| !letter.is_digit(radix)).unwrap_or(digits.len());
    let value = u64::from_str_radix(&digits[..suffix_at], radix).ok()?;
    let others = [
        value.wrapping_add(1),
        value.saturating_sub(1),
        value ^ 2,
        0,
        value.saturating_mul(2),
        value ^ 64,
    ];
    let other = *dice.pick(&others);
    let suffix = &digits[suffix_at..];
    (other != value).then(|| {
        if radix == 16 { format!("0x{other:x}{suffix}") } else { format!("{other}{suffix}") }
    })
}

pub fn constants(source: &Source, dice: &mut Dice) -> Vec<Edits> {
    let inside = source
        .of_kind(TokenKind::Number)
        .filter(|at| source.tokens[*at].depth > 0)
        .collect::<Vec<_>>();
    numbers(source, dice, inside)
}

/// Numbers of variables, and of what stands in braces behind them.
pub fn initialisers(source: &Source, dice: &mut Dice) -> Vec<Edits> {
    let is_value = |at: &usize| {
        let start = (0..*at).rev().find(|before| {
            source.tokens[*before].depth == 0 && [";", "}", ")"].contains(&source.word(*before))
        });
        let start = start.map_or(0, |before| before + 1);
        (start..*at).any(|before| source.tokens[before].depth == 0 && source.word(before) == "=")
    };
    let found = source.of_kind(TokenKind::Number).filter(is_value).collect::<Vec<_>>();
    numbers(source, dice, found)
}

pub fn numbers(source: &Source, dice: &mut Dice, places: Vec<usize>) -> Vec<Edits> {
    places
        .into_iter()
        .filter_map(|at| Some(source.replace(at, other_number(source.word(at), dice)?)))
        .collect()
}

pub fn strings(source: &Source, dice: &mut Dice) -> Vec<Edits> {
    let mut found = Vec::new();
    for at in source.of_kind(TokenKind::Text) {
        let text = source.word(at);
        let letters: Vec<usize> = (2..text.len().saturating_sub(1))
            .filter(|place| {
                text.as_bytes()[*place].is_ascii_alphanumeric()
                    && !b"%\\".contains(&text.as_bytes()[place - 1])
            })
            .collect();
        if letters.is_empty() || !text.starts_with('"') {
            continue;
        }
        let place = *dice.pick(&letters);
        let other = if text.as_bytes()[place] == b'x' { "y" } else { "x" };
        found.push(source.replace(at, format!("{}{other}{}", &text[..place], &text[place + 1..])));
        found.push(source.replace(at, format!("{}{}", &text[..place], &text[place + 1..])));
    }
    found
}

pub fn casts(source: &Source, dice: &mut Dice) -> Vec<Edits> {
    let mut found = Vec::new();
    for at in 1..source.tokens.len() {
        if source.word(at) != "("
            || source.tokens[at - 1].kind == TokenKind::Word && source.word(at - 1) != "return"
        {
            continue;
        }
        let Some(close) = source.closing(at) else { continue };
        if close > at + 1 && (at + 1..close).all(|inside| TYPE_WORDS.contains(&source.word(inside)))
        {
            let range = source.tokens[at].range.end..source.tokens[close].range.start;
            found.push(vec![(range, dice.pick(&NUMBER_TYPES).to_string())]);
            found.push(vec![(
                source.tokens[at].range.start..source.tokens[close].range.end,
                String::new(),
            )]);
        }
    }
    found
}

pub fn added_casts(source: &Source, dice: &mut Dice) -> Vec<Edits> {
    let mut found = Vec::new();
    for at in 1..source.tokens.len() {
        let is_place = ["return", "=", "+", "^", "*", "("].contains(&source.word(at - 1))
            && source.tokens[at].depth > 0;
        let is_value = source.tokens[at].kind == TokenKind::Word
            && !TYPE_WORDS.contains(&source.word(at))
            && !KEPT.contains(&source.word(at));
        if is_place && is_value {
            let start = source.tokens[at].range.start;
            found.push(vec![(start..start, format!("({})", dice.pick(&NUMBER_TYPES)))]);
        }
    }
    found
}

/// Types of local variables and of fields; those of functions have to fit their declarations.
pub fn types(source: &Source, dice: &mut Dice) -> Vec<Edits> {
    let mut found = Vec::new();
    for at in 1..source.tokens.len() {
        let is_start =
            [";", "{", "}", "static"].contains(&source.word(at - 1)) && source.tokens[at].depth > 0;
        if is_start && TYPE_WORDS.contains(&source.word(at)) {
            let end = (at..source.tokens.len())
                .find(|end| !TYPE_WORDS.contains(&source.word(*end)))
                .unwrap_or(at + 1);
            let range = source.tokens[at].range.start..source.tokens[end - 1].range.end;
            found.push(vec![(range, dice.pick(&NUMBER_TYPES).to_string())]);
        }
    }
    found
}

pub fn deleted_statements(source: &Source, _: &mut Dice) -> Vec<Edits> {
    source.statements().into_iter().map(|range| vec![(range, ";".to_owned())]).collect()
}

pub fn swapped_statements(source: &Source, _: &mut Dice) -> Vec<Edits> {
    let statements = source.statements();
    let neighbours = statements
        .windows(2)
        .filter(|pair| source.text[pair[0].end..pair[1].start].trim().is_empty());
    neighbours.map(|pair| swapped(source, &pair[0], &pair[1])).collect()
}

pub fn swapped_arguments(source: &Source, _: &mut Dice) -> Vec<Edits> {
    let opens = (1..source.tokens.len())
        .filter(|at| source.word(*at) == "(" && source.tokens[at - 1].kind == TokenKind::Word);
    neighbours(source, opens.collect())
}

/// Entries of lists in braces.
pub fn swapped_entries(source: &Source, _: &mut Dice) -> Vec<Edits> {
    let opens = (1..source.tokens.len())
        .filter(|at| source.word(*at) == "{" && ["=", ",", "{"].contains(&source.word(at - 1)));
    neighbours(source, opens.collect())
}

fn neighbours(source: &Source, opens: Vec<usize>) -> Vec<Edits> {
    let mut found = Vec::new();
    for open in opens {
        let parts = source.parts(open);
        found.extend(parts.windows(2).map(|pair| swapped(source, &pair[0], &pair[1])));
    }
    found
}

pub fn other_functions(source: &Source, dice: &mut Dice) -> Vec<Edits> {
    let mut candidates: BTreeSet<&str> = source.defined().into_iter().collect();
    candidates.extend(source.alike.iter().map(String::as_str));
    let candidates: Vec<&str> = candidates.into_iter().collect();
    let is_use =
        |at: &usize| source.tokens[*at].depth > 0 && candidates.contains(&source.word(*at));
    source
        .of_kind(TokenKind::Word)
        .filter(is_use)
        .map(|at| source.replace(at, *dice.pick(&candidates)))
        .collect()
}

pub fn exchanged_functions(source: &Source, dice: &mut Dice) -> Vec<Edits> {
    let defined = source.defined();
    if defined.len() < 2 {
        return Vec::new();
    }
    let (one, other) = (*dice.pick(&defined), *dice.pick(&defined));
    if one == other { Vec::new() } else { vec![source.renamed(one, other, true)] }
}

/// Static functions: nobody else knows their names.
pub fn renamed_functions(source: &Source, dice: &mut Dice) -> Vec<Edits> {
    let own: Vec<&str> = source
        .defined()
        .into_iter()
        .filter(|name| !source.alike.iter().any(|known| known == name))
        .collect();
    if own.is_empty() {
        return Vec::new();
    }
    let name = *dice.pick(&own);
    vec![source.renamed(name, &format!("{name}_renamed"), false)]
}

pub fn returns(source: &Source, dice: &mut Dice) -> Vec<Edits> {
    let mut found = Vec::new();
    for at in source.of_kind(TokenKind::Word).filter(|at| source.word(*at) == "return") {
        let Some(end) = (at..source.tokens.len()).find(|end| source.word(*end) == ";") else {
            continue;
        };
        if end > at + 1 {
            let range = source.tokens[at + 1].range.start..source.tokens[end - 1].range.end;
            found.push(vec![(
                range.clone(),
                format!("({}) + {}", &source.text[range.clone()], dice.between(1, 9)),
            )]);
            found.push(vec![(range, dice.below(99).to_string())]);
        }
    }
    found
}

/// A variable in the place of another.
pub fn other_variables(source: &Source, dice: &mut Dice) -> Vec<Edits> {
    let is_variable = |at: &usize| {
        let (before, behind) =
            (at.checked_sub(1).map_or("", |before| source.word(before)), source.word(at + 1));
        source.tokens[*at].depth > 0
            && ["=", "+=", "^=", ";", ")", "+", "*", ",", "[", "++", "^", "&", "%"]
                .contains(&behind)
            && !TYPE_WORDS.contains(&source.word(*at))
            && !KEPT.contains(&source.word(*at))
            && ![".", "->", "goto", "struct", "unsigned"].contains(&before)
    };
    let places: Vec<usize> = source.of_kind(TokenKind::Word).filter(is_variable).collect();
    if places.len() < 2 {
        return Vec::new();
    }
    // A neighbour is likely to be in the same scope.
    let other = |index: usize, dice: &mut Dice| places[(index + dice.between(1, 6)) % places.len()];
    places
        .iter()
        .enumerate()
        .map(|(index, at)| source.replace(*at, source.word(other(index, dice))))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mutate::apply;
    use crate::mutate::declaration_sites::{attributes, includes, macros, qualifiers};

    const TEXT: &str = "#include \"knobs.h\"\n#define TEN 10\nstatic int table[] = {1, 2};\nstatic unsigned f(unsigned a, unsigned b)\n{\n    unsigned x = a + 1;\n    x += b;\n    x ^= a;\n    return (short)x < 5 ? g(a, b) : x;\n}\nunsigned h(unsigned a, unsigned b) { return f(b, a); }\n";

    fn all(find: fn(&Source, &mut Dice) -> Vec<Edits>) -> Vec<String> {
        let alike = ["h".to_owned(), "g".to_owned()];
        find(&Source::new(TEXT, &alike), &mut Dice::new(3, "sites"))
            .iter()
            .map(|edits| apply(TEXT, edits))
            .collect()
    }

    #[track_caller]
    fn has(find: fn(&Source, &mut Dice) -> Vec<Edits>, expected: &str) {
        let found = all(find);
        assert!(
            found.iter().any(|text| text.contains(expected)),
            "{expected} is in none of {found:#?}"
        );
    }

    #[test]
    fn each_kind_finds_its_places() {
        has(operators, "a - 1");
        has(comparisons, "(short)x <= 5");
        has(casts, "return x < 5");
        has(added_casts, "unsigned x = (");
        has(deleted_statements, "    ;\n    x ^= a;");
        has(swapped_statements, "x ^= a;\n    x += b;");
        has(swapped_arguments, "g(b, a)");
        has(swapped_entries, "{2, 1}");
        has(exchanged_functions, "static unsigned h(unsigned a");
        has(renamed_functions, "return f_renamed(b, a)");
        has(qualifiers, "{\n    volatile unsigned x");
        has(includes, "knobs_other.h");
        has(attributes, "__attribute__((");
    }

    #[test]
    fn numbers_are_changed_where_they_are_meant() {
        assert!(
            all(initialisers)
                .iter()
                .all(|text| text.contains("a + 1;") && !text.contains("{1, 2}"))
        );
        assert!(all(constants).iter().all(|text| text.contains("TEN 10")));
        assert!(all(macros).iter().all(|text| !text.contains("TEN 10")));
    }
}
