//! What loaders and agents ask for by opening names that stand for something of ours: the agent, the board, regions.
//!
//! In: the names. Out: answers in the place of files.

use super::call::Call;
use super::supervisor::{Supervisor, has_debugger};
use super::tracing::Tracer;
use crate::model::FileIdentity;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use tasting_agent::protocol::{BOARD_REQUEST, REGION_REQUEST};

impl Supervisor {
    /// Whether the loader opens the agent, or the agent asks for something.
    pub(super) fn is_for_the_agent(&mut self, call: &Call, text: &[u8], is_path_only: bool) -> bool {
        let Some(tracer) = &self.tracer else { return false };
        match text.strip_prefix(REGION_REQUEST).filter(|_| is_path_only) {
            Some(name) => self.answer_agent(call, name),
            None if is_path_only && text == BOARD_REQUEST.to_bytes() => self.give_board(call),
            None if tracer.is_agent(Path::new(OsStr::from_bytes(text))) => self.opens_agent(call),
            None => return false,
        }
        true
    }

    /// An agent asks for the board. Where there is the runtime of a sanitizer, nothing is to be changed. It is told if it need not ask
    /// for a region, because there is none of its program.
    fn give_board(&mut self, call: &Call) {
        let program = self.loaders.program_of(call.thread()).map(Path::to_owned);
        let (Some(tracer), Some(lead)) = (&mut self.tracer, &self.lead) else { return };
        if tracer.has_sanitizer.contains(&call.thread()) {
            return;
        }
        let is_untraced = self.lost || tracer.only_leads() || program.is_ok_and(|program| !tracer.has(&program));
        let is_given = call.listener.give_board(call.notification, lead.board(), lead.patched(), is_untraced);
        call.answered.set(is_given.is_ok());
    }

    /// An agent asks for something of a module; it gets it in place of the file that it seems to open.
    fn answer_agent(&mut self, call: &Call, name: &[u8]) {
        if self.lost || self.tracer.as_ref().is_some_and(Tracer::only_leads) {
            return;
        }
        let is_program = name.is_empty();
        let program = PathBuf::from(format!("/proc/{}/exe", call.thread()));
        let module = match is_program {
            true => self.loaders.program_of(call.thread()).map(Path::to_owned).ok(),
            // The loader has followed the same links before.
            false => self.walk(call, None, name, true).map(|(place, _)| place.path),
        };
        let identity = |module: &PathBuf| fs::metadata(if is_program { &program } else { module }).ok();
        let identity = module.as_ref().and_then(identity).map(|found| FileIdentity::of(&found));
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
        let is_alone = is_program && !self.ledger.libraries_of(&module).any(|library| tracer.has(library));
        if let Some(given) = tracer.give(&module, identity, is_program) {
            let is_given = !(self.has_debuggers && has_debugger(call.thread()))
                && call.listener.give(call.notification, given.region, given.code, is_alone).is_ok();
            call.answered.set(is_given);
            if !is_given {
                tracer.gives_up(&module);
            }
        }
    }
}
