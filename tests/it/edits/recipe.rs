//! The list of what is linked, `main.o libx.a(x.o y.o) libz.so(z.o)` → items, and the files they
//! are made of.

use std::collections::BTreeSet;

/// One word of a link line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    /// An object, an option, or the name of a library made earlier.
    Word(String),
    /// An archive (`.a`) or a shared library (`.so`) to be made of other items, here and now.
    Made { name: String, parts: Vec<Item> },
}

pub fn parse_items(text: &str) -> Result<Vec<Item>, String> {
    let mut rest = text;
    let items = items_until(&mut rest, false)?;
    Ok(items)
}

fn items_until(rest: &mut &str, inside: bool) -> Result<Vec<Item>, String> {
    let mut items = Vec::new();
    loop {
        *rest = rest.trim_start();
        if rest.is_empty() || rest.starts_with(')') {
            break;
        }
        let end = rest
            .find(|letter: char| letter.is_whitespace() || "()".contains(letter))
            .unwrap_or(rest.len());
        let name = rest[..end].to_owned();
        *rest = &rest[end..];
        match rest.strip_prefix('(') {
            Some(inner) => {
                *rest = inner;
                items.push(Item::Made { name, parts: items_until(rest, true)? });
            }
            None => items.push(Item::Word(name)),
        }
    }
    match (inside, rest.strip_prefix(')')) {
        (true, Some(behind)) => *rest = behind,
        (true, None) => return Err("a `(` is not closed".to_owned()),
        (false, Some(_)) => return Err("a `)` is not opened".to_owned()),
        (false, None) => {}
    }
    Ok(items)
}

/// Every object that the items name, at any depth.
pub fn objects(items: &[Item]) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for item in items {
        match item {
            Item::Word(word) if word.ends_with(".o") && !word.starts_with('-') => {
                found.insert(word.clone());
            }
            Item::Word(_) => {}
            Item::Made { parts, .. } => found.extend(objects(parts)),
        }
    }
    found
}

/// Whether any item is a shared library made here.
pub fn shared_libraries(items: &[Item]) -> bool {
    items.iter().any(|item| matches!(item, Item::Made { name, .. } if name.ends_with(".so")))
}

#[test]
fn nested_items_are_parsed() {
    let word = |text: &str| Item::Word(text.to_owned());
    let items = parse_items("main.o libx.a(x.o y.o) libz.so(z.o libx.a) -lm").expect("a good list");
    let made = |name: &str, parts: Vec<Item>| Item::Made { name: name.to_owned(), parts };
    let expected = vec![
        word("main.o"),
        made("libx.a", vec![word("x.o"), word("y.o")]),
        made("libz.so", vec![word("z.o"), word("libx.a")]),
        word("-lm"),
    ];
    assert_eq!(items, expected);
    assert_eq!(objects(&items).into_iter().collect::<Vec<_>>(), ["main.o", "x.o", "y.o", "z.o"]);
    assert!(parse_items("libx.a(x.o").is_err());
    assert!(parse_items("x.o)").is_err());
}
