//! The options of linkers (GNU ld, gold, lld, mold) that matter here, as sorted tables: those that
//! take an argument of their own, which must not be taken for an input file, and those that change
//! what is linked. Every other option is a plain flag and is not listed, unless it starts like a
//! listed one.
//!
//! In: one argument. Out: its entry, and where its value is.

use Effect::{
    BindLocally, Defsym, FixedAddress, Format, Generate, Icf, JustSymbols, Library, LibraryPath,
    LinkerOption as EntryPoint, Map, Nothing, ObjectsAsMembers, Optimise, Output, PrintMap,
    Relocatable, Script, SectionStart, Shared, Static, Stops, StripAll, Version, VersionScript,
    Wrap,
};
use Form::{Flag, Takes};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

/// Whether an option takes an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Flag,
    /// Long: behind `=` or in the next word. Short: in the rest of the word or in the next.
    Takes,
}

/// Which references a shared library binds to its own definitions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Bsymbolic {
    #[default]
    No,
    NonWeakFunctions,
    Functions,
    NonWeak,
    All,
}

/// What an option does to a link, as far as we care.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Nothing; it is listed for its argument, or because it starts like another.
    Nothing,
    /// Whatever else is said, nothing is linked that we could describe. With the reason.
    Stops(&'static str),
    /// It prints the version, and goes on if there is something to link.
    Version,
    Output,
    /// The output's format.
    Format,
    Relocatable,
    Shared,
    Static,
    Map,
    PrintMap,
    Wrap,
    Defsym,
    Script,
    /// A version script or a list of dynamic symbols.
    VersionScript,
    JustSymbols,
    LinkerOption,
    /// It says at which address things lie, so that code can name them by numbers.
    FixedAddress,
    /// The same for one section: `NAME=ADDRESS`.
    SectionStart,
    BindLocally(Bsymbolic),
    Icf,
    Optimise,
    /// It is for the code generator of bitcode.
    Generate,
    /// The objects that follow are taken only if somebody needs them, like members of an archive.
    ObjectsAsMembers,
    StripAll,
    Library,
    LibraryPath,
}

/// One option, without its dashes.
#[derive(Clone, Copy, Debug)]
pub struct LinkerOption {
    pub name: &'static str,
    pub form: Form,
    pub effect: Effect,
}

/// Where an option's argument is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    None,
    /// In the same word.
    Here(&'a OsStr),
    /// The next word.
    Next,
}

const fn entry(name: &'static str, form: Form, effect: Effect) -> LinkerOption {
    LinkerOption { name, form, effect }
}

/// The entry for an argument that starts with a dash. Long options may have one dash or two; but
/// with one, what starts with `o` is `-o` and its value.
pub fn look_up(argument: &OsStr) -> Option<(LinkerOption, Value<'_>)> {
    let bytes = argument.as_bytes();
    match bytes {
        [b'-', b'-', long @ ..] => look_up_long(long, true),
        [b'-', b'o', ..] => look_up_short(&bytes[1..]),
        [b'-', rest @ ..] => look_up_long(rest, false).or_else(|| look_up_short(rest)),
        _ => None,
    }
}

/// Abbreviations are for two dashes only: with one, they would claim what belongs to a short
/// option.
fn look_up_long(word: &[u8], may_be_short: bool) -> Option<(LinkerOption, Value<'_>)> {
    let end = word.iter().position(|&byte| byte == b'=');
    let name = &word[..end.unwrap_or(word.len())];
    let by_name = |entry: &LinkerOption| entry.name.as_bytes().cmp(name);
    let entry = match LONG.binary_search_by(by_name) {
        Ok(at) => LONG[at],
        Err(at) if may_be_short => unabbreviated(name, at)?,
        Err(_) => return None,
    };
    let value = match (entry.form, end) {
        (Flag, _) => Value::None,
        (Takes, Some(end)) => Value::Here(OsStr::from_bytes(&word[end + 1..])),
        (Takes, None) => Value::Next,
    };
    Some((entry, value))
}

/// The one option that starts with `name`. GNU ld takes the start of a long option for the whole,
/// if only one starts so.
fn unabbreviated(name: &[u8], at: usize) -> Option<LinkerOption> {
    let mut candidates =
        LONG[at..].iter().take_while(|entry| entry.name.as_bytes().starts_with(name));
    let first = candidates.next()?;
    if name.len() < 3 || candidates.next().is_some() { None } else { Some(*first) }
}

fn look_up_short(word: &[u8]) -> Option<(LinkerOption, Value<'_>)> {
    let letter = word.get(..1)?;
    let at = SHORT.binary_search_by(|entry| entry.name.as_bytes().cmp(letter)).ok()?;
    let rest = OsStr::from_bytes(&word[1..]);
    match (SHORT[at].form, rest.is_empty()) {
        (Flag, true) => Some((SHORT[at], Value::None)),
        (Flag, false) => None,
        (Takes, true) => Some((SHORT[at], Value::Next)),
        (Takes, false) => Some((SHORT[at], Value::Here(rest))),
    }
}

/// Options of one letter, sorted.
#[rustfmt::skip]
static SHORT: &[LinkerOption] = &[
    entry("A", Takes, Nothing),
    entry("C", Takes, Stops("it works in another folder")),
    entry("F", Takes, Nothing),
    entry("G", Flag, Shared),
    entry("I", Takes, Nothing),
    entry("L", Takes, LibraryPath),
    entry("M", Flag, PrintMap),
    entry("O", Takes, Optimise),
    entry("P", Takes, Nothing),
    entry("R", Takes, JustSymbols),
    entry("T", Takes, Script),
    entry("V", Flag, Version),
    entry("Y", Takes, Nothing),
    entry("a", Takes, Nothing),
    entry("b", Takes, Nothing),
    entry("c", Takes, Script),
    entry("e", Takes, EntryPoint),
    entry("f", Takes, Nothing),
    entry("h", Takes, Nothing),
    entry("i", Flag, Relocatable),
    entry("l", Takes, Library),
    entry("m", Takes, Nothing),
    entry("o", Takes, Output),
    entry("r", Flag, Relocatable),
    entry("s", Flag, StripAll),
    entry("u", Takes, Nothing),
    entry("v", Flag, Version),
    entry("y", Takes, Nothing),
    entry("z", Takes, Nothing),
];

/// Options of several letters, sorted by the bytes of the name.
#[rustfmt::skip]
static LONG: &[LinkerOption] = &[
    entry("Bno-symbolic", Flag, BindLocally(Bsymbolic::No)),
    entry("Bshareable", Flag, Shared),
    entry("Bsymbolic", Flag, BindLocally(Bsymbolic::All)),
    entry("Bsymbolic-functions", Flag, BindLocally(Bsymbolic::Functions)),
    entry("Bsymbolic-non-weak", Flag, BindLocally(Bsymbolic::NonWeak)),
    entry("Bsymbolic-non-weak-functions", Flag, BindLocally(Bsymbolic::NonWeakFunctions)),
    entry("Map", Takes, Map),
    entry("Tbss", Takes, FixedAddress),
    entry("Tdata", Takes, FixedAddress),
    entry("Tldata-segment", Takes, FixedAddress),
    entry("Trodata-segment", Takes, FixedAddress),
    entry("Ttext", Takes, FixedAddress),
    entry("Ttext-segment", Takes, FixedAddress),
    entry("Ur", Flag, Relocatable),
    entry("architecture", Takes, Nothing),
    entry("assert", Takes, Nothing),
    entry("audit", Takes, Nothing),
    entry("auxiliary", Takes, Nothing),
    entry("build-id-chunk-size-for-treehash", Takes, Nothing),
    entry("build-id-min-file-size-for-treehash", Takes, Nothing),
    entry("call-graph-ordering-file", Takes, Nothing),
    entry("call-graph-profile-sort", Flag, Nothing),
    entry("call_shared", Flag, Nothing),
    entry("check-sections", Flag, Nothing),
    entry("chroot", Takes, Stops("it works in another folder")),
    entry("color-diagnostics", Flag, Nothing),
    entry("compress-debug-sections", Takes, Nothing),
    entry("copy-dt-needed-entries", Flag, Nothing),
    entry("cref", Flag, Nothing),
    entry("ctf-share-types", Takes, Nothing),
    entry("ctors-in-init-array", Flag, Nothing),
    entry("dT", Takes, Script),
    entry("debug", Takes, Nothing),
    entry("default-script", Takes, Script),
    entry("defsym", Takes, Defsym),
    entry("depaudit", Takes, Nothing),
    entry("dependency-file", Takes, Nothing),
    entry("directory", Takes, Stops("it works in another folder")),
    entry("dynamic-linker", Takes, Nothing),
    entry("dynamic-list", Takes, VersionScript),
    entry("eh-frame-hdr", Flag, Nothing),
    entry("embedded-relocs", Flag, Nothing),
    entry("emit-relocs", Flag, Nothing),
    entry("emit-stub-syms", Flag, Nothing),
    entry("enable-new-dtags", Flag, Nothing),
    entry("enable-non-contiguous-regions", Flag, Nothing),
    entry("end-group", Flag, Nothing),
    entry("end-lib", Flag, Nothing),
    entry("entry", Takes, EntryPoint),
    entry("error-handling-script", Takes, Nothing),
    entry("error-limit", Takes, Nothing),
    entry("exclude-libs", Takes, Nothing),
    entry("execute-only", Flag, Nothing),
    entry("export-dynamic", Flag, Nothing),
    entry("export-dynamic-symbol", Takes, Nothing),
    entry("export-dynamic-symbol-list", Takes, VersionScript),
    entry("filter", Takes, Nothing),
    entry("fini", Takes, Nothing),
    entry("flavor", Takes, Nothing),
    entry("format", Takes, Nothing),
    entry("gpsize", Takes, Nothing),
    entry("hash-bucket-empty-fraction", Takes, Nothing),
    entry("hash-size", Takes, Nothing),
    entry("hash-style", Takes, Nothing),
    entry("help", Flag, Stops("it asks about the linker")),
    entry("help-all", Flag, Stops("it asks about the linker")),
    entry("help-hidden", Flag, Stops("it asks about the linker")),
    entry("icf", Takes, Icf),
    entry("icf-iterations", Takes, Nothing),
    entry("ignore-unresolved-symbol", Takes, Nothing),
    entry("image-base", Takes, FixedAddress),
    entry("incremental-base", Takes, Nothing),
    entry("incremental-patch", Takes, Nothing),
    entry("init", Takes, Nothing),
    entry("just-symbols", Takes, JustSymbols),
    entry("keep-unique", Takes, Nothing),
    entry("ld-generated-unwind-info", Flag, Nothing),
    entry("library", Takes, Library),
    entry("library-path", Takes, LibraryPath),
    entry("long-plt", Flag, Nothing),
    entry("lto-emit-asm", Flag, Nothing),
    entry("lto-whole-program-visibility", Flag, Nothing),
    entry("max-cache-size", Takes, Nothing),
    entry("mllvm", Takes, Generate),
    entry("mri-script", Takes, Script),
    entry("oformat", Takes, Format),
    entry("opt-remarks-filename", Takes, Nothing),
    entry("opt-remarks-format", Takes, Nothing),
    entry("opt-remarks-passes", Takes, Nothing),
    entry("optimize", Takes, Optimise),
    entry("orphan-handling", Takes, Nothing),
    entry("out-implib", Takes, Nothing),
    entry("output", Takes, Output),
    entry("plugin", Takes, Nothing),
    entry("plugin-opt", Takes, Generate),
    entry("print-map", Flag, PrintMap),
    entry("print-output-format", Flag, Stops("it asks about the linker")),
    entry("print-symbol-counts", Takes, Nothing),
    entry("print-sysroot", Flag, Stops("it asks about the linker")),
    entry("relocatable", Flag, Relocatable),
    entry("remap-inputs-file", Takes, Nothing),
    entry("reproduce", Takes, Nothing),
    entry("require-defined", Takes, Nothing),
    entry("retain-symbols-file", Takes, Nothing),
    entry("rosegment-gap", Takes, Nothing),
    entry("rpath", Takes, Nothing),
    entry("rpath-link", Takes, Nothing),
    entry("run", Flag, Stops("it runs another program")),
    entry("script", Takes, Script),
    entry("section-ordering-file", Takes, Nothing),
    entry("section-ordering-script", Takes, Nothing),
    entry("section-start", Takes, SectionStart),
    entry("shared", Flag, Shared),
    entry("soname", Takes, Nothing),
    entry("sort-section", Takes, Nothing),
    entry("spare-dynamic-tags", Takes, Nothing),
    entry("split-stack-adjust-size", Takes, Nothing),
    entry("start-lib", Flag, ObjectsAsMembers),
    entry("static", Flag, Static),
    entry("strip-all", Flag, StripAll),
    entry("stub-group-size", Takes, Nothing),
    entry("symbol-ordering-file", Takes, Nothing),
    entry("sysroot", Takes, Nothing),
    entry("target-help", Flag, Stops("it asks about the linker")),
    entry("target2", Takes, Nothing),
    entry("task-link", Takes, Nothing),
    entry("thread-count", Takes, Nothing),
    entry("thread-count-final", Takes, Nothing),
    entry("thread-count-initial", Takes, Nothing),
    entry("thread-count-middle", Takes, Nothing),
    entry("trace-symbol", Takes, Nothing),
    entry("undefined", Takes, Nothing),
    entry("undefined-glob", Takes, Nothing),
    entry("unresolved-symbols", Takes, Nothing),
    entry("version", Flag, Stops("it asks about the linker")),
    entry("version-exports-section", Takes, Nothing),
    entry("version-script", Takes, VersionScript),
    entry("warn-backrefs-exclude", Takes, Nothing),
    entry("wrap", Takes, Wrap),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tables_are_sorted() {
        assert!(SHORT.is_sorted_by(|one, other| one.name < other.name));
        assert!(LONG.is_sorted_by(|one, other| one.name < other.name));
        assert!(SHORT.iter().all(|entry| entry.name.len() == 1));
    }

    fn found(argument: &str) -> Option<(&'static str, Value<'_>)> {
        look_up(OsStr::new(argument)).map(|(entry, value)| (entry.name, value))
    }

    #[test]
    fn forms() {
        let here = |rest| Value::Here(OsStr::new(rest));
        assert_eq!(found("-o"), Some(("o", Value::Next)));
        assert_eq!(found("-output"), Some(("o", here("utput"))));
        assert_eq!(found("--output=x"), Some(("output", here("x"))));
        assert_eq!(found("-Map=x"), Some(("Map", here("x"))));
        assert_eq!(found("--Map"), Some(("Map", Value::Next)));
        assert_eq!(found("-M"), Some(("M", Value::None)));
        assert_eq!(found("-Ttext"), Some(("Ttext", Value::Next)));
        assert_eq!(found("-Tx.ld"), Some(("T", here("x.ld"))));
        assert_eq!(found("-znow"), Some(("z", here("now"))));
        assert_eq!(found("-dynamic-linker"), Some(("dynamic-linker", Value::Next)));
        assert_eq!(found("-export-dynamic"), Some(("export-dynamic", Value::None)));
        assert_eq!(found("-plugin-opt=-x"), Some(("plugin-opt", here("-x"))));
        assert_eq!(found("--wra"), Some(("wrap", Value::Next)));
    }

    #[test]
    fn plain_flags_are_not_listed() {
        for flag in
            ["--gc-sections", "-pie", "-(", "--", "-", "--build-id=sha1", "--no-undefined", "x"]
        {
            assert_eq!(found(flag), None, "{flag}");
        }
    }
}
