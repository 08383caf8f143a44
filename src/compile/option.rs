//! One option of a compiler driver: how it takes its argument, and all that it decides. The rows of
//! the table are made of these.

/// How an option takes its argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// It takes none.
    Alone,
    /// It takes none, and stands for all options that start so.
    Family,
    /// In the same word: `-fuse-ld=gold`.
    Joined,
    /// In the next word: `-Xlinker --gc-sections`.
    Separate,
    /// Either: `-ox`, `-o x`.
    Either,
    /// In both: `-Xarch_x86_64 -O2`.
    JoinedThenSeparate,
}

/// What an option does to a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    Nothing,
    /// Objects are written, nothing is linked.
    Object,
    /// Whatever else is said, no object and no binary is written. With the reason.
    Stops(&'static str),
    Output,
    Language,
    /// Link-time optimisation on or off; the last one counts.
    Lto(bool),
    /// A folder in which programs are looked for before all others.
    Prefix,
    /// It changes where the driver looks for programs.
    Search,
    /// Which linker, by a short name (or, for Clang, a path).
    UseLinker,
    /// Which linker, by its file.
    LinkerPath,
    /// It brings something to link, as an input file does.
    LinkInput,
    /// Its argument is an option of Clang's compiler proper.
    ForClang,
}

/// What of the result an option can change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Affects {
    /// It is no option but an input file.
    Input,
    /// Only what the preprocessor makes of the source.
    Text,
    /// That, and paths in debug information.
    TextAndDebugInfo,
    /// Which files are written besides, and where.
    Files,
    /// Dependency files.
    Dependencies,
    Diagnostics,
    DebugInfo,
    Link,
    Code,
    /// A program or file that we do not look into decides over the code. With the reason.
    Opaque(&'static str),
}

/// Whether lines and columns of the source become part of the code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Positions {
    NotInCode,
    InCode,
    /// Where there is debug information as well.
    WithDebugInfo,
}

/// One option: a row of the table.
#[derive(Clone, Copy, Debug)]
pub struct CompilerOption {
    pub name: &'static str,
    pub form: Form,
    pub effect: Effect,
    pub affects: Affects,
    /// Why an object that was made with it cannot be reused.
    pub uncacheable: Option<&'static str>,
    /// The result of a floating-point expression may depend on what is inlined around it.
    pub inexact: bool,
    /// The labels of constants may not be there, or not tell what they tell otherwise.
    pub no_labels: bool,
    /// One call that compiles and links does something else than two calls.
    pub one_call: bool,
    pub positions: Positions,
    /// Comments ("falls through") decide over warnings.
    pub reads_comments: bool,
}

/// A row: how the option takes its argument. The methods fill the other columns.
pub const fn option(name: &'static str, form: Form) -> CompilerOption {
    CompilerOption {
        name,
        form,
        effect: Effect::Nothing,
        affects: Affects::Code,
        uncacheable: None,
        inexact: false,
        no_labels: false,
        one_call: false,
        positions: Positions::NotInCode,
        reads_comments: false,
    }
}

impl CompilerOption {
    pub const fn effect(self, effect: Effect) -> Self {
        CompilerOption { effect, ..self }
    }

    pub const fn affects(self, affects: Affects) -> Self {
        CompilerOption { affects, ..self }
    }

    pub const fn uncacheable(self, reason: &'static str) -> Self {
        CompilerOption { uncacheable: Some(reason), ..self }
    }

    pub const fn inexact(self) -> Self {
        CompilerOption { inexact: true, ..self }
    }

    pub const fn no_labels(self) -> Self {
        CompilerOption { no_labels: true, ..self }
    }

    pub const fn one_call(self) -> Self {
        CompilerOption { one_call: true, ..self }
    }

    pub const fn positions(self, positions: Positions) -> Self {
        CompilerOption { positions, ..self }
    }

    pub const fn reads_comments(self) -> Self {
        CompilerOption { reads_comments: true, ..self }
    }
}
