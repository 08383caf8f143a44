//! Contradictions of the oracle, stored in a folder with everything that is needed to reproduce
//! them.

use crate::process::Ended;
use crate::program::Program;
use std::fs;
use std::io;
use std::path::Path;

pub struct Evidence<'e> {
    pub sort: &'e str,
    pub name: &'e str,
    pub setup: &'e str,
    pub what: &'e str,
    pub plain: &'e Ended,
    pub given: &'e Ended,
}

impl Evidence<'_> {
    /// Keeps the text of the program, the folder in which it was built, and what was found.
    pub fn keep(&self, misses: &Path, built: &Path, program: &Program) -> io::Result<()> {
        let folder = misses.join(self.name);
        fs::create_dir_all(&folder)?;
        for file in program.files() {
            fs::write(folder.join(&file.name), &file.text)?;
        }
        for part in ["bin", "base", "mut", "obj"] {
            let to = folder.join(part);
            fs::create_dir_all(&to)?;
            for entry in fs::read_dir(built.join(part))? {
                let path = entry?.path();
                fs::copy(&path, to.join(path.file_name().unwrap_or_default()))?;
            }
        }
        let Evidence { sort, name, setup, what, plain, given } = self;
        let [plain, given] = [plain, given].map(|ended| shortened(&ended.describe()));
        fs::write(
            folder.join("README"),
            format!(
                "{sort}: {name}\n{setup}\n\n{what}\n\n== plainly\n{plain}\n== given\n{given}\n"
            ),
        )?;
        eprintln!("lab: {sort}: {}", folder.display());
        Ok(())
    }
}

/// What a program wrote, but for all that is too much to read: no file may be as large as the
/// output of some mutants.
fn shortened(text: &str) -> String {
    const MOST: usize = 1 << 20;
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}\n… ({} bytes)", &text[..end], text.len()),
        None => text.to_owned(),
    }
}
