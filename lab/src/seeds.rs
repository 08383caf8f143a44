//! Seeds for the readers: objects, archives, maps, binaries, manifests and entries of stores, of
//! programs that are made and built here, with each compiler and each linker.

use crate::bench::Bench;
use crate::dice::Dice;
use crate::fuzz::Seeds;
use crate::generate;
use crate::mutate::Change;
use crate::program::Packaging;
use crate::setup::{Compiler, Setup, Tools};
use object::read::elf::ElfFile64;
use object::{LittleEndian, Object, ObjectSection};
use std::fs;
use std::io;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// In front of the payload of everything that Tasting writes: magic, version, length, checksum.
const ENVELOPE: usize = 28;

const OPTIONS: [&str; 4] = [
    "-c -O2 'x y.c' -o x.o -MD -MF x.d -Wl,-Map=m -x c -DX=\"\\\"s\\\"\" @file",
    "-fuse-ld=lld\n--ld-path=x\n-B/x\n-Xclang\n-emit-llvm\n-flto\n-shared\nx.o\n-lm",
    "-o x -r --wrap=f --defsym=a=b -T s.ld -e main -z now -m elf_x86_64 --icf=all -Map m a.o -( -lc -)",
    "redis://user:word@host:6379/0|timeout=5 https://host/path file:///x s3://bucket?region=a",
];

/// Builds programs in `scratch` and collects what comes of it; and what once harmed a reader, from
/// `fixtures`.
pub fn make(tools: &Tools, scratch: &Path, fixtures: &Path, seed: u64) -> io::Result<Seeds> {
    let mut seeds = Seeds::new();
    let mut dice = Dice::new(seed, "seeds");
    for (number, linker) in ["bfd", "gold", "lld", "mold"].into_iter().enumerate() {
        for compiler in Compiler::ALL {
            let mut setup = Setup::new(&mut dice, "code", &[compiler]);
            (setup.linker, setup.compiler, setup.debug) = (linker, compiler, number == 0);
            let folder = scratch.join(format!("seeds-{linker}-{}", compiler.name()));
            build(tools, &mut dice, setup, &folder, &mut seeds)?;
            fs::remove_dir_all(&folder)?;
        }
    }
    seeds.entry("object".to_owned()).or_default().extend(bitcode(scratch)?);
    for text in OPTIONS {
        add(&mut seeds, "options", text.as_bytes().to_vec());
        add(&mut seeds, "remote", text.as_bytes().to_vec());
    }
    for (folder, readers) in [
        ("maps", &["map"][..]),
        ("damaged", &["object", "append", "archive", "binary", "name", "record", "manifest"]),
    ] {
        for file in fs::read_dir(fixtures.join(folder))? {
            let path = file?.path();
            let bytes = if path.is_file() { fs::read(path)? } else { continue };
            readers.iter().for_each(|reader| add(&mut seeds, reader, bytes.clone()));
        }
    }
    Ok(seeds)
}

fn add(seeds: &mut Seeds, reader: &str, bytes: Vec<u8>) {
    seeds.entry(reader.to_owned()).or_default().push(bytes);
}

/// What Clang writes for link-time optimisation, without a record; nothing where there is no Clang.
fn bitcode(scratch: &Path) -> io::Result<Option<Vec<u8>>> {
    let (source, object) = (scratch.join("bitcode.c"), scratch.join("bitcode.o"));
    fs::write(
        &source,
        "int far(int); int near; __attribute__((weak)) int here(void) { return far(near); }\n",
    )?;
    let made = Command::new("clang").args(["-flto", "-c", "-o"]).args([&object, &source]).status();
    if made.is_ok_and(|status| status.success()) { fs::read(object).map(Some) } else { Ok(None) }
}

fn build(
    tools: &Tools,
    dice: &mut Dice,
    setup: Setup,
    folder: &Path,
    seeds: &mut Seeds,
) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    let mut program = generate::small(dice);
    program.units.last_mut().expect("a program has units").place = Packaging::Archive;
    let Some((mut bench, built)) = Bench::new(tools, &program, setup, folder.to_owned())? else {
        return Ok(());
    };
    let map = Change::Link(vec!["-Wl,-Map=out/map".to_owned()]);
    if bench.build(&map)?.is_none() {
        return Ok(());
    }
    program.units.iter().for_each(|unit| add(seeds, "ast", unit.text().into_bytes()));
    let mut objects = Vec::new();
    for (_, object) in &built.objects {
        let bytes = fs::read(object)?;
        add_object(seeds, &bytes);
        objects.push(bytes);
    }
    let [binary, map] = [fs::read(folder.join("bin/prog"))?, fs::read(folder.join("out/map"))?];
    let files = [&binary, &map].into_iter().chain(&objects);
    let all = files
        .flat_map(|file| [&(file.len() as u32).to_le_bytes()[..], &file[..]].concat())
        .collect();
    add(seeds, "link", all);
    add(seeds, "archive", fs::read(folder.join("out/libmore.a"))?);
    add(seeds, "manifest", payload(fs::read(folder.join("bin/prog.tasting"))?));
    add(seeds, "binary", binary);
    add(seeds, "map", map);
    for test in program.tests.iter().take(2) {
        bench.tasting(&["run"], test, None, Duration::from_secs(20))?;
    }
    entries(&folder.join("store"), seeds)
}

fn add_object(seeds: &mut Seeds, bytes: &[u8]) {
    add(seeds, "object", bytes.to_vec());
    add(seeds, "append", bytes.to_vec());
    let Ok(file) = ElfFile64::<LittleEndian>::parse(bytes) else { return };
    let record = file.section_by_name(".tasting").and_then(|section| section.data().ok());
    record.into_iter().for_each(|record| add(seeds, "record", payload(record.to_vec())));
    for symbol in
        file.symbols().filter_map(|symbol| object::ObjectSymbol::name_bytes(&symbol).ok()).take(8)
    {
        add(seeds, "name", symbol.to_vec());
    }
}

fn payload(bytes: Vec<u8>) -> Vec<u8> {
    bytes.get(ENVELOPE..).map(<[u8]>::to_vec).unwrap_or_default()
}

/// What the store holds: outcomes, dependency sets and blobs.
fn entries(folder: &Path, seeds: &mut Seeds) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            entries(&path, seeds)?;
        } else if path
            .extension()
            .is_some_and(|ending| ending == "o" || ending == "b" || ending.len() == 2)
        {
            let bytes = fs::read(&path)?;
            add(seeds, "remote", payload(bytes.clone()));
            add(seeds, "entry", payload(bytes));
        }
    }
    Ok(())
}
