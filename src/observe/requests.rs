//! Requests of loaders and agents, which they make by opening reserved file names: for the agent,
//! the board, regions.
//!
//! In: the names. Out: descriptors, in place of files.

use super::call::Call;
use super::supervisor::{Supervisor, has_debugger};
use super::tracing::Tracer;
use crate::model::FileIdentity;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use tasting_agent::protocol::{BOARD_REQUEST, BoardAnswer, REGION_REQUEST};

impl Supervisor {
    /// Whether the loader opens the agent, or the agent asks for something.
    pub(super) fn is_for_the_agent(
        &mut self,
        call: &Call,
        text: &[u8],
        is_path_only: bool,
    ) -> bool {
        let Some(tracer) = &self.tracer else { return false };
        match text.strip_prefix(REGION_REQUEST).filter(|_| is_path_only) {
            Some(name) => self.answer_agent(call, name),
            None if is_path_only && text == BOARD_REQUEST.to_bytes() => self.give_board(call),
            None if tracer.is_agent(Path::new(OsStr::from_bytes(text))) => self.opens_agent(call),
            None => return false,
        }
        true
    }

    /// An agent asks for the board. Where there is the runtime of a sanitizer, nothing is to be
    /// changed. It gets the region of its program with it, or is told if it need not ask for that,
    /// because there is none.
    fn give_board(&mut self, call: &Call) {
        let program = self.loaders.program_of(call.thread()).map(Path::to_owned);
        let (Some(tracer), Some(lead)) = (&mut self.tracer, &self.lead) else { return };
        if tracer.has_sanitizer.contains(&call.thread()) {
            return;
        }
        let is_untraced = self.lost
            || tracer.only_leads()
            || program.as_ref().is_ok_and(|program| !tracer.has(program));
        let is_debugged = || self.has_debuggers && has_debugger(call.thread());
        let program = program.ok().filter(|_| !is_untraced && !is_debugged());
        let is_alone = program
            .as_ref()
            .is_some_and(|it| !self.ledger.libraries_of(it).any(|other| tracer.has(other)));
        let given = program
            .as_ref()
            .and_then(|program| tracer.give(program, identity_of_program(call), true));
        let (region, code) = given.map(|given| (given.region, given.code)).unzip();
        let files = [lead.patched(), region, code];
        let rest = BoardAnswer { is_alone, is_untraced, ..BoardAnswer::default() };
        let is_given = call.listener.give_board(call.notification, lead.board(), files, rest);
        let has_region = region.is_some();
        call.answered.set(is_given.is_ok());
        if let Some(program) = program.filter(|_| has_region && !is_given.is_ok_and(|all| all)) {
            tracer.gives_up(&program);
        }
    }

    /// An agent asks for something of a module; it gets it in place of the file that it seems to
    /// open.
    fn answer_agent(&mut self, call: &Call, name: &[u8]) {
        if self.lost || self.tracer.as_ref().is_some_and(Tracer::only_leads) {
            return;
        }
        let is_program = name.is_empty();
        let module = match is_program {
            true => self.loaders.program_of(call.thread()).map(Path::to_owned).ok(),
            // The loader has followed the same links before.
            false => self.walk(call, None, name, true).map(|(place, _)| place.path),
        };
        let identity = match &module {
            Some(_) if is_program => identity_of_program(call),
            Some(module) => fs::metadata(module).ok().map(|found| FileIdentity::of(&found)),
            None => None,
        };
        let Some(tracer) = self.tracer.as_mut() else { return };
        let Some(module) = module else {
            return tracer.gives_all_up();
        };
        if tracer.has_sanitizer.contains(&call.thread()) {
            // A program whose agent gets nothing counts as one that was started without.
            if !is_program {
                tracer.gives_up(&module);
            }
            return;
        }
        let is_alone =
            is_program && !self.ledger.libraries_of(&module).any(|library| tracer.has(library));
        if let Some(given) = tracer.give(&module, identity, is_program) {
            let is_given = !(self.has_debuggers && has_debugger(call.thread()))
                && call
                    .listener
                    .give(call.notification, given.region, given.code, is_alone)
                    .is_ok();
            call.answered.set(is_given);
            if !is_given {
                tracer.gives_up(&module);
            }
        }
    }
}

/// Which file a process executes.
fn identity_of_program(call: &Call) -> Option<FileIdentity> {
    fs::metadata(format!("/proc/{}/exe", call.thread())).ok().map(|found| FileIdentity::of(&found))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_come_out_as_they_went_in() {
        let least = BoardAnswer { board: 3, ..BoardAnswer::default() };
        let all = BoardAnswer {
            board: 0x7ffe,
            patched: Some(4),
            region: Some(0x7ffe),
            code: Some(0),
            is_alone: true,
            is_untraced: true,
        };
        let is_alone = BoardAnswer { region: Some(5), is_alone: true, ..least };
        for answer in [least, all, is_alone, BoardAnswer { is_untraced: true, ..least }] {
            assert_eq!(BoardAnswer::unpack(answer.pack().unwrap()), Some(answer));
        }
        assert_eq!(BoardAnswer::unpack(-2), None);
        assert_eq!(
            BoardAnswer { code: Some(0x7fff), ..all }.pack(),
            None,
            "there is no room for the number"
        );
        assert_eq!(BoardAnswer { board: -1, ..all }.pack(), None);
    }
}
