//! What a call of a compiler driver will do.
//!
//! In: its arguments, with response files expanded. Out: pass it through, or which objects it will
//! write, or that it will link. What is not clearly one of the latter two is passed through.

use super::languages::{self, Language};
use super::option::{CompilerOption, Effect};
use super::options::{self, Value};
use crate::process::probe;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// What a call is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Invocation {
    /// The tool is run with the original arguments and nothing is added. With the reason.
    PassThrough(&'static str),
    /// Objects are written, nothing is linked.
    Compile(CompileJob),
    /// Something is linked, after compiling what there is to compile.
    Link(LinkJob),
}

/// A call with `-c`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompileJob {
    /// The objects, one for each source.
    pub outputs: Vec<PathBuf>,
    /// Something is compiled, not only assembled: section flags mean something.
    pub compiles: bool,
    /// All sources are in C or C++.
    pub is_c: bool,
    /// The source and its language, where there is but one.
    pub source: Option<(PathBuf, Language)>,
    /// The objects are for link-time optimisation.
    pub lto: bool,
    /// The options that bear on where the driver looks for its parts, in order.
    pub search: Vec<OsString>,
}

/// A call that links.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkJob {
    pub output: PathBuf,
    /// Something is compiled to machine code first: section flags mean something.
    pub compiles: bool,
    /// The options that bear on where the driver looks for the linker, `-B` among them, in order.
    pub search: Vec<OsString>,
    /// The folders of `-B`.
    pub prefixes: Vec<PathBuf>,
    pub linker: LinkerChoice,
}

/// Which linker the user asked the driver for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum LinkerChoice {
    #[default]
    Default,
    /// `-fuse-ld=gold`: the program `ld.gold`.
    Named(OsString),
    /// `-fuse-ld=/some/where/ld` (Clang): a file.
    NamedByPath(OsString),
    /// `--ld-path=ld.lld-14` (Clang): a file or a program's name. It outdoes `-fuse-ld`.
    Path(OsString),
}

/// What the driver writes a linked binary to when nothing else is said.
const DEFAULT_OUTPUT: &str = "a.out";

/// Understands the arguments of a call from the folder `folder`.
pub fn parse(arguments: &[OsString], folder: &Path) -> Invocation {
    let mut seen = ParsedCall::default();
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        if word == "--" {
            words.by_ref().for_each(|word| seen.input(word));
        } else if word.as_bytes().first() != Some(&b'-') || word == "-" {
            seen.input(word);
        } else if let Some((option, value)) = options::look_up(word) {
            match value {
                Value::None => seen.option(option, word, OsStr::new("")),
                Value::Here(value) => seen.option(option, word, value),
                Value::Next => match words.next() {
                    Some(value) => seen.option_with_next(option, word, value),
                    None => return Invocation::PassThrough("an option lacks its argument"),
                },
            }
        }
    }
    seen.conclude(folder)
}

/// What was seen so far.
#[derive(Debug, Default)]
struct ParsedCall {
    stops: Option<&'static str>,
    object: bool,
    output: Option<PathBuf>,
    /// What `-x` said last; it holds for the inputs behind it.
    language: Option<Language>,
    sources: Vec<(PathBuf, Language)>,
    /// Whether there is something for the linker besides the sources.
    link_inputs: Vec<PathBuf>,
    link_options: bool,
    lto: bool,
    search: Vec<OsString>,
    prefixes: Vec<PathBuf>,
    use_linker: Option<OsString>,
    linker_path: Option<OsString>,
}

impl ParsedCall {
    fn input(&mut self, word: &OsStr) {
        if word == "-" {
            self.stops.get_or_insert("it reads standard input");
        }
        match self.language.or_else(|| languages::by_name(word)) {
            Some(language) => self.sources.push((word.into(), language)),
            None => self.link_inputs.push(word.into()),
        }
    }

    /// An option whose value is the next word.
    fn option_with_next(&mut self, option: &CompilerOption, word: &OsStr, value: &OsStr) {
        self.option(option, word, value);
        if option.effect == Effect::Search {
            self.search.push(value.to_owned());
        }
    }

    fn option(&mut self, option: &CompilerOption, word: &OsStr, value: &OsStr) {
        match option.effect {
            Effect::Nothing => {}
            Effect::Object => self.object = true,
            Effect::Stops(why) => self.stops = self.stops.or(Some(why)),
            Effect::Output => self.output = Some(value.into()),
            Effect::Language => {
                self.language = (value != "none").then(|| languages::by_option(value))
            }
            Effect::Lto(on) => self.lto = on,
            Effect::Search => self.search.push(word.to_owned()),
            Effect::Prefix => self.prefix(value),
            Effect::UseLinker => self.use_linker = Some(value.to_owned()),
            Effect::LinkerPath => self.linker_path = Some(value.to_owned()),
            Effect::LinkInput => self.for_linker(value),
            Effect::ForClang => self.for_clang(value),
        }
    }

    fn prefix(&mut self, folder: &OsStr) {
        self.prefixes.push(folder.into());
        let mut option = OsString::from("-B");
        option.push(folder);
        self.search.push(option);
    }

    /// `-Wl,--version` makes the linker end before it links.
    fn for_linker(&mut self, value: &OsStr) {
        self.link_options = true;
        let mut parts = value.as_bytes().split(|&byte| byte == b',');
        if parts.any(|part| matches!(part, b"--version" | b"-version" | b"--help" | b"-help")) {
            self.stops.get_or_insert("it asks about the linker");
        }
    }

    /// Clang's compiler proper can be told to write something else than the driver thinks.
    fn for_clang(&mut self, value: &OsStr) {
        let bytes = value.as_bytes();
        let other = bytes.starts_with(b"-emit-")
            || bytes.starts_with(b"-ast-")
            || bytes.starts_with(b"-rewrite");
        if other && value != "-emit-obj"
            || matches!(bytes, b"-E" | b"-S" | b"-fsyntax-only" | b"-analyze")
        {
            self.stops.get_or_insert("it makes Clang write something else than an object");
        }
    }

    fn conclude(self, folder: &Path) -> Invocation {
        match self.refusal(folder) {
            Some(why) => Invocation::PassThrough(why),
            None if self.object => self.compile(),
            None => self.link(),
        }
    }

    /// Why nothing is to be added to this call.
    fn refusal(&self, folder: &Path) -> Option<&'static str> {
        let any = |wanted| self.sources.iter().any(|&(_, language)| language == wanted);
        if self.stops.is_some() {
            return self.stops;
        }
        if any(Language::Header) {
            return Some("it precompiles a header");
        }
        if any(Language::Foreign) {
            return Some("it compiles a language that we do not know");
        }
        if self
            .output
            .as_deref()
            .is_some_and(|output| output == Path::new("-") || probe::is_device(output))
        {
            return Some("its output is no file");
        }
        if self.sources.iter().any(|(source, _)| probe::is_device(source)) {
            return Some("its source is no file");
        }
        let files = self
            .sources
            .iter()
            .map(|(source, _)| source)
            .chain(&self.link_inputs)
            .chain(&self.output);
        probe::is_probe(folder, files.map(PathBuf::as_path)).then_some("it is a probe")
    }

    fn compile(self) -> Invocation {
        let outputs = match (self.output, self.sources.len()) {
            (_, 0) => return Invocation::PassThrough("there is nothing to compile"),
            (Some(output), 1) => vec![output],
            (Some(_), _) => {
                return Invocation::PassThrough("it names one output for several sources");
            }
            (None, _) => {
                self.sources.iter().filter_map(|(source, _)| default_object(source)).collect()
            }
        };
        let compiles = self.sources.iter().any(|(_, language)| language.is_compiled());
        let is_c = self
            .sources
            .iter()
            .all(|(_, language)| matches!(language, Language::C | Language::Cxx));
        let source = if let [source] = &self.sources[..] { Some(source.clone()) } else { None };
        Invocation::Compile(CompileJob {
            outputs,
            compiles,
            is_c,
            source,
            lto: self.lto,
            search: self.search,
        })
    }

    fn link(self) -> Invocation {
        if self.sources.is_empty() && self.link_inputs.is_empty() && !self.link_options {
            return Invocation::PassThrough("there is nothing to link");
        }
        let compiles = !self.lto && self.sources.iter().any(|(_, language)| language.is_compiled());
        let linker = match (self.linker_path, self.use_linker) {
            (Some(path), _) => LinkerChoice::Path(path),
            (None, Some(name)) if name.as_bytes().contains(&b'/') => {
                LinkerChoice::NamedByPath(name)
            }
            // Both drivers take these for the default.
            (None, Some(name)) if name.is_empty() || name == "ld" => LinkerChoice::Default,
            (None, Some(name)) => LinkerChoice::Named(name),
            (None, None) => LinkerChoice::Default,
        };
        let output = self.output.unwrap_or_else(|| DEFAULT_OUTPUT.into());
        Invocation::Link(LinkJob {
            output,
            compiles,
            search: self.search,
            prefixes: self.prefixes,
            linker,
        })
    }
}

/// Where a driver writes the object of a source when nothing else is said: in the current folder.
fn default_object(source: &Path) -> Option<PathBuf> {
    let mut name = source.file_stem()?.to_owned();
    name.push(".o");
    Some(name.into())
}

#[cfg(test)]
#[path = "arguments_tests.rs"]
mod tests;
