//! Which numbered attempts of a hunt were made, so that one that was interrupted goes on where it
//! was.

use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Done {
    /// All before this one were made.
    next: u64,
    /// Others that were.
    beyond: BTreeSet<u64>,
}

impl Done {
    /// The first number from `from` on that was not tried; `from` is then the one after it.
    pub fn take(&self, from: &mut u64) -> u64 {
        while *from < self.next || self.beyond.contains(from) {
            *from += 1;
        }
        *from += 1;
        *from - 1
    }

    pub fn add(&mut self, number: u64) {
        self.beyond.insert(number);
        while self.beyond.remove(&self.next) {
            self.next += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finished_numbers_are_not_taken_again() {
        let mut done = Done::default();
        [1, 0, 3].into_iter().for_each(|number| done.add(number));
        let mut from = 0;
        assert_eq!([done.take(&mut from), done.take(&mut from), done.take(&mut from)], [2, 4, 5]);
    }
}
