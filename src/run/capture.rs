//! Records what a test prints, while the output goes where it would have gone.
//!
//! A test whose output is a terminal gets a pseudo-terminal of the same size; one whose output is a
//! new file of its own gets that file (`output_file.rs`); any other gets a pipe. Where standard
//! output and error are the same file, the test gets one pipe for both, so that the order is kept.
//! One thread forwards what arrives at once, and records it up to a limit.

mod pump;

pub use self::pump::HeldBack;
use self::pump::{Passing, Pump};
use super::connection::{Connection, with_stream};
use super::output_file::{OutputFile, Written};
use crate::model::Exit;
use crate::observe::stand_ins::{StandIn, StandIns};
use crate::process::sys;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{FileType, fstat};
use rustix::io::Errno;
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{
    OptionalActions, OutputModes, tcgetattr, tcgetwinsize, tcsetattr, tcsetwinsize,
};
use std::io::{self, PipeWriter, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::Command;
use std::sync::Arc;
use std::thread::JoinHandle;

/// What is read at once; as much as a pipe holds.
const CHUNK: usize = 64 * 1024;

/// What a test ends with whose output cannot be written: it would have been told so.
pub fn exit_of_failed_write(error: Errno) -> Exit {
    if error == Errno::PIPE && !sys::was_given_no_sigpipe() {
        return Exit::Signal(libc::SIGPIPE);
    }
    let _ = writeln!(io::stderr(), "tasting: the output of the test cannot be written: {error}");
    Exit::Code(1)
}

/// What a test printed.
#[derive(Debug, Default)]
pub struct Captured {
    /// Standard output and error; all in the first where both are one.
    pub texts: [Vec<u8>; 2],
    /// The lengths by turns, of standard output first.
    pub turns: Vec<u64>,
    /// It was more than the limit: not all was kept.
    pub is_cut: bool,
    /// Some process still holds the output open.
    pub is_open: bool,
    /// How much of each text was passed on.
    pub passed: [usize; 2],
    /// Why not all of it was.
    pub lost: Option<Errno>,
    /// What is in the file that it was printed to need not be what was printed.
    pub is_unclear: bool,
}

impl Captured {
    /// Passes on what was held back. `false` if nobody listens.
    pub fn pass_on_rest(&mut self) -> bool {
        let mut is_heard = true;
        for number in [0, 1] {
            let text = std::mem::take(&mut self.texts[number]);
            is_heard &= self.pass_on(number, &text[self.passed[number]..]);
            self.passed[number] = text.len();
            self.texts[number] = text;
        }
        is_heard
    }

    /// Adds what was printed to a file.
    fn add(&mut self, file: &OutputFile, limit: usize) {
        let number = file.number;
        match file.text(limit) {
            Ok(Written::Text(text)) => {
                // Nobody can tell in which order two files were written to.
                self.turns.resize(self.turns.len().max(number + 1), 0);
                self.turns[number] += text.len() as u64;
                (self.passed[number], self.texts[number]) = (text.len(), text);
            }
            Ok(Written::TooLong) => self.is_cut = true,
            Ok(Written::Unclear) | Err(_) => self.is_unclear = true,
        }
    }

    fn pass_on(&mut self, number: usize, text: &[u8]) -> bool {
        let passed = pass_on(number, text);
        self.lost = self.lost.or(passed.err());
        passed.is_ok()
    }
}

/// The thread that listens, and files that nobody needs to listen to.
pub struct Capture {
    thread: JoinHandle<Captured>,
    /// Dropping it says that the test has ended.
    ended: PipeWriter,
    files: Vec<OutputFile>,
    limit: usize,
    /// The pipes, for the watcher.
    pub stand_ins: Arc<StandIns>,
}

/// One of the two streams.
struct Stream {
    from: OwnedFd,
    number: usize,
    is_terminal: bool,
}

impl Capture {
    /// Connects a command's output. While it is held back, nothing is passed on, as long as it is
    /// within the limit.
    pub fn connect(
        command: &mut Command,
        connection: Connection,
        limit: usize,
        held: HeldBack,
    ) -> io::Result<Capture> {
        Capture::start(command, connection, limit, Passing::Unless(held))
    }

    /// Connects a command's output, of which nobody hears before it is asked for. What is beyond
    /// the limit is lost.
    pub fn buffered(
        command: &mut Command,
        connection: Connection,
        limit: usize,
    ) -> io::Result<Capture> {
        Capture::start(command, connection, limit, Passing::Never)
    }

    fn start(
        command: &mut Command,
        connection: Connection,
        limit: usize,
        passing: Passing,
    ) -> io::Result<Capture> {
        let (mut streams, mut files, mut pipes) = (Vec::new(), Vec::new(), Vec::new());
        let numbers = if connection.is_one { 0..1 } else { 0..2 };
        for number in numbers {
            if connection.files[number] {
                files.push(with_stream(number, |file| OutputFile::new(number, file))?);
                continue;
            }
            let is_terminal = connection.terminals[number];
            let (from, to) = with_stream(number, |like| channel(is_terminal, like))?;
            pipes.push(stand_in(number, &to)?);
            if connection.is_one {
                pipes.push(stand_in(1, &to)?);
                command.stderr(to.try_clone()?);
            }
            if number == 0 {
                command.stdout(to)
            } else {
                command.stderr(to)
            };
            streams.push(Stream { from, number, is_terminal });
        }
        let (end, ended) = io::pipe()?;
        let (asked, asks) = UnixStream::pair()?;
        let pump = Pump { streams, captured: Captured::default(), limit, passing, asked };
        let thread = std::thread::Builder::new().spawn(move || pump.run(end.as_fd()))?;
        let pass_on = move || {
            let mut answer = [0];
            let is_asked =
                (&asks).write_all(&[0]).and_then(|()| (&asks).read_exact(&mut answer)).is_ok();
            is_asked && answer != [0]
        };
        let pass_on = Box::new(pass_on);
        let stand_ins = Arc::new(StandIns { pipes, most_kept: limit, pass_on });
        Ok(Capture { thread, ended, files, limit, stand_ins })
    }

    /// All that the test printed, which has ended.
    pub fn finish(self) -> Captured {
        drop(self.ended);
        let mut captured =
            self.thread.join().unwrap_or(Captured { is_cut: true, ..Captured::default() });
        self.files.iter().for_each(|file| captured.add(file, self.limit));
        captured
    }
}

/// What the watcher is to know of a pipe or terminal of ours in the place of standard output or
/// error.
fn stand_in(number: usize, to: &OwnedFd) -> io::Result<StandIn> {
    let pipe = fstat(to)?;
    let is_file = with_stream(number, |real| fstat(real))
        .is_ok_and(|real| FileType::from_raw_mode(real.st_mode) == FileType::RegularFile);
    Ok(StandIn { number: number as i32 + 1, pipe: (pipe.st_dev, pipe.st_ino), is_file })
}

/// A pipe, or a terminal like the one that `like` is.
fn channel(terminal: bool, like: BorrowedFd) -> io::Result<(OwnedFd, OwnedFd)> {
    if !terminal {
        let (from, to) = io::pipe()?;
        return Ok((from.into(), to.into()));
    }
    let own = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
    grantpt(&own)?;
    unlockpt(&own)?;
    let peer =
        ioctl_tiocgptpeer(&own, OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
    let mut settings = tcgetattr(like)?;
    // The real one makes a return of each end of line.
    settings.output_modes.remove(OutputModes::OPOST);
    tcsetattr(&peer, OptionalActions::Now, &settings)?;
    tcsetwinsize(&peer, tcgetwinsize(like)?)?;
    Ok((own, peer))
}

/// The terminal may have been resized.
fn follow_size(stream: &Stream, number: usize) {
    let size = if number == 0 { tcgetwinsize(io::stdout()) } else { tcgetwinsize(io::stderr()) };
    if let (Ok(real), Ok(ours)) = (size, tcgetwinsize(&stream.from))
        && (real.ws_row, real.ws_col) != (ours.ws_row, ours.ws_col)
    {
        let _ = tcsetwinsize(&stream.from, real);
    }
}

/// Writes to our own standard output or error, past all buffers.
pub fn pass_on(number: usize, mut text: &[u8]) -> Result<(), Errno> {
    while !text.is_empty() {
        let written = match number {
            0 => rustix::io::write(io::stdout(), text),
            _ => rustix::io::write(io::stderr(), text),
        };
        match written {
            Ok(count) => text = &text[count..],
            Err(Errno::INTR) => {}
            // Somebody made it non-blocking: wait until there is room.
            Err(Errno::AGAIN) => wait_for_room(number),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn wait_for_room(number: usize) {
    let (out, err) = (io::stdout(), io::stderr());
    let file = if number == 0 { out.as_fd() } else { err.as_fd() };
    let _ = poll(&mut [PollFd::from_borrowed_fd(file, PollFlags::OUT)], None);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_are_kept_in_either_order() {
        let captured = Captured::default();
        let asked = UnixStream::pair().unwrap().0;
        let mut pump =
            Pump { streams: Vec::new(), captured, limit: 5, passing: Passing::Never, asked };
        for (number, text) in [(1, b"ab"), (0, b"cd"), (1, b"ef")] {
            pump.keep(number, &text[..if number == 0 { 2 } else { 1 }]);
        }
        assert_eq!(pump.captured.turns, [0, 1, 2, 1]);
        assert_eq!(pump.captured.texts, [b"cd".to_vec(), b"ae".to_vec()]);
        pump.keep(0, b"xy");
        assert!(pump.captured.is_cut && pump.captured.texts[0] == b"cd");
    }
}
