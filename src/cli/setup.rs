//! `tasting setup`: installs the files beside the programs that they and other tools look for:
//! files for CMake and Meson, names of compilers and linkers, manual pages, completions. All of
//! them are inside the program.

mod compilers;
mod pages;

use super::{completions, exit};
use crate::process::{atomic_write, search};
use anyhow::{Context, bail};
use clap_complete::Shell;
use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// Install the files that belong to the programs: for CMake, Meson, man and the shells.
///
/// `cargo install` brings programs only. This writes the rest below PREFIX, which by default is the
/// folder above the one that tasting is in: share/tasting (CMake, Meson), lib/tasting (the names of
/// all compilers and linkers of this machine, for PATH), libexec/tasting, the manual and the
/// completions. Where PREFIX/bin has no tasting, links to this one are made. Run it again after a
/// new compiler was installed.
#[derive(clap::Args)]
#[command(after_help = "  cargo install --path . && tasting setup\n  \
    tasting setup --prefix ~/.local\n  \
    tasting setup --remove")]
pub struct Arguments {
    /// The folder with bin, lib and share
    #[arg(long, value_name = "DIR")]
    prefix: Option<PathBuf>,
    /// Remove what was written
    #[arg(long)]
    remove: bool,
    /// Only a part: the files, or the names of compilers in lib/tasting
    #[arg(long, value_name = "PART")]
    only: Option<SetupPart>,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum SetupPart {
    Files,
    Compilers,
}

/// Something to install.
enum Item {
    Text(Vec<u8>),
    /// Where the link leads, relative to the folder that it is in.
    Link(PathBuf),
}

/// An item and its path below the prefix.
type Placed = (PathBuf, Item);

/// Links in here are ours alone.
const COMPILERS: &str = "lib/tasting";

/// Folders that others count on, empty or not.
const KEPT: [&str; 5] = ["bin", "lib", "libexec", "man", "share"];

pub fn run(arguments: Arguments) -> anyhow::Result<u8> {
    let own = std::env::current_exe()
        .and_then(fs::canonicalize)
        .context("cannot find out where tasting is")?;
    let prefix = prefix(&arguments, &own)?;
    let is_wanted = |part| arguments.only.is_none_or(|only| only == part);
    let mut items = Vec::new();
    if is_wanted(SetupPart::Files) {
        items.extend(programs(&prefix, &own));
        items.extend(files()?);
    }
    if is_wanted(SetupPart::Compilers) {
        // What is not on this machine any more goes.
        remove_links(&prefix.join(COMPILERS))?;
        items.extend(if arguments.remove { Vec::new() } else { compilers::links() });
    }
    for (path, item) in &items {
        let target = prefix.join(path);
        let done = if arguments.remove { remove(&target, &prefix) } else { install(&target, item) };
        done.with_context(|| format!("cannot write {}", target.display()))?;
    }
    remove_empty(&prefix.join(COMPILERS), &prefix);
    println!(
        "{} {}",
        if arguments.remove { "removed from" } else { "installed in" },
        prefix.display()
    );
    Ok(exit::OK)
}

/// Writes everything but the names of compilers below a folder, with links to the programs.
pub fn write_files(prefix: &Path) -> anyhow::Result<()> {
    let own = std::env::current_exe()
        .and_then(fs::canonicalize)
        .context("cannot find out where tasting is")?;
    for (path, item) in programs(prefix, &own).into_iter().chain(files()?) {
        let target = prefix.join(path);
        install(&target, &item).with_context(|| format!("cannot write {}", target.display()))?;
    }
    Ok(())
}

fn prefix(arguments: &Arguments, own: &Path) -> anyhow::Result<PathBuf> {
    let prefix = match &arguments.prefix {
        Some(prefix) => std::path::absolute(prefix)?,
        None => {
            match own.parent().filter(|folder| folder.ends_with("bin")).and_then(Path::parent) {
                Some(prefix) => prefix.to_owned(),
                None => bail!("{} is in no folder called bin: say --prefix DIR", own.display()),
            }
        }
    };
    Ok(prefix)
}

/// The programs, where they lie elsewhere; `tasting-c++`, which cargo cannot make.
fn programs(prefix: &Path, own: &Path) -> Vec<Placed> {
    let mut links = vec![(PathBuf::from("bin/tasting-c++"), Item::Link("tasting-cxx".into()))];
    let is_there = |name: &str| {
        fs::symlink_metadata(prefix.join("bin").join(name)).is_ok_and(|found| !found.is_symlink())
    };
    for name in ["tasting", "tasting-cc", "tasting-cxx", "tasting-ld"] {
        if !is_there(name) {
            links.push((Path::new("bin").join(name), Item::Link(own.with_file_name(name))));
        }
    }
    links
}

/// Everything that is the same on every machine.
fn files() -> io::Result<Vec<Placed>> {
    let text = |path: &str, text: &str| (PathBuf::from(path), Item::Text(text.as_bytes().to_vec()));
    let script = |path: &str, shell| (PathBuf::from(path), Item::Text(completions::script(shell)));
    let native = "../../tasting/meson/tasting.ini";
    let mut files = vec![
        text("share/tasting/cmake/tasting.cmake", include_str!("../../cmake/tasting.cmake")),
        text("share/tasting/cmake/ctest.cmake.in", include_str!("../../cmake/ctest.cmake.in")),
        text(
            "lib/cmake/Tasting/TastingConfig.cmake",
            include_str!("../../cmake/TastingConfig.cmake"),
        ),
        text("share/tasting/meson/tasting.ini", include_str!("../../meson/tasting.ini")),
        // Meson looks for `--native-file tasting.ini` there.
        (PathBuf::from("share/meson/native/tasting.ini"), Item::Link(native.into())),
        script("share/bash-completion/completions/tasting", Shell::Bash),
        script("share/zsh/site-functions/_tasting", Shell::Zsh),
        script("share/fish/vendor_completions.d/tasting.fish", Shell::Fish),
    ];
    files.extend(compilers::linkers("libexec/tasting/ld"));
    for (name, section, page) in pages::all()? {
        files.push((format!("share/man/man{section}/{name}.{section}").into(), Item::Text(page)));
    }
    Ok(files)
}

fn install(target: &Path, item: &Item) -> io::Result<()> {
    if let Some(folder) = target.parent() {
        fs::create_dir_all(folder)?;
    }
    match item {
        Item::Text(text) => {
            remove_link(target)?;
            atomic_write::write(target, None, None, &[text])
        }
        Item::Link(aim) => {
            if fs::symlink_metadata(target).is_ok() {
                fs::remove_file(target)?;
            }
            symlink(aim, target)
        }
    }
}

/// What would be written through is not ours.
fn remove_link(target: &Path) -> io::Result<()> {
    match fs::symlink_metadata(target) {
        Ok(found) if found.is_symlink() => fs::remove_file(target),
        _ => Ok(()),
    }
}

fn remove(target: &Path, prefix: &Path) -> io::Result<()> {
    match fs::remove_file(target) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    target.parent().into_iter().for_each(|folder| remove_empty(folder, prefix));
    Ok(())
}

/// Removes a folder and those above it, as far as nothing is in them.
fn remove_empty(folder: &Path, prefix: &Path) {
    for folder in folder.ancestors().take_while(|folder| *folder != prefix) {
        let is_kept = KEPT.iter().any(|kept| folder.ends_with(kept));
        if is_kept || fs::remove_dir(folder).is_err() {
            return;
        }
    }
}

/// Removes the links to our shims from a folder.
fn remove_links(folder: &Path) -> io::Result<()> {
    let Ok(entries) = fs::read_dir(folder) else { return Ok(()) };
    for entry in entries.flatten() {
        let path = entry.path();
        let leads_to_shim =
            || fs::read_link(&path).is_ok_and(|aim| search::is_shim(&folder.join(aim)));
        let is_dangling = || !path.exists();
        if entry.file_type().is_ok_and(|kind| kind.is_symlink())
            && (leads_to_shim() || is_dangling())
        {
            fs::remove_file(&path)?;
        }
    }
    Ok(())
}
