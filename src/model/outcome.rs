//! An outcome: how one execution ended, what it printed, and the files that it left behind. It is
//! all that is needed to make it look as if the test had run again.

use super::bytes;
use super::envelope::FormatError;
use super::portable_path::PortablePath;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// How one execution ended, with everything that can be put back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    pub exit: Exit,
    #[serde(with = "bytes")]
    pub stdout: Vec<u8>,
    #[serde(with = "bytes")]
    pub stderr: Vec<u8>,
    /// In which order the two came: lengths by turns, of stdout first. Empty where nobody knows.
    pub turns: Vec<u64>,
    pub duration: Duration,
    pub files: Vec<LeftFile>,
    /// Where in its standard input it stopped reading, if that is a file: a later reader continues
    /// from there.
    pub input_end: Option<u64>,
    pub origin: Origin,
    /// It names folders of its checkout, and is of use there only.
    pub checkout_specific: bool,
}

/// The end of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Exit {
    Code(i32),
    Signal(i32),
}

/// What automake's harness takes for a test that was skipped.
const SKIPPED: i32 = 77;

impl Exit {
    /// Whether somebody who counts tests would count it as good.
    pub fn is_good(self) -> bool {
        matches!(self, Exit::Code(0 | SKIPPED))
    }
}

/// One of the two streams that a test prints to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stream {
    Stdout,
    Stderr,
}

/// Something in the file system that is different after the execution.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftFile {
    pub place: PortablePath,
    pub left: Left,
}

/// What is there afterwards.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Left {
    File {
        mode: u32,
        #[serde(with = "bytes")]
        content: Vec<u8>,
        /// When it was last written, or what a program has set in its place: seconds since 1970,
        /// and nanoseconds.
        modified: (i64, u32),
    },
    Folder {
        mode: u32,
    },
    /// A symbolic link, and what it says.
    Link {
        #[serde(with = "bytes")]
        target: Vec<u8>,
    },
    /// It was there before.
    Gone,
}

/// Which run it was, for people.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// Milliseconds since 1970.
    pub time: u64,
    pub host: String,
    /// The project's root.
    #[serde(with = "bytes")]
    pub root: Vec<u8>,
    pub commit: Option<String>,
}

impl Origin {
    /// Whether it was on another machine, or in another store: it does not say in which folder
    /// then.
    pub fn is_shared(&self) -> bool {
        self.root.is_empty()
    }
}

impl Outcome {
    /// The output in the order in which it came, as far as that is known; else all of stdout, then
    /// all of stderr.
    pub fn chunks(&self) -> Vec<(Stream, &[u8])> {
        let (mut stdout, mut stderr) = (&self.stdout[..], &self.stderr[..]);
        let mut chunks = Vec::with_capacity(self.turns.len() + 2);
        for (turn, length) in self.turns.iter().enumerate() {
            let stream = if turn % 2 == 0 { Stream::Stdout } else { Stream::Stderr };
            let from = if turn % 2 == 0 { &mut stdout } else { &mut stderr };
            let length = usize::try_from(*length).unwrap_or(usize::MAX).min(from.len());
            let (chunk, rest) = from.split_at(length);
            chunks.push((stream, chunk));
            *from = rest;
        }
        chunks.extend([(Stream::Stdout, stdout), (Stream::Stderr, stderr)]);
        chunks.retain(|(_, chunk)| !chunk.is_empty());
        chunks
    }

    /// About how many bytes it takes before it is packed.
    pub fn size(&self) -> usize {
        let file = |file: &LeftFile| match &file.left {
            Left::File { content, .. } => content.len(),
            Left::Link { target } => target.len(),
            Left::Folder { .. } | Left::Gone => 0,
        } + file.place.path.len();
        let files = self.files.iter().map(file).fold(0, usize::saturating_add);
        self.stdout.len().saturating_add(self.stderr.len()).saturating_add(files)
    }

    /// The outcome as bytes, without an envelope: the store puts one around what it has packed.
    pub fn to_bytes(&self) -> Result<Vec<u8>, FormatError> {
        postcard::to_stdvec(self).map_err(|_| FormatError::Malformed)
    }

    /// Reads what `to_bytes` wrote.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, FormatError> {
        match postcard::take_from_bytes(bytes) {
            Ok((outcome, [])) => Ok(outcome),
            _ => Err(FormatError::Malformed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn outcome(stdout: Vec<u8>, stderr: Vec<u8>, turns: Vec<u64>) -> Outcome {
        let exit = Exit::Code(0);
        let (duration, files, origin) = (Duration::ZERO, Vec::new(), Origin::default());
        Outcome {
            exit,
            stdout,
            stderr,
            turns,
            duration,
            files,
            input_end: Some(3),
            origin,
            checkout_specific: false,
        }
    }

    #[test]
    fn output_comes_in_turns() {
        let outcome = outcome(b"aabb".to_vec(), b"XY".to_vec(), vec![2, 1, 2, 1]);
        let text: Vec<_> = outcome.chunks().into_iter().map(|(_, chunk)| chunk).collect();
        assert_eq!(text, [&b"aa"[..], b"X", b"bb", b"Y"]);
    }

    proptest! {
        #[test]
        fn wrong_turns_lose_no_output(
            stdout: Vec<u8>, stderr: Vec<u8>, turns in prop::collection::vec(prop_oneof![0u64..20, any::<u64>()], 0..9),
        ) {
            let outcome = outcome(stdout, stderr, turns);
            let all = |wanted| -> Vec<u8> {
                outcome.chunks().iter().filter(|(stream, _)| *stream == wanted).flat_map(|(_, chunk)| *chunk).copied().collect()
            };
            prop_assert_eq!(all(Stream::Stdout), &outcome.stdout[..]);
            prop_assert_eq!(all(Stream::Stderr), &outcome.stderr[..]);
        }

        #[test]
        fn an_outcome_comes_back_as_it_was(stdout: Vec<u8>, content: Vec<u8>, code: i32, mode: u32) {
            let mut outcome = outcome(stdout, Vec::new(), vec![1]);
            outcome.exit = Exit::Signal(code);
            outcome.files = vec![LeftFile { place: PortablePath::absolute("/tmp/x"), left: Left::File { mode, content, modified: (1, 2) } }];
            prop_assert_eq!(Outcome::from_bytes(&outcome.to_bytes().unwrap()), Ok(outcome));
        }

        #[test]
        fn any_bytes_are_an_outcome_or_an_error(bytes: Vec<u8>) {
            let _ = Outcome::from_bytes(&bytes);
        }
    }
}
