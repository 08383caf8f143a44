use super::*;
use crate::observe::arch;

const LENGTH: usize = 3 << 16;
/// The last one goes across the chunks in which it is written.
const FUNCTIONS: [Function; 4] = [
    Function { place: 16, size: 4, is_called: true },
    Function { place: 64, size: 8, is_called: true },
    Function { place: 72, size: 16, is_called: false },
    Function { place: (1 << 17) - 8, size: 24, is_called: true },
];

struct Some2;

impl Functions for Some2 {
    fn of(&self, binary: &Path) -> Option<Code> {
        let code =
            Code { start: 0, length: LENGTH as u64, offset: 0, functions: FUNCTIONS.to_vec() };
        (binary != Path::new("/dev/null")).then_some(code)
    }

    fn has_sanitizer(&self, _program: &Path) -> bool {
        false
    }
}

fn tracer() -> Tracer {
    Tracer::new(Tracing {
        agent: Agent::test(),
        functions: Arc::new(Some2),
        program: None,
        sites: Arc::new(Unknown),
        only_leads: false,
    })
}

fn give<'t>(tracer: &'t mut Tracer, module: &str, is_program: bool) -> Option<Given<'t>> {
    let identity = FileIdentity::of(&std::fs::metadata(module).unwrap());
    tracer.give(Path::new(module), Some(identity), is_program)
}

#[test]
fn prepared_regions_are_given() {
    let tracing = tracer().tracing;
    let mut prepared = Tracer::new(Tracing { program: Some(ONCE.into()), ..tracing });
    assert!(!prepared.is_used(), "nobody has asked about it");
    assert!(give(&mut prepared, TWICE, false).is_some());
    assert!(prepared.prepared.is_some());
    assert!(give(&mut prepared, ONCE, true).is_some());
    assert!(prepared.prepared.is_none() && prepared.is_used());
}

const ONCE: &str = "/bin/sh";
const TWICE: &str = "/bin/ls";
const UNKNOWN: &str = "/dev/null";

#[test]
fn programs_without_the_agent_are_left_out() {
    let mut tracer = tracer();
    for program in [ONCE, TWICE, TWICE, UNKNOWN] {
        tracer.starts(Path::new(program));
    }
    for program in [ONCE, TWICE] {
        assert!(give(&mut tracer, program, true).is_some());
    }
    assert!(give(&mut tracer, UNKNOWN, true).is_none());
    let executed = tracer.close();
    assert_eq!(executed.keys().collect::<Vec<_>>(), [Path::new(ONCE)]);
}

#[test]
fn programs_without_a_region_are_left_out() {
    let mut tracer = tracer();
    for module in [ONCE, TWICE] {
        assert!(give(&mut tracer, module, false).is_some());
    }
    tracer.gives_up(Path::new(TWICE));
    assert!(give(&mut tracer, TWICE, false).is_none());
    assert_eq!(tracer.close().keys().collect::<Vec<_>>(), [Path::new(ONCE)]);
}

#[test]
fn replaced_files_are_left_out() {
    let mut tracer = tracer();
    assert!(give(&mut tracer, ONCE, false).is_some());
    let other = FileIdentity::of(&std::fs::metadata(TWICE).unwrap());
    assert!(tracer.give(Path::new(ONCE), Some(other), false).is_none());
    assert!(tracer.close().is_empty());
}

#[test]
fn hits_are_read_and_failures_believed() {
    let mut tracer = tracer();
    give(&mut tracer, ONCE, false).unwrap();
    let region = tracer.regions[Path::new(ONCE)].as_ref().unwrap();
    let mut content = region.memory.content().unwrap().to_vec();
    content[HEAD + FUNCTIONS.len() * 8 + 1] = 1;
    region.memory.write_at(&content, 0).unwrap();
    let unwatched = if arch::HAS_GATES { &[16, 72][..] } else { &[] };
    let mut expected = [unwatched, &[64]].concat();
    expected.sort_unstable();
    assert_eq!(region.executed(), Some(expected));
    content[12] = 1;
    region.memory.write_at(&content, 0).unwrap();
    assert_eq!(region.executed(), None);
}
