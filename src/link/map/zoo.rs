//! A program made to be awkward, and what the linkers of this machine make of it: in comes the name
//! of a linker, out come its map and its binary. The fixtures are such maps.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

use tempfile::TempDir;

use super::parse;
use crate::model::PlacedSection;

const MAIN: &str = r#"
int common_a; char common_b[100];
__thread int tls_init = 3; __thread int tls_zero;
int data_object_whose_name_does_not_fit = 42;
int function_whose_name_does_not_fit(int x) { return x * 3 + 1; }
__attribute__((section("my_set"))) int set_one = 6;
extern int __start_my_set[] __attribute__((visibility("hidden")));
__asm__(".pushsection \"my sec\",\"aw\"\n.globl odd_section\n.type odd_section,@object\n.size odd_section,4\n"
        "odd_section: .long 5\n.popsection");
__asm__(".pushsection \".text.par(en):x\",\"ax\"\n.globl paren\n.type paren,@function\n"
        "paren: mov %edi,%eax\nret\n.size paren,.-paren\n.popsection");
extern int odd_section, paren(int), helper(int), twin1(int), twin2(int), odd(int), dup_a(void), dup_b(void);
static const char *const words[] = {"alpha", "beta", "gamma suffix"};
const char *volatile word;
int unused_function(int x) { return x * 77; }
__attribute__((constructor)) void starter(void) { common_a = 1; }
int main(int c, char **v) {
  word = words[c % 3]; word = "suffix"; common_b[c] = 1; tls_zero += tls_init + set_one;
  return helper(c) + twin1(c) + twin2(c) + odd(c) + dup_a() + dup_b() + __start_my_set[0] + tls_zero + odd_section
    + paren(c) + function_whose_name_does_not_fit(data_object_whose_name_does_not_fit);
}
"#;
const HELPER: &str = r#"
int common_a; char common_b[200]; int zero_data[10]; static int counters[8];
int twin1(int x) { for (int i = 0; i < x; i++) common_a += i * x; return common_a + x * x + 5; }
const char *msg(void) { return "gamma suffix"; }
int helper(int x) { return x + msg()[x] + zero_data[x & 7]++ + counters[x & 7]++; }
"#;
const TWIN: &str = r#"
extern int common_a;
int twin2(int x) { for (int i = 0; i < x; i++) common_a += i * x; return common_a + x * x + 5; }
double unused_pi(double d) { return d * 3.14159; }
"#;
const BARE: &str = r#"
int common_z, data_q = 4; const int ro_q = 5; static int bss_q[4];
__attribute__((section(".vectors"))) const void *const vec[2] = {&data_q, &ro_q};
__attribute__((section(".vectors_long_name"))) const int veclong = 9;
int unused(int x) { return x + 1; }
void _start(void) { data_q = common_z + bss_q[data_q]; for (;;); }
"#;
const SCRIPT: &str = r#"
ENTRY(_start)
MEMORY { rom (rx) : ORIGIN = 0, LENGTH = 64K  ram (rwx) : ORIGIN = 0x100000, LENGTH = 64K }
SECTIONS {
  .vectors : { BYTE(0x11) LONG(0x1234 + 1) KEEP(*(.vectors_long_name)) LONG(0x77) KEEP(*(.vectors)) } > rom
  .text : { *(.text) LONG(0x55) . = ALIGN(16); *(SORT_BY_NAME(.text.*)) etext = .; PROVIDE(ex = .); } > rom =0x90
  an_output_name_that_does_not_fit : { *(.rodata*) } > rom
  .data : { d_start = .; *(.data*) QUAD(etext) FILL(0xdead) . = . + 0x10; } > ram AT> rom
  .bss : { *(.bss*) *(COMMON) } > ram
  .none 0x200000 : { *(.none) }
  /DISCARD/ : { *(.eh_frame) *(.note*) }
  ASSERT(etext > 0, "no text")
}
"#;
const CXX: &str = r#"
#include <stdexcept>
#include <string>
template <class T> T raise(T x) { if (x > 5) throw std::runtime_error("big"); return x + 1; }
struct V { virtual int f(int) { return 1; } virtual ~V() {} };
struct W : V { int f(int x) override { return x; } };
int main(int c, char **v) {
  try { V *p = new W; return raise(p->f(c)) + raise((long)c) + std::to_string(c).size(); }
  catch (std::exception &e) { return 3; }
}
"#;

/// Where the objects of the program lie: in a folder with spaces and parentheses, in an archive
/// with two members of one name, in a thin archive.
const SOURCES: [(&str, &str); 8] = [
    ("main.o", MAIN),
    ("odd dir (x)/odd obj (1).o", "int odd(int x) { return x - 1; }"),
    ("d1/dup.o", "int dup_a(void) { return 11; }"),
    ("d2/dup.o", "int dup_b(void) { return 22; }"),
    ("unused.o", "int nobody(void) { return 33; }"),
    ("sub/helper.o", HELPER),
    ("sub/twin.o", TWIN),
    ("bare.o", BARE),
];
pub(super) const INPUTS: [&str; 4] =
    ["./main.o", "odd dir (x)/odd obj (1).o", "odd dir (x)/lib d(u)p.a", "sub/libthin.a"];
const BARE_LINK: [&str; 4] = ["-nostdlib", "-static", "-no-pie", "-Wl,--build-id=none"];

/// One line for each section of the users' own objects and for the linker's; what comes from `/usr`
/// is left out.
pub(super) fn render(map: &[u8]) -> Vec<String> {
    let placement = parse(map).expect("a whole map");
    let own = placement.sections.iter().filter(|section| !section.file.starts_with(b"/usr/"));
    own.map(|section| {
        let PlacedSection { output, name, address, size, file, member } = *section;
        let text = |bytes: &[u8]| bytes.escape_ascii().to_string();
        let member = member.map(|member| format!(" [{}]", text(member))).unwrap_or_default();
        format!("{} {} {address:#x} {size:#x} {}{member}", text(output), text(name), text(file))
    })
    .collect()
}

pub(super) fn run(directory: &Path, program: &str, arguments: &[&str]) -> Result<(), String> {
    let output =
        Command::new(program).args(arguments).current_dir(directory).env("LC_ALL", "C").output();
    let output = output.map_err(|error| format!("{program}: {error}"))?;
    if output.status.success() {
        Ok(())
    } else {
        Err(String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

/// The folder with the compiled objects, made once.
pub(super) fn zoo() -> &'static Path {
    static ZOO: OnceLock<TempDir> = OnceLock::new();
    let made = ZOO.get_or_init(|| {
        let directory = TempDir::new().expect("a temporary folder");
        build(directory.path());
        directory
    });
    made.path()
}

fn build(root: &Path) {
    let flags = [
        "-O1",
        "-ffunction-sections",
        "-fdata-sections",
        "-fcommon",
        "-fPIC",
        "-fno-inline",
        "-fno-ipa-icf",
    ];
    for (object, source) in SOURCES {
        fs::create_dir_all(root.join(object).parent().unwrap()).unwrap();
        let source_path = object.replace(".o", ".c");
        fs::write(root.join(&source_path), source).unwrap();
        let model: &[&str] =
            if object == "bare.o" { &["-g", "-fno-pic"] } else { &["-ftls-model=initial-exec"] };
        run(root, "gcc", &[&flags, model, &["-c", &source_path, "-o", object]].concat()).unwrap();
    }
    run(root, "ar", &["qc", "odd dir (x)/lib d(u)p.a", "d1/dup.o", "d2/dup.o", "unused.o"])
        .unwrap();
    run(root, "ar", &["qcT", "sub/libthin.a", "sub/helper.o", "sub/twin.o"]).unwrap();
    fs::write(root.join("bare.ld"), SCRIPT).unwrap();
    fs::write(root.join("cxx.cc"), CXX).unwrap();
    run(root, "g++", &["-O0", "-g", "-ffunction-sections", "-fdata-sections", "-c", "cxx.cc"])
        .unwrap();
}

/// Links as `gcc` or `g++` does and returns the map and the binary.
pub(super) fn link(
    root: &Path,
    driver: &str,
    linker: &str,
    name: &str,
    arguments: &[&str],
) -> (Vec<u8>, Vec<u8>) {
    let (map, binary) = (format!("{name}-{linker}.map"), format!("{name}-{linker}"));
    let (map_flag, linker_flag) = (format!("-Wl,-Map={map}"), format!("-fuse-ld={linker}"));
    run(root, driver, &[&[&linker_flag, &map_flag, "-o", &binary], arguments].concat()).unwrap();
    (fs::read(root.join(map)).unwrap(), fs::read(root.join(binary)).unwrap())
}

pub(super) fn link_script(root: &Path, linker: &str) -> (Vec<u8>, Vec<u8>) {
    let flags = ["-Wl,--cref", "-T", "bare.ld", "bare.o"];
    link(root, "gcc", linker, "script", &[&BARE_LINK[..], &flags].concat())
}

pub(super) fn link_zoo(root: &Path, linker: &str) -> (Vec<u8>, Vec<u8>) {
    let icf = if linker == "bfd" {
        "-Wl,-e,main,--gc-sections"
    } else {
        "-Wl,-e,main,--gc-sections,--icf=all"
    };
    link(root, "gcc", linker, "zoo", &[&BARE_LINK[..], &[icf], &INPUTS].concat())
}

/// Writes `fixtures/maps` anew: `cargo test --lib link::map -- --ignored`. What the tests expect
/// has to follow.
#[test]
#[ignore = "changes the fixtures"]
fn write_fixtures() {
    let root = zoo();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/maps");
    for linker in ["bfd", "gold", "lld", "mold"] {
        fs::write(folder.join(format!("zoo-{linker}.map")), link_zoo(root, linker).0).unwrap();
        if linker != "mold" {
            fs::write(folder.join(format!("script-{linker}.map")), link_script(root, linker).0)
                .unwrap();
        }
    }
}
