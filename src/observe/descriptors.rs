//! Descriptors that the test inherited from outside, under whatever number they appear: the
//! original one, a duplicate with a higher number, a path such as `/dev/fd/3`, or a descriptor
//! passed to another process. Also paths that lead to our own pipes.
//!
//! In: stopped calls. Out: refusals where data comes from outside, facts where a terminal is asked
//! for its size.

use super::arch;
use super::call::Call;
use super::content::device_and_inode;
use super::facts::Fact;
use super::inherited::{Foreign, PUT_ASIDE};
use super::kernel;
use super::memory;
use super::resolve::Place;
use super::supervisor::Supervisor;
use crate::model::codes;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::FileTypeExt;

const OUTPUT: &str = "its output";
const REACHED: &str = "is a file that others have open too, and is reached by a path";
const LIMITED: &str =
    "is a file that others have open too, and may grow no more than the test allows";
const USED: &str = "is used, and comes from outside the test";

/// Of `struct cmsghdr`: its length, level and kind.
const CONTROL_HEADER: usize = 16;
/// More is not read of what goes along with a message.
const LONGEST_CONTROL: u64 = 4096;
/// No more descriptors than this are looked at in one call; those that are inherited have low
/// numbers.
const MOST_WAITED_FOR: u64 = 4096;

impl Supervisor {
    /// A descriptor is used that may be one from outside.
    pub(super) fn uses_descriptor(&mut self, call: &Call, index: usize) {
        self.uses_number(call, call.int(index));
    }

    /// A call waits until something can be read or written (`poll`, `select`): it tells whether
    /// something has come.
    pub(super) fn waits_for_descriptors(&mut self, call: &Call) -> io::Result<()> {
        let numbers = match call.notification.number {
            number if arch::SELECT.contains(&number) => selected(call)?,
            _ => polled(call)?,
        };
        numbers.into_iter().for_each(|number| self.uses_number(call, number));
        Ok(())
    }

    fn uses_number(&mut self, call: &Call, number: i32) {
        let is_watched = PUT_ASIDE.contains(&number)
            || self.foreign.iter().any(|foreign| foreign.number == number);
        if !is_watched {
            return;
        }
        let Some(foreign) = self.foreign_at(call, number) else { return };
        if self.is_harmless(call, &foreign) {
            return;
        }
        self.ledger.refuse(foreign.name, (codes::INHERITED, USED));
    }

    /// The descriptor from outside that a number of the caller's means by now, if it is one.
    fn foreign_at(&self, call: &Call, number: i32) -> Option<Foreign> {
        let now = fs::metadata(format!("/proc/{}/fd/{number}", call.thread())).ok()?;
        let file = device_and_inode(&now);
        self.foreign.iter().find(|foreign| foreign.file == file).cloned()
    }

    /// Whether a call tells nothing of what is behind a descriptor but its kind, which counts
    /// anyway.
    fn is_harmless(&mut self, call: &Call, foreign: &Foreign) -> bool {
        match call.notification.number {
            libc::SYS_fcntl => is_put_aside(call),
            libc::SYS_mmap => call.int(3) & libc::MAP_ANONYMOUS != 0,
            libc::SYS_lseek | libc::SYS_fstat | libc::SYS_newfstatat | libc::SYS_statx => {
                !foreign.is_regular
            }
            libc::SYS_ioctl => self.is_question_of_size(call, foreign),
            number if arch::DUPLICATE.contains(&number) => call.int(1) == foreign.number,
            _ => false,
        }
    }

    /// The size of the terminal at standard input can be asked again later.
    fn is_question_of_size(&mut self, call: &Call, foreign: &Foreign) -> bool {
        let is_question = call.int(1) as u32 == libc::TIOCGWINSZ as u32 && foreign.number == 0;
        if is_question {
            self.ledger.learns(&Fact::TerminalSize);
        }
        is_question
    }

    /// A file that was reached by a path may be one from outside too: `/dev/stdin`.
    pub(super) fn meets_foreign(&mut self, found: &Metadata) {
        let file = device_and_inode(found);
        if let Some(foreign) = self.foreign.iter().find(|foreign| foreign.file == file) {
            let name = foreign.name.clone();
            self.ledger.refuse(name, (codes::INHERITED, USED));
        }
    }

    /// A path has led to a descriptor of a process, which may be one of the pipes.
    pub(super) fn meets_stand_in(&mut self, call: &Call, place: &Place) {
        let Some(stand_ins) = self.stand_ins.clone() else { return };
        let pipe = fs::metadata(&place.path).ok().filter(|found| found.file_type().is_fifo());
        let Some(pipe) = pipe.map(|found| device_and_inode(&found)) else { return };
        let Some(stand_in) = stand_ins.pipes.iter().find(|stand_in| stand_in.pipe == pipe) else {
            return;
        };
        self.ledger.learns(&Fact::OutputFile(stand_in.number));
        if !stand_in.is_file {
            return;
        }
        let is_of_the_caller = place.path.starts_with(format!("/proc/{}/fd", call.thread()));
        self.gives_file(call, is_of_the_caller.then_some(pipe), REACHED);
    }

    /// A program is started. If the size of files is limited, that ends whoever writes more to the
    /// output, but not who writes to a pipe.
    pub(super) fn limits_output(&mut self, call: &Call) {
        let Some(stand_ins) = self.stand_ins.clone() else { return };
        let limit = kernel::file_size_limit(call.thread());
        if limit == libc::RLIM_INFINITY || !stand_ins.may_outgrow(limit) {
            return;
        }
        for stand_in in stand_ins.pipes.iter().filter(|stand_in| stand_in.is_file) {
            self.ledger.learns(&Fact::OutputFile(stand_in.number));
            self.gives_file(call, Some(stand_in.pipe), LIMITED);
        }
    }

    /// Replaces one of the pipes by the file that it stands for, if it is one of the caller's.
    fn gives_file(&mut self, call: &Call, pipe: Option<(u64, u64)>, why: &'static str) {
        let Some(stand_ins) = self.stand_ins.clone() else { return };
        let is_given = pipe
            .is_some_and(|pipe| (stand_ins.pass_on)() && stand_ins.give_back(call, pipe).is_ok());
        if is_given {
            self.ledger.refuse(OUTPUT, (codes::OUTPUT, why));
        } else {
            self.disturb(
                OUTPUT.to_owned(),
                "is a file that others have open too, and a pipe to the test",
            );
        }
    }

    /// A message may hand descriptors to another process, which reads them under numbers of its
    /// own.
    pub(super) fn hands_over(&mut self, call: &Call, control: u64, length: u64) -> io::Result<()> {
        if control == 0 || length == 0 || self.foreign.is_empty() {
            return Ok(());
        }
        let bytes = memory::bytes(call.thread(), control, length.min(LONGEST_CONTROL) as usize)?;
        for number in handed_over(&bytes) {
            if let Some(foreign) = self.foreign_at(call, number) {
                self.ledger.refuse(foreign.name, (codes::INHERITED, USED));
            }
        }
        Ok(())
    }
}

/// The descriptors in an array of `struct pollfd`. Where no event is asked for, the call only tells
/// whether a descriptor is open: the runtime of Rust asks so about the first three whenever a
/// program starts.
fn polled(call: &Call) -> io::Result<Vec<i32>> {
    const SIZE: usize = 8;
    let count = call.argument(1).min(MOST_WAITED_FOR) as usize;
    let entries = memory::bytes(call.thread(), call.argument(0), count * SIZE)?;
    let number = |entry: &[u8]| i32::from_ne_bytes([entry[0], entry[1], entry[2], entry[3]]);
    let is_asked = |entry: &&[u8]| entry[4..6] != [0, 0];
    Ok(entries.chunks_exact(SIZE).filter(is_asked).map(number).collect())
}

/// The descriptors in the three sets of `select`.
fn selected(call: &Call) -> io::Result<Vec<i32>> {
    let count = u64::try_from(call.int(0)).unwrap_or(0).min(MOST_WAITED_FOR) as usize;
    let mut numbers = Vec::new();
    for set in (1..=3).map(|index| call.argument(index)).filter(|set| *set != 0) {
        let bits = memory::bytes(call.thread(), set, count.div_ceil(64) * 8)?;
        let is_in =
            |number: &usize| bits.get(number / 8).is_some_and(|byte| byte >> (number % 8) & 1 != 0);
        numbers.extend((0..count).filter(is_in).map(|number| number as i32));
    }
    Ok(numbers)
}

/// The descriptors in what goes along with a message.
fn handed_over(control: &[u8]) -> Vec<i32> {
    let int = |at: usize| {
        control
            .get(at..at + 4)
            .and_then(|bytes| bytes.try_into().ok())
            .map_or(0, i32::from_ne_bytes)
    };
    let (mut at, mut numbers) = (0, Vec::new());
    while at + CONTROL_HEADER <= control.len() {
        let length = memory::number_in(control, at) as usize;
        if length < CONTROL_HEADER {
            break;
        }
        let end = at.saturating_add(length).min(control.len());
        if (int(at + 8), int(at + 12)) == (libc::SOL_SOCKET, libc::SCM_RIGHTS) {
            numbers.extend((at + CONTROL_HEADER..end).step_by(4).map(int));
        }
        at = at.saturating_add(length.next_multiple_of(8));
    }
    numbers
}

/// Shells put descriptors aside under numbers from 10 on while they redirect, and get them back
/// from there. The first of these numbers are watched too.
fn is_put_aside(call: &Call) -> bool {
    match call.int(1) {
        libc::F_DUPFD | libc::F_DUPFD_CLOEXEC => {
            let is_open = |number: &i32| {
                fs::symlink_metadata(format!("/proc/{}/fd/{number}", call.thread())).is_ok()
            };
            call.int(2) == PUT_ASIDE.start && !PUT_ASIDE.clone().all(|number| is_open(&number))
        }
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptors_are_found_among_other_things() {
        let message = |kind: i32, numbers: &[i32]| {
            let mut bytes =
                (CONTROL_HEADER as u64 + 4 * numbers.len() as u64).to_ne_bytes().to_vec();
            bytes.extend(libc::SOL_SOCKET.to_ne_bytes());
            bytes.extend(kind.to_ne_bytes());
            numbers.iter().for_each(|number| bytes.extend(number.to_ne_bytes()));
            bytes.resize(bytes.len().next_multiple_of(8), 0);
            bytes
        };
        let both =
            [message(libc::SCM_CREDENTIALS, &[1, 2, 3]), message(libc::SCM_RIGHTS, &[7, 0, 9])]
                .concat();
        assert_eq!(handed_over(&both), [7, 0, 9]);
        assert!(handed_over(&[0; 40]).is_empty() && handed_over(&both[..20]).is_empty());
    }
}
