//! Which functions a test executes, from the watcher's side of the agent (`agent/`).
//!
//! In: requests of agents, programs that are started. Out: for each module, the addresses of the
//! executed functions; nothing for modules where these are not certain.

use super::agent::Agent;
use super::image::{self, Image};
use super::lead::{KnownSites, Unknown};
use crate::elf::sanitizers;
use crate::model::{Code, FileIdentity, Function};
use crate::process::sys::Memory;
use rustc_hash::{FxHashMap, FxHashSet};
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use tasting_agent::protocol::{FAILED, Head, PAGE, REGION_MAGIC};

const HEAD: usize = size_of::<Head>();

/// What knows where functions lie.
pub trait Functions: Send + Sync {
    /// The code of a binary; `None` if it is not one that can be traced.
    fn of(&self, binary: &Path) -> Option<Code>;

    /// The binary is going to be traced: what was executed of it will be asked about.
    fn expect(&self, _binary: &Path) {}

    /// Whether a program has the runtime of a sanitizer, beside which nothing can be loaded.
    fn has_sanitizer(&self, program: &Path) -> bool;
}

/// How to trace.
#[derive(Clone)]
pub struct Tracing {
    pub agent: Agent,
    pub functions: Arc<dyn Functions>,
    /// What is going to be asked about first, most likely.
    pub program: Option<PathBuf>,
    pub sites: Arc<dyn KnownSites>,
    /// Functions are not traced: the agent only leads calls past the filter.
    pub only_leads: bool,
}

impl Tracing {
    /// Without anything that is known of programs: the agent is kept in a folder, and only leads
    /// calls.
    pub fn that_only_leads(folder: &Path) -> Option<Tracing> {
        let agent = Agent::open(folder)?;
        let (functions, sites) = (Arc::new(NoFunctions), Arc::new(Unknown));
        Some(Tracing { agent, functions, program: None, sites, only_leads: true })
    }
}

/// Knows no functions.
struct NoFunctions;

impl Functions for NoFunctions {
    fn of(&self, _binary: &Path) -> Option<Code> {
        None
    }

    fn has_sanitizer(&self, program: &Path) -> bool {
        fs::read(program).is_ok_and(|content| sanitizers::has_runtime(&content))
    }
}

/// Where functions start that were executed, by module.
pub type Executed = FxHashMap<PathBuf, Vec<u32>>;

/// The account of what was executed.
pub struct Tracer {
    tracing: Tracing,
    /// What is made of the program while it is started.
    prepared: Option<(PathBuf, JoinHandle<Option<Region>>)>,
    regions: FxHashMap<PathBuf, Option<Region>>,
    /// How often a program was started, and how often its agent spoke up.
    programs: FxHashMap<PathBuf, (u32, u32)>,
    has_given_up: bool,
    /// The list of libraries that loaders get (`preload.rs`).
    list: Option<Memory>,
    /// Threads whose loader has been told of the list, and has not opened the agent yet.
    pub(super) preloading: FxHashSet<u32>,
    /// Threads whose loader has loaded the runtime of a sanitizer.
    pub(super) has_sanitizer: FxHashSet<u32>,
    /// Whether programs have the runtime of a sanitizer, as far as they have been looked at.
    pub(super) sanitized: FxHashMap<FileIdentity, bool>,
}

struct Region {
    /// As the agent has it (`Head`).
    memory: Memory,
    /// The same, only to be read.
    code: File,
    places: Vec<u32>,
    /// The file that it was made of.
    identity: FileIdentity,
}

/// What an agent gets.
pub struct Given<'t> {
    pub region: BorrowedFd<'t>,
    /// The same, to map code from.
    pub code: BorrowedFd<'t>,
}

impl Tracer {
    pub fn new(tracing: Tracing) -> Tracer {
        let prepared = prepare(&tracing);
        Tracer {
            tracing,
            prepared,
            regions: FxHashMap::default(),
            programs: FxHashMap::default(),
            has_given_up: false,
            list: None,
            preloading: FxHashSet::default(),
            has_sanitizer: FxHashSet::default(),
            sanitized: FxHashMap::default(),
        }
    }

    /// Whether a path is the agent's own.
    pub fn is_agent(&self, path: &Path) -> bool {
        path == self.tracing.agent.path
    }

    pub(super) fn only_leads(&self) -> bool {
        self.tracing.only_leads
    }

    pub(super) fn agent(&self) -> &Agent {
        &self.tracing.agent
    }

    pub(super) fn functions(&self) -> Arc<dyn Functions> {
        self.tracing.functions.clone()
    }

    /// The list of libraries to preload: the agent, and those of the machine's own list, which lies
    /// at this path.
    pub(super) fn list(&mut self, path: &Path) -> Option<BorrowedFd<'_>> {
        if self.list.is_none() {
            let list = Memory::new(c"tasting-preload").ok()?;
            let agent = self.tracing.agent.path.as_os_str().as_encoded_bytes();
            list.write_at(&[agent, b"\n", &fs::read(path).unwrap_or_default()].concat(), 0).ok()?;
            self.list = Some(list);
        }
        self.list.as_ref().map(Memory::descriptor)
    }

    /// A program is about to be started.
    pub fn starts(&mut self, program: &Path) {
        self.programs.entry(program.to_owned()).or_default().0 += 1;
    }

    /// What there is for an agent that asks about a module.
    pub fn give(
        &mut self,
        module: &Path,
        identity: Option<FileIdentity>,
        is_program: bool,
    ) -> Option<Given<'_>> {
        let region = self.region_of(module);
        // What lies there now may be something else than before.
        if region.as_ref().is_some_and(|region| Some(region.identity) != identity) {
            *region = None;
        }
        if is_program && region.is_some() {
            self.programs.entry(module.to_owned()).or_default().1 += 1;
        }
        let region = self.regions.get(module)?.as_ref()?;
        Some(Given { region: region.memory.descriptor(), code: region.code.as_fd() })
    }

    /// The region of a module, made if nobody has asked about it yet.
    fn region_of(&mut self, module: &Path) -> &mut Option<Region> {
        self.regions.entry(module.to_owned()).or_insert_with(|| {
            match self.prepared.take_if(|(program, _)| program == module) {
                Some((_, making)) => making.join().ok().flatten(),
                None => region(&*self.tracing.functions, module),
            }
        })
    }

    /// Whether what is executed of a module is known so far.
    pub fn is_traced(&self, module: &Path) -> bool {
        self.regions
            .get(module)
            .is_some_and(|region| region.as_ref().is_some_and(|region| region.executed().is_some()))
    }

    /// Whether there is something for agents that ask about a module.
    pub fn has(&mut self, module: &Path) -> bool {
        self.region_of(module).is_some()
    }

    /// An agent does not get what it asks for: nothing is known of the module any more.
    pub fn gives_up(&mut self, module: &Path) {
        self.regions.insert(module.to_owned(), None);
    }

    /// The same, if it is not known which module that is.
    pub fn gives_all_up(&mut self) {
        self.has_given_up = true;
    }

    /// Whether any function was watched at all.
    pub fn is_used(&self) -> bool {
        self.regions.values().any(Option::is_some)
    }

    /// What was executed. A program that was started without its agent is left out.
    pub fn close(self) -> Executed {
        if self.has_given_up {
            return Executed::default();
        }
        let all = |path: &PathBuf| {
            self.programs.get(path).is_none_or(|(started, armed)| started == armed)
        };
        let seen = self.regions.iter().filter(|(path, _)| all(path));
        seen.filter_map(|(path, region)| Some((path.clone(), region.as_ref()?.executed()?)))
            .collect()
    }
}

/// Starts to make the region of the program. Of a file that was changed just now it would not be
/// known whether it is still the same one when it is asked about.
fn prepare(tracing: &Tracing) -> Option<(PathBuf, JoinHandle<Option<Region>>)> {
    let program = tracing.program.clone().filter(|_| !tracing.only_leads)?;
    let is_settled = FileIdentity::of(&fs::metadata(&program).ok()?).is_settled();
    let (functions, module) = (tracing.functions.clone(), program.clone());
    let making = || thread::Builder::new().spawn(move || region(&*functions, &module)).ok();
    Some((program, is_settled.then(making).flatten()?))
}

/// What agents get that ask about a module.
fn region(functions: &dyn Functions, module: &Path) -> Option<Region> {
    let region = functions.of(module).and_then(|code| Region::new(module, &code).ok())?;
    functions.expect(module);
    Some(region)
}

impl Region {
    fn new(module: &Path, code: &Code) -> io::Result<Region> {
        let count = code.functions.len();
        let is_within = |function: &Function| {
            code.start <= function.place.into() && function.end() <= code.start + code.length
        };
        if code.length < PAGE as u64 || !code.functions.iter().all(is_within) {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let image = (HEAD + count * 9).next_multiple_of(PAGE);
        let memory = Memory::new(c"tasting-code")?;
        let file = File::open(module)?;
        let identity = FileIdentity::of(&file.metadata()?);
        let Image { samples, sizes, executed, landing, distance } =
            image::write(&memory, image as u64, &file, code)?;
        let landing_at = if landing.is_empty() { 0 } else { image as u64 + code.length };
        memory.write_at(&landing, landing_at)?;
        let head = Head {
            magic: REGION_MAGIC,
            count: count as u32,
            failed: 0,
            image: image as u64,
            start: code.start,
            length: code.length,
            samples,
            landing: landing_at,
            landing_length: landing.len() as u64,
            distance,
        };
        let mut control = Vec::with_capacity(image);
        control.extend_from_slice(&head.bytes());
        control.extend(code.functions.iter().flat_map(|function| function.place.to_ne_bytes()));
        control.extend(sizes.iter().flat_map(|size| size.to_ne_bytes()));
        control.extend(executed);
        memory.write_at(&control, 0)?;
        let code_only = File::open(memory.path())?;
        let places = code.functions.iter().map(|function| function.place).collect();
        Ok(Region { memory, code: code_only, places, identity })
    }

    /// Which functions were executed; `None` if an agent gave up.
    fn executed(&self) -> Option<Vec<u32>> {
        let content = self.memory.content().ok()?;
        let failed = content.get(FAILED)?.iter().any(|byte| *byte != 0);
        let hits = content.get(HEAD + self.places.len() * 8..)?;
        let executed =
            self.places.iter().zip(hits).filter(|(_, hit)| **hit != 0).map(|(place, _)| *place);
        (!failed).then(|| executed.collect())
    }
}

#[cfg(test)]
#[path = "tracing_tests.rs"]
mod tests;
