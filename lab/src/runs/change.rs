//! Changes from outside, between two runs of a test.

use super::steps::{ABSENT, FILES, FOLDERS, Feature, LINKS, PROGRAMS, Step, Use, VARIABLES};
use super::toolbox::Toolbox;
use super::tree::{LONG_AGO, NodeKind};
use super::world::{self, Input, Output, World, inside};
use crate::dice::Dice;

/// One change. It can be applied to any world; where there is nothing to change it does nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    Write(String, String),
    Append(String, &'static str),
    Remove(String),
    Mode(String, u32),
    Time(String),
    Attribute(String, Option<&'static str>),
    Point(String, &'static str),
    /// A file becomes a folder.
    ToFolder(String),
    /// A file becomes a link to a file with the same content.
    ToLink(String),
    /// A file gets a second name.
    Twin(String),
    Program(String, usize),
    Traced(usize),
    Library(usize),
    Variable(&'static str, Option<&'static str>),
    Arguments(Vec<&'static str>),
    Input(Input),
    Output(Output),
    Project(&'static str),
    Umask(&'static str),
    Limit(&'static str),
    Ignored(&'static str),
    Inherited(&'static str),
    Port(bool),
}

impl Change {
    /// A random change, in most cases one of something that a step uses.
    pub fn new(dice: &mut Dice, steps: &[&Step]) -> Change {
        if steps.is_empty() || dice.percent(15) {
            return anything(dice);
        }
        let step = steps[dice.below(steps.len())];
        match of_feature(dice, step) {
            Some(change) if step.uses.is_empty() || dice.percent(45) => change,
            _ if step.uses.is_empty() => anything(dice),
            _ => {
                let used = dice.below(step.uses.len());
                of_use(dice, &step.uses[used])
            }
        }
    }

    pub fn apply(&self, world: &mut World, toolbox: &Toolbox) {
        let World { tree, launch } = world;
        match self {
            Change::Write(path, text) => {
                let mode = tree.nodes.get(&inside(path)).map_or(0o644, |node| node.mode);
                make_parents(tree, path);
                tree.remove(&inside(path));
                tree.write(&inside(path), text, mode);
            }
            Change::Append(path, text) => {
                if let Some(NodeKind::File(bytes)) =
                    tree.nodes.get_mut(&inside(path)).map(|node| &mut node.kind)
                {
                    *bytes = [bytes, text.as_bytes()].concat().into();
                }
            }
            Change::Remove(path) => tree.remove(&inside(path)),
            Change::Mode(path, mode) => {
                if let Some(node) = tree
                    .nodes
                    .get_mut(&inside(path))
                    .filter(|node| matches!(node.kind, NodeKind::File(_)))
                {
                    node.mode = *mode;
                }
            }
            Change::Time(path) => {
                if let Some(node) = tree.nodes.get_mut(&inside(path)) {
                    node.time.0 = LONG_AGO + 1000;
                }
            }
            Change::Attribute(path, value) => {
                if let Some(node) = tree
                    .nodes
                    .get_mut(&inside(path))
                    .filter(|node| matches!(node.kind, NodeKind::File(_)))
                {
                    node.attributes.clear();
                    node.attributes.extend(
                        value.map(|value| ("user.lab".to_owned(), value.as_bytes().to_vec())),
                    );
                }
            }
            Change::Point(path, target) => {
                replace(tree, path, NodeKind::Link((*target).to_owned()), 0o777)
            }
            Change::ToFolder(path) => replace(tree, path, NodeKind::Folder, 0o755),
            Change::ToLink(path) => {
                if let Some(node) = tree
                    .nodes
                    .get(&inside(path))
                    .filter(|node| matches!(node.kind, NodeKind::File(_)))
                    .cloned()
                {
                    let name = path.replace('/', "-");
                    tree.remove(&inside(path));
                    tree.nodes.insert(inside(&format!("moved-{name}")), node);
                    let up = "../".repeat(path.matches('/').count());
                    tree.set(&inside(path), NodeKind::Link(format!("{up}moved-{name}")), 0o777);
                }
            }
            Change::Twin(path) => {
                let twin = inside(&format!("{path}.zz"));
                let node = tree
                    .nodes
                    .get(&inside(path))
                    .filter(|node| matches!(node.kind, NodeKind::File(_)))
                    .cloned();
                if let Some(mut node) = node.filter(|_| !tree.nodes.contains_key(&twin)) {
                    node.kind = NodeKind::Twin(inside(path));
                    tree.nodes.insert(twin, node);
                }
            }
            Change::Program(path, version) => replace(
                tree,
                path,
                NodeKind::File(world::program(*version).as_bytes().into()),
                0o755,
            ),
            Change::Traced(version) => world::set_traced(tree, toolbox, *version),
            Change::Library(version) => world::set_library(tree, toolbox, *version),
            Change::Variable(name, value) => {
                launch.variables.remove(name);
                launch.variables.extend(value.map(|value| (*name, value)));
            }
            Change::Arguments(arguments) => launch.arguments.clone_from(arguments),
            Change::Input(input) => launch.input = input.clone(),
            Change::Output(output) => launch.output = *output,
            Change::Project(name) => launch.project = name,
            Change::Umask(mask) => launch.umask = mask,
            Change::Limit(limit) => launch.limit = limit,
            Change::Ignored(signals) => launch.ignored = signals,
            Change::Inherited(descriptors) => launch.inherited = descriptors,
            Change::Port(held) => launch.is_port_held = *held,
        }
    }
}

/// Puts something in the place of what is there.
fn replace(tree: &mut super::tree::Tree, path: &str, kind: NodeKind, mode: u32) {
    tree.remove(&inside(path));
    make_parents(tree, path);
    tree.set(&inside(path), kind, mode);
}

/// A path needs its folders; what is in their place goes.
fn make_parents(tree: &mut super::tree::Tree, path: &str) {
    for (at, _) in path.match_indices('/') {
        let folder = inside(&path[..at]);
        if tree.nodes.get(&folder).is_none_or(|node| node.kind != NodeKind::Folder) {
            tree.remove(&folder);
            tree.set(&folder, NodeKind::Folder, 0o755);
        }
    }
}

fn of_use(dice: &mut Dice, used: &Use) -> Change {
    match used {
        Use::File(path) if path == "bin/tool" => Change::Traced(dice.below(2)),
        Use::File(path) if PROGRAMS.contains(&path.as_str()) && dice.percent(60) => {
            Change::Program(path.clone(), dice.below(4))
        }
        Use::File(path) => file(dice, path),
        Use::Folder(path) => folder(dice, path),
        Use::Link(path) => Change::Point(
            path.clone(),
            dice.word(&["in/a", "in/b", "dir", "emptydir", "in/none", "chain"]),
        ),
        Use::Absent(path) => match dice.below(4) {
            0 => Change::ToFolder(path.clone()),
            1 => Change::Point(path.clone(), "in/a"),
            _ => Change::Write(path.clone(), world::content(dice)),
        },
        Use::Made(path) => match dice.below(5) {
            0 => Change::ToFolder(path.clone()),
            1 => Change::Remove(path.clone()),
            2 => Change::Point(path.clone(), dice.word(&["../in/a", "in/none", "../dir"])),
            _ => Change::Write(path.clone(), world::content(dice)),
        },
        Use::Variable(name) => variable(dice, name),
    }
}

fn variable(dice: &mut Dice, name: &str) -> Change {
    let name = VARIABLES.iter().find(|known| **known == name).copied().unwrap_or("COLOUR");
    Change::Variable(name, *dice.pick(&[None, Some("red"), Some("blue"), Some("")]))
}

fn file(dice: &mut Dice, path: &str) -> Change {
    let path = path.to_owned();
    match dice.below(12) {
        0..=3 => Change::Write(path, world::content(dice)),
        4 => Change::Append(path, "more\n"),
        5 => Change::Remove(path),
        6 => Change::Mode(path, *dice.pick(&[0o755, 0o644, 0o744])),
        7 => Change::Time(path),
        8 => Change::Attribute(path, *dice.pick(&[None, Some("one"), Some("two")])),
        9 => Change::ToFolder(path),
        10 => Change::ToLink(path),
        _ => Change::Twin(path),
    }
}

fn folder(dice: &mut Dice, path: &str) -> Change {
    let path = if path == "dirlink" { "dir" } else { path };
    match dice.below(6) {
        0 => Change::Remove(format!("{path}/x1.txt")),
        1 => Change::ToFolder(format!("{path}/new-folder")),
        2 => Change::Point(format!("{path}/new-link"), "nowhere"),
        3 => Change::Remove(path.to_owned()),
        _ => Change::Write(
            format!("{path}/{}", dice.pick(&["new.txt", ".hidden", "zzz"])),
            world::content(dice),
        ),
    }
}

/// What a feature makes worth while, beside the things that the step names.
fn of_feature(dice: &mut Dice, step: &Step) -> Option<Change> {
    Some(match step.feature {
        _ if world::is_about_input(step) => match dice.below(3) {
            0 => Change::Write("in/stdin".to_owned(), world::content(dice)),
            _ => Change::Input(world::input(dice)),
        },
        Feature::Terminals => {
            Change::Output(*dice.pick(&[Output::Terminal, Output::Files, Output::Pipe]))
        }
        Feature::Sockets => Change::Port(dice.percent(70)),
        Feature::Limits => Change::Limit(dice.word(&[
            "",
            "ulimit -n 200",
            "ulimit -n 64",
            "ulimit -s 4096",
            "ulimit -c 0",
        ])),
        Feature::Attributes => match dice.below(3) {
            0 => Change::Umask(dice.word(&["", "umask 077", "umask 002"])),
            1 => Change::Attribute(
                dice.pick(FILES).to_string(),
                *dice.pick(&[None, Some("one"), Some("two")]),
            ),
            _ => Change::Mode(dice.pick(FILES).to_string(), *dice.pick(&[0o755, 0o644])),
        },
        Feature::Descriptors => match dice.below(3) {
            0 => Change::Write("in/c".to_owned(), world::content(dice)),
            _ => Change::Inherited(dice.word(&["", "7<in/c", "7<in/a", "5<in/b"])),
        },
        Feature::Signals => Change::Ignored(dice.word(&[
            "",
            "trap '' USR1",
            "trap '' TERM INT",
            "trap '' CHLD",
            "trap '' TRAP",
        ])),
        Feature::Environment => match dice.below(4) {
            0 => Change::Arguments(
                dice.pick(&[vec![], vec!["argument"], vec!["other", "two"]]).clone(),
            ),
            1 => Change::Project(dice.word(&["p", "q", "much-longer-name"])),
            _ => {
                let name = dice.pick(VARIABLES);
                variable(dice, name)
            }
        },
        Feature::Traced if step.text.contains("bin/user") => Change::Library(dice.below(2)),
        Feature::Traced => Change::Traced(dice.below(2)),
        Feature::Folders if step.text.contains("wd") => {
            Change::Project(dice.word(&["p", "q", "much-longer-name"]))
        }
        _ => return None,
    })
}

fn anything(dice: &mut Dice) -> Change {
    match dice.below(12) {
        0..=2 => {
            let path = dice.pick(FILES);
            file(dice, path)
        }
        3 => {
            let path = dice.pick(FOLDERS);
            folder(dice, path)
        }
        4 => Change::Write(dice.pick(ABSENT).to_string(), world::content(dice)),
        5 => Change::Point(dice.pick(LINKS).to_string(), dice.word(&["in/b", "in/c", "dir"])),
        6 => {
            let name = dice.pick(VARIABLES);
            variable(dice, name)
        }
        7 => Change::Program(dice.pick(PROGRAMS).to_string(), dice.below(4)),
        8 => Change::Project(dice.word(&["p", "q"])),
        9 => Change::Input(world::input(dice)),
        10 => Change::Output(*dice.pick(&[
            Output::Files,
            Output::Merged,
            Output::Pipe,
            Output::Terminal,
        ])),
        _ => Change::Write("unrelated".to_owned(), world::content(dice)),
    }
}
