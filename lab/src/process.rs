//! Running a program and keeping what can be seen of it, within a time.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{
    Pid, PidfdFlags, Signal, kill_process_group, pidfd_open, test_kill_process_group,
};
use std::fs::{self, File};
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{PoisonError, RwLock};
use std::time::{Duration, Instant};

/// How long processes have that outlive the program.
const FOR_OTHERS: Duration = Duration::from_secs(2);

/// How a program ended, and what it wrote.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Ended {
    pub end: End,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum End {
    Code(i32),
    Signal(i32),
    /// It was stopped after its time.
    Hang,
}

impl Ended {
    pub fn is_good(&self) -> bool {
        self.end == End::Code(0)
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// For people.
    pub fn describe(&self) -> String {
        let errors = String::from_utf8_lossy(&self.stderr);
        format!("{:?}\n{}{}", self.end, self.text(), errors)
    }
}

/// A process that is started while a program is being written keeps that open for a moment, and it
/// cannot be started.
static WRITING: RwLock<()> = RwLock::new(());

/// Writes a program while nobody is started.
pub fn writing<T>(write: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    let _alone = WRITING.write().unwrap_or_else(PoisonError::into_inner);
    write()
}

/// Starts a command while nobody writes a program.
pub fn spawn(command: &mut Command) -> io::Result<Child> {
    let _nobody_writes = WRITING.read().unwrap_or_else(PoisonError::into_inner);
    command.spawn()
}

/// Runs a command to its end, and that of all that it started: a mutant may fork for ever. Output
/// goes to files in `folder`, so that nobody waits for a reader.
pub fn run(command: &mut Command, folder: &Path, patience: Duration) -> io::Result<Ended> {
    let [stdout, stderr] = ["stdout", "stderr"].map(|name| folder.join(name));
    command.stdin(Stdio::null()).stdout(File::create(&stdout)?).stderr(File::create(&stderr)?);
    let mut child = spawn(command.process_group(0))?;
    let group = Pid::from_child(&child);
    let end = match wait(&mut child, patience)? {
        None => End::Hang,
        // It wrote until there was no room: without the limit it would write for ever.
        Some(status) if status.signal() == Some(Signal::XFSZ.as_raw()) => End::Hang,
        Some(status) => end_of(status),
    };
    wait_for_others(group, patience.min(FOR_OTHERS));
    let _ = kill_process_group(group, Signal::KILL);
    Ok(Ended { end, stdout: fs::read(stdout)?, stderr: fs::read(stderr)? })
}

/// Waits for children that go on when the program has ended, as `tasting run` does: what they write
/// is a part of the output. Nobody is left in most cases.
fn wait_for_others(group: Pid, patience: Duration) {
    let start = Instant::now();
    while test_kill_process_group(group).is_ok() && start.elapsed() < patience {
        std::thread::sleep(Duration::from_millis(2));
    }
}

pub fn end_of(status: ExitStatus) -> End {
    status.signal().map_or_else(|| End::Code(status.code().unwrap_or(-1)), End::Signal)
}

/// Waits for a child; one that takes too long is killed.
pub fn wait(child: &mut Child, patience: Duration) -> io::Result<Option<ExitStatus>> {
    let descriptor = pidfd_open(Pid::from_child(child), PidfdFlags::empty())?;
    let time =
        Timespec { tv_sec: patience.as_secs() as i64, tv_nsec: patience.subsec_nanos().into() };
    let ended = poll(&mut [PollFd::new(&descriptor, PollFlags::IN)], Some(&time))?;
    if ended == 0 {
        child.kill()?;
    }
    let status = child.wait()?;
    Ok((ended != 0).then_some(status))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_of_surviving_children_counts() {
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new("sh");
        let command = command.args(["-c", "(sleep 0.2; echo later) & echo now"]);
        let ended = run(command, folder.path(), Duration::from_secs(60)).unwrap();
        assert_eq!(ended.text(), "now\nlater\n");
    }

    /// A mutant that forked for ever would be the end of the machine.
    #[test]
    fn nothing_outlives_what_was_run() {
        let folder = tempfile::tempdir().unwrap();
        for script in ["sleep 1234567 & echo $!", "sleep 1234567 & echo $!; wait"] {
            let mut command = Command::new("sh");
            let ended =
                run(command.args(["-c", script]), folder.path(), Duration::from_secs(1)).unwrap();
            let is_left = || {
                let stat = fs::read_to_string(format!("/proc/{}/stat", ended.text().trim()))
                    .unwrap_or_default();
                !stat.is_empty() && !stat.contains(") Z ")
            };
            // To die takes a moment.
            let dies = (0..500).any(|_| {
                !is_left() || {
                    std::thread::sleep(Duration::from_millis(10));
                    false
                }
            });
            assert!(dies, "{script}");
        }
    }
}
