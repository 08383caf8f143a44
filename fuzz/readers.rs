//! Every reader of bytes from outside, each as a function that takes any bytes and must come back:
//! with a result or a reason, never by a panic. The fuzz targets feed them; `tests/it/damaged.rs`
//! feeds them all that ever went wrong.
//!
//! What each reader says of its own result is checked as well: what was written is read again as it
//! was.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use tasting::ast;
use tasting::compile;
use tasting::elf::append::Appended;
use tasting::elf::archive::{self, Content};
use tasting::elf::binary::Binary;
use tasting::elf::bitcode::Bitcode;
use tasting::elf::dynamic::DynamicSymbol;
use tasting::elf::object_file::ObjectFile;
use tasting::elf::{self, Labels, atoms, digest};
use tasting::fingerprint::components::global_hashes;
use tasting::fingerprint::walk::{self, Module, Start};
use tasting::link::graph::{self, Options};
use tasting::link::input::{Input, Read, SymbolAddresses};
use tasting::link::inputs::Groups;
use tasting::link::symbols::{Definitions, FinalSymbols, Names};
use tasting::link::{self, map, matching};
use tasting::model::{
    DependencySet, Hash, Level, Manifest, Outcome, PlacedSection, Placement, Record, Trace,
};
use tasting::process::response;
use tasting::report::demangle::demangle;
use tasting::report::shown::Shown;
use tasting::report::{json, text};
use tasting::store::entry::{self, BLOB, DEPENDENCY_SET, OUTCOME};
use tasting::store::remote::location::{Attributes, Location};
use tasting::store::remote::value::Keys;
use tasting::store::remote::{Name, archive as archive_of_values, outcome_safety, resp};
use xxhash_rust::xxh3::xxh3_64;

/// A reader, by the name of its fuzz target.
pub type Reader = (&'static str, fn(&[u8]));

/// All of them.
pub const ALL: [Reader; 13] = [
    ("ast", ast),
    ("object", object),
    ("append", append),
    ("archive", archive),
    ("map", map),
    ("record", record),
    ("manifest", manifest),
    ("binary", binary),
    ("link", link),
    ("options", options),
    ("name", name),
    ("remote", remote),
    ("entry", entry),
];

/// An object becomes a record, which survives its own format.
pub fn object(bytes: &[u8]) {
    if let Ok(bitcode) = Bitcode::parse(bytes) {
        let _ = bitcode.symbols();
    }
    let Ok(record) = elf::record_of(bytes) else { return };
    let encoded = record.encode().expect("a record can be encoded");
    assert_eq!(
        Record::find(&encoded, record.digest).as_ref(),
        Ok(&record),
        "a record that does not come back"
    );
    show(&Shown::object("x.o".to_owned(), &record));
}

/// An object gets its record, and is the same object as before.
pub fn append(bytes: &[u8]) {
    for (level, labels) in
        [(Level::Code, Labels::Plain), (Level::File, Labels::Plain), (Level::Code, Labels::Kept)]
    {
        let Ok(Some(with_record)) = elf::with_record(bytes, level, labels) else { continue };
        let Appended { head, tail } = with_record.record;
        let content = with_record.object.as_deref().unwrap_or(bytes);
        let whole = [&head[..], &content[head.len()..], &tail].concat();
        let object = ObjectFile::parse(bytes).expect("it was read before");
        let mut expected = atoms::record(&object, level, labels == Labels::Kept)
            .expect("its record was made before");
        expected.digest =
            digest::of_object(&ObjectFile::parse(content).expect("a tidied object is one"));
        assert_eq!(
            elf::record_of(&whole),
            Ok(expected),
            "the record that is carried is not the one that was added"
        );
    }
}

/// An archive, and the objects in it.
pub fn archive(bytes: &[u8]) {
    for member in archive::members(bytes).unwrap_or_default() {
        if let Content::Here(bytes) = member.content {
            let _ = elf::record_of(bytes);
        }
    }
}

/// A linker's map: what it names lies within it.
pub fn map(bytes: &[u8]) {
    let Ok(placement) = map::parse(bytes) else { return };
    for PlacedSection { output, name, file, member, .. } in &placement.sections {
        for part in [output, name, file, member.as_ref().unwrap_or(name)] {
            assert!(part.len() <= bytes.len());
        }
    }
    Groups::new(&placement);
}

/// A record, raw and with the envelope that makes the payload count.
pub fn record(bytes: &[u8]) {
    let _ = Record::find(bytes, Hash::default());
    let Some(digest) = bytes.first_chunk() else { return };
    let template = Record::default().encode().expect("a record can be encoded");
    let sealed = sealed(&template, bytes);
    let Ok(record) = Record::find(&sealed, Hash(*digest)) else { return };
    let encoded = record.encode().expect("a record can be encoded");
    assert_eq!(
        Record::find(&encoded, record.digest).as_ref(),
        Ok(&record),
        "a record that does not come back"
    );
    assert_eq!(
        record.atoms_with_references().map(|(_, list)| list.len()).sum::<usize>(),
        record.references.len()
    );
    show(&Shown::object("x.o".to_owned(), &record));
    let line = PlacedSection {
        output: b".text",
        name: b".text",
        address: 4096,
        size: 16,
        file: b"x.o",
        member: None,
    };
    let lines = [line, PlacedSection { address: 8192, ..line }];
    let _ = matching::place(vec![input(record.clone())], &lines, &Nowhere);
    let _ = matching::place(vec![input(record.clone()), input(record)], &lines, &Nowhere);
}

fn input(record: Record<'_>) -> Input<'_> {
    Input::new("x.o".to_owned(), Read::new((record, false)), None)
}

/// Symbols of a binary that puts all of them at one place.
struct Nowhere;

impl SymbolAddresses for Nowhere {
    fn address(&self, _: Hash) -> Option<u64> {
        Some(4096)
    }
}

/// A manifest, raw and with the envelope that makes the payload count.
pub fn manifest(bytes: &[u8]) {
    let _ = Manifest::decode(bytes);
    let template = Manifest::default().encode().expect("a manifest can be encoded");
    let sealed = sealed(&template, bytes);
    let Ok(manifest) = Manifest::decode(&sealed) else { return };
    use_manifest(&manifest);
    show(&Shown::binary("x".to_owned(), &manifest));
}

/// A linked binary.
pub fn binary(bytes: &[u8]) {
    let Ok(binary) = Binary::parse(bytes) else { return };
    binary.loaded_digest();
    binary.behaviour_digest();
    binary.is_shared_library();
    binary.section_at(binary.entry);
    FinalSymbols::new(&binary);
    graph::frame(&binary, &Options::default());
}

/// A whole link: the binary, the map, then the objects in the order in which the map first names
/// them, each led by its length in four bytes.
pub fn link(bytes: &[u8]) {
    let mut files = Vec::new();
    let mut rest = bytes;
    while let Some((length, behind)) = rest.split_first_chunk() {
        let Some((file, next)) = behind.split_at_checked(u32::from_le_bytes(*length) as usize)
        else {
            return;
        };
        files.push(file);
        rest = next;
    }
    let [binary, map, objects @ ..] = &files[..] else { return };
    let (Ok(binary), Ok(placement)) = (Binary::parse(binary), map::parse(map)) else { return };
    let symbols = FinalSymbols::new(&binary);
    let Some(mut inputs) = placed(objects, &placement, &symbols) else { return };
    let definitions = Definitions::collect(&mut inputs, Names::default());
    let options = Options::default();
    let Ok(manifest) = graph::build(&inputs, &definitions, &placement, &binary, &symbols, &options)
    else {
        return;
    };
    let encoded = manifest.encode().expect("a manifest can be encoded");
    assert_eq!(
        Manifest::decode(&encoded).as_ref(),
        Ok(&manifest),
        "a manifest that does not come back"
    );
    use_manifest(&manifest);
}

/// The objects of a link with their addresses.
fn placed<'a>(
    objects: &[&'a [u8]],
    placement: &Placement,
    symbols: &FinalSymbols,
) -> Option<Vec<Input<'a>>> {
    let mut names: Vec<(&[u8], Option<&[u8]>)> = Vec::new();
    for section in placement.sections.iter().filter(|section| !section.file.starts_with(b"<")) {
        let name = (section.file, section.member);
        if names.len() <= objects.len() && !names.contains(&name) {
            names.push(name);
        }
    }
    let mut inputs = Vec::new();
    for (name, object) in names.into_iter().zip(objects) {
        let sections: Vec<PlacedSection> = placement
            .sections
            .iter()
            .filter(|section| (section.file, section.member) == name)
            .copied()
            .collect();
        inputs.extend(
            matching::place(vec![input(elf::record_of(object).ok()?)], &sections, symbols).ok()?,
        );
    }
    Some(inputs)
}

/// The words of a response file, and what the two shims make of them.
pub fn options(bytes: &[u8]) {
    let words = response::words(bytes);
    assert_eq!(response::words(&quoted(&words)), words, "quoted words that do not come back");
    compile::arguments::parse(&words, Path::new("/b"));
    link::arguments::parse(&words, Path::new("/b"));
    let lines: Vec<OsString> =
        bytes.split(|&byte| byte == b'\n').map(|line| OsStr::from_bytes(line).into()).collect();
    compile::arguments::parse(&lines, Path::new("/b/CMakeFiles"));
    link::arguments::parse(&lines, Path::new("/b/CMakeFiles"));
}

/// A preprocessed unit of C. A comment before it changes nothing but positions, reading it twice is
/// the same, and without the declarations that it could do without it means the same.
pub fn ast(bytes: &[u8]) {
    let Ok(unit) = ast::read(bytes) else { return };
    assert_eq!(ast::read(bytes).as_ref(), Ok(&unit), "another result the second time");
    let commented = [&b"/* comment */"[..], bytes].concat();
    let commented = ast::read(&commented).expect("a comment hinders nobody");
    assert_eq!(commented.meaning, unit.meaning, "a comment with a meaning");
    let prototypes =
        ast::read_with_prototypes(bytes).expect("it was read before").removable_prototypes;
    let mut without = bytes.to_vec();
    for place in prototypes.into_iter().map(|prototype| prototype.place) {
        without[place].iter_mut().filter(|byte| **byte != b'\n').for_each(|byte| *byte = b' ');
    }
    let without = ast::read(&without).expect("the unit can do without them");
    assert_eq!(without.meaning, unit.meaning, "a removable prototype with a meaning");
}

/// The name of a symbol, for people.
pub fn name(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let readable = demangle(&text);
    assert!(
        readable.len() <= text.len().max(1 << 16),
        "{} bytes for {}",
        readable.len(),
        text.len()
    );
}

/// What a remote store may answer with: a value, a reply of Redis, an archive; and the text that
/// names the store.
pub fn remote(bytes: &[u8]) {
    let keys = Keys::new(&Attributes::default(), &[]);
    let hash = Hash::default();
    let template = keys
        .dependency_sets(Name::dependency_sets(hash), &[])
        .expect("an empty list can be encoded");
    for value in [bytes, &sealed(&template, bytes)] {
        let _ = keys.read_dependency_sets(Name::dependency_sets(hash), value);
        let _ = keys.read_outcome(Name::outcome(hash), value);
    }
    let _ = DependencySet::from_bytes(bytes);
    if let Ok(outcome) = Outcome::from_bytes(bytes) {
        outcome_safety::of(&outcome);
        let bytes = keys.outcome(Name::outcome(hash), &outcome).expect("an outcome can be encoded");
        assert_eq!(
            keys.read_outcome(Name::outcome(hash), &bytes).as_ref(),
            Ok(&outcome),
            "an outcome that does not come back"
        );
    }
    let _ = resp::reply(&mut &bytes[..], 1 << 10);
    archive_of_values::values(bytes);
    let _ = Location::parse(&String::from_utf8_lossy(bytes));
}

/// A file of the store: an outcome, a dependency set or a blob, raw and with the envelope that
/// makes the payload count. The payload says which name it belongs to.
pub fn entry(bytes: &[u8]) {
    let name = bytes.first_chunk().map_or(Hash::default(), |name| Hash(*name));
    for format in [&OUTCOME, &DEPENDENCY_SET, &BLOB] {
        let _ = entry::decode(format, name, bytes);
        let template = entry::encode(format, name, b"").expect("nothing can be encoded");
        let Ok(raw) = entry::decode(format, name, &sealed(&template, bytes)) else { continue };
        let again = entry::encode(format, name, &raw).expect("what was read can be encoded");
        assert_eq!(
            entry::decode(format, name, &again).as_ref(),
            Ok(&raw),
            "an entry that does not come back"
        );
        let _ = Outcome::from_bytes(&raw);
        let _ = DependencySet::from_bytes(&raw);
        let _ = Trace::from_bytes(&raw);
        let _ = Manifest::decode(&raw);
    }
}

fn quoted(words: &[OsString]) -> Vec<u8> {
    let mut text = Vec::new();
    for word in words {
        text.push(b'\'');
        text.extend(word.clone().into_vec().into_iter().flat_map(|byte| [b'\\', byte]));
        text.extend(b"'\n");
    }
    text
}

/// The payload in an envelope of the same kind as `template`: magic and version, length, checksum.
fn sealed(template: &[u8], payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u64).to_le_bytes();
    [&template[..12], &length, &xxh3_64(payload).to_le_bytes(), payload].concat()
}

/// What is done with a manifest that was read.
fn use_manifest(manifest: &Manifest) {
    let symbols =
        [&b"main"[..], b"x"].map(|name| DynamicSymbol { name, ..DynamicSymbol::default() });
    let foreign =
        Module::Foreign { content: Hash::default(), symbols: &symbols, finds_by_name: false };
    let modules = [Module::Known(manifest), foreign, Module::Known(manifest)];
    for start in [Start::Program, Start::Entry("main")] {
        walk::fingerprint(&modules, start);
    }
    assert_eq!(global_hashes(manifest).len(), manifest.nodes.len());
}

fn show(shown: &Shown) {
    let mut out = Vec::new();
    json::write(&mut out, shown).expect("memory can be written");
    text::write(&mut out, shown, true).expect("memory can be written");
}
