//! What a test finds when it starts: the files of its project, and how it is called. All of it can
//! be changed from outside.

use super::steps::Step;
use super::toolbox::Toolbox;
use super::tree::{NodeKind, Tree};
use crate::dice::Dice;
use std::collections::BTreeMap;

/// The folder of the project, in trees that were not moved.
pub const PROJECT: &str = "p";

/// Where standard input comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    Nothing,
    Closed,
    /// A file of the project, after so many lines of it.
    File(usize),
    Pipe(&'static str),
}

/// Where output goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    Files,
    /// Both streams into one file.
    Merged,
    Pipe,
    Terminal,
}

/// How a test is called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    /// What the project's folder is called.
    pub project: &'static str,
    pub variables: BTreeMap<&'static str, &'static str>,
    pub arguments: Vec<&'static str>,
    pub input: Input,
    pub output: Output,
    /// Commands of the shell that starts the test: limits, umask, ignored signals, further
    /// descriptors.
    pub umask: &'static str,
    pub limit: &'static str,
    pub ignored: &'static str,
    pub inherited: &'static str,
    /// Somebody listens on the worker's port.
    pub is_port_held: bool,
}

#[derive(Clone, Debug)]
pub struct World {
    pub tree: Tree,
    pub launch: Launch,
}

/// A path of the project in a tree.
pub fn inside(path: &str) -> String {
    format!("{PROJECT}/{path}")
}

impl World {
    /// A random beginning.
    pub fn new(dice: &mut Dice, toolbox: &Toolbox) -> World {
        World { tree: tree(dice, toolbox), launch: launch(dice) }
    }

    /// Puts a test there.
    pub fn add_test(&mut self, name: &str, text: &str) {
        self.tree.write(&inside(name), text, 0o755);
    }
}

fn tree(dice: &mut Dice, toolbox: &Toolbox) -> Tree {
    let mut tree = Tree::default();
    for folder in ["p", "h", "t", "p/in", "p/in/sub", "p/dir", "p/out", "p/bin", "p/emptydir"] {
        tree.set(folder, NodeKind::Folder, 0o755);
    }
    for file in [
        "in/a",
        "in/b",
        "in/c",
        "in/sub/d",
        "dir/x1.txt",
        "dir/x2.txt",
        "dir/y",
        "in/stdin",
        "in/keep",
    ] {
        tree.write(&inside(file), content(dice), 0o644);
    }
    tree.write("p/in/empty", "", 0o644);
    if dice.percent(70) {
        tree.write("p/tasting.toml", "", 0o644);
    }
    if dice.percent(30) {
        tree.write("p/out/1", content(dice), 0o644);
    }
    if dice.percent(20) {
        tree.write("h/.config", content(dice), 0o644);
    }
    for (link, target) in
        [("link", "in/a"), ("chain", "link"), ("dangling", "in/none"), ("dirlink", "dir")]
    {
        tree.set(&inside(link), NodeKind::Link(target.to_owned()), 0o777);
    }
    tree.write("p/bin/prog", program(0), 0o755);
    tree.write("p/bin/other", program(1), 0o755);
    set_traced(&mut tree, toolbox, 0);
    tree.set("p/lib", NodeKind::Folder, 0o755);
    tree.write("p/bin/user", &toolbox.user.program, 0o755);
    tree.write("p/bin/user.tasting", &toolbox.user.manifest, 0o644);
    set_library(&mut tree, toolbox, 0);
    tree
}

/// Scripts that are started by tests, in some versions.
pub fn program(version: usize) -> &'static str {
    match version % 4 {
        0 => "#!/bin/sh\necho \"prog $*\"\n",
        1 => "#!/bin/sh\ncat in/b 2>&1\nexit 3\n",
        2 => "#!/bin/sh\necho \"other $# ${COLOUR-none}\"\n",
        _ => "#!/bin/dash\n[ -e in/none ] && echo there\nexit 0\n",
    }
}

/// Puts a version of the program there that was built with the shims.
pub fn set_traced(tree: &mut Tree, toolbox: &Toolbox, version: usize) {
    let traced = &toolbox.traced[version % 2];
    tree.write("p/bin/tool", &traced.program, 0o755);
    tree.write("p/bin/tool.tasting", &traced.manifest, 0o644);
}

/// Puts a version of the library there.
pub fn set_library(tree: &mut Tree, toolbox: &Toolbox, version: usize) {
    let library = &toolbox.library[version % 2];
    tree.write("p/lib/libpart.so", &library.program, 0o755);
    tree.write("p/lib/libpart.so.tasting", &library.manifest, 0o644);
}

/// Some lines; few of them, so that two files are now and then the same.
pub fn content(dice: &mut Dice) -> String {
    let lines = dice.below(4);
    (0..lines)
        .map(|_| format!("{} {}\n", dice.pick(&["abc", "line", "a", "xyz"]), dice.below(6)))
        .collect()
}

fn launch(dice: &mut Dice) -> Launch {
    let mut variables = BTreeMap::new();
    for name in ["COLOUR", "CI_DB", "MODE_X"] {
        if dice.percent(60) {
            variables.insert(name, dice.word(&["red", "green"]));
        }
    }
    let inherited = if dice.percent(20) { "7<in/c" } else { "" };
    Launch {
        project: PROJECT,
        variables,
        arguments: if dice.percent(20) { vec!["argument"] } else { Vec::new() },
        input: input(dice),
        output: *dice.pick(&[
            Output::Files,
            Output::Files,
            Output::Files,
            Output::Merged,
            Output::Pipe,
        ]),
        umask: "",
        limit: "",
        ignored: "",
        inherited,
        is_port_held: false,
    }
}

pub fn input(dice: &mut Dice) -> Input {
    match dice.below(10) {
        0..=5 => Input::Nothing,
        6 | 7 => Input::File(dice.below(2)),
        8 => Input::Pipe("piped\ntext\n"),
        _ => Input::Closed,
    }
}

/// Whether a step reads standard input, so that changes of it are worth while.
pub fn is_about_input(step: &Step) -> bool {
    step.feature == super::steps::Feature::Input || step.text.contains("stdin")
}
