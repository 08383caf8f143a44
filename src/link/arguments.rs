//! What a call of a linker will do.
//!
//! In: its arguments, with response files expanded. Out: pass it through, or what it will link.
//! What is not clearly the latter is passed through.

pub use super::options::Bsymbolic;
use super::options::{self, Effect, LinkerOption, Value};
use crate::process::probe;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// What a call is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkerInvocation {
    /// The linker is run with the original arguments and nothing is added. With the reason.
    PassThrough(&'static str),
    Link(Box<LinkerJob>),
}

/// A link.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkerJob {
    pub output: PathBuf,
    /// `-r`: the output is an object again.
    pub relocatable: bool,
    pub shared: bool,
    /// No shared library is taken.
    pub is_static: bool,
    pub map: UserMap,
    /// `--wrap`.
    pub wraps: Vec<OsString>,
    /// `--defsym`: symbols and expressions.
    pub defsyms: Vec<(OsString, OsString)>,
    /// Linker scripts: `-T`, `--default-script`, and those in MRI's language.
    pub scripts: Vec<PathBuf>,
    /// Version scripts and lists of dynamic symbols.
    pub version_scripts: Vec<PathBuf>,
    /// `--just-symbols` and `-R`; the latter may also be a folder for the dynamic loader.
    pub just_symbols: Vec<PathBuf>,
    /// `-e`.
    pub entry: Option<OsString>,
    /// `-Ttext` and its like: options that say at which address much of the program lies.
    pub fixed_addresses: Vec<&'static str>,
    /// `--section-start`: the sections that lie at a given address.
    pub section_starts: Vec<OsString>,
    pub bsymbolic: Bsymbolic,
    /// `--icf`.
    pub icf: Option<OsString>,
    /// `-O`.
    pub optimisation: Option<OsString>,
    /// Options for the code generator of bitcode: `-plugin-opt`, `-mllvm`, `--lto-…`.
    pub generation: Vec<OsString>,
    /// `--start-lib`: some objects may not have been taken.
    pub has_objects_as_members: bool,
    /// `-s`.
    pub strip_all: bool,
    /// Files as given, and libraries as `-lNAME`, in order.
    pub inputs: Vec<OsString>,
    /// `-L`, in order.
    pub library_paths: Vec<PathBuf>,
}

/// Whether the user asked for a map.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum UserMap {
    #[default]
    None,
    File(PathBuf),
    /// On standard output, where we cannot read it.
    Stdout,
}

/// What a linker writes to when nothing else is said.
const DEFAULT_OUTPUT: &str = "a.out";

/// Understands the arguments of a call from the folder `folder`.
pub fn parse(arguments: &[OsString], folder: &Path) -> LinkerInvocation {
    let mut seen = ParsedLink::default();
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        if [&b"--lto"[..], b"--thinlto"].iter().any(|start| word.as_bytes().starts_with(start)) {
            seen.job.generation.push(word.clone());
        }
        if word == "--" {
            seen.job.inputs.extend(words.by_ref().cloned());
        } else if word.as_bytes().first() != Some(&b'-') || word == "-" {
            seen.job.inputs.push(word.clone());
        } else if let Some((entry, value)) = options::look_up(word) {
            match value {
                Value::None => seen.option(entry, OsStr::new("")),
                Value::Here(value) => seen.option(entry, value),
                Value::Next => match words.next() {
                    Some(value) => seen.option(entry, value),
                    None => return LinkerInvocation::PassThrough("an option lacks its argument"),
                },
            }
        }
    }
    seen.conclude(folder)
}

/// What was seen so far.
#[derive(Debug, Default)]
struct ParsedLink {
    job: LinkerJob,
    stops: Option<&'static str>,
    print_map: bool,
}

impl ParsedLink {
    fn option(&mut self, entry: LinkerOption, value: &OsStr) {
        let job = &mut self.job;
        match entry.effect {
            Effect::Nothing | Effect::Version => {}
            Effect::Stops(why) => self.stops = self.stops.or(Some(why)),
            Effect::Format => self.format(value),
            Effect::Output => job.output = value.into(),
            Effect::Relocatable => job.relocatable = true,
            Effect::Shared => job.shared = true,
            Effect::Static => job.is_static = true,
            Effect::Map if value == "-" => job.map = UserMap::Stdout,
            Effect::Map => job.map = UserMap::File(value.into()),
            Effect::PrintMap => self.print_map = true,
            Effect::Wrap => job.wraps.push(value.to_owned()),
            Effect::Defsym => job.defsyms.extend(definition(value)),
            Effect::Script => job.scripts.push(value.into()),
            Effect::VersionScript => job.version_scripts.push(value.into()),
            Effect::JustSymbols => job.just_symbols.push(value.into()),
            Effect::LinkerOption => job.entry = Some(value.to_owned()),
            Effect::FixedAddress => job.fixed_addresses.push(entry.name),
            Effect::SectionStart => {
                job.section_starts.extend(definition(value).map(|(section, _)| section))
            }
            Effect::BindLocally(which) => job.bsymbolic = which,
            Effect::Icf => job.icf = Some(value.to_owned()),
            Effect::Optimise => job.optimisation = Some(value.to_owned()),
            Effect::Generate => job.generation.push(value.to_owned()),
            Effect::ObjectsAsMembers => job.has_objects_as_members = true,
            Effect::StripAll => job.strip_all = true,
            Effect::Library => job.inputs.push(library(value)),
            Effect::LibraryPath => job.library_paths.push(value.into()),
        }
    }

    fn format(&mut self, format: &OsStr) {
        if !format.as_bytes().starts_with(b"elf") {
            self.stops.get_or_insert("its output is not ELF");
        }
    }

    fn conclude(mut self, folder: &Path) -> LinkerInvocation {
        if self.job.output.as_os_str().is_empty() {
            self.job.output = DEFAULT_OUTPUT.into();
        }
        if self.print_map && self.job.map == UserMap::None {
            self.job.map = UserMap::Stdout;
        }
        match self.refusal(folder) {
            Some(why) => LinkerInvocation::PassThrough(why),
            None => LinkerInvocation::Link(Box::new(self.job)),
        }
    }

    /// Why nothing is to be added to this call.
    fn refusal(&self, folder: &Path) -> Option<&'static str> {
        let job = &self.job;
        if self.stops.is_some() {
            return self.stops;
        }
        if job.inputs.is_empty() && job.scripts.is_empty() {
            return Some("there is nothing to link");
        }
        if job.output == Path::new("-") || probe::is_device(&job.output) {
            return Some("its output is no file");
        }
        let inputs = job.inputs.iter().map(Path::new);
        probe::is_probe(folder, inputs.chain([job.output.as_path()])).then_some("it is a probe")
    }
}

/// `symbol=expression`.
fn definition(value: &OsStr) -> Option<(OsString, OsString)> {
    let bytes = value.as_bytes();
    let at = bytes.iter().position(|&byte| byte == b'=')?;
    Some((
        OsStr::from_bytes(&bytes[..at]).to_owned(),
        OsStr::from_bytes(&bytes[at + 1..]).to_owned(),
    ))
}

fn library(name: &OsStr) -> OsString {
    let mut input = OsString::from("-l");
    input.push(name);
    input
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parsed(line: &str) -> LinkerInvocation {
        let words: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
        parse(&words, Path::new("/build"))
    }

    #[track_caller]
    fn link(line: &str) -> LinkerJob {
        match parsed(line) {
            LinkerInvocation::Link(job) => *job,
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn functions_that_gcc_calls() {
        let line = "-plugin /l/liblto_plugin.so -plugin-opt=/l/lto-wrapper -plugin-opt=-fresolution=/tmp/x.res \
            -plugin-opt=-pass-through=-lgcc --build-id --eh-frame-hdr -m elf_x86_64 --hash-style=gnu --as-needed \
            -dynamic-linker /lib64/ld-linux-x86-64.so.2 -pie -o a /l/Scrt1.o -L/l -L/lib/../lib a.o -lgcc \
            --push-state --as-needed -lgcc_s --pop-state -lc /l/crtn.o";
        let job = link(line);
        assert_eq!(job.output, Path::new("a"));
        assert_eq!(job.inputs, ["/l/Scrt1.o", "a.o", "-lgcc", "-lgcc_s", "-lc", "/l/crtn.o"]);
        assert_eq!(job.library_paths, [Path::new("/l"), Path::new("/lib/../lib")]);
        assert_eq!(
            job.generation,
            ["/l/lto-wrapper", "-fresolution=/tmp/x.res", "-pass-through=-lgcc"]
        );
        let plain = LinkerJob {
            output: job.output.clone(),
            inputs: job.inputs.clone(),
            library_paths: job.library_paths.clone(),
            generation: job.generation.clone(),
            ..LinkerJob::default()
        };
        assert_eq!(job, plain);
    }

    #[test]
    fn options_of_the_code_generator() {
        let job = link(
            "-plugin-opt=O2 -plugin-opt mcpu=x -mllvm -a --lto-O1 --thinlto-jobs=2 -lto a.o -o a",
        );
        assert_eq!(job.generation, ["O2", "mcpu=x", "-a", "--lto-O1", "--thinlto-jobs=2"]);
        assert_eq!(job.inputs, ["-lto", "a.o"]);
    }

    #[test]
    fn all_forms_of_values() {
        for line in ["-o x a.o", "-ox a.o", "--output=x a.o", "--output x a.o"] {
            assert_eq!(link(line).output, Path::new("x"), "{line}");
        }
        assert_eq!(link("a.o").output, Path::new("a.out"));
        for line in ["-e main a.o", "-emain a.o", "--entry=main a.o", "-entry main a.o"] {
            assert_eq!(link(line).entry, Some("main".into()), "{line}");
        }
        let job = link(
            "--wrap=f --wrap g -wrap h --defsym=a=b+1 --defsym c=0 -T x.ld -Ty.ld --script=z.ld a.o",
        );
        assert_eq!(job.wraps, ["f", "g", "h"]);
        assert_eq!(job.defsyms, [("a".into(), "b+1".into()), ("c".into(), "0".into())]);
        assert_eq!(job.scripts, [Path::new("x.ld"), Path::new("y.ld"), Path::new("z.ld")]);
        let job = link(
            "-shared -Bsymbolic-functions --icf=all -O2 -s -r -soname libx.so -z now -rpath /x a.o",
        );
        assert_eq!((job.shared, job.relocatable, job.strip_all), (true, true, true));
        assert_eq!(job.bsymbolic, Bsymbolic::Functions);
        assert_eq!((job.icf, job.optimisation), (Some("all".into()), Some("2".into())));
        assert_eq!(job.inputs, ["a.o"]);
    }

    #[test]
    fn maps_of_the_user() {
        for line in ["-Map x a.o", "-Map=x a.o", "--Map=x a.o", "--Map x a.o", "-M -Map=x a.o"] {
            assert_eq!(link(line).map, UserMap::File("x".into()), "{line}");
        }
        for line in ["-M a.o", "--print-map a.o", "-Map=- a.o"] {
            assert_eq!(link(line).map, UserMap::Stdout, "{line}");
        }
        assert_eq!(link("a.o").map, UserMap::None);
    }

    #[test]
    fn some_calls_pass_through() {
        for line in [
            "",
            "--version",
            "-v",
            "-V",
            "--help",
            "--target-help",
            "--print-output-format",
            "-o /dev/null a.o",
            "a.o -o",
            "--oformat binary a.o",
            "--oformat=srec a.o",
            "-run make",
            "-o conftest conftest.o",
            "a.o --version",
            "-o x meson-private/a.o",
        ] {
            assert!(matches!(parsed(line), LinkerInvocation::PassThrough(_)), "{line}");
        }
        assert_eq!(link("-v a.o -static --oformat=elf64-x86-64").inputs, ["a.o"]);
        assert_eq!(link("-o /dev/shm/x/prog a.o").inputs, ["a.o"]);
    }

    proptest! {
        #[test]
        fn no_arguments_panic(words in prop::collection::vec(prop::collection::vec(1u8.., 0..6), 0..12)) {
            let words: Vec<OsString> = words.iter().map(|word| OsStr::from_bytes(word).to_owned()).collect();
            parse(&words, Path::new("/b"));
        }

        #[test]
        fn no_mixture_of_options_panics(words in prop::collection::vec("-?-?[a-zA-Z]{1,8}=?[a-z.,/=]{0,3}", 0..12)) {
            let words: Vec<OsString> = words.iter().map(OsString::from).collect();
            parse(&words, Path::new("/b"));
        }
    }
}
