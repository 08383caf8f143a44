//! The pages of the documentation that the program carries inside: for `tasting help` and for the
//! manual.

/// A page.
pub struct Topic {
    /// Its name on the command line and in the manual.
    pub name: &'static str,
    /// The section of the manual.
    pub section: u8,
    pub purpose: &'static str,
    /// Markdown.
    pub text: &'static str,
}

pub const CODES: &str = "tasting-codes";

pub const TOPICS: [Topic; 3] = [
    Topic {
        name: "tasting.toml",
        section: 5,
        purpose: "the settings of a project for Tasting",
        text: include_str!("../../docs/settings.md"),
    },
    Topic {
        name: "tasting-cc",
        section: 1,
        purpose: "stand in for the compiler and the linker",
        text: include_str!("../../docs/shims.md"),
    },
    Topic {
        name: CODES,
        section: 7,
        purpose: "why tests run and why results are not kept",
        text: include_str!("../../docs/codes.md"),
    },
];

/// Other names of the same pages.
const ALIASES: [(&str, &str); 6] = [
    ("tasting-c++", "tasting-cc"),
    ("tasting-ld", "tasting-cc"),
    ("shims", "tasting-cc"),
    ("environment", "tasting-cc"),
    ("settings", "tasting.toml"),
    ("codes", CODES),
];

/// What is said about a word: a whole page, or the section that explains a code.
pub fn find(word: &str) -> Option<&'static str> {
    let name = ALIASES.iter().find(|(alias, _)| *alias == word).map_or(word, |(_, name)| name);
    let page = TOPICS.iter().find(|topic| topic.name == name).map(|topic| topic.text);
    page.or_else(|| code_section(word))
}

/// The section about a code, with its heading.
fn code_section(code: &str) -> Option<&'static str> {
    let text = TOPICS.iter().find(|topic| topic.name == CODES)?.text;
    let start = text.find(&format!("\n### {code}\n"))? + 1;
    let rest = &text[start..];
    let end = rest[1..].find("\n##").map_or(rest.len(), |end| end + 2);
    Some(&rest[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_lead_to_pages_and_sections() {
        assert!(find("tasting.toml").is_some_and(|text| text.starts_with("# ")));
        assert_eq!(find("tasting-ld"), find("tasting-cc"));
        let section = find("network").unwrap_or_default();
        assert!(
            section.starts_with("### network\n") && section[3..].matches("\n#").count() == 0,
            "{section}"
        );
        assert!(find("nothing").is_none());
    }
}
