//! A system call that the filter has stopped, with its arguments.

use super::kernel::{Listener, Notification};
use std::cell::Cell;
use std::fs;

/// One call under our eyes.
pub(super) struct Call<'a> {
    pub listener: &'a Listener,
    pub notification: &'a Notification,
    /// It is made only to ask: the agent leads the call itself, which is made later.
    pub is_question: bool,
    /// It has had its answer, and is not to be let go.
    pub answered: Cell<bool>,
}

impl Call<'_> {
    pub fn thread(&self) -> u32 {
        self.notification.thread
    }

    pub fn argument(&self, index: usize) -> u64 {
        self.notification.arguments[index]
    }

    /// An argument of 32 bits; what stands in the upper half of the register means nothing.
    pub fn int(&self, index: usize) -> i32 {
        self.argument(index) as i32
    }

    /// The program that makes it, for people.
    pub fn program_name(&self) -> String {
        let program = fs::read_link(format!("/proc/{}/exe", self.thread()));
        program.map_or_else(|_| "a program".to_owned(), |path| path.to_string_lossy().into_owned())
    }
}
