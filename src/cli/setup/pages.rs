//! The manual: a page for `tasting`, one for each subcommand, and those of the documentation that
//! belong there.
//!
//! In: the definitions of the command line. Out: pages in roff, by name and section.

use crate::cli::topics::{TOPICS, Topic};
use crate::report::roff;
use clap_mangen::Man;
use std::io;

/// Name, section, text.
pub type Page = (String, u8, Vec<u8>);

/// What tasting-cc(1) is also called.
const OTHER_SHIMS: [&str; 2] = ["tasting-c++", "tasting-ld"];

/// All pages.
pub fn all() -> io::Result<Vec<Page>> {
    let mut command = crate::cli::command();
    command.build();
    let mut pages = Vec::new();
    of_command(command, &mut pages)?;
    for Topic { name, section, purpose, text } in TOPICS {
        pages.push((
            name.to_owned(),
            section,
            roff::page(name, section, purpose, text).into_bytes(),
        ));
    }
    pages.extend(OTHER_SHIMS.map(|name| (name.to_owned(), 1, b".so man1/tasting-cc.1\n".to_vec())));
    Ok(pages)
}

fn of_command(command: clap::Command, pages: &mut Vec<Page>) -> io::Result<()> {
    for inner in command.get_subcommands().filter(|inner| !inner.is_hide_set()) {
        of_command(inner.clone(), pages)?;
    }
    let name = command.get_display_name().unwrap_or_else(|| command.get_name()).to_owned();
    let mut page = Vec::new();
    Man::new(command).source("Tasting").render(&mut page)?;
    page.extend(see_also(&name).bytes());
    let page = roff::ascii(&String::from_utf8_lossy(&page));
    pages.push((name, 1, page.into_bytes()));
    Ok(())
}

/// The pages of the documentation, and the one above.
fn see_also(name: &str) -> String {
    let above = (name != "tasting").then_some(("tasting", 1));
    let others = TOPICS.iter().map(|topic| (topic.name, topic.section));
    let pages = above.into_iter().chain(others);
    let named: Vec<String> = pages
        .map(|(name, section)| format!("\\fB{}\\fR({section})", name.replace('-', "\\-")))
        .collect();
    format!(".SH \"SEE ALSO\"\n{}\n", named.join(", "))
}
