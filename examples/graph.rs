//! A measurement: a program of 50,000 atoms, in milliseconds (the best of some rounds). The program
//! is made of generated assembler, compiled and linked by the real tools (`cc`); only our part is
//! timed:
//!
//! - from the records in the objects to the fingerprint, with the map and the binary's tables read
//!   before;
//! - all that `tasting-ld` does when the linker has ended: the same with the map's text, the
//!   binary's tables and digest, and the manifest's bytes;
//! - reading the manifest.
//!
//! `cargo run --release --example graph [ATOMS]`

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;
use std::time::{Duration, Instant};
use tasting::compile::attach;
use tasting::elf::Labels;
use tasting::elf::binary::Binary;
use tasting::fingerprint::walk::{self, Module, Start};
use tasting::link::arguments::LinkerJob;
use tasting::link::describe;
use tasting::link::early::{Early, Records};
use tasting::link::finished::Finished;
use tasting::link::graph::{self, Options};
use tasting::link::inputs::Groups;
use tasting::link::linked::Linked;
use tasting::link::map;
use tasting::link::map_source::MapSource;
use tasting::link::map_text::MapText;
use tasting::link::symbols::{Definitions, FinalSymbols, Names};
use tasting::model::{Level, Manifest};
use tasting::process::{Settings, sys};

/// Functions in one object.
const PER_OBJECT: usize = 500;
const ROUNDS: usize = 7;

fn main() {
    let atoms = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(50_000);
    let folder = std::env::temp_dir().join(format!("tasting-graph-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder for the program");
    build(&folder, atoms);
    let map = std::fs::read(folder.join("program.map")).expect("the linker's map");
    let settings = Settings { dir: None, ..Settings::default() };
    let job = LinkerJob { output: "program".into(), ..LinkerJob::default() };
    std::env::set_current_dir(&folder).expect("the program's folder");

    let mut best = [Duration::MAX; 3];
    for _ in 0..ROUNDS {
        best[2] = best[2].min(records_to_fingerprint(&settings, &map));
        let start = Instant::now();
        let bytes = map_to_manifest(&settings, &job);
        best[0] = best[0].min(start.elapsed());
        let start = Instant::now();
        let manifest = Manifest::decode(&bytes).expect("our own manifest");
        assert!(
            manifest.nodes.len() >= atoms && manifest.refusals.is_empty(),
            "{:?}",
            manifest.refusals
        );
        best[1] = best[1].min(start.elapsed());
    }
    let milliseconds = best.map(|time| time.as_secs_f64() * 1000.0);
    println!(
        "{atoms} atoms: records to fingerprint {:.1} ms; map and binary to manifest {:.1} ms; reading the manifest {:.1} ms",
        milliseconds[2], milliseconds[0], milliseconds[1]
    );
    std::fs::remove_dir_all(&folder).expect("the folder is ours");
}

/// All that is done for a link but running the linker.
fn map_to_manifest(settings: &Settings, job: &LinkerJob) -> Vec<u8> {
    let source = MapSource::Users("program.map".into(), None);
    let (map, early, files, content) =
        (MapText::new(&source, false), Early::default(), OnceLock::new(), OnceLock::new());
    map.end(true);
    let finished = Finished::new(&job.output, &content);
    std::thread::scope(|scope| {
        scope.spawn(|| finished.look());
        let linked = Linked::read(settings, &map, &files, (&early, Records::default()), &finished);
        describe::manifest(settings, job, &finished, linked, Options::default(), &early)
            .expect("a manifest")
    })
}

/// Reads the records, builds the graph, walks it.
fn records_to_fingerprint(settings: &Settings, map: &[u8]) -> Duration {
    let placement = map::parse(map).expect("a map");
    let bytes = sys::map(Path::new("program")).expect("the program");
    let binary = Binary::parse(&bytes).expect("a binary");
    let (early, options) = (Early::default(), Options::default());
    let start = Instant::now();
    let groups = Groups::new(&placement);
    let files = groups.open(&[], &early, settings).expect("the objects");
    let symbols = FinalSymbols::new(&binary);
    let mut inputs = groups.read(&files, &mut Default::default(), &symbols).expect("the records");
    let definitions = Definitions::collect(&mut inputs, Names::default());
    let manifest = graph::build(&inputs, &definitions, &placement, &binary, &symbols, &options)
        .expect("the graph");
    let fingerprint = walk::fingerprint(&[Module::Known(&manifest)], Start::Program);
    let time = start.elapsed();
    assert!(fingerprint.is_some());
    time
}

/// Writes, assembles and links the program: each function calls five others, reads a table and a
/// string.
fn build(folder: &Path, atoms: usize) {
    let objects = atoms.div_ceil(PER_OBJECT);
    let mut names = Vec::new();
    for object in 0..objects {
        let mut text = String::new();
        for index in object * PER_OBJECT..((object + 1) * PER_OBJECT).min(atoms) {
            let callee = |step: usize| (index * 7 + step * 7919 + 1) % atoms;
            writeln!(
                text,
                ".section .text.f{index},\"ax\",@progbits\n.globl f{index}\n.type f{index},@function\nf{index}:"
            )
            .ok();
            (0..5).for_each(|step| writeln!(text, " .quad f{}", callee(step)).unwrap_or_default());
            writeln!(text, " .byte {}, {}\n.size f{index}, .-f{index}", index % 251, index % 13)
                .ok();
        }
        let source = folder.join(format!("o{object}.s"));
        std::fs::write(&source, text).expect("a source file");
        run(Command::new("cc").current_dir(folder).args(["-c", &format!("o{object}.s")]));
        attach::attach(&folder.join(format!("o{object}.o")), Level::Code, Labels::Plain, None)
            .expect("a record");
        names.push(format!("o{object}.o"));
    }
    let link = ["-nostdlib", "-static", "-Wl,-e,f0", "-Wl,-Map=program.map", "-o", "program"];
    run(Command::new("cc").current_dir(folder).args(link).args(names));
}

fn run(command: &mut Command) {
    let status = command.status().expect("cc starts");
    assert!(status.success(), "{command:?}");
}
