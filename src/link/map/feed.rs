//! A map in pieces: in comes a function that gives the next piece of the text, waiting for it if it
//! is still being written; out come pieces of whole lines that stay where they are, so that what
//! was read can be referred to.

use crate::process::sys::Mapped;
use std::ops::Deref;
use std::sync::OnceLock;

/// A text that comes in pieces.
pub struct Feed<'m> {
    first: Slot,
    read: Box<dyn Fn() -> Option<Bytes> + Send + Sync + 'm>,
}

/// A piece, the end of the text, or what was not asked for yet.
type Slot = OnceLock<Option<Box<Piece>>>;

/// Whole lines of a text.
pub struct Piece {
    text: Bytes,
    next: Slot,
}

/// Bytes that were read, or that lie in a file.
pub enum Bytes {
    Read(Vec<u8>),
    Mapped(Mapped),
}

impl Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Bytes::Read(bytes) => bytes,
            Bytes::Mapped(bytes) => bytes,
        }
    }
}

impl Deref for Piece {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.text
    }
}

impl<'m> Feed<'m> {
    /// A text whose pieces this function reads, each of them once.
    pub fn new(read: impl Fn() -> Option<Bytes> + Send + Sync + 'm) -> Self {
        Feed { first: Slot::new(), read: Box::new(read) }
    }

    /// The piece behind this one, or the first.
    pub fn after<'f>(&'f self, last: Option<&'f Piece>) -> Option<&'f Piece> {
        let slot = last.map_or(&self.first, |piece| &piece.next);
        slot.get_or_init(|| Some(Box::new(Piece { text: (self.read)()?, next: Slot::new() })))
            .as_deref()
    }

    /// All pieces, to the end of the text.
    pub fn pieces(&self) -> impl Iterator<Item = &Piece> {
        std::iter::successors(self.after(None), |piece| self.after(Some(piece)))
    }
}
