//! JUnit files of harnesses, as far as they say how tests ended.
//!
//! In: the text. Out: the name and end of each test, in order.

use crate::suite::End;

/// The tests of a file.
pub fn read(text: &str) -> Vec<(String, End)> {
    text.split("<testcase").skip(1).filter_map(case).collect()
}

fn case(text: &str) -> Option<(String, End)> {
    let (head, rest) = text.split_once('>')?;
    let body =
        if head.ends_with('/') { "" } else { rest.split("</testcase>").next().unwrap_or_default() };
    let has = |element: &str| body.contains(&format!("<{element}"));
    let end = match attribute(head, "status").as_deref() {
        Some("fail") => End::Failed,
        Some("notrun") if has("skipped message=\"SKIP_") => End::Skipped,
        Some("notrun") => End::NotRun,
        Some("disabled") => End::Skipped,
        _ if has("failure") || has("error") => End::Failed,
        _ if has("skipped") => End::Skipped,
        _ => End::Passed,
    };
    Some((attribute(head, "name")?, end))
}

fn attribute(head: &str, name: &str) -> Option<String> {
    let start = head.find(&format!(" {name}=\""))? + name.len() + 3;
    let value = head[start..].split('"').next()?;
    Some(unescape(value))
}

/// The text that XML stands for.
fn unescape(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        plain.push_str(&rest[..at]);
        let Some((entity, after)) = rest[at + 1..].split_once(';') else { break };
        let number =
            |digits: &str, base| u32::from_str_radix(digits, base).ok().and_then(char::from_u32);
        let letter = match entity {
            "lt" => Some('<'),
            "gt" => Some('>'),
            "amp" => Some('&'),
            "quot" => Some('"'),
            "apos" => Some('\''),
            _ => match entity.strip_prefix("#x") {
                Some(digits) => number(digits, 16),
                None => entity.strip_prefix('#').and_then(|digits| number(digits, 10)),
            },
        };
        plain.extend(letter);
        rest = after;
    }
    plain + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_of_tests_that_ctest_writes() {
        let text = "<testsuite tests=\"4\">\n\t<testcase name=\"a &lt;b&gt; &#9;\" classname=\"x\" time=\"0.1\" status=\"run\">\n\
            <system-out>&lt;failure</system-out></testcase><testcase name=\"f\" status=\"fail\"><failure message=\"Failed\"/></testcase>\
            <testcase name=\"n\" status=\"notrun\"><skipped message=\"Unable to find executable\"/></testcase>\
            <testcase name=\"s\" status=\"notrun\"><skipped message=\"SKIP_RETURN_CODE=77\"/></testcase>\
            <testcase name=\"d\" status=\"disabled\"/>";
        let expected = [
            ("a <b> \t", End::Passed),
            ("f", End::Failed),
            ("n", End::NotRun),
            ("s", End::Skipped),
            ("d", End::Skipped),
        ];
        assert_eq!(read(text), expected.map(|(name, end)| (name.to_owned(), end)));
    }
}
