//! Calls about files, folders and programs: what each of them lets the run see, and what it changes.
//!
//! In: stopped calls. Out: entries in the ledger, made before the call can have any effect.

use super::call::Call;
use super::calls::Act;
use super::content::{Identity, same_file};
use super::facts::{self, Fact};
use super::known::Effect;
use super::ledger::Sight;
use super::loaders;
use super::memory;
use super::policy;
use super::programs;
use super::resolve::{Found, Place, Trail};
use super::supervisor::{Supervisor, has_debugger};
use super::targets::{self, Target};
use super::tracing::Tracer;
use super::used::{Kind, is_executable};
use crate::model::{FileIdentity, codes};
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use tasting_agent::protocol::{BOARD_REQUEST, REGION_REQUEST};

const RENAME_NOREPLACE: u64 = 1;
const RENAME_EXCHANGE: u64 = 2;
const RESOLVE_IN_ROOT: u64 = 0x10;
/// No reason against repeating the run: the folder can be renamed back.
const RENAMED: &str = "is a folder from before the test, which renames it";
const TERMINAL: &str = "/dev/tty";
const NO_FOLLOW: i32 = libc::AT_SYMLINK_NOFOLLOW;

/// As many scripts as the kernel lets interpret each other.
const MOST_INTERPRETERS: usize = 5;

impl Act {
    /// Whether `note_file` knows it.
    pub(super) fn is_about_files(&self) -> bool {
        use Act::*;
        matches!(
            self,
            Open { .. } | Create { .. } | OpenHow | Ask { .. } | ReadLink { .. } | Execute { .. } | ChangeFolder { .. }
        ) || matches!(self, AskExtended { .. } | AskExtendedOf)
            || matches!(self, List | Rename { .. } | HardLink { .. } | Make { .. } | MakeFolder { .. })
            || matches!(self, Remove { .. } | RemoveFolder { .. } | Change { .. })
    }
}

impl Act {
    /// What a call does to looks that are known, as far as the kind of call tells.
    pub(super) fn effect(&self) -> Effect {
        use Act::*;
        match self {
            Ask { .. } | AskExtended { .. } | AskExtendedOf | ReadLink { .. } | Execute { .. } | List => {
                Effect::Nothing
            }
            Socket | Connect | Listen | SendTo | SendMessage { .. } | Key(_) | Accept => Effect::Nothing,
            CloneHow | Debug | LookInto { .. } | Priority { .. } | Handler | Signals | Control | Inherited => {
                Effect::Nothing
            }
            ChangeFolder { .. } | EnterFolder => Effect::Moves,
            Filter { .. } => Effect::TurnsOff,
            _ => Effect::Changes,
        }
    }
}

impl Supervisor {
    pub(super) fn note_file(&mut self, call: &Call, act: Act) -> io::Result<()> {
        match act {
            Act::Open { folder, path, flags } => {
                self.open(call, folder, path, call.int(flags), call.argument(flags + 1))
            }
            Act::Create { path } => {
                let flags = libc::O_CREAT | libc::O_TRUNC | libc::O_WRONLY;
                self.open(call, None, path, flags, call.argument(path + 1))
            }
            Act::OpenHow => self.open_how(call),
            Act::Ask { folder, path, follow, flags } => {
                let follow = follow && !has(call, flags, NO_FOLLOW);
                let place = self.place(call, folder, path, follow)?;
                if let Some(place) = &place {
                    self.asks_for_preloads(call, &place.path);
                }
                self.saw_if_any(place, Sight::Details)
            }
            Act::AskExtended { folder, path, follow, flags } => {
                let follow = follow && !has(call, flags, NO_FOLLOW);
                let place = self.place(call, folder, path, follow)?;
                self.extended(place)
            }
            Act::AskExtendedOf => {
                let link = format!("/proc/{}/fd/{}", call.thread(), call.int(0));
                let place = self.place_of(call, None, link.as_bytes(), true);
                self.extended(place)
            }
            Act::ChangeFolder { path } => {
                let place = self.place(call, None, path, true)?;
                self.saw_if_any(place, Sight::Kind)
            }
            Act::ReadLink { folder, path } => self.read_link(call, folder, path),
            Act::Execute { folder, path, flags } => self.execute_call(call, folder, path, flags),
            Act::List => self.list(call),
            Act::Rename { .. } | Act::HardLink { .. } => self.two_names(call, act),
            Act::Make { folder, path } => self.make(call, folder, path, false),
            Act::MakeFolder { folder, path } => self.make(call, folder, path, true),
            Act::Remove { folder, path, flags } => {
                self.remove(call, folder, path, has(call, flags, libc::AT_REMOVEDIR))
            }
            Act::RemoveFolder { path } => self.remove(call, None, path, true),
            Act::Change { folder, path, follow, flags } => {
                let place = self.place(call, folder, path, follow && !has(call, flags, NO_FOLLOW))?;
                self.change(place)
            }
            _ => Ok(()),
        }
    }

    fn saw_if_any(&mut self, place: Option<Place>, sight: Sight) -> io::Result<()> {
        if let Some(place) = place {
            self.saw(&place, sight);
        }
        Ok(())
    }

    fn extended(&mut self, place: Option<Place>) -> io::Result<()> {
        if let Some(place) = &place {
            self.ledger.asks_for_extended(place, &|process| self.processes.has(process));
        }
        self.saw_if_any(place, Sight::Details)
    }

    fn open_how(&mut self, call: &Call) -> io::Result<()> {
        let how = memory::bytes(call.thread(), call.argument(2), 24)?;
        if memory::number_in(&how, 16) & RESOLVE_IN_ROOT != 0 {
            let subject = call.program_name();
            self.ledger.refuse(subject, (codes::OTHER_ROOT, "opens files below a root of its own (openat2)"));
        }
        self.open(call, Some(0), 1, memory::number_in(&how, 0) as i32, memory::number_in(&how, 8))
    }

    fn open(&mut self, call: &Call, folder: Option<usize>, path: usize, flags: i32, mode: u64) -> io::Result<()> {
        let has = |flag: i32| flags & flag == flag;
        let text = memory::string(call.thread(), call.argument(path))?.filter(|text| !text.is_empty());
        let Some(text) = text else { return Ok(()) };
        if self.is_for_the_agent(call, &text, has(libc::O_PATH)) {
            return Ok(());
        }
        if !may_change(flags) {
            self.effect = Effect::Nothing;
        }
        let exclusive = has(libc::O_CREAT | libc::O_EXCL);
        let follow = !has(libc::O_NOFOLLOW) && !exclusive;
        let Some((place, trail)) = self.walk(call, folder, &text, follow) else { return Ok(()) };
        let is_library = flags & (libc::O_ACCMODE | libc::O_CREAT | libc::O_TRUNC | libc::O_PATH) == libc::O_RDONLY
            && place.kind() == Some(Kind::File)
            && self.is_for_the_loader(call, &place.path);
        let is_own: policy::IsOwn = &|process| self.processes.has(process);
        match is_library {
            true => self.ledger.passed_by_loader(trail, &place.path, is_own),
            false => self.ledger.passed(trail, is_own),
        }
        self.opens_preloads(call, &place.path);
        if matches!(place.kind(), Some(Kind::Device | Kind::Fifo | Kind::Socket)) {
            // Whatever goes through it, no file and no name changes.
            self.effect = Effect::Nothing;
        }
        if has(libc::O_PATH) || has(libc::O_TMPFILE) {
            // By its descriptor it can be asked for its attributes.
            self.saw(&place, Sight::Details);
            return Ok(());
        }
        let is_read = flags & libc::O_ACCMODE == libc::O_RDONLY;
        if is_read && self.shows_process_file(call, &place, &text, flags) {
            return Ok(());
        }
        if let (Some(lead), Found::There(found)) = (&mut self.lead, &place.found) {
            lead.opens(&text, &place.path, found);
        }
        let reads = flags & libc::O_ACCMODE != libc::O_WRONLY;
        let writes = flags & libc::O_ACCMODE != libc::O_RDONLY || has(libc::O_TRUNC);
        self.meets_foreign_at(&place);
        if place.path == Path::new(TERMINAL) {
            self.opens_terminal(call, flags);
        }
        let is_pipe = place.kind() == Some(Kind::Fifo) && !policy::is_for_debuggers(&place.path);
        if is_pipe && self.ledger.is_own(&place.path) {
            self.ledger.opens_own_pipe(&place.path, reads, writes);
        }
        match (&place.found, place.kind()) {
            // Whatever was there is gone without a look at it, and a leftover of an earlier run is as good as nothing.
            (Found::Missing, _) | (_, Some(Kind::File)) if has(libc::O_CREAT | libc::O_TRUNC) && !exclusive => {
                self.overwrites(call, &place, mode);
            }
            (Found::Missing, _) => {
                self.saw(&place, Sight::Kind);
                if has(libc::O_CREAT) {
                    self.touches(&place);
                }
            }
            (Found::There(_), Some(Kind::Folder | Kind::Link)) => self.saw(&place, Sight::Kind),
            (Found::There(_), _) if exclusive => self.saw(&place, Sight::Kind),
            (Found::There(_), Some(Kind::File)) if has(libc::O_TRUNC) => {
                self.saw(&place, Sight::Kind);
                self.overwrites(call, &place, mode);
            }
            (Found::There(_), _) if is_library => self.saw(&place, Sight::Library),
            (Found::There(_), _) => {
                self.saw(&place, Sight::Content);
                if writes && place.kind() == Some(Kind::File) {
                    self.writes_to(&place, Target::Overwritten);
                    self.ledger.shares(&place);
                    self.touches(&place);
                }
            }
            _ => self.saw(&place, Sight::Kind),
        }
        Ok(())
    }

    /// A file is written from its start: what it held does not matter, but whether it can be written does; and its permissions
    /// do, which it keeps, unless a new file would get the same ones.
    fn overwrites(&mut self, call: &Call, place: &Place, mode: u64) {
        self.writes_to(place, Target::Overwritten);
        if matches!(&place.found, Found::There(found) if !targets::is_made_so(found, call.thread(), mode)) {
            self.writes_to(place, Target::Permissions);
        }
        self.touches(place);
    }

    fn writes_to(&mut self, place: &Place, target: Target) {
        self.ledger.writes_to(&place.path, target, &|process| self.processes.has(process));
    }

    fn needs_folder_of(&mut self, place: &Place) {
        self.ledger.needs_folder_of(&place.path, &|process| self.processes.has(process));
    }

    /// The controlling terminal is opened. Bash does so to see whether there is one; whoever else does is about to use it.
    fn opens_terminal(&mut self, call: &Call, flags: i32) {
        let [theirs, ours] = [call.thread().to_string(), "self".to_owned()].map(|process| facts::terminal_of(&process));
        // In a session of its own, a process has the terminal that the test has made, or none.
        if theirs != ours {
            return;
        }
        let is_probe = flags & (libc::O_ACCMODE | libc::O_NONBLOCK) == libc::O_RDWR | libc::O_NONBLOCK;
        if theirs.is_some_and(|terminal| terminal != 0) && !is_probe {
            self.ledger.refuse(TERMINAL, (codes::INHERITED, "is used, and belongs to whoever runs the test"));
        }
        self.ledger.learns(&Fact::Terminal);
    }

    /// Whether it is the dynamic loader that opens a library. It notes for which program then.
    fn is_for_the_loader(&mut self, call: &Call, path: &Path) -> bool {
        let makes = |loaders: &mut loaders::Loaders| match call.is_question {
            true => call.argument(5) == 1,
            false => loaders.makes(call.thread(), call.notification.instruction),
        };
        if !loaders::can_be_a_library(path) || !makes(&mut self.loaders) {
            return false;
        }
        let Ok(program) = self.loaders.program_of(call.thread()) else { return false };
        if !call.listener.still_waits(call.notification) {
            return false;
        }
        let is_counted = self.ledger.loads(program, path);
        self.loads_library(call.thread(), path);
        is_counted
    }

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
            true => fs::read_link(&program).ok(),
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

    fn meets_foreign_at(&mut self, place: &Place) {
        match &place.found {
            Found::There(found) => self.meets_foreign(found),
            Found::Nameless => {
                if let Ok(found) = fs::metadata(&place.path) {
                    self.meets_foreign(&found);
                }
            }
            _ => {}
        }
    }

    fn read_link(&mut self, call: &Call, folder: Option<usize>, path: usize) -> io::Result<()> {
        let Some(place) = self.place(call, folder, path, false)? else { return Ok(()) };
        match fs::read_link(&place.path) {
            Ok(target) if place.kind() == Some(Kind::Link) => {
                let trail = Trail { links: vec![(place.path, target)], ..Trail::default() };
                self.ledger.passed(trail, &|process| self.processes.has(process));
            }
            _ => self.saw(&place, Sight::Kind),
        }
        Ok(())
    }

    fn list(&mut self, call: &Call) -> io::Result<()> {
        let link = format!("/proc/{}/fd/{}", call.thread(), call.int(0));
        let path = match fs::read_link(&link) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            path => path?,
        };
        let Ok(found) = fs::metadata(&link) else { return Ok(()) };
        match fs::symlink_metadata(&path) {
            Ok(named) if same_file(&named, &found) => {
                self.ledger.lists(&path, &found, &|process| self.processes.has(process));
            }
            // A folder that was removed while it was open has no entries.
            _ => {}
        }
        Ok(())
    }

    fn make(&mut self, call: &Call, folder: Option<usize>, path: usize, is_folder: bool) -> io::Result<()> {
        let Some(place) = self.place(call, folder, path, false)? else { return Ok(()) };
        self.saw(&place, Sight::Kind);
        if matches!(place.found, Found::Missing) {
            self.touches(&place);
            if is_folder {
                self.ledger.owns_folder(&place.path);
            }
        }
        Ok(())
    }

    fn remove(&mut self, call: &Call, folder: Option<usize>, path: usize, is_folder: bool) -> io::Result<()> {
        let Some(place) = self.place(call, folder, path, false)? else { return Ok(()) };
        self.saw(&place, Sight::Kind);
        let Found::There(found) = &place.found else { return Ok(()) };
        if is_folder && found.is_dir() {
            // Whether it can be removed depends on what is in it.
            self.ledger.lists(&place.path, found, &|process| self.processes.has(process));
            if is_empty(&place.path) {
                self.needs_folder_of(&place);
                self.touches(&place);
                self.ledger.owns_folder(&place.path);
            }
        } else if !is_folder && !found.is_dir() {
            self.needs_folder_of(&place);
            self.touches(&place);
        }
        if found.is_dir() || found.is_symlink() {
            self.resolver.forget(&place.path);
        }
        Ok(())
    }

    /// Content or attributes change. The content counts even then, because it is taken for the run's own later.
    fn change(&mut self, place: Option<Place>) -> io::Result<()> {
        if let Some(place) = place {
            self.saw(&place, if place.kind() == Some(Kind::File) { Sight::Content } else { Sight::Details });
            if matches!(place.found, Found::There(_)) {
                if place.kind() == Some(Kind::File) {
                    self.writes_to(&place, Target::Permissions);
                }
                self.touches(&place);
            }
        }
        Ok(())
    }

    fn two_names(&mut self, call: &Call, act: Act) -> io::Result<()> {
        let (Act::Rename { from, old, to, new, flags } | Act::HardLink { from, old, to, new, flags }) = act else {
            return Ok(());
        };
        let renames = matches!(act, Act::Rename { .. });
        let follow = !renames && has(call, flags, libc::AT_SYMLINK_FOLLOW);
        let old = match self.place(call, from, old, follow)? {
            Some(old) => old,
            // By its descriptor alone: a file that was made without a name (O_TMPFILE).
            None if has(call, flags, libc::AT_EMPTY_PATH) && !renames => {
                Place { path: PathBuf::new(), found: Found::Nameless }
            }
            None => return Ok(()),
        };
        let Some(new) = self.place(call, to, new, false)? else { return Ok(()) };
        let flags = flags.map_or(0, |index| call.argument(index));
        if !self.ledger.is_own(&old.path) && old.kind() == Some(Kind::Folder) {
            self.ledger.refuse_path(&old.path, (codes::RENAMED_FOLDER, RENAMED));
        }
        self.change(Some(old.clone()))?;
        if renames {
            // It keeps its extended attributes under the new name.
            self.ledger.asks_for_extended(&old, &|process| self.processes.has(process));
            self.needs_folder_of(&old);
            self.writes_to(&new, Target::Replaced);
        }
        self.needs_folder_of(&new);
        if !renames || flags & RENAME_NOREPLACE != 0 {
            self.saw(&new, Sight::Kind);
        } else if flags & RENAME_EXCHANGE != 0 {
            self.change(Some(new.clone()))?;
        }
        if old.kind() == Some(Kind::Folder) && self.is_in_the_way(&new, flags) {
            return Ok(());
        }
        if matches!(old.found, Found::There(_) | Found::Nameless) {
            self.touches(&new);
            if renames && old.kind() == Some(Kind::Folder) {
                self.originals.before_move(&old.path, &new.path, flags & RENAME_EXCHANGE != 0);
            }
            if old.kind() == Some(Kind::Folder) {
                self.ledger.renames_folder(&old.path, &new.path);
                if flags & RENAME_EXCHANGE != 0 {
                    self.ledger.renames_folder(&new.path, &old.path);
                }
            }
        }
        let is_on_the_way = |place: &&Place| matches!(place.kind(), Some(Kind::Folder | Kind::Link));
        if renames && [&old, &new].iter().any(is_on_the_way) {
            [&old, &new].iter().for_each(|place| self.resolver.forget(&place.path));
        }
        Ok(())
    }

    /// Whether a folder cannot get a name, because what has it already is no empty folder.
    fn is_in_the_way(&mut self, new: &Place, flags: u64) -> bool {
        let Found::There(found) = &new.found else { return false };
        self.saw(new, Sight::Kind);
        if flags & RENAME_EXCHANGE != 0 {
            if found.is_dir() && !self.ledger.is_own(&new.path) {
                self.ledger.refuse_path(&new.path, (codes::RENAMED_FOLDER, RENAMED));
            }
            return false;
        }
        if found.is_dir() {
            self.ledger.lists(&new.path, found, &|process| self.processes.has(process));
        }
        flags & RENAME_NOREPLACE != 0 || !is_empty(&new.path)
    }

    fn execute_call(
        &mut self,
        call: &Call,
        folder: Option<usize>,
        path: usize,
        flags: Option<usize>,
    ) -> io::Result<()> {
        let place = match self.place(call, folder, path, !has(call, flags, NO_FOLLOW))? {
            Some(place) => Some(place),
            // By its descriptor alone.
            None if has(call, flags, libc::AT_EMPTY_PATH) => {
                let link = format!("/proc/{}/fd/{}", call.thread(), call.int(0));
                self.place_of(call, None, link.as_bytes(), true)
            }
            None => None,
        };
        self.loaders.forget();
        self.forgets_preloads(call.thread());
        match place {
            Some(place) => self.execute(call, place, 0),
            None => Ok(()),
        }
    }

    /// A program is started: the file, and what the kernel opens with it.
    fn execute(&mut self, call: &Call, place: Place, depth: usize) -> io::Result<()> {
        let Found::There(found) = &place.found else {
            self.saw(&place, Sight::Kind);
            let why = (codes::FOREIGN_PROGRAM, "starts a program that has no name");
            return self.refuse_if(call, matches!(place.found, Found::Nameless), why);
        };
        if !found.is_file() || !is_executable(found) {
            self.saw(&place, Sight::Details);
            return Ok(());
        }
        self.saw(&place, Sight::Program);
        if depth == 0 {
            self.interrupts.starts_program(call.thread());
        }
        if let Some(tracer) = &mut self.tracer {
            tracer.starts(&place.path);
        }
        let Some((head, privileged)) = self.head(&place, found) else {
            self.ledger.refuse_path(&place.path, (codes::FOREIGN_PROGRAM, "is a program that cannot be read"));
            return Ok(());
        };
        if privileged {
            self.gives_privileges(&place);
        }
        if head.is_32_bit {
            let why = (codes::FOREIGN_PROGRAM, "is of another architecture, whose calls are not watched");
            self.ledger.refuse_path(&place.path, why);
        }
        if !head.known && has_other_formats() {
            let why = (codes::FOREIGN_PROGRAM, "may be run by an interpreter that is registered with the kernel");
            self.ledger.refuse_path(&place.path, why);
        }
        match head.interpreter {
            Some(interpreter) if depth < MOST_INTERPRETERS => match self.place_of(call, None, &interpreter, true) {
                Some(place) => {
                    if let (Some(lead), Found::There(found)) = (&mut self.lead, &place.found) {
                        lead.opens(&interpreter, &place.path, found);
                    }
                    self.execute(call, place, depth + 1)
                }
                None => Ok(()),
            },
            _ => Ok(()),
        }
    }

    /// What kind of program it is, and whether it has privileges to give; each file is looked at once.
    fn head(&mut self, place: &Place, found: &fs::Metadata) -> Option<(programs::Head, bool)> {
        let identity = Identity::of(found);
        if let Some(known) = self.heads.get(&identity) {
            return Some(known.clone());
        }
        let head = (programs::head(&place.path).ok()?, programs::gives_privileges(&place.path, found));
        self.heads.insert(identity, head.clone());
        Some(head)
    }

    fn gives_privileges(&mut self, place: &Place) {
        let path = place.path.to_string_lossy().into_owned();
        match self.powerless {
            true => self.disturb(path, "needs privileges that a watched program cannot get (set-user-id)"),
            false => {
                self.ledger.refuse(path, (codes::ANOTHER_USER, "runs with privileges of another user (set-user-id)"))
            }
        }
    }
}

/// Whether opening something with these flags can change anything.
fn may_change(flags: i32) -> bool {
    const MAKES: i32 = libc::O_CREAT | libc::O_TRUNC | (libc::O_TMPFILE & !libc::O_DIRECTORY);
    flags & libc::O_ACCMODE != libc::O_RDONLY || flags & MAKES != 0
}

fn is_empty(folder: &Path) -> bool {
    fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_none())
}

fn has(call: &Call, flags: Option<usize>, flag: i32) -> bool {
    flags.is_some_and(|index| call.int(index) & flag != 0)
}

/// Whether the kernel knows program formats beside ELF and `#!`.
fn has_other_formats() -> bool {
    const OWN_FILES: usize = 2;
    fs::read_dir("/proc/sys/fs/binfmt_misc").is_ok_and(|entries| entries.count() > OWN_FILES)
}
