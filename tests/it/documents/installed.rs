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

const PROGRAMS: [&str; 4] = ["tasting", "tasting-cc", "tasting-cxx", "tasting-ld"];

/// A project is built and tested twice with the programs of a folder: the second time its test is
/// reused.
#[track_caller]
fn reuses_with(shop: &Workshop, programs: &Path) {
    let demo = shop.path("demo");
    succeed(shop.command("cp").arg("-r").arg(source("fixtures/demo")).arg(&demo)).unwrap();
    let given = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths(
        [programs.to_owned()].into_iter().chain(std::env::split_paths(&given)),
    )
    .unwrap();
    let command = |program: &str| {
        let mut command = shop.command(program);
        command
            .current_dir(&demo)
            .env("PATH", &path)
            .env("HOME", shop.path("home"))
            .env("TASTING_ROOT", &demo);
        command
    };
    for goal in ["till", "check", "check"] {
        succeed(command("make").args(["CC=tasting-cc", "RUNNER=tasting run --", goal])).unwrap();
    }
    let log = succeed(command("tasting").args(["log", "--json", "-n", "1"])).unwrap().stdout_text();
    assert!(log.contains("\"decision\":\"reused\""), "{log}");
}

/// `cargo install` brings the programs, and nothing else.
#[test]
fn programs_alone_become_a_working_tool() {
    let shop = Workshop::new();
    let programs = shop.path("home/.cargo/bin");
    std::fs::create_dir_all(&programs).unwrap();
    for name in PROGRAMS {
        std::fs::copy(Path::new(TASTING).with_file_name(name), programs.join(name)).unwrap();
    }
    succeed(shop.command(programs.join("tasting")).arg("setup").env("HOME", shop.path("home")))
        .unwrap();
    shop.write("sample/CMakeLists.txt", "");
    let mut init = shop.command(programs.join("tasting"));
    let shown = succeed(init.current_dir(shop.path("sample")).args(["init", "--json"]))
        .unwrap()
        .stdout_text();
    let file = shop.path("home/.cargo/share/tasting/cmake/tasting.cmake");
    assert!(file.exists() && shown.contains(file.to_str().unwrap()), "{shown}");
    assert!(shop.path("home/.cargo/lib/tasting/gcc").exists());
    reuses_with(&shop, &programs);
}

/// The archive of `make tarball`, for those who have no root; and its name is the one that `cargo
/// binstall` looks for.
#[test]
fn the_archive_works_where_it_is_unpacked() {
    let shop = Workshop::new();
    let mut package = shop.command(source("scripts/package.sh"));
    package
        .args(["tarball", shop.path("").to_str().unwrap()])
        .env("BUILT", Path::new(TASTING).parent().unwrap());
    let archive = PathBuf::from(succeed(&mut package).unwrap().stdout_text().trim_end());
    let manifest: toml::Table = read("Cargo.toml").parse().unwrap();
    let said = |name: &str| {
        let text = manifest["package"]["metadata"]["binstall"][name].as_str().unwrap().to_owned();
        let version = manifest["package"]["version"].as_str().unwrap();
        text.replace("{ version }", version).replace("{ target-arch }", std::env::consts::ARCH)
    };
    // Programs in $BUILT are not linked statically.
    let name = archive.file_name().unwrap().to_str().unwrap().replace("-gnu.", "-musl.");
    assert!(said("pkg-url").ends_with(&format!("/{name}")), "{name}");
    succeed(shop.command("tar").arg("-xf").arg(&archive)).unwrap();
    let folder =
        shop.path(archive.file_name().unwrap().to_str().unwrap().trim_end_matches(".tar.gz"));
    assert_eq!(
        said("bin-dir").replace("-musl/", "-gnu/"),
        format!("{}/bin/{{ bin }}", folder.file_name().unwrap().to_str().unwrap())
    );
    let home = shop.path("home");
    std::fs::create_dir(&home).unwrap();
    let install = |words: &[&str]| {
        succeed(shop.command(folder.join("install.sh")).args(words).env("HOME", &home))
            .unwrap_or_else(|error| panic!("{error}"));
    };
    install(&[]);
    reuses_with(&shop, &home.join(".local/bin"));
    install(&["--remove"]);
    let left: Vec<_> = listing(&home.join(".local")).into_iter().collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
#[ignore = "needs dpkg-deb"]
fn the_package_depends_on_the_c_library_only() {
    let shop = Workshop::new();
    let mut package = shop.command(source("scripts/package.sh"));
    package
        .args(["deb", shop.path("").to_str().unwrap()])
        .env("BUILT", Path::new(TASTING).parent().unwrap());
    let package = succeed(&mut package).unwrap().stdout_text();
    let ask = |words: &[&str]| succeed(shop.command("dpkg-deb").args(words)).unwrap().stdout_text();
    let depends = ask(&["-f", package.trim_end(), "Depends"]);
    assert!(depends.starts_with("libc6 (>= 2.") && !depends.contains(','), "{depends}");
    let files = ask(&["-c", package.trim_end()]);
    for name in [
        "/usr/bin/tasting-cc",
        "/usr/bin/tasting-c++ -> tasting-cxx",
        "/usr/share/man/man1/tasting-run.1.gz",
        "/usr/share/man/man5/tasting.toml.5.gz",
        "/usr/share/bash-completion/completions/tasting",
        "/usr/share/tasting/cmake/tasting.cmake",
        "/usr/share/tasting/meson/tasting.ini",
        "/usr/share/doc/tasting/copyright",
    ] {
        assert!(files.contains(&format!(".{name}\n")), "{name} is not in {files}");
    }
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
