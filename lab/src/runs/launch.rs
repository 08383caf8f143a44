//! Running the tests of a scenario, plainly or under Tasting, in the same place and in the same
//! way; and what can be seen of it.

use super::steps::Language;
use super::tree::Tree;
use super::world::{Input, Launch, Output, PROJECT, World};
use crate::process::{self, End, Ended};
use rustix::process::{Pid, Signal, kill_process_group};
use std::fs;
use std::io;
use std::net::TcpListener;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;
use tasting::model::{Decision, Verdict};
use tasting::store::{FileStore, Journal, Options};

/// What takes longer hangs. The machine may be busy.
const PATIENCE: Duration = Duration::from_secs(20);

/// A test of a scenario, as it is called.
#[derive(Clone, Debug)]
pub struct Test {
    pub name: String,
    pub language: Language,
    /// The words before the arguments.
    pub command: Vec<String>,
}

/// What can be seen of a run: how each test ended and what it wrote, and what is left in the
/// folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    pub ended: Vec<Ended>,
    pub tree: Tree,
    are_times_compared: bool,
}

impl Seen {
    pub fn hangs(&self) -> bool {
        self.ended.iter().any(|ended| ended.end == End::Hang)
    }

    /// What differs, in lines; nothing if two runs are the same.
    pub fn differences(&self, given: &Seen) -> Vec<String> {
        let mut lines = Vec::new();
        for (number, (plain, other)) in self.ended.iter().zip(&given.ended).enumerate() {
            if plain.end != other.end {
                lines.push(format!(
                    "test {number} ends with {:?}; given {:?}",
                    plain.end, other.end
                ));
            }
            for (name, plain, other) in
                [("stdout", &plain.stdout, &other.stdout), ("stderr", &plain.stderr, &other.stderr)]
            {
                if plain != other {
                    let [plain, other] =
                        [plain, other].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
                    lines.push(format!("test {number} {name}: plainly {plain:?}; given {other:?}"));
                }
            }
        }
        lines.extend(self.tree.differences(&given.tree, self.are_times_compared));
        lines
    }
}

/// Where tests are run: a folder that always has the same path, a store, and a port.
#[derive(Debug)]
pub struct Workspace {
    /// Holds the project, a home and a folder for temporary files.
    folder: PathBuf,
    pub store: PathBuf,
    outputs: PathBuf,
    tasting: PathBuf,
    pub port: u16,
    /// What is in the folder.
    now: Option<Tree>,
    are_times_compared: bool,
}

impl Workspace {
    /// A place in a folder on a disk, with a store in memory.
    pub fn new(
        folder: &Path,
        in_memory: &Path,
        tasting: &Path,
        port: u16,
        are_times_compared: bool,
    ) -> io::Result<Workspace> {
        let [inner, outputs] = ["w", "outputs"].map(|name| folder.join(name));
        let store = in_memory.join("store");
        fs::create_dir_all(&inner)?;
        fs::create_dir_all(&outputs)?;
        let (tasting, now) = (tasting.to_owned(), Some(Tree::default()));
        Ok(Workspace { folder: inner, store, outputs, tasting, port, now, are_times_compared })
    }

    /// The same place with another store.
    pub fn forget(&self) -> io::Result<()> {
        if self.store.exists() { fs::remove_dir_all(&self.store) } else { Ok(()) }
    }

    /// Runs the tests plainly, all at once.
    pub fn run_plainly(&mut self, world: &World, tests: &[Test]) -> io::Result<Seen> {
        self.run(world, tests, &[])
    }

    /// The same on one processor: processes get their turns in another order.
    pub fn run_on_one_processor(&mut self, world: &World, tests: &[Test]) -> io::Result<Seen> {
        self.run(world, tests, &["taskset", "-c", "0"])
    }

    /// Runs the tests under Tasting, all at once; and says of each whether it was reused, and why
    /// not.
    pub fn run_tasting(
        &mut self,
        world: &World,
        tests: &[Test],
        options: &[&str],
    ) -> io::Result<(Seen, Vec<Decision>)> {
        // So that only the decisions of this run are in the log.
        for part in fs::read_dir(&self.store).into_iter().flatten().flatten() {
            let _ = fs::remove_dir_all(part.path().join("log"));
        }
        let tasting = self.tasting.display().to_string();
        let words: Vec<&str> =
            [tasting.as_str(), "run"].iter().chain(options).chain(&["--"]).copied().collect();
        let seen = self.run(world, tests, &words)?;
        let store = FileStore::new(&self.store, Options::default());
        Ok((seen, store.decisions(8).unwrap_or_default()))
    }

    fn run(&mut self, world: &World, tests: &[Test], before: &[&str]) -> io::Result<Seen> {
        let now = self.now.take().map_or_else(|| Tree::take(&self.folder), Ok)?;
        moved(&world.tree, PROJECT, world.launch.project).put(&self.folder, &now)?;
        let held = world.launch.is_port_held.then(|| self.hold()).transpose()?;
        let mut children = Vec::new();
        for (number, test) in tests.iter().enumerate() {
            children.push(process::spawn(&mut self.command(&world.launch, number, test, before))?);
        }
        let ended =
            children.into_iter().enumerate().map(|(number, child)| self.finish(number, child));
        let ended = ended.collect::<io::Result<Vec<Ended>>>()?;
        drop(held);
        let tree = Tree::take(&self.folder)?;
        let seen = Seen {
            ended,
            tree: moved(&tree, world.launch.project, PROJECT),
            are_times_compared: self.are_times_compared,
        };
        self.now = Some(tree);
        Ok(seen)
    }

    /// Listens on the worker's port, and on a socket without a file. What a test has left there
    /// ends in a moment.
    fn hold(&self) -> io::Result<(TcpListener, UnixListener)> {
        let name = SocketAddr::from_abstract_name(format!("lab-{}", self.port))?;
        let listen = || -> io::Result<_> {
            Ok((TcpListener::bind(("127.0.0.1", self.port))?, UnixListener::bind_addr(&name)?))
        };
        for _ in 0..100 {
            match listen() {
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                    thread::sleep(Duration::from_millis(50))
                }
                held => return held,
            }
        }
        listen()
            .map_err(|error| io::Error::other(format!("port {} stays busy: {error}", self.port)))
    }

    fn command(&self, launch: &Launch, number: usize, test: &Test, before: &[&str]) -> Command {
        let words =
            before.iter().map(|word| (*word).to_owned()).chain(test.command.iter().cloned());
        let words: Vec<String> =
            words.chain(launch.arguments.iter().map(|word| (*word).to_owned())).collect();
        // The shell opens the files: one that this process has open as well would not be the test's
        // alone.
        let [stdout, stderr] =
            ["stdout", "stderr"].map(|name| self.outputs.join(format!("{name}-{number}")));
        let [to_stdout, to_stderr] =
            [&stdout, &stderr].map(|path| quoted(&path.display().to_string()));
        let mut command = if needs_bash(launch) {
            let mut shell = Command::new("/bin/bash");
            shell
                .args(["-c", &script(launch, &words, &format!("exec >{to_stdout} 2>{to_stderr}"))]);
            shell
        } else {
            let mut shell = Command::new("/bin/dash");
            shell
                .args(["-c", &format!("exec \"$@\" >{to_stdout} 2>{to_stderr}"), "dash"])
                .args(&words);
            shell
        };
        command.env_clear().current_dir(self.folder.join(launch.project));
        command.env("PATH", "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin").env("LC_ALL", "C");
        command.env("HOME", self.folder.join("h")).env("TMPDIR", self.folder.join("t"));
        command.env("TASTING_DIR", &self.store).envs(&launch.variables);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.process_group(0);
        command
    }

    fn finish(&self, number: usize, mut child: Child) -> io::Result<Ended> {
        let group = Pid::from_child(&child);
        let end = process::wait(&mut child, PATIENCE)?.map_or(End::Hang, process::end_of);
        let _ = kill_process_group(group, Signal::KILL);
        let read = |name: &str| fs::read(self.outputs.join(format!("{name}-{number}")));
        Ok(Ended { end, stdout: read("stdout")?, stderr: read("stderr")? })
    }
}

/// Whether a test was reused, by the decisions of a run.
pub fn is_reused(decisions: &[Decision], test: &Test) -> bool {
    decisions
        .iter()
        .rev()
        .find(|decision| decision.argv.starts_with(&test.command))
        .is_some_and(|decision| decision.decision == Verdict::Reused)
}

/// Most tests can be started by a small shell, which is faster.
fn needs_bash(launch: &Launch) -> bool {
    let lines = [launch.limit, launch.umask, launch.ignored, launch.inherited];
    lines.iter().any(|line| !line.is_empty())
        || launch.input != Input::Nothing
        || launch.output != Output::Files
}

/// The script that starts a test: limits, descriptors, streams. What writes to a pipe has no part
/// in the output.
fn script(launch: &Launch, words: &[String], output: &str) -> String {
    // Bash would give scripts another name for themselves.
    let words = words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ");
    let words = format!("env {words}");
    let mut lines: Vec<String> = [launch.limit, launch.umask, launch.ignored]
        .iter()
        .map(|line| (*line).to_owned())
        .collect();
    if !launch.inherited.is_empty() {
        lines.push(format!("exec {}", launch.inherited));
    }
    match launch.input {
        Input::Nothing => {}
        // `script` without a standard input takes its own terminal for it, and what the test prints
        // for what is typed, now and then.
        Input::Closed if launch.output == Output::Terminal => {}
        Input::Closed => lines.push("exec <&-".to_owned()),
        Input::File(skipped) => {
            lines.push("exec <in/stdin".to_owned());
            lines.extend((0..skipped).map(|_| "read -r skipped".to_owned()));
        }
        // Bash's own `printf` writes line by line, and who reads once may get the first one only.
        Input::Pipe(text) => lines.push(format!("exec < <(env printf %s {})", quoted(text))),
    }
    lines.push(output.to_owned());
    lines.push(match launch.output {
        Output::Files => format!("exec {words}"),
        Output::Merged => format!("exec {words} 2>&1"),
        Output::Pipe => format!("set -o pipefail\n{words} | cat"),
        // What comes by standard input is not shown by the terminal: when that happens is chance.
        Output::Terminal => {
            let closes = if launch.input == Input::Closed { " <&-" } else { "" };
            let words = quoted(&format!("{words}{closes}"));
            format!("exec script -E never -qec {words} /dev/null")
        }
    });
    lines.retain(|line| !line.is_empty());
    lines.join("\n")
}

fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// The same tree with the project's folder under another name.
fn moved(tree: &Tree, from: &str, to: &str) -> Tree {
    if from == to {
        return tree.clone();
    }
    let prefix = format!("{from}/");
    let rename = |path: &str| match path.strip_prefix(&prefix) {
        Some(rest) => format!("{to}/{rest}"),
        None if path == from => to.to_owned(),
        None => path.to_owned(),
    };
    let mut nodes = tree.nodes.clone();
    let nodes = std::mem::take(&mut nodes).into_iter().map(|(name, mut node)| {
        if let super::tree::NodeKind::Twin(first) = &mut node.kind {
            *first = rename(first);
        }
        (rename(&name), node)
    });
    Tree { nodes: nodes.collect() }
}
