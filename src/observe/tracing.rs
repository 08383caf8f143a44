//! Which functions a test executes: the watcher's side of the agent (`agent/agent.rs`).
//!
//! In: requests of agents, programs that are started. Out: for each module, where the functions start that were executed;
//! nothing for those of which it is not sure.

use crate::process::sys::Memory;
use rustc_hash::FxHashMap;
use std::io;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What the path of an agent's request starts with. Behind it: the module's path, or nothing for the program.
pub const REQUEST: &[u8] = b"/.tasting-agent-1/";

const MAGIC: &[u8; 8] = b"TASTETRC";
const HEAD: usize = 24;
/// The instructions that the agent changes have this length.
#[cfg(target_arch = "x86_64")]
const CODE: usize = 1;
#[cfg(not(target_arch = "x86_64"))]
const CODE: usize = 4;

/// The start of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Function {
    /// Its address, as the binary has it.
    pub place: u32,
    /// The first bytes of its code.
    pub code: [u8; 4],
}

/// What knows where functions start.
pub trait Functions: Send + Sync {
    /// Those of a binary, sorted by place, each place once. `None` if it is not one that can be traced.
    fn of(&self, binary: &Path) -> Option<Vec<Function>>;
}

/// How to trace.
#[derive(Clone)]
pub struct Tracing {
    /// The agent's file, which is ours: the test does not use it.
    pub agent: PathBuf,
    pub functions: Arc<dyn Functions>,
}

/// Where functions start that were executed, by module.
pub type Executed = FxHashMap<PathBuf, Vec<u32>>;

/// The account of what was executed.
pub struct Tracer {
    tracing: Tracing,
    regions: FxHashMap<PathBuf, Option<Region>>,
    /// How often a program was started, and how often its agent spoke up.
    programs: FxHashMap<PathBuf, (u32, u32)>,
}

struct Region {
    memory: Memory,
    places: Vec<u32>,
}

impl Tracer {
    pub fn new(tracing: Tracing) -> Tracer {
        Tracer { tracing, regions: FxHashMap::default(), programs: FxHashMap::default() }
    }

    /// Whether a path is the agent's own.
    pub fn is_agent(&self, path: &Path) -> bool {
        path == self.tracing.agent
    }

    /// A program is about to be started.
    pub fn starts(&mut self, program: &Path) {
        self.programs.entry(program.to_owned()).or_default().0 += 1;
    }

    /// The region of a module, for an agent that asks for it.
    pub fn region(&mut self, module: &Path, is_program: bool) -> Option<BorrowedFd<'_>> {
        if !self.regions.contains_key(module) {
            let region = self.tracing.functions.of(module).and_then(|functions| Region::new(&functions).ok());
            self.regions.insert(module.to_owned(), region);
        }
        let region = self.regions.get(module)?.as_ref()?;
        if is_program {
            self.programs.entry(module.to_owned()).or_default().1 += 1;
        }
        Some(region.memory.descriptor())
    }

    /// Whether any function was watched at all.
    pub fn is_used(&self) -> bool {
        self.regions.values().any(Option::is_some)
    }

    /// What was executed. A program that was started without its agent is left out.
    pub fn close(self) -> Executed {
        let all = |path: &PathBuf| self.programs.get(path).is_none_or(|(started, armed)| started == armed);
        let seen = self.regions.iter().filter(|(path, _)| all(path));
        seen.filter_map(|(path, region)| Some((path.clone(), region.as_ref()?.executed()?))).collect()
    }
}

impl Region {
    fn new(functions: &[Function]) -> io::Result<Region> {
        let count = functions.len();
        let size = HEAD + count * (4 + CODE + 1);
        let mut content = Vec::with_capacity(size);
        content.extend_from_slice(MAGIC);
        content.extend_from_slice(&(count as u32).to_ne_bytes());
        content.extend_from_slice(&0u32.to_ne_bytes());
        content.extend_from_slice(&(size as u64).to_ne_bytes());
        functions.iter().for_each(|function| content.extend_from_slice(&function.place.to_ne_bytes()));
        functions.iter().for_each(|function| content.extend_from_slice(&function.code[..CODE]));
        content.resize(size, 0);
        let memory = Memory::new(c"tasting-functions")?;
        memory.fill(&content)?;
        Ok(Region { memory, places: functions.iter().map(|function| function.place).collect() })
    }

    /// Which functions were executed; `None` if an agent gave up.
    fn executed(&self) -> Option<Vec<u32>> {
        let content = self.memory.content().ok()?;
        let failed = content.get(12..16)?.iter().any(|byte| *byte != 0);
        let hits = content.get(HEAD + self.places.len() * (4 + CODE)..)?;
        let executed = self.places.iter().zip(hits).filter(|(_, hit)| **hit != 0).map(|(place, _)| *place);
        (!failed).then(|| executed.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Some2;

    impl Functions for Some2 {
        fn of(&self, binary: &Path) -> Option<Vec<Function>> {
            let function = |place| Function { place, code: [0x55, 0, 0, 0] };
            (binary != Path::new("other")).then(|| vec![function(16), function(64)])
        }
    }

    fn tracer() -> Tracer {
        Tracer::new(Tracing { agent: "/agent.so".into(), functions: Arc::new(Some2) })
    }

    #[test]
    fn a_program_that_was_started_without_its_agent_is_left_out() {
        let mut tracer = tracer();
        for _ in 0..2 {
            tracer.starts(Path::new("twice"));
        }
        tracer.starts(Path::new("once"));
        tracer.starts(Path::new("other"));
        for program in ["twice", "once"] {
            assert!(tracer.region(Path::new(program), true).is_some());
        }
        assert!(tracer.region(Path::new("other"), true).is_none());
        let executed = tracer.close();
        assert_eq!(executed.keys().collect::<Vec<_>>(), [Path::new("once")]);
    }

    #[test]
    fn hits_are_read_and_failures_believed() {
        let mut tracer = tracer();
        tracer.region(Path::new("library"), false).unwrap();
        let region = tracer.regions[Path::new("library")].as_ref().unwrap();
        let mut content = region.memory.content().unwrap().to_vec();
        let last = content.len() - 1;
        content[last] = 1;
        region.memory.fill(&content).unwrap();
        assert_eq!(region.executed(), Some(vec![64]));
        content[12] = 1;
        region.memory.fill(&content).unwrap();
        assert_eq!(region.executed(), None);
    }
}
