//! The pages of docs/ as a book, made by the real mdBook.

use super::{linters, source};
use crate::workshop::{Outcome, Workshop};
use std::path::Path;

/// What a page of the book leads to.
fn targets(html: &str) -> Vec<&str> {
    let after = |mark| html.split(mark).skip(1).filter_map(|rest| rest.split('"').next());
    after(" href=\"").chain(after(" src=\"")).filter(|target| !target.contains(':')).collect()
}

/// Whether what a page leads to is in the book: the file, and the place in it.
fn is_there(page: &Path, target: &str) -> bool {
    let (file, place) = target.split_once('#').unwrap_or((target, ""));
    let path = if file.is_empty() { page.to_owned() } else { page.with_file_name(file) };
    let has_place = || {
        std::fs::read_to_string(&path).is_ok_and(|html| html.contains(&format!(" id=\"{place}\"")))
    };
    path.exists() && (place.is_empty() || has_place())
}

#[test]
#[ignore = "needs mdbook"]
fn every_link_in_the_book_leads_somewhere() {
    let shop = Workshop::new();
    let mut command = shop.command(linters().join("bin/mdbook"));
    let made =
        Outcome::of(command.arg("build").arg(source("")).arg("--dest-dir").arg(shop.path("book")));
    let is_clean = !made.stderr_text().contains("WARN") && !made.stdout_text().contains("WARN");
    assert!(made.success() && is_clean, "{made:?}");
    let mut links = 0;
    let mut wrong = Vec::new();
    for entry in std::fs::read_dir(source("docs")).expect("a folder of ours").flatten() {
        let name = entry.file_name().to_string_lossy().replace("README.md", "index.md");
        let Some(name) = name.strip_suffix(".md").filter(|name| *name != "SUMMARY") else {
            continue;
        };
        let page = shop.path(format!("book/{name}.html"));
        let html = std::fs::read_to_string(&page)
            .unwrap_or_else(|error| panic!("{}: {error}", page.display()));
        for target in targets(&html) {
            links += 1;
            if !is_there(&page, target) {
                wrong.push(format!("{name}: {target}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(links > 500, "only {links} links were found");
}
