//! What `tasting setup` and `make install` put beside the programs.

use super::{linters, read, source};
use crate::workshop::{Outcome, TASTING, Workshop, succeed, tool};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn tasting(shop: &Workshop, words: &[&str]) -> String {
    succeed(shop.command(TASTING).args(words))
        .unwrap_or_else(|error| panic!("{error}"))
        .stdout_text()
}

/// All that is in a folder, with its kind.
fn listing(folder: &Path) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_type().expect("an entry has a kind").is_dir() {
            found.extend(listing(&entry.path()));
        } else {
            found.insert(entry.path());
        }
    }
    found
}

/// The subcommands that `tasting --help` lists.
fn subcommands(shop: &Workshop) -> Vec<String> {
    let help = tasting(shop, &["--help"]);
    let lines = help
        .lines()
        .skip_while(|line| *line != "Commands:")
        .skip(1)
        .take_while(|line| !line.is_empty());
    let names = lines.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    names.filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
}

#[test]
#[ignore = "needs groff"]
fn every_subcommand_has_its_page() {
    let shop = Workshop::new();
    let prefix = shop.path("prefix");
    tasting(&shop, &["setup", "--prefix", "prefix", "--only", "files"]);
    let names = subcommands(&shop);
    assert!(names.len() > 10, "{names:?}");
    let pages = names.iter().map(|name| format!("man1/tasting-{name}.1"));
    let others =
        ["man1/tasting.1", "man1/tasting-cc.1", "man1/tasting-c++.1", "man5/tasting.toml.5"];
    for page in pages.chain(others.map(str::to_owned)) {
        assert!(prefix.join("share/man").join(&page).exists(), "{page} is missing");
    }
    tool("groff");
    for page in listing(&prefix.join("share/man")) {
        let mut groff = shop.command("groff");
        groff
            .current_dir(prefix.join("share/man"))
            .args(["-ww", "-z", "-man", "-Tutf8"])
            .arg(&page);
        let outcome = Outcome::of(&mut groff);
        assert!(outcome.success() && outcome.stderr.is_empty(), "{}: {outcome:?}", page.display());
    }
}

/// A shell reads the completions, and knows the subcommands.
#[test]
#[ignore = "needs zsh and fish"]
fn shells_load_their_completions() {
    let shop = Workshop::new();
    let checks = [
        (
            "bash",
            "source ./c && COMP_WORDS=(tasting expl) COMP_CWORD=1 && _tasting tasting expl tasting && echo ${COMPREPLY[@]}",
        ),
        (
            "zsh",
            "autoload -U compinit && compinit -u -D && source ./c && whence -w _tasting && grep -o explain ./c | head -1",
        ),
        ("fish", "source ./c; complete -C'tasting expl'"),
    ];
    for (shell, script) in checks {
        tool(shell);
        shop.write("c", tasting(&shop, &["completions", shell]));
        let mut command = shop.command(shell);
        let outcome = Outcome::of(command.env("HOME", shop.path("")).args(["-c", script]));
        assert!(
            outcome.success() && outcome.stdout_text().contains("explain"),
            "{shell}: {outcome:?}"
        );
        assert!(outcome.stderr.is_empty(), "{shell}: {outcome:?}");
    }
}

#[test]
fn setup_leaves_nothing_when_removed() {
    let shop = Workshop::new();
    shop.write("prefix/share/man/man1/other.1", "");
    let before = listing(&shop.path("prefix"));
    tasting(&shop, &["setup", "--prefix", "prefix"]);
    let once = listing(&shop.path("prefix"));
    for name in [
        "bin/tasting-c++",
        "lib/tasting/gcc",
        "share/tasting/cmake/tasting.cmake",
        "libexec/tasting/ld/ld",
    ] {
        assert!(shop.path("prefix").join(name).exists(), "{name} is missing or leads nowhere");
    }
    tasting(&shop, &["setup", "--prefix", "prefix"]);
    assert_eq!(listing(&shop.path("prefix")), once, "a second time changes nothing");
    tasting(&shop, &["setup", "--prefix", "prefix", "--remove"]);
    assert_eq!(listing(&shop.path("prefix")), before);
    assert!(!shop.path("prefix/lib/tasting").exists());
}

/// What `make install` installs is removed by `make uninstall`.
#[test]
fn install_and_uninstall() {
    let shop = Workshop::new();
    let script = |words: &[&str]| {
        let mut command = shop.command(source("scripts/install.sh"));
        command
            .args(words)
            .env("BUILT", Path::new(TASTING).parent().unwrap())
            .env("DESTDIR", shop.path("root"));
        succeed(&mut command).unwrap_or_else(|error| panic!("{error}"));
    };
    script(&["/usr"]);
    assert!(shop.path("root/usr/share/man/man1/tasting-run.1").exists());
    assert!(shop.path("root/usr/share/doc/tasting/README.md").exists());
    script(&["--remove", "/usr"]);
    assert_eq!(listing(&shop.path("root")), BTreeSet::new());
}

#[test]
fn help_knows_commands_files_and_codes() {
    let shop = Workshop::new();
    assert_eq!(tasting(&shop, &["help", "run"]), tasting(&shop, &["run", "--help"]));
    assert_eq!(tasting(&shop, &["help"]), tasting(&shop, &["--help"]));
    assert_eq!(tasting(&shop, &["help", "tasting.toml"]), read("docs/settings.md"));
    assert!(tasting(&shop, &["help", "network"]).starts_with("### network\n"));
    assert_eq!(Outcome::of(shop.command(TASTING).args(["help", "nonsense"])).code, Some(1));
}

/// The lines that the README advises are those of `tasting init`.
#[test]
fn init_and_readme_advise_the_same() {
    let readme = read("README.md");
    for (mark, lines) in
        [("CMakeLists.txt", 3), ("meson.build", 2), ("configure.ac", 2), ("Makefile", 1)]
    {
        let shop = Workshop::new();
        shop.write(mark, "");
        let shown: serde_json::Value =
            serde_json::from_str(&tasting(&shop, &["init", "--json"])).expect("JSON");
        let system = &shown["systems"][0];
        let said =
            ["build", "test"].map(|part| system[part].as_array().expect("a list").clone()).concat();
        let said = said.iter().filter_map(|line| line.as_str());
        let advised = said.filter(|line| readme.contains(line)).count();
        assert!(advised >= lines, "{mark}: only {advised} lines of {system} are in README.md");
    }
}

/// What is there for GitHub and GitLab: linted, and executed as their runners do.
#[test]
#[ignore = "needs PyYAML, check-jsonschema and node"]
fn steps_for_build_servers_reuse_results() {
    let shop = Workshop::new();
    let mut command = shop.command("python3");
    let built = Path::new(TASTING).parent().expect("binaries lie in a folder");
    command.arg(source("scripts/try-ci.py")).env("BUILT", built).env("LINTERS", linters());
    succeed(&mut command).unwrap_or_else(|error| panic!("{error}"));
}
