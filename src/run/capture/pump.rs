//! The thread that forwards a test's output and records it.

use super::{CHUNK, Captured, Stream, follow_size};
use crate::process::sys;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::io::{Read, Write};
use std::os::fd::BorrowedFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

pub(super) struct Pump {
    pub(super) streams: Vec<Stream>,
    pub(super) captured: Captured,
    pub(super) limit: usize,
    pub(super) passing: Passing,
    /// Who wants everything to be passed on at once.
    pub(super) asked: UnixStream,
}

/// Whether output goes on at once to where it would have gone.
pub(super) enum Passing {
    Never,
    Unless(HeldBack),
    Always,
}

/// How long output is held back, in case the run is not believed.
pub struct HeldBack {
    /// While this is set.
    pub disturbed: Arc<AtomicBool>,
    /// And from the start until then.
    pub until: Option<Instant>,
}

impl HeldBack {
    /// How long it is held back for the sake of time alone.
    fn left(&self) -> Option<Duration> {
        self.until
            .map(|until| until.saturating_duration_since(Instant::now()))
            .filter(|left| !left.is_zero())
    }
}

impl Pump {
    pub(super) fn run(mut self, end: BorrowedFd) -> Captured {
        let mut buffer = vec![0; CHUNK];
        let mut has_ended = false;
        while !self.streams.is_empty() {
            let mut polled: Vec<PollFd> = self
                .streams
                .iter()
                .map(|stream| PollFd::new(&stream.from, PollFlags::IN))
                .collect();
            polled.push(PollFd::new(&self.asked, PollFlags::IN));
            if !has_ended {
                polled.push(PollFd::from_borrowed_fd(end, PollFlags::empty()));
            }
            let limit = if has_ended { Some(Duration::ZERO) } else { self.held_for() };
            let limit = limit.and_then(|limit| limit.try_into().ok());
            match poll(&mut polled, limit.as_ref()) {
                Err(Errno::INTR) => continue,
                Err(_) => break,
                Ok(0) if !has_ended => {
                    self.release();
                    continue;
                }
                // The test has ended, nothing is left to read, and somebody keeps it open.
                Ok(0) => break,
                Ok(_) => {}
            }
            let ready: Vec<bool> =
                polled.iter().map(|polled| !polled.revents().is_empty()).collect();
            let count = self.streams.len();
            has_ended |= ready.get(count + 1) == Some(&true);
            self.read_ready(&ready[..count], &mut buffer);
            if ready[count] {
                self.answer(&mut buffer);
            }
        }
        self.captured.is_open = !self.streams.is_empty();
        if self.captured.is_open {
            // A process that holds it continues to print to where it would have printed.
            let pairs: Vec<_> = self
                .streams
                .into_iter()
                .map(|stream| (stream.from, stream.number as i32 + 1))
                .collect();
            sys::pass_on_behind(&pairs);
        }
        self.captured
    }

    /// How long to wait before what was held back is passed on.
    fn held_for(&self) -> Option<Duration> {
        match &self.passing {
            Passing::Unless(held) => held.until.map(|_| held.left().unwrap_or_default()),
            Passing::Never | Passing::Always => None,
        }
    }

    /// Passes on all that there is, and whatever comes from now on, for somebody who waits for
    /// that.
    fn answer(&mut self, buffer: &mut [u8]) {
        if (&self.asked).read(&mut [0]).is_ok_and(|count| count == 0) {
            return;
        }
        if !matches!(self.passing, Passing::Never) {
            self.passing = Passing::Always;
            self.captured.pass_on_rest();
            while let Some(ready) = self.filled() {
                self.read_ready(&ready, buffer);
            }
        }
        let is_passed_on = matches!(self.passing, Passing::Always);
        let _ = (&self.asked).write_all(&[u8::from(is_passed_on)]);
    }

    /// Which of the streams have something to be read, if any has.
    fn filled(&self) -> Option<Vec<bool>> {
        let mut polled: Vec<PollFd> =
            self.streams.iter().map(|stream| PollFd::new(&stream.from, PollFlags::IN)).collect();
        let count = poll(&mut polled, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).unwrap_or(0);
        (count > 0).then(|| polled.iter().map(|polled| !polled.revents().is_empty()).collect())
    }

    /// The time is over for which output was held back.
    fn release(&mut self) {
        let Passing::Unless(held) = &mut self.passing else { return };
        if held.left().is_none() {
            held.until = None;
            if !held.disturbed.load(Ordering::Relaxed) {
                // Whoever does not listen is noticed when more comes.
                self.captured.pass_on_rest();
            }
        }
    }

    fn read_ready(&mut self, ready: &[bool], buffer: &mut [u8]) {
        let mut at = 0;
        for ready in ready {
            if *ready && !self.read(at, buffer) {
                self.streams.remove(at);
            } else {
                at += 1;
            }
        }
    }

    /// Passes on what is there. `false` at the end, or when nobody listens any more: the test is to
    /// notice that then.
    fn read(&mut self, at: usize, buffer: &mut [u8]) -> bool {
        let stream = &self.streams[at];
        let count = match rustix::io::read(&stream.from, &mut *buffer) {
            Ok(0) => return false,
            Ok(count) => count,
            Err(Errno::INTR | Errno::AGAIN) => return true,
            // The other side of a terminal is closed.
            Err(_) => return false,
        };
        let (number, text) = (stream.number, &buffer[..count]);
        if stream.is_terminal {
            follow_size(stream, number);
        }
        self.keep(number, text);
        match &self.passing {
            Passing::Never => return true,
            Passing::Unless(held)
                if (held.disturbed.load(Ordering::Relaxed) || held.left().is_some())
                    && !self.captured.is_cut =>
            {
                return true;
            }
            Passing::Unless(_) | Passing::Always => {}
        }
        self.captured.pass_on_rest()
            && (!self.captured.is_cut || self.captured.pass_on(number, text))
    }

    pub(super) fn keep(&mut self, number: usize, text: &[u8]) {
        let captured = &mut self.captured;
        if captured.texts[0].len() + captured.texts[1].len() + text.len() > self.limit {
            captured.is_cut = true;
        }
        if captured.is_cut {
            return;
        }
        captured.texts[number].extend_from_slice(text);
        // The first turn is standard output's, the second one standard error's, and so on.
        while captured.turns.is_empty() || (captured.turns.len() - 1) % 2 != number {
            captured.turns.push(0);
        }
        if let Some(turn) = captured.turns.last_mut() {
            *turn += text.len() as u64;
        }
    }
}
