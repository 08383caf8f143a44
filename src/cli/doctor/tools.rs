//! The shims, the compilers and the linkers: each is tried out.

use crate::cli::scratch::Scratch;
use crate::fingerprint::{self, Opened};
use crate::model::{AtomKind, Level, Verdict};
use crate::process::{Settings, search};
use crate::report::findings::Finding;
use crate::store::{FileStore, Journal, Options};
use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

/// One small program, good C and good C++.
const PROGRAM: &str =
    "static int twice(int x) { return 2 * x; }\nint main(void) { return twice(0); }\n";

/// A language: the ending of its sources, its shim, and the compilers to be tried.
const LANGUAGES: [(&str, &str, [&str; 3]); 2] =
    [("c", "tasting-cc", ["cc", "gcc", "clang"]), ("cc", "tasting-cxx", ["c++", "g++", "clang++"])];

const LINKERS: [&str; 4] = ["bfd", "gold", "lld", "mold"];

const SHIMS: [&str; 3] = ["tasting-cc", "tasting-cxx", "tasting-ld"];

pub fn examine() -> Vec<Finding> {
    let own = std::env::current_exe().and_then(fs::canonicalize).unwrap_or_default();
    let folder = own.parent().unwrap_or(Path::new("/"));
    let missing: Vec<&str> =
        SHIMS.into_iter().filter(|shim| !folder.join(shim).is_file()).collect();
    if !missing.is_empty() {
        let text = format!(
            "{} missing beside {}: builds have no fingerprints",
            missing.join(", "),
            own.display()
        );
        return vec![Finding::broken("shims", text)];
    }
    let mut found = vec![Finding::works("shims", format!("in {}", folder.display()))];
    found.extend(path(&own));
    let builds = LANGUAGES.iter().flat_map(|language| compilers(folder, language));
    found.extend(builds);
    found.extend(linkers(folder));
    found.push(reuse(folder, &own));
    found
}

/// What a shell finds, and in which order.
fn path(own: &Path) -> Vec<Finding> {
    let real = |name: &str| which::which(name).ok().and_then(|path| fs::canonicalize(path).ok());
    let tasting = match real("tasting") {
        Some(found) if found == own => Finding::works("PATH: tasting", "is this one"),
        Some(found) => {
            Finding::note("PATH: tasting", format!("is another one, {}", found.display()))
        }
        None => Finding::note(
            "PATH: tasting",
            "not there: call it, and the shims, by their whole paths",
        ),
    };
    let compiler = match which::which("cc") {
        Ok(cc) if search::is_shim(&cc) => {
            Finding::works("PATH: cc", "is a shim: every build goes through it")
        }
        Ok(cc) => {
            let behind = which::which_all("cc")
                .ok()
                .and_then(|mut all| all.find(|path| search::is_shim(path)));
            match behind {
                Some(shim) => {
                    let text = format!(
                        "the shim {} comes after {}, and is not used",
                        shim.display(),
                        cc.display()
                    );
                    Finding::note("PATH: cc", text)
                }
                None => Finding::works(
                    "PATH: cc",
                    format!("is {}: build with CC=tasting-cc CXX=tasting-c++", cc.display()),
                ),
            }
        }
        Err(_) => Finding::note("PATH: cc", "there is no cc"),
    };
    vec![tasting, compiler]
}

/// Builds with the compiler that the shim finds by itself, and with every other one.
fn compilers(folder: &Path, (ending, shim, names): &(&str, &str, [&str; 3])) -> Vec<Finding> {
    let shim_path = folder.join(shim);
    let language = if *ending == "c" { "C" } else { "C++" };
    let own = build(&shim_path, ending, &[]).map(|_| ());
    let default = match own {
        Ok(()) => Finding::works(*shim, format!("builds {language}, with a fingerprint")),
        // Many projects have no C++.
        Err(problem) if *ending != "c" => {
            Finding::note(*shim, format!("cannot build C++: {problem}"))
        }
        Err(problem) => Finding::broken(*shim, format!("cannot build C: {problem}")),
    };
    let mut seen = HashSet::new();
    let hits = names.iter().filter_map(|name| search::on_path(OsStr::new(name)));
    let others = hits.filter(|hit| seen.insert(fs::canonicalize(&hit.path).unwrap_or_default()));
    let tried = others.map(|hit| {
        let built = build(&shim_path, ending, &[hit.path.as_os_str()]).map(|_| ());
        finding(
            format!("{}", hit.path.display()),
            built,
            &format!("builds {language}, with a fingerprint"),
        )
    });
    std::iter::once(default).chain(tried).collect()
}

fn linkers(folder: &Path) -> Vec<Finding> {
    let is_there = |name: &&str| search::on_path(OsStr::new(&format!("ld.{name}"))).is_some();
    let tried = LINKERS.into_iter().filter(is_there).map(|name| {
        let option = format!("-fuse-ld={name}");
        let built = build(&folder.join("tasting-cc"), "c", &[OsStr::new(&option)]).map(|_| ());
        finding(format!("ld.{name}"), built, "links, and its map can be read")
    });
    tried.collect()
}

/// Of the many tools, none is essential by itself.
fn finding(subject: String, tried: Result<(), String>, good: &str) -> Finding {
    match tried {
        Ok(()) => Finding::works(subject, good),
        Err(problem) => Finding::note(subject, format!("does not work with Tasting: {problem}")),
    }
}

/// Builds the small program, and sees whether it was taken apart.
fn build(shim: &Path, ending: &str, words: &[&OsStr]) -> Result<(Scratch, PathBuf), String> {
    let scratch = Scratch::new("doctor")
        .map_err(|error| format!("no temporary folder can be made: {error}"))?;
    let (source, program) = (format!("small.{ending}"), scratch.path("small"));
    fs::write(scratch.path(&source), PROGRAM).map_err(|error| error.to_string())?;
    let mut command = scratch.command(shim);
    Scratch::succeed(command.args(words).args(["-o", "small", &source]))?;
    let settings = Settings::default();
    fingerprint::fingerprint(&program, None, &settings).map_err(|error| error.to_string())?;
    let opened = Opened::open(&program, &settings).map_err(|error| error.to_string())?;
    let binary = opened.binary().map_err(|error| error.to_string())?;
    let manifest = opened.manifest(&binary).map_err(|error| error.to_string())?;
    let main =
        manifest.nodes.iter().find(|node| node.name == "main" && node.kind == AtomKind::Function);
    if main.is_none_or(|main| main.level != Level::Code) {
        let reason =
            manifest.refusals.first().map_or("no reason is given".to_owned(), ToString::to_string);
        return Err(format!("the binary has a fingerprint as a whole only: {reason}"));
    }
    drop((manifest, binary));
    Ok((scratch, program))
}

/// Runs a program twice; the second time is to be a reuse.
fn reuse(folder: &Path, own: &Path) -> Finding {
    match try_reuse(folder, own) {
        Ok(()) => Finding::works("tasting run", "a program that ran was reused"),
        Err(problem) => {
            Finding::broken("tasting run", format!("a program that ran was not reused: {problem}"))
        }
    }
}

fn try_reuse(folder: &Path, own: &Path) -> Result<(), String> {
    let (scratch, program) = build(&folder.join("tasting-cc"), "c", &[])?;
    for _ in 0..2 {
        Scratch::succeed(scratch.command(own).args(["run", "--"]).arg(&program))?;
    }
    let store =
        FileStore::new(&scratch.path("store"), Options { read_only: true, ..Options::default() });
    match store.decisions(1).map_err(|error| error.to_string())?.pop() {
        Some(last) if last.decision == Verdict::Reused => Ok(()),
        Some(last) => Err(last.reason),
        None => Err("nothing was decided".to_owned()),
    }
}
