//! Both versions of a unit compiled, and the objects compared byte by byte.

use crate::Options;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tasting::model::Hash;

/// How two objects compare.
pub enum Verdict {
    Equal,
    /// The second version has an error, in what the object does not depend on.
    NotCompiled,
    /// By this compiler.
    Different(&'static str),
}

/// A place to compile at.
pub struct Bench {
    folder: PathBuf,
    keep: PathBuf,
    flags: Vec<String>,
    /// The objects of units as they are; `None` where they do not compile.
    plain: HashMap<(String, &'static str), Option<Hash>>,
    kept: usize,
}

impl Bench {
    pub fn new(options: &Options) -> Self {
        let folder = std::env::temp_dir().join(format!("tasting-ast-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder to compile in");
        let flags = [options.level.as_str(), "-w", "-c", "unit.i", "-o", "unit.o"]
            .into_iter()
            .map(str::to_owned)
            .collect();
        Bench { folder, keep: options.keep.clone(), flags, plain: HashMap::new(), kept: 0 }
    }

    /// Compiles two versions of a unit with the compiler whose preprocessor made it.
    pub fn compare(&mut self, path: &str, before: &str, after: &str) -> Verdict {
        let is_clang = Path::new(path)
            .file_name()
            .is_some_and(|name| name.to_string_lossy().starts_with("clang"));
        let compiler = if is_clang { "clang" } else { "gcc" };
        let key = (path.to_owned(), compiler);
        let plain = match self.plain.get(&key) {
            Some(plain) => *plain,
            None => {
                let object = self.compile(compiler, before);
                *self.plain.entry(key).or_insert(object)
            }
        };
        match (plain, self.compile(compiler, after)) {
            (Some(one), Some(other)) if one == other => Verdict::Equal,
            (Some(_), Some(_)) => Verdict::Different(compiler),
            _ => Verdict::NotCompiled,
        }
    }

    fn compile(&self, compiler: &str, text: &str) -> Option<Hash> {
        std::fs::write(self.folder.join("unit.i"), text).expect("a unit can be written");
        let mut command = Command::new(compiler);
        command.args(&self.flags).current_dir(&self.folder).stderr(Stdio::null());
        let is_compiled = command.status().expect("a compiler can be run").success();
        is_compiled
            .then(|| Hash::of(&std::fs::read(self.folder.join("unit.o")).expect("an object")))
    }

    /// Keeps two versions for whoever looks into it.
    pub fn keep(&mut self, path: &str, before: &str, after: &str) -> String {
        self.kept += 1;
        let name = Path::new(path).file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let folder = self.keep.join(format!("{}-{name}", self.kept));
        std::fs::create_dir_all(&folder).expect("a folder for what is wrong");
        std::fs::write(folder.join("before.i"), before).expect("a unit can be written");
        std::fs::write(folder.join("after.i"), after).expect("a unit can be written");
        folder.display().to_string()
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
