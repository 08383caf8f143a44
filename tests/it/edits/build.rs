//! One version of a fixture → objects (once), then binaries (once per linker), then fingerprints
//! and outcomes.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::fixture::{Fixture, Language, Version};
use super::matrix::{Compilation, Linker};
use super::recipe::{Item, objects, shared_libraries};
use crate::workshop::{Outcome, Workshop, fingerprint, succeed};

/// Which tools build: the shims, or the real ones with the section flags, for checking the fixtures
/// themselves.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Tools {
    Shims,
    Plain,
}

/// One version of a fixture in a folder of its own.
pub struct Site<'a> {
    pub workshop: &'a Workshop,
    pub fixture: &'a Fixture,
    pub compilation: Compilation,
    pub level: &'a str,
    pub tools: Tools,
    /// The folder below the workshop's.
    pub folder: &'static str,
}

const SECTIONS: [&str; 2] = ["-ffunction-sections", "-fdata-sections"];
const SOURCES: [&str; 5] = ["c", "cc", "cpp", "S", "s"];

impl Site<'_> {
    fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.workshop.path(self.folder).join(name)
    }

    /// Puts the version's files in place; those of another version that it lacks go away.
    fn lay_out(&self, version: &Version) {
        for (name, text) in &version.files {
            self.workshop.write(Path::new(self.folder).join(name), text);
        }
        let others =
            self.fixture.before.files.keys().filter(|name| !version.files.contains_key(*name));
        for name in others.map(|name| self.path(name)).filter(|path| path.exists()) {
            std::fs::remove_file(name).expect("a file of the other version can be removed");
        }
    }

    /// Compiles every object of the version. A fixture with a build.sh does that itself.
    pub fn compile(&self, version: &Version) -> Result<(), String> {
        self.lay_out(version);
        objects_of(version).iter().try_for_each(|object| self.compile_object(version, object))
    }

    /// As `compile`, but what the edit does not touch is taken from the site of the version before
    /// it.
    pub fn compile_edited(
        &self,
        before: &Version,
        version: &Version,
        original: &Site,
    ) -> Result<(), String> {
        self.lay_out(version);
        let known = objects_of(before);
        for object in objects_of(version) {
            if known.contains(&object) && same_inputs(before, version, source_of(version, &object)?)
            {
                std::fs::copy(original.path(&object), self.path(&object))
                    .map_err(|error| error.to_string())?;
            } else {
                self.compile_object(version, &object)?;
            }
        }
        Ok(())
    }

    fn compile_object(&self, version: &Version, object: &str) -> Result<(), String> {
        let source = source_of(version, object)?;
        let language = if source.ends_with(".cc") || source.ends_with(".cpp") {
            Language::Cxx
        } else {
            Language::C
        };
        let mut command = self.driver(language);
        command.args(self.cflags(version)).args(["-c", source, "-o", object]);
        succeed(&mut command).map(drop)
    }

    /// Makes the libraries and, unless it is to be kept, the program, in the linker's own folder.
    pub fn link(
        &self,
        version: &Version,
        linker: &Linker,
        keep_program: bool,
    ) -> Result<(), String> {
        std::fs::create_dir_all(self.path(linker.name))
            .expect("a folder for the binaries can be made");
        if scripted(version) {
            return self.run_script(version, linker);
        }
        for item in &version.libs {
            self.make(version, item, linker)?;
        }
        for item in version.link.iter().filter(|item| matches!(item, Item::Made { .. })) {
            self.make(version, item, linker)?;
        }
        if keep_program {
            return Ok(());
        }
        let output = format!("{}/prog", linker.name);
        self.run_link(version, linker, &[], &version.link, &output)
    }

    fn make(&self, version: &Version, item: &Item, linker: &Linker) -> Result<(), String> {
        let Item::Made { name, parts } = item else { return Ok(()) };
        for part in parts {
            self.make(version, part, linker)?;
        }
        if name.ends_with(".a") {
            // ar would add to an archive that is there.
            let _ = std::fs::remove_file(self.path(name));
            let mut command = self.command("ar");
            return succeed(command.arg("rcs").arg(name).args(self.words(parts, linker))).map(drop);
        }
        let soname = format!("-Wl,-soname,{name}");
        self.run_link(
            version,
            linker,
            &["-shared", &soname],
            parts,
            &format!("{}/{name}", linker.name),
        )
    }

    fn run_link(
        &self,
        version: &Version,
        linker: &Linker,
        kind: &[&str],
        items: &[Item],
        output: &str,
    ) -> Result<(), String> {
        let shared = kind.contains(&"-shared");
        let mut command = self.driver(self.fixture.language);
        command.args(self.cflags(version)).args(self.ldflags(version, linker, shared)).args(kind);
        succeed(command.args(["-o", output]).args(self.words(items, linker))).map(drop)
    }

    /// The items as words of a command line: a shared library lies in the linker's folder.
    fn words(&self, items: &[Item], linker: &Linker) -> Vec<String> {
        let word = |item: &Item| match item {
            Item::Word(name) | Item::Made { name, .. }
                if name.ends_with(".so") && !name.starts_with('-') =>
            {
                format!("{}/{name}", linker.name)
            }
            Item::Word(name) | Item::Made { name, .. } => name.clone(),
        };
        items.iter().map(word).collect()
    }

    fn cflags(&self, version: &Version) -> Vec<String> {
        let mut flags = vec![self.compilation.opt.to_owned()];
        if self.tools == Tools::Plain {
            flags.extend(SECTIONS.map(str::to_owned));
        }
        flags.extend(self.compilation.variant.cflags.iter().map(|flag| (*flag).to_owned()));
        flags.extend(version.cflags.iter().cloned());
        flags
    }

    fn ldflags(&self, version: &Version, linker: &Linker, shared: bool) -> Vec<String> {
        let mut flags = vec![format!("-fuse-ld={}", linker.name)];
        // A static PIE with a run path crashes in the C library: only for programs with libraries
        // of their own.
        if shared_libraries(&version.libs) || shared_libraries(&version.link) {
            flags.extend([
                "-Wl,-rpath,$ORIGIN".to_owned(),
                format!("-Wl,-rpath-link,{}", linker.name),
            ]);
        }
        // `-static` and its kin are for the program alone.
        let of_variant = self
            .compilation
            .variant
            .ldflags
            .iter()
            .filter(|flag| !shared || flag.starts_with("-Wl,"));
        flags.extend(of_variant.map(|flag| (*flag).to_owned()));
        flags.extend(version.ldflags.iter().cloned());
        flags
    }

    /// build.sh finds the tools in the usual variables and leaves its binaries in `$OUT`.
    fn run_script(&self, version: &Version, linker: &Linker) -> Result<(), String> {
        let mut command = self.command("sh");
        let (cc, cxx, ld) = match self.tools {
            Tools::Shims => ("tasting-cc", "tasting-c++", "tasting-ld"),
            Tools::Plain => {
                (self.compilation.compiler.c, self.compilation.compiler.cxx, linker.program)
            }
        };
        command.env("CC", cc).env("CXX", cxx).env("LD", ld).env("AR", "ar").env("OUT", linker.name);
        command.env("REAL_CC", self.compilation.compiler.c).env("TASTING_LD", linker.program);
        command.env("CFLAGS", self.cflags(version).join(" "));
        command.env("LDFLAGS", self.ldflags(version, linker, false).join(" "));
        succeed(command.args(["-e", "build.sh"])).map(drop)
    }

    fn driver(&self, language: Language) -> Command {
        let compiler = self.compilation.compiler;
        let (shim, real) = match language {
            Language::C => ("tasting-cc", compiler.c),
            Language::Cxx => ("tasting-c++", compiler.cxx),
        };
        self.command(if self.tools == Tools::Plain { real } else { shim })
    }

    fn command(&self, program: &str) -> Command {
        let mut command = self.workshop.command(program);
        command.current_dir(self.path(""));
        let path = std::env::var("PATH").expect("PATH is set");
        command.env("PATH", format!("{}:{path}", crate::workshop::shims().display()));
        command
            .env("TASTING_CC", self.compilation.compiler.c)
            .env("TASTING_CXX", self.compilation.compiler.cxx);
        command.env("TASTING_LEVEL", self.level);
        command
    }

    pub fn fingerprint(&self, linker: &Linker) -> Result<String, String> {
        let mut command = self.command("tasting");
        command.arg("fingerprint");
        if let Some(entry) = &self.fixture.entry {
            command.args(["--entry", entry]);
        }
        fingerprint(&mut command, &Path::new(linker.name).join(&self.fixture.fingerprint))
    }

    /// Runs the program; one that hangs is stopped.
    pub fn run(&self, linker: &Linker) -> Outcome {
        let program = format!("./{}/prog", linker.name);
        Outcome::of(self.command("timeout").args(["20", &program]))
    }
}

fn scripted(version: &Version) -> bool {
    version.files.contains_key("build.sh")
}

/// The objects that the harness compiles; a build.sh makes its own.
fn objects_of(version: &Version) -> BTreeSet<String> {
    if scripted(version) {
        return BTreeSet::new();
    }
    let mut wanted = objects(&version.libs);
    wanted.extend(objects(&version.link));
    wanted
}

fn source_of<'a>(version: &'a Version, object: &str) -> Result<&'a str, String> {
    let stem = object.strip_suffix(".o").expect("objects are picked out by their ending");
    let candidates = SOURCES.map(|extension| format!("{stem}.{extension}"));
    let source = version.files.keys().find(|name| candidates.contains(name));
    source.map(String::as_str).ok_or_else(|| format!("{object} has no source"))
}

fn is_source(name: &str) -> bool {
    SOURCES
        .iter()
        .any(|extension| Path::new(name).extension().is_some_and(|found| found == *extension))
}

/// Whether the source, the flags and everything that may be included are the same in both versions.
fn same_inputs(before: &Version, after: &Version, source: &str) -> bool {
    let headers = |version: &Version| {
        let files = version.files.iter().filter(|(name, _)| !is_source(name));
        files.map(|(name, text)| (name.clone(), text.clone())).collect::<Vec<_>>()
    };
    before.cflags == after.cflags
        && before.files.get(source) == after.files.get(source)
        && headers(before) == headers(after)
}
