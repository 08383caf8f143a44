//! Pages of the manual from the same text as the book: Markdown, as far as our documentation uses
//! it, in roff.
//!
//! In: a page of `docs/`. Out: the body of a man page. Headings, paragraphs, lists, tables and
//! blocks of code are known; what leads to other pages is left as its words.

/// The page of the manual that a text of the book makes.
pub fn page(name: &str, section: u8, purpose: &str, markdown: &str) -> String {
    let upper = name.to_uppercase();
    let mut out = format!(".TH \"{}\" {section} \"\" \"Tasting\"\n.SH NAME\n", plain(&upper));
    out.push_str(&format!("{} \\- {}\n.SH DESCRIPTION\n", inline(name), inline(purpose)));
    out.push_str(&body(markdown));
    ascii(&out)
}

/// The body: everything below the title.
pub fn body(markdown: &str) -> String {
    let mut writer = Writer::default();
    markdown.lines().for_each(|line| writer.line(line));
    writer.end_paragraph();
    writer.out
}

/// Letters beyond ASCII by their numbers, which every formatter reads in the same way.
pub fn ascii(text: &str) -> String {
    let letter = |letter: char| match letter.is_ascii() {
        true => letter.to_string(),
        false => format!("\\[u{:04X}]", letter as u32),
    };
    text.chars().map(letter).collect()
}

/// What has been read of a page.
#[derive(Default)]
struct Writer {
    out: String,
    /// The lines of a paragraph, or of an entry of a list.
    paragraph: String,
    is_entry: bool,
    in_code: bool,
    /// Whether the line before was one of a table.
    in_table: bool,
}

impl Writer {
    fn line(&mut self, line: &str) {
        if line.trim_start().starts_with("```") {
            self.end_paragraph();
            self.out.push_str(if self.in_code { ".EE\n.RE\n" } else { ".PP\n.RS 4\n.EX\n" });
            self.in_code = !self.in_code;
        } else if self.in_code {
            self.out.push_str(&format!("{}\n", protected(&plain(line))));
        } else if let Some(row) = line.strip_prefix('|') {
            self.end_paragraph();
            self.row(row.trim_end().trim_end_matches('|'));
            self.in_table = true;
            return;
        } else if let Some(heading) = line.strip_prefix('#') {
            self.end_paragraph();
            self.heading(heading);
        } else if line.trim().is_empty() {
            self.end_paragraph();
        } else if let Some(entry) = line.strip_prefix("- ") {
            self.end_paragraph();
            self.is_entry = true;
            self.paragraph.push_str(entry);
        } else {
            if !self.paragraph.is_empty() {
                self.paragraph.push(' ');
            }
            self.paragraph.push_str(line.trim());
        }
        self.in_table = false;
    }

    fn end_paragraph(&mut self) {
        let text = std::mem::take(&mut self.paragraph);
        if !text.is_empty() {
            let start = if self.is_entry { ".IP \\(bu 2\n" } else { ".PP\n" };
            self.out.push_str(&format!("{start}{}\n", protected(&inline(&text))));
        }
        self.is_entry = false;
    }

    /// The title is in the page's head already.
    fn heading(&mut self, heading: &str) {
        let text = heading.trim_start_matches('#').trim();
        match heading.len() - heading.trim_start_matches('#').len() {
            0 => {}
            1 => self.out.push_str(&format!(".SH \"{}\"\n", quoted(&text.to_uppercase()))),
            _ => self.out.push_str(&format!(".SS \"{}\"\n", quoted(text))),
        }
    }

    /// A row of a table: its first cell names what the others are about. The head says nothing that
    /// the page does not.
    fn row(&mut self, row: &str) {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let is_rule = cells
            .iter()
            .all(|cell| !cell.is_empty() && cell.chars().all(|letter| "-: ".contains(letter)));
        if !self.in_table || is_rule {
            return;
        }
        let (name, rest) = cells.split_first().map_or(("", &[][..]), |(name, rest)| (*name, rest));
        let rest: Vec<&str> = rest.iter().copied().filter(|cell| !cell.is_empty()).collect();
        self.out.push_str(&format!(
            ".TP\n{}\n{}\n",
            protected(&inline(name)),
            protected(&inline(&rest.join(" \u{2013} ")))
        ));
    }
}

/// A line that begins with a dot or an apostrophe is text here, not a request.
fn protected(line: &str) -> String {
    if line.starts_with(['.', '\'']) { format!("\\&{line}") } else { line.to_owned() }
}

fn quoted(text: &str) -> String {
    inline(&text.replace('`', "")).replace('"', "\\(dq")
}

/// Text without markup.
fn plain(text: &str) -> String {
    text.replace('\\', "\\e")
        .replace('-', "\\-")
        .replace('`', "\\(ga")
        .replace('^', "\\(ha")
        .replace('~', "\\(ti")
}

/// Code and bold words in bold, emphasised ones in italics, links as their words.
fn inline(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(['`', '*', '[']) {
        out.push_str(&plain(&rest[..at]));
        rest = &rest[at..];
        let (shown, after) = span(rest);
        out.push_str(&shown);
        rest = after;
    }
    out + &plain(rest)
}

/// What stands at the start of a text, and what follows it.
fn span(text: &str) -> (String, &str) {
    let between = |mark: &str| {
        let inside = text.strip_prefix(mark)?;
        let end = inside.find(mark).filter(|end| *end > 0)?;
        Some((&inside[..end], &inside[end + mark.len()..]))
    };
    if let Some((code, rest)) = between("`") {
        return (format!("\\fB{}\\fR", plain(code)), rest);
    }
    if let Some((bold, rest)) = between("**") {
        return (format!("\\fB{}\\fR", inline(bold)), rest);
    }
    if let Some((emphasised, rest)) = between("*") {
        return (format!("\\fI{}\\fR", inline(emphasised)), rest);
    }
    if let Some((words, rest)) = text.strip_prefix('[').and_then(|text| text.split_once("]("))
        && !words.contains('[')
        && let Some((_, rest)) = rest.split_once(')')
    {
        return (inline(words), rest);
    }
    let first = text.chars().next().map_or(0, char::len_utf8);
    (plain(&text[..first]), &text[first..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_becomes_requests() {
        let text = "# Title\n\nA `-x` and **bold**\ntext, see [there](x.md).\n\n## Part\n\n| a | b |\n|---|---|\n| `k` | v | w |\n\n\
            ```sh\n.x\\n\n```\n- one\n  more\n- two\n";
        let expected = ".PP\nA \\fB\\-x\\fR and \\fBbold\\fR text, see there.\n.SH \"PART\"\n.TP\n\\fBk\\fR\nv \u{2013} w\n\
            .PP\n.RS 4\n.EX\n\\&.x\\en\n.EE\n.RE\n.IP \\(bu 2\none more\n.IP \\(bu 2\ntwo\n";
        assert_eq!(body(text), expected);
    }

    #[test]
    fn marks_without_an_end_are_letters() {
        assert_eq!(inline("a * b [c] `d"), "a * b [c] \\(gad");
        assert_eq!(ascii("a\u{2026}"), "a\\[u2026]");
    }
}
