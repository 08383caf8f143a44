//! How the agent gets into the programs of a test. Nothing is added to their environment. In each
//! process, the dynamic loader of the GNU C library opens `/etc/ld.so.preload`, a list of libraries
//! to load first, and that call is stopped like every open. The answer is a list that names the
//! agent, and then the agent itself. Both files are ours, so the process's user, root folder and
//! mounts do not matter. Other loaders do not open that file, and get no agent.
//!
//! In: calls of loaders. Out: answers to them, for programs into which the agent may be loaded.

use super::act::Act;
use super::call::Call;
use super::content::Identity;
use super::kernel;
use super::lead::Lead;
use super::loaders;
use super::memory;
use super::processes;
use super::sites::CACHE;
use super::supervisor::{Supervisor, has_debugger};
use super::tracing::Tracer;
use crate::elf::sanitizers;
use crate::model::FileIdentity;
use rustc_hash::FxHashSet;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The end of the list's path. NixOS has it under another name.
const LIST: &str = ".so.preload";

/// Variables with which people look at what the loader does.
const SHOWING: [&[u8]; 3] = [b"LD_TRACE_", b"LD_DEBUG", b"LD_AUDIT"];

impl Supervisor {
    /// Whoever looks for the list is a loader, which opens its cache next: that is noted now, for
    /// the filter lets it through.
    pub(super) fn notes_cache(&mut self, call: &Call, path: &Path) {
        if is_list(path)
            && !call.is_question
            && self.lead.as_ref().is_some_and(Lead::lets_cache_through)
        {
            self.opens_unseen(call, CACHE);
        }
    }

    /// The loader asks whether there is a list: there is, if the agent may be loaded.
    pub(super) fn asks_for_preloads(&mut self, call: &Call, path: &Path) {
        if !is_list(path) || !self.may_preload(call) {
            return;
        }
        if let Some(tracer) = &mut self.tracer {
            tracer.preloading.insert(call.thread());
            call.listener.succeed(call.notification);
            call.answered.set(true);
        }
    }

    /// The loader opens the list. `true` if it was answered.
    pub(super) fn opens_preloads(&mut self, call: &Call, path: &Path) -> bool {
        let Some(tracer) = self.tracer.as_mut().filter(|_| is_list(path)) else { return false };
        if !tracer.preloading.contains(&call.thread()) {
            return false;
        }
        let is_answered = tracer
            .list(path)
            .is_some_and(|list| call.listener.give_one(call.notification, list).is_ok());
        call.answered.set(is_answered);
        is_answered
    }

    /// The loader opens the agent that it was told of.
    pub(super) fn opens_agent(&mut self, call: &Call) {
        let Some(tracer) = &mut self.tracer else { return };
        if tracer.preloading.remove(&call.thread()) {
            let agent = tracer.agent().reopened();
            let is_given =
                |agent: fs::File| call.listener.give_one(call.notification, agent.as_fd()).is_ok();
            call.answered.set(agent.is_ok_and(is_given));
        }
    }

    /// A program is about to take the place of what the thread has executed so far.
    pub(super) fn forgets_preloads(&mut self, thread: u32) {
        if let Some(tracer) = &mut self.tracer {
            tracer.preloading.remove(&thread);
            tracer.has_sanitizer.remove(&thread);
        }
    }

    /// The loader maps a library of a process.
    pub(super) fn loads_library(&mut self, thread: u32, library: &Path) {
        if sanitizers::names_library(library.as_os_str().as_encoded_bytes())
            && let Some(tracer) = &mut self.tracer
        {
            tracer.has_sanitizer.insert(thread);
        }
    }

    /// What loaders and agents ask for once paths are not looked up any more: it is told by its
    /// name alone. So calls are still led in programs that are started after a sandbox.
    pub(super) fn note_loader(&mut self, call: &Call, act: Act) -> io::Result<()> {
        let (path, flags) = match act {
            Act::Open { path, flags, .. } => (path, Some(flags)),
            Act::Ask { path, .. } => (path, None),
            Act::Execute { .. } => {
                self.loaders.forget();
                self.forgets_preloads(call.thread());
                self.interrupts.starts_program(call.thread());
                return Ok(());
            }
            _ => return Ok(()),
        };
        let Some(text) = memory::string(call.thread(), call.argument(path))? else { return Ok(()) };
        let path = Path::new(OsStr::from_bytes(&text));
        match flags.map(|flags| call.int(flags) & libc::O_PATH != 0) {
            None => self.asks_for_preloads(call, path),
            Some(is_path_only) => {
                if !self.is_for_the_agent(call, &text, is_path_only) {
                    self.opens_preloads(call, path);
                }
            }
        }
        Ok(())
    }

    fn may_preload(&mut self, call: &Call) -> bool {
        let thread = call.thread();
        if self.tracer.is_none() || !self.loaders.makes(thread, call.notification.instruction) {
            return false;
        }
        if self.lost && !self.is_on_known_devices(thread) {
            return false;
        }
        let link = PathBuf::from(format!("/proc/{thread}/exe"));
        let (Ok(program), Ok(found)) = (self.loaders.program_of(thread), fs::metadata(&link))
        else {
            return false;
        };
        // A loader that was started as a program: what it loads is not known yet.
        let is_loader = loaders::is_loader(program.as_os_str().as_encoded_bytes());
        let is_privileged = || super::programs::gives_privileges(&link, &found);
        let is_debugged = || self.has_debuggers && has_debugger(thread);
        if is_loader || is_privileged() || is_debugged() || kernel::has_little_memory(thread) {
            return false;
        }
        let environment = processes::read(thread, "environ").unwrap_or_default();
        let Some(tracer) = &mut self.tracer else { return false };
        call.listener.still_waits(call.notification)
            && !environment.split(|byte| *byte == 0).any(is_in_the_way)
            && !tracer.is_sanitized(&link, FileIdentity::of(&found))
    }
}

impl Supervisor {
    /// Whether a program and its loader lie on devices from which programs were started before
    /// paths lost their meaning. Others may be file systems that the test itself serves: a look at
    /// them could wait for a process that waits for us.
    fn is_on_known_devices(&self, thread: u32) -> bool {
        let known: FxHashSet<u64> = self.heads.keys().map(Identity::device).collect();
        let maps = fs::read_to_string(format!("/proc/{thread}/maps")).unwrap_or_default();
        let mut devices = maps.lines().filter_map(device_of_mapping).peekable();
        devices.peek().is_some() && devices.all(|device| known.contains(&device))
    }
}

/// The device of the file in a line of a process's memory map, if there is one.
fn device_of_mapping(line: &str) -> Option<u64> {
    let mut words = line.split_ascii_whitespace().skip(3);
    let (major, minor) = words.next()?.split_once(':')?;
    let has_file = words.next()? != "0";
    let [major, minor] = [major, minor].map(|number| u32::from_str_radix(number, 16));
    has_file.then_some(libc::makedev(major.ok()?, minor.ok()?))
}

impl Tracer {
    fn is_sanitized(&mut self, program: &Path, identity: FileIdentity) -> bool {
        let functions = self.functions();
        *self.sanitized.entry(identity).or_insert_with(|| functions.has_sanitizer(program))
    }
}

fn is_list(path: &Path) -> bool {
    path.as_os_str().as_encoded_bytes().ends_with(LIST.as_bytes())
}

/// Whether a variable of a program's environment forbids to load the agent.
fn is_in_the_way(variable: &[u8]) -> bool {
    SHOWING.iter().any(|name| variable.starts_with(name))
        || variable.strip_prefix(b"LD_PRELOAD=").is_some_and(sanitizers::names_library)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn environments_into_which_nothing_is_loaded() {
        for variable in
            ["LD_TRACE_LOADED_OBJECTS=1", "LD_DEBUG=all", "LD_PRELOAD=/usr/lib/libasan.so.8"]
        {
            assert!(is_in_the_way(variable.as_bytes()), "{variable}");
        }
        for variable in
            ["LD_PRELOAD=libfaketime.so", "LD_LIBRARY_PATH=/libasan.so", "PATH=/bin", ""]
        {
            assert!(!is_in_the_way(variable.as_bytes()), "{variable}");
        }
    }
}
