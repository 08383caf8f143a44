//! The same command lines in the same folder, by the real tools first and by the shims then. In:
//! files and lines of shell, which find the tools in `$CC`, `$CXX` and `$LD`. Out: what the lines
//! printed and how they ended, the files that they left, and whether anything differs that must
//! not.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use object::read::elf::{ElfFile64, FileHeader, SectionHeader};
use object::{Endianness, Object, ObjectSection, SectionFlags};

use crate::edits::matrix::Compiler;
use crate::workshop::{Outcome, Workshop, fingerprint, shims, tool};

pub const SECTIONS: &str = "-ffunction-sections -fdata-sections";

/// What is common to both runs.
pub struct Scene {
    compiler: Compiler,
    /// What the real tools are given besides.
    flags: &'static str,
    linker: &'static str,
    files: Vec<(PathBuf, Vec<u8>)>,
    environment: Vec<(&'static str, OsString)>,
}

impl Scene {
    /// Without section flags: for calls that the shims add nothing to.
    pub fn bare(compiler: Compiler) -> Scene {
        Scene { compiler, flags: "", linker: "ld", files: Vec::new(), environment: Vec::new() }
    }

    /// The real tools are given the section flags, as the shims give them.
    pub fn new(compiler: Compiler) -> Scene {
        Scene { flags: SECTIONS, ..Scene::bare(compiler) }
    }

    /// The linker that `$LD` is, or stands for.
    pub fn linker(self, linker: &'static str) -> Scene {
        Scene { linker, ..self.env("TASTING_LD", linker) }
    }

    pub fn file(mut self, name: impl AsRef<Path>, text: impl AsRef<[u8]>) -> Scene {
        self.files.push((name.as_ref().to_owned(), text.as_ref().to_vec()));
        self
    }

    pub fn env(mut self, name: &'static str, value: impl Into<OsString>) -> Scene {
        self.environment.push((name, value.into()));
        self
    }

    /// Runs the lines twice.
    pub fn run<Line: AsRef<str>>(&self, lines: &[Line]) -> Twins {
        for name in [self.compiler.c, self.compiler.cxx] {
            tool(name);
        }
        let workshop = Workshop::new();
        let plain = self.run_with(&workshop, Tools::Real, lines);
        std::fs::remove_dir_all(workshop.path(WORK))
            .expect("the folder of the first run can be removed");
        let shim = self.run_with(&workshop, Tools::Shims, lines);
        Twins { workshop, compiler: self.compiler, plain, shim }
    }

    fn run_with<Line: AsRef<str>>(&self, workshop: &Workshop, tools: Tools, lines: &[Line]) -> Run {
        std::fs::create_dir_all(workshop.path(WORK)).expect("a folder can be made");
        for (name, text) in &self.files {
            workshop.write(Path::new(WORK).join(name), text);
        }
        let outcomes = lines.iter().map(|line| {
            let mut command = shell(workshop, self.compiler);
            if tools == Tools::Real {
                command.env("CC", format!("{} {}", self.compiler.c, self.flags));
                command
                    .env("CXX", format!("{} {}", self.compiler.cxx, self.flags))
                    .env("LD", self.linker);
            }
            command.envs(self.environment.iter().map(|(name, value)| (name, value)));
            Outcome::of(command.arg(line.as_ref()))
        });
        let outcomes = outcomes.collect();
        Run { outcomes, files: files_in(&workshop.path(WORK)) }
    }
}

/// Where the lines run.
pub const WORK: &str = "work";

#[derive(Clone, Copy, PartialEq, Eq)]
enum Tools {
    Real,
    Shims,
}

/// `sh -c` in the working folder, with the shims at hand as `$CC`, `$CXX` and `$LD`.
pub fn shell(workshop: &Workshop, compiler: Compiler) -> Command {
    let mut command = workshop.command("sh");
    let path = std::env::var("PATH").expect("PATH is set");
    command.current_dir(workshop.path(WORK)).arg("-c");
    command.env("PATH", format!("{}:{path}", shims().display())).env("HOME", workshop.path("home"));
    command.env("TASTING_CC", compiler.c).env("TASTING_CXX", compiler.cxx);
    command.env("CC", "tasting-cc").env("CXX", "tasting-c++").env("LD", "tasting-ld");
    command
}

/// What one run left.
pub struct Run {
    pub outcomes: Vec<Outcome>,
    pub files: BTreeMap<PathBuf, FileState>,
}

#[derive(Clone, PartialEq, Eq)]
pub struct FileState {
    pub mode: u32,
    pub content: Vec<u8>,
}

/// Every file below a folder, by its path below it. A symbolic link counts as what it says.
pub fn files_in(folder: &Path) -> BTreeMap<PathBuf, FileState> {
    let mut files = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(here) = folders.pop() {
        for entry in std::fs::read_dir(&here).expect("a folder is readable") {
            let path = entry.expect("a folder entry is readable").path();
            let metadata = std::fs::symlink_metadata(&path).expect("a file that is there");
            if metadata.is_dir() {
                folders.push(path);
                continue;
            }
            let content = if metadata.is_symlink() {
                std::fs::read_link(&path).expect("a link").into_os_string().into_encoded_bytes()
            } else {
                std::fs::read(&path).expect("a file is readable")
            };
            let name = path.strip_prefix(folder).expect("it lies below").to_owned();
            files.insert(name, FileState { mode: metadata.mode(), content });
        }
    }
    files
}

/// Both runs; the folder is as the shims left it.
pub struct Twins {
    pub workshop: Workshop,
    compiler: Compiler,
    pub plain: Run,
    pub shim: Run,
}

/// Their content differs from one run of the real tool to the next, or holds objects with records.
const NOT_COMPARED: [&str; 3] = ["a", "gch", "pch"];

impl Twins {
    /// The same messages, statuses and files, apart from records and manifests. Gives itself back.
    pub fn same(self) -> Twins {
        let name = self.compiler.name;
        for (at, (plain, shim)) in self.plain.outcomes.iter().zip(&self.shim.outcomes).enumerate() {
            let shim = Outcome { stdout: without_discarded_records(&shim.stdout), ..shim.clone() };
            assert_eq!(*plain, shim, "{name}, line {at}: the real tool's outcome, and the shim's");
        }
        self.same_files();
        self
    }

    /// As `same`, and every line succeeded.
    pub fn same_and_well(self) -> Twins {
        for outcome in &self.plain.outcomes {
            assert!(outcome.success(), "{}: the real tool fails: {outcome:?}", self.compiler.name);
        }
        self.same()
    }

    fn same_files(&self) {
        let name = self.compiler.name;
        let shims: BTreeMap<_, _> =
            self.shim.files.iter().filter(|(path, _)| !is_manifest(path)).collect();
        let (plain_names, shim_names) =
            (self.plain.files.keys().collect::<Vec<_>>(), shims.keys().copied());
        assert_eq!(
            plain_names,
            shim_names.collect::<Vec<_>>(),
            "{name}: the files of the real tool, and the shim's"
        );
        for (path, plain) in &self.plain.files {
            let shim = shims[path];
            assert_eq!(plain.mode, shim.mode, "{name}: the mode of {}", path.display());
            if !path
                .extension()
                .is_some_and(|extension| NOT_COMPARED.iter().any(|other| extension == *other))
            {
                same_content(&plain.content, &shim.content).unwrap_or_else(|error| {
                    panic!("{name}: {} differs: {error}", path.display());
                });
            }
        }
    }

    /// The paths of the manifests that the shims left, sorted.
    pub fn manifests(&self) -> Vec<String> {
        let paths = self.shim.files.keys().filter(|path| is_manifest(path));
        paths.map(|path| path.to_string_lossy().into_owned()).collect()
    }

    /// The objects that carry a record, sorted.
    pub fn with_record(&self) -> Vec<String> {
        let with =
            self.shim.files.iter().filter(|(_, file)| record_section(&file.content).is_some());
        with.map(|(path, _)| path.to_string_lossy().into_owned()).collect()
    }

    /// One more line for the shims' folder.
    pub fn line(&self, line: &str) -> Outcome {
        Outcome::of(shell(&self.workshop, self.compiler).arg(line))
    }

    pub fn fingerprint(&self, binary: &str) -> String {
        let mut command = self.workshop.command(crate::workshop::TASTING);
        command.current_dir(self.workshop.path(WORK)).arg("fingerprint");
        fingerprint(&mut command, Path::new(binary)).unwrap_or_else(|error| panic!("{error}"))
    }
}

fn is_manifest(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "tasting")
}

/// The record's section of an ELF file: its flags and content.
pub fn record_section(bytes: &[u8]) -> Option<(u64, Vec<u8>)> {
    let file = object::File::parse(bytes).ok()?;
    let section = file.section_by_name(".tasting")?;
    let SectionFlags::Elf { sh_flags, .. } = section.flags() else { return None };
    Some((sh_flags.0, section.data().ok()?.to_vec()))
}

/// Equal bytes; or an object that has got one more section at its end and is otherwise the same.
fn same_content(plain: &[u8], shim: &[u8]) -> Result<(), String> {
    if plain == shim || plain == without_discarded_records(shim) {
        return Ok(());
    }
    if record_section(shim).is_none() {
        return Err(format!("{} bytes, and {} without a record", plain.len(), shim.len()));
    }
    // The place and number of the section headers change in the file's header, and nothing else
    // before its old end.
    let fixed = [0..40, 48..60, 62..plain.len()];
    match fixed.into_iter().find(|part| plain.get(part.clone()) != shim.get(part.clone())) {
        Some(part) => Err(format!("more than a section was added: {part:?}")),
        None => same_sections(plain, shim),
    }
}

/// GNU ld's map lists what was thrown away, and so the records.
fn without_discarded_records(text: &[u8]) -> Vec<u8> {
    let lines =
        text.split_inclusive(|&byte| byte == b'\n').filter(|line| !line.starts_with(b" .tasting "));
    lines.collect::<Vec<_>>().concat()
}

fn same_sections(plain: &[u8], shim: &[u8]) -> Result<(), String> {
    let (plain, mut shim) = (sections(plain)?, sections(shim)?);
    let last = shim.pop().ok_or("it has no sections")?;
    if last.0 != ".tasting" {
        return Err(format!("its last section is {}", last.0));
    }
    if plain == shim { Ok(()) } else { Err("its sections differ".to_owned()) }
}

/// A section's name, its header's fields, and its bytes.
type Section = (String, [u64; 6], Vec<u8>);

fn sections(bytes: &[u8]) -> Result<Vec<Section>, String> {
    let text = |error: object::Error| error.to_string();
    let file = ElfFile64::<Endianness>::parse(bytes).map_err(text)?;
    let endian = file.endian();
    let table = file.elf_header().sections(endian, bytes).map_err(text)?;
    let section =
        |header: &object::elf::SectionHeader64<Endianness>| -> Result<Section, object::Error> {
            let name = String::from_utf8_lossy(table.section_name(endian, header)?).into_owned();
            // The table of names has to grow and move.
            let is_names = name == ".shstrtab" || name == ".strtab";
            let data = if is_names { Vec::new() } else { header.data(endian, bytes)?.to_vec() };
            let flags = header.sh_flags(endian);
            let place =
                if is_names { [0; 2] } else { [header.sh_offset(endian), header.sh_size(endian)] };
            let fields = [u64::from(header.sh_type(endian).0), flags.0, place[0], place[1]];
            let links = [u64::from(header.sh_link(endian)), header.sh_addralign(endian)];
            Ok((name, [fields[0], fields[1], fields[2], fields[3], links[0], links[1]], data))
        };
    table.iter().map(section).collect::<Result<_, _>>().map_err(text)
}
