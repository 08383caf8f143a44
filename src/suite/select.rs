//! The tests that have to run, in the forms in which harnesses take them.
//!
//! In: names. Out: one text.

/// How tests are named to a harness.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// One a line.
    Names,
    /// For `ctest -R`.
    CTestRegex,
    /// For `cargo nextest run -E`.
    Nextest,
    /// For `--gtest_filter=`.
    GoogleTest,
}

/// The text for these tests. One that chooses nothing, if there are none.
pub fn text(names: &[String], form: Form) -> String {
    let joined = |between: &str, write: &dyn Fn(&String) -> String| {
        names.iter().map(write).collect::<Vec<_>>().join(between)
    };
    match form {
        Form::Names => joined("\n", &String::clone),
        Form::CTestRegex if names.is_empty() => "^$".to_owned(),
        Form::CTestRegex => {
            format!("^({})$", joined("|", &|name| escaped(name, r"\^$.[]|()*+?", '\\')))
        }
        Form::Nextest if names.is_empty() => "none()".to_owned(),
        Form::Nextest => joined(" | ", &|name| of_nextest(name)),
        Form::GoogleTest if names.is_empty() => "-*".to_owned(),
        Form::GoogleTest => joined(":", &String::clone),
    }
}

/// A test of nextest is called by its binary and its name.
fn of_nextest(name: &str) -> String {
    let escaped = |name| escaped(name, r"\()/,", '\\');
    match name.split_once(' ') {
        Some((binary, name)) => {
            format!("(binary_id(={}) & test(={}))", escaped(binary), escaped(name))
        }
        None => format!("test(={})", escaped(name)),
    }
}

pub fn escaped(name: &str, letters: &str, escape: char) -> String {
    let mut text = String::with_capacity(name.len());
    for letter in name.chars() {
        text.extend(letters.contains(letter).then_some(escape));
        text.push(letter);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_mean_themselves_in_every_form() {
        assert_eq!(
            text(&["b::c x::y".to_owned()], Form::Nextest),
            "(binary_id(=b::c) & test(=x::y))"
        );
        let names = ["a.b".to_owned(), "c(d)".to_owned()];
        assert_eq!(text(&names, Form::Names), "a.b\nc(d)");
        assert_eq!(text(&names, Form::CTestRegex), r"^(a\.b|c\(d\))$");
        assert_eq!(text(&names, Form::Nextest), r"test(=a.b) | test(=c\(d\))");
        assert_eq!(text(&names, Form::GoogleTest), "a.b:c(d)");
        assert_eq!(
            [Form::CTestRegex, Form::Nextest, Form::GoogleTest].map(|form| text(&[], form)),
            ["^$", "none()", "-*"]
        );
    }
}
