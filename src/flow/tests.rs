mod layout;

use super::*;
use std::process::Command;

const OPTIMISATIONS: [&str; 4] = ["-O0", "-O2", "-O3", "-Os"];

const C: &str = "
#include <setjmp.h>
#include <stdlib.h>
jmp_buf place;
int g(int);
void h(void);
int choice(int x) {
    switch (x) {
    case 0: return g(1); case 1: return g(7); case 2: h(); return 3; case 3: return g(9);
    case 4: h(); h(); return 1; case 5: return g(55); default: return -1;
    }
}
int loop(const char *s) {
    int n = 0;
    while (*s) switch (*s++) {
    case 'a': n += g(1); break; case 'b': n *= 3; break; case 'c': n -= g(n); break;
    case 'd': n ^= 5; break; case 'e': h(); break; case 'f': n = g(n) * 7; break; default: n++;
    }
    return n;
}
int twice(void) { if (setjmp(place)) return 1; return g(2); }
int computed(int i) {
    static const void *const t[] = { &&a, &&b, &&c };
    goto *t[i];
    a: return g(1); b: g(2); c: return g(3);
}
int distances(int i) {
    static const int t[] = { &&a - &&a, &&b - &&a, &&c - &&a };
    goto *(&&a + t[i]);
    a: return g(1); b: g(2); c: return g(3);
}
int ends(int x) { if (x < 0) abort(); return x; }
static int rec(int n) { return n < 2 ? n : rec(n - 1) + rec(n - 2); }
int (*pointer)(int) = rec;
int tail(int (*f)(int), int x) { return f(x); }
";

const CXX: &str = "
struct S { int value; S(int); ~S(); };
struct E { int code; };
int g(int);
int caught(int x) {
    S s(x);
    try { return g(x); }
    catch (const E &error) { return error.code; }
    catch (int number) { return number; }
    catch (...) { g(0); throw; }
}
int plain(int x) { return g(x) + 1; }
";

/// Compiles, or assembles, a text; `None` if there is no such compiler.
fn compiled(compiler: &str, language: &str, options: &[&str], text: &str) -> Option<Vec<u8>> {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let (input, output) = (folder.path().join("text"), folder.path().join("text.o"));
    std::fs::write(&input, text).expect("a file can be written");
    let always = ["-c", "-ffunction-sections", "-fdata-sections", "-w", "-x", language];
    let mut command = Command::new(compiler);
    let status =
        command.args(always).args(options).arg(&input).arg("-o").arg(&output).status().ok()?;
    assert!(status.success(), "{compiler} {options:?} does not take:\n{text}");
    std::fs::read(&output).ok()
}

fn assembled(text: &str) -> Vec<u8> {
    compiled("gcc", "assembler", &[], text).expect("gcc is there")
}

fn flow_in(object: &[u8], section: &str) -> Result<Flow, String> {
    let object = ObjectFile::parse(object).expect("it is an object");
    let number =
        object.sections.iter().position(|it| it.name == section).expect("the section is there");
    Flows::new(&object).of_function(number).map_err(|refusal| refusal.reason.into_owned())
}

fn flow(object: &[u8], function: &str) -> Flow {
    flow_in(object, &format!(".text.{function}"))
        .unwrap_or_else(|reason| panic!("{function}: {reason}"))
}

fn whole_hash(flow: &Flow) -> Hash {
    canonical::hash(flow, &vec![true; flow.blocks.len()])
}

/// What has to be true of every graph.
fn check(flow: &Flow, size: u64) {
    let ranges: Vec<_> = flow.blocks.iter().map(|block| block.range.clone()).collect();
    assert_eq!(ranges[0].start, 0);
    assert!(ranges.iter().all(|range| range.start <= range.end && u64::from(range.end) <= size));
    assert!(ranges.windows(2).all(|pair| pair[0].end <= pair[1].start), "{ranges:?}");
    let count = flow.blocks.len() as u32;
    let exits = flow.blocks.iter().flat_map(|block| &block.exits);
    exits.for_each(|exit| {
        assert!(matches!(exit, Exit::Outside) || matches!(exit, Exit::Block(to) if *to < count))
    });
    assert!(flow.blocks.iter().all(|block| !block.exits.is_empty()));
}

/// Calls `check` with every object that the compilers here make of a text.
fn with_every_compiler(
    compilers: [&str; 2],
    language: &str,
    text: &str,
    mut check: impl FnMut(&[u8], &str),
) {
    let mut tried = 0;
    for compiler in compilers {
        for optimisation in OPTIMISATIONS {
            for position in ["-fPIE", "-fno-pie"] {
                if let Some(object) = compiled(compiler, language, &[optimisation, position], text)
                {
                    check(&object, &format!("{compiler} {optimisation} {position}"));
                    tried += 1;
                }
            }
        }
    }
    assert!(tried >= OPTIMISATIONS.len(), "gcc is there");
}

#[test]
fn real_c_functions_are_understood_or_refused() {
    with_every_compiler(["gcc", "clang"], "c", C, |bytes, how| {
        let object = ObjectFile::parse(bytes).unwrap();
        let flows = Flows::new(&object);
        for (number, section) in
            object.sections.iter().enumerate().filter(|(_, it)| it.is_code() && it.size > 0)
        {
            let expected = match section.name {
                ".text.twice" => Some("it calls a function that returns twice"),
                ".text.computed" => Some("it has a computed goto"),
                ".text.distances" => Some("it takes an address inside itself"),
                _ => None,
            };
            match flows.of_function(number) {
                Ok(flow) => check(&flow, section.size),
                Err(refusal) => {
                    assert_eq!(Some(&*refusal.reason), expected, "{how}: {}", section.name)
                }
            }
        }
    });
}

#[test]
fn a_jump_table_leads_to_each_case() {
    with_every_compiler(["gcc", "clang"], "c", C, |bytes, how| {
        for function in ["choice", "loop"] {
            let flow = flow(bytes, function);
            let most = flow.blocks.iter().map(|block| block.exits.len()).max().unwrap_or_default();
            assert_eq!(most, 7, "{how}: six cases of {function}, and the way out");
        }
    });
}

#[test]
fn landing_pads_are_exits() {
    with_every_compiler(["g++", "clang++"], "c++", CXX, |bytes, how| {
        let object = ObjectFile::parse(bytes).unwrap();
        let flows = Flows::new(&object);
        let handled: usize = object
            .sections
            .iter()
            .enumerate()
            .filter(|(_, section)| section.name.contains("caught"))
            .filter(|(_, section)| section.is_code() && section.size > 0)
            .map(|(number, section)| {
                // Behind a call that does not return, clang jumps to the end of the function.
                let may_refuse = |reason: &str| {
                    how.starts_with("clang++ -O0") && reason == "a jump leads past its end"
                };
                match flows.of_function(number) {
                    Ok(flow) => {
                        check(&flow, section.size);
                        // A block with calls and one way on has further exits for what these throw.
                        flow.blocks.iter().filter(|block| block.exits.len() > 1).count()
                    }
                    Err(refusal) if may_refuse(&refusal.reason) => 2,
                    Err(refusal) => panic!("{how}: {refusal}"),
                }
            })
            .sum();
        assert!(handled >= 2, "{how}: {handled}");
        assert_eq!(flow(bytes, "_Z5plaini").blocks.len(), 1);
    });
}

#[test]
fn another_caught_type_is_another_block() {
    let other = CXX.replace("catch (int number)", "catch (long number)");
    for optimisation in OPTIMISATIONS {
        let hashes = [CXX, &other].map(|text| {
            let object = compiled("g++", "c++", &[optimisation], text).expect("g++ is there");
            let parsed = ObjectFile::parse(&object).unwrap();
            let flows = Flows::new(&parsed);
            let parts = parsed
                .sections
                .iter()
                .enumerate()
                .filter(|(_, it)| it.is_code() && it.name.contains("caught"));
            parts
                .map(|(number, _)| whole_hash(&flows.of_function(number).unwrap()))
                .collect::<Vec<_>>()
        });
        assert_ne!(hashes[0], hashes[1], "{optimisation}");
    }
}

#[test]
fn a_changed_branch_changes_one_block() {
    let source = |text: &str| {
        format!(
            "int g(int);\nint f(int x) {{ if (x == 7) {{ g({text}); }} else {{ g(x); g(3); }} return x; }}"
        )
    };
    with_every_compiler(["gcc", "clang"], "c", &source("11"), |before, how| {
        let options: Vec<&str> = how.split(' ').collect();
        let now = compiled(options[0], "c", &options[1..], &source("12345"))
            .expect("it has just been there");
        let contents = |object: &[u8]| {
            flow(object, "f").blocks.iter().map(canonical::content).collect::<Vec<_>>()
        };
        let (before, now) = (contents(before), contents(&now));
        assert_eq!(before.len(), now.len(), "{how}");
        let different = before.iter().zip(&now).filter(|(before, now)| before != now).count();
        assert_eq!(different, 1, "{how}");
    });
}

const DIAMOND: &str = "
    cmpl $1, %edi
    je 1f
    call other
    jmp 2f
1:  call one
2:  ret
";

fn function(body: &str) -> String {
    format!(
        ".section .text.f,\"ax\",@progbits\n.globl f\n.type f,@function\nf:\n{body}\n.size f,.-f\n"
    )
}

fn hash_of(body: &str) -> Hash {
    whole_hash(&flow(&assembled(&function(body)), "f"))
}

#[test]
fn layout_padding_and_encoding_do_not_count() {
    let plain = hash_of(DIAMOND);
    let long = DIAMOND.replace("je 1f", "{disp32} je 1f").replace("jmp 2f", "{disp32} jmp 2f");
    assert_eq!(plain, hash_of(&long));
    assert_eq!(plain, hash_of(&DIAMOND.replace("2:  ret", ".p2align 5\n2: ret")));
    let turned = "cmpl $1, %edi\njne 1f\ncall one\njmp 2f\n1: call other\n2: ret";
    assert_eq!(plain, hash_of(turned));
    let behind = "cmpl $1, %edi\nje 1f\ncall other\n2: ret\n.p2align 4\n1: call one\njmp 2b";
    assert_eq!(plain, hash_of(behind));
}

#[test]
fn instructions_count() {
    let plain = hash_of(DIAMOND);
    for (from, to) in [
        ("$1", "$2"),
        ("je", "jb"),
        ("call one", "call another"),
        ("call other\n", ""),
        ("je", "jne"),
    ] {
        assert_ne!(plain, hash_of(&DIAMOND.replacen(from, to, 1)), "{from} -> {to}");
    }
    let swapped = DIAMOND.replace("one", "third").replace("other", "one").replace("third", "other");
    assert_ne!(plain, hash_of(&swapped));
}

#[test]
fn copies_of_a_block_count_once() {
    let once = "cmpl $1, %edi\nje 1f\ncall other\njmp 2f\n1: call one\n2: ret";
    let copied = "cmpl $1, %edi\nje 1f\ncall other\njmp 2f\n1: call one\njmp 3f\n2: ret\n3: ret";
    assert_eq!(hash_of(once), hash_of(copied));
}

#[test]
fn excluded_blocks_are_only_numbered() {
    let of = |body: &str, counts: [bool; 4]| {
        canonical::hash(&flow(&assembled(&function(body)), "f"), &counts)
    };
    let other = DIAMOND.replace("call other", "call something\nmovl $3, %eax");
    let without = [true, false, true, true];
    assert_eq!(of(DIAMOND, without), of(&other, without));
    assert_ne!(of(DIAMOND, [true; 4]), of(&other, [true; 4]));
    // Which of the ways was taken is not forgotten.
    assert_ne!(of(DIAMOND, without), of(DIAMOND, [true, true, false, true]));
    // A way to one that does not count is not a way to another one.
    assert_ne!(of(DIAMOND, without), of(&DIAMOND.replace("je 1f", "jne 1f"), without));
}

#[test]
fn jump_table_entries_count_by_block() {
    let body = |entries: &str| {
        let table =
            entries.split(' ').map(|label| format!(".long {label}-.Lt\n")).collect::<String>();
        let code = "lea .Lt(%rip), %rdx\nmovslq (%rdx,%rdi,4), %rax\nadd %rdx, %rax\njmp *%rax\n.La: call one\nret\n.Lb: call two\nret\n";
        function(code) + ".section .rodata.f,\"a\",@progbits\n.p2align 2\n.Lt:\n" + &table
    };
    let hash = |entries: &str| whole_hash(&flow(&assembled(&body(entries)), "f"));
    assert_ne!(hash(".La .Lb .La"), hash(".La .Lb .Lb"));
    assert_ne!(hash(".La .Lb"), hash(".La .Lb .Lb"));
    assert_eq!(flow(&assembled(&body(".La .Lb .La")), "f").blocks.len(), 3);
}

#[test]
fn unknown_code_is_refused() {
    let cases = [
        ("xorl %eax, %eax", "it leads past its end"),
        ("jmp 1f\nmovl $1, %eax\n1: ret", "nothing leads to a part of it"),
        ("je 1f+1\n1: movl $1, %eax\nret", "its instructions overlap"),
        ("lea 1f(%rip), %rax\n1: jmp *%rax", "it takes an address inside itself"),
        ("call 1f\n1: ret", "it calls a place inside itself"),
        ("xbegin 1f\n1: ret", "it has transactions"),
        ("ret\ng: ret", "something inside it has a name"),
        (".byte 0x06", "an instruction is not known"),
    ];
    for (body, reason) in cases {
        let refused = flow_in(&assembled(&function(body)), ".text.f").expect_err(body);
        assert_eq!(refused, reason, "{body}");
    }
    let table = function("ret\n.La: ret") + ".section .data.rel.t,\"aw\",@progbits\n.quad .La\n";
    let refused = flow_in(&assembled(&table), ".text.f").expect_err("the address is anybody's");
    assert_eq!(refused, "data that is no jump table of its own has an address inside it");
}

#[test]
fn other_processors_are_refused() {
    let mut object = assembled(&function("ret"));
    // The machine's number is at this place in every ELF file.
    object[18] = object::elf::EM_AARCH64.0 as u8;
    let refused = flow_in(&object, ".text.f").expect_err("it is not read");
    assert_eq!(refused, "the control flow of AArch64 code is not read yet");
}
