//! The tools that every fixture is built with, and the further ways to build that a fixture can ask
//! for.

use super::fixture::Fixture;
use crate::workshop::{all_tests_run, tool};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compiler {
    pub name: &'static str,
    pub c: &'static str,
    pub cxx: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Linker {
    /// The name behind `-fuse-ld=`.
    pub name: &'static str,
    pub program: &'static str,
}

pub const COMPILERS: [Compiler; 2] = [
    Compiler { name: "gcc", c: "gcc", cxx: "g++" },
    Compiler { name: "clang", c: "clang", cxx: "clang++" },
];
pub const OPTIMISATIONS: [&str; 2] = ["-O0", "-O2"];
pub const LINKERS: [Linker; 4] = [
    Linker { name: "bfd", program: "ld.bfd" },
    Linker { name: "gold", program: "ld.gold" },
    Linker { name: "lld", program: "ld.lld" },
    Linker { name: "mold", program: "ld.mold" },
];

/// All compilers; of the quick tests the first one.
pub fn compilers() -> impl Iterator<Item = Compiler> {
    let few = if all_tests_run() { COMPILERS.len() } else { 1 };
    COMPILERS.into_iter().take(few).inspect(|compiler| {
        tool(compiler.c);
        tool(compiler.cxx);
    })
}

/// All linkers; of the quick tests the first one.
pub fn linkers() -> impl Iterator<Item = Linker> {
    let few = if all_tests_run() { LINKERS.len() } else { 1 };
    LINKERS.into_iter().take(few).inspect(|linker| {
        tool(linker.program);
    })
}

/// A way to build besides the plain one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Variant {
    pub name: &'static str,
    pub cflags: &'static [&'static str],
    pub ldflags: &'static [&'static str],
    /// Pairs of compiler and linker that do not support it.
    unsupported: &'static [(&'static str, &'static str)],
}

const fn variant(
    name: &'static str,
    cflags: &'static [&'static str],
    ldflags: &'static [&'static str],
) -> Variant {
    Variant { name, cflags, ldflags, unsupported: &[] }
}

const PLAIN: Variant = variant("plain", &[], &[]);
const VARIANTS: [Variant; 12] = [
    variant("static", &[], &["-static"]),
    Variant {
        // gold does not know the options that both compilers hand it.
        unsupported: &[("gcc", "gold"), ("clang", "gold")],
        ..variant("static-pie", &["-fPIE"], &["-static-pie"])
    },
    variant("pie", &["-fPIE"], &["-pie"]),
    variant("no-pie", &["-fno-pie"], &["-no-pie"]),
    variant("gc-sections", &[], &["-Wl,--gc-sections"]),
    Variant {
        // GNU ld does not fold.
        unsupported: &[("gcc", "bfd"), ("clang", "bfd")],
        ..variant("icf", &[], &["-Wl,--icf=all"])
    },
    variant("stripped", &[], &["-s"]),
    variant("debug", &["-g"], &["-g"]),
    variant("split-dwarf", &["-g", "-gsplit-dwarf"], &["-g"]),
    variant("coverage", &["--coverage"], &["--coverage"]),
    variant("large", &["-fPIC", "-fno-plt"], &["-Wl,-z,now"]),
    Variant {
        // lld reads only LLVM's bitcode; Debian's clang comes without the plugin that the GNU
        // linkers need.
        unsupported: &[("gcc", "lld"), ("clang", "bfd"), ("clang", "gold"), ("clang", "mold")],
        ..variant("lto", &["-flto"], &["-flto"])
    },
];

impl Variant {
    pub fn named(name: &str) -> Option<Variant> {
        VARIANTS.iter().find(|variant| variant.name == name).copied()
    }

    fn supports(&self, compiler: &Compiler, linker: &Linker) -> bool {
        !self.unsupported.contains(&(compiler.name, linker.name))
    }
}

/// One way to compile; each of its linkers makes a binary of the same objects.
#[derive(Clone, Copy, Debug)]
pub struct Compilation {
    pub compiler: Compiler,
    pub opt: &'static str,
    pub variant: Variant,
}

impl Compilation {
    /// Every way in which the fixture is compiled.
    pub fn all_for(fixture: &Fixture) -> Vec<Compilation> {
        let mut all = Vec::new();
        for compiler in COMPILERS {
            all.extend(OPTIMISATIONS.map(|opt| Compilation { compiler, opt, variant: PLAIN }));
            // One optimisation is enough for what differs in the link: the whole suite is to end
            // within minutes.
            all.extend(fixture.variants.iter().map(|variant| Compilation {
                compiler,
                opt: "-O2",
                variant: *variant,
            }));
        }
        all
    }

    /// The linkers that the fixture and the filter leave. Unless all are asked for, each way to
    /// compile has two of the four, and of the plain ways two do, which have both compilers, both
    /// optimisations and all linkers between them. Which two differs from fixture to fixture, so
    /// that all of them together have every combination.
    pub fn linkers(&self, fixture: &Fixture, filter: &Filter) -> Vec<Linker> {
        let turn: usize = fixture.name.bytes().map(usize::from).sum();
        let is_first_compiler = self.compiler == COMPILERS[0];
        let is_first_opt = self.opt == OPTIMISATIONS[0];
        let is_restricted = !fixture.only.is_empty() || self.variant != PLAIN;
        if !filter.full
            && !is_restricted
            && (is_first_compiler == is_first_opt) != turn.is_multiple_of(2)
        {
            return Vec::new();
        }
        let pair = if is_restricted {
            is_first_compiler == is_first_opt
        } else {
            is_first_compiler == (turn / 2).is_multiple_of(2)
        };
        let wanted = |linker: &Linker| {
            (filter.full || pair == ["bfd", "lld"].contains(&linker.name))
                && self.variant.supports(&self.compiler, linker)
                && filter.pattern.matches(self, linker)
                && fixture.only.iter().all(|pattern| pattern.matches(self, linker))
        };
        LINKERS.into_iter().filter(wanted).collect()
    }

    pub fn title(&self, linker: &Linker) -> String {
        format!("{} {} {} {}", self.compiler.name, self.opt, linker.name, self.variant.name)
    }
}

/// What of the matrix is wanted.
pub struct Filter {
    pub pattern: Pattern,
    /// Every linker for every way to compile.
    pub full: bool,
}

/// Words such as `clang -O0` or `mold` that pick out ways to build.
#[derive(Clone, Debug)]
pub struct Pattern {
    words: Vec<String>,
    all: bool,
}

impl Pattern {
    pub fn all_of(words: &[String]) -> Pattern {
        Pattern { words: words.to_vec(), all: true }
    }

    pub fn any_of(words: &[String]) -> Pattern {
        Pattern { words: words.to_vec(), all: false }
    }

    pub fn matches(&self, compilation: &Compilation, linker: &Linker) -> bool {
        let names =
            [compilation.compiler.name, compilation.opt, linker.name, compilation.variant.name];
        let mut hits = self.words.iter().map(|word| names.contains(&word.as_str()));
        if self.all { hits.all(|hit| hit) } else { hits.any(|hit| hit) }
    }

    /// Whether every word is the name of a compiler, an optimisation, a linker or a variant.
    pub fn unknown_word(&self) -> Option<&str> {
        let known = |word: &&String| {
            COMPILERS.iter().any(|compiler| compiler.name == *word)
                || OPTIMISATIONS.contains(&word.as_str())
                || LINKERS.iter().any(|linker| linker.name == *word)
                || *word == PLAIN.name
                || Variant::named(word).is_some()
        };
        self.words.iter().find(|word| !known(word)).map(String::as_str)
    }
}
