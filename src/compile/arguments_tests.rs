//! Command lines of compiler drivers, and what they are.

use super::*;
use proptest::prelude::*;

fn parsed(line: &str) -> Invocation {
    let words: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
    parse(&words, Path::new("/build"))
}

#[track_caller]
fn outputs(line: &str) -> Vec<String> {
    match parsed(line) {
        Invocation::Compile(job) => {
            job.outputs.iter().map(|path| path.display().to_string()).collect()
        }
        other => panic!("{line}: {other:?}"),
    }
}

#[track_caller]
fn link(line: &str) -> LinkJob {
    match parsed(line) {
        Invocation::Link(job) => job,
        other => panic!("{line}: {other:?}"),
    }
}

#[track_caller]
fn passes(line: &str) {
    assert!(matches!(parsed(line), Invocation::PassThrough(_)), "{line}: {:?}", parsed(line));
}

#[test]
fn objects_are_found_in_all_forms() {
    assert_eq!(outputs("-c x.c"), ["x.o"]);
    assert_eq!(outputs("-c src/x.tar.c"), ["x.tar.o"]);
    assert_eq!(outputs("-c x.c -o y.o"), ["y.o"]);
    assert_eq!(outputs("-c /dev/shm/x.c -o /dev/shm/x.o"), ["/dev/shm/x.o"]);
    assert_eq!(outputs("-oy.o x.c --compile"), ["y.o"]);
    assert_eq!(outputs("-c x.c --output=y.o"), ["y.o"]);
    assert_eq!(outputs("-c x.c --output y.o"), ["y.o"]);
    assert_eq!(outputs("-c a.c b.cpp c.S d.f90"), ["a.o", "b.o", "c.o", "d.o"]);
    assert_eq!(outputs("-c -- x.c"), ["x.o"]);
    assert_eq!(outputs("-c x.i y.ii z.m"), ["x.o", "y.o", "z.o"]);
    assert_eq!(outputs("-c module.cppm -fmodules-ts"), ["module.o"]);
}

#[test]
fn languages_hold_for_what_follows() {
    assert_eq!(outputs("-c -x c strange"), ["strange.o"]);
    assert_eq!(outputs("-c -xc++ strange.txt -x none y.c z.o"), ["strange.o", "y.o"]);
    passes("-c -x c-header x.c -o x.gch");
    passes("-c -x c++-system-header vector -fmodules-ts");
    passes("-c -x cuda x.cu");
}

#[test]
fn only_what_is_compiled_takes_section_flags() {
    let compiles =
        |line| matches!(parsed(line), Invocation::Compile(CompileJob { compiles: true, .. }));
    assert!(compiles("-c x.c"));
    assert!(compiles("-c x.s y.c"));
    assert!(!compiles("-c x.s"));
    assert!(!compiles("-c -x assembler-with-cpp x.c"));
}

#[test]
fn arguments_of_options_are_no_inputs() {
    let separate = "-include a.h -imacros b.h -isystem c.c -iquote d.c -idirafter e.c -I f.c -D g.c -U h.c -L i.c \
        -MF j.c -MT k.c -MQ l.c -MJ m.c -Xclang n.c -mllvm o.c -Xassembler p.c -Xpreprocessor q.c -arch r.c \
        -target s.c -u t.c -z u.c -A v.c -aux-info w.c --param y.c -G z.c -wrapper a1.c -B b1.c -T c1.c \
        -iprefix d1.c -dumpbase e1.c -Xlinker f1.c -l g1.c --sysroot h1.c -specs i1.c -include-pch k1.c";
    assert_eq!(outputs(&format!("{separate} -c real.c")), ["real.o"]);
}

#[test]
fn side_outputs_do_not_matter() {
    let line = "-MD -MMD -MP -MF x.d -MT x.o -save-temps=obj -pipe -gsplit-dwarf --coverage -fprofile-arcs \
        -fprofile-use=x.profdata -v -Wp,-MD,x.d -nostdlib -fuse-ld=gold -c x.c -o sub/x.o";
    assert_eq!(outputs(line), ["sub/x.o"]);
}

#[test]
fn calls_without_objects_pass_through() {
    for line in [
        "-E x.c",
        "-S x.c",
        "-M x.c",
        "-MM x.c -MF d",
        "-c -E x.c",
        "-c x.c -fsyntax-only",
        "x.h",
        "-c x.hpp -o x.gch",
        "--precompile x.cppm",
        "-fmodule-header x.h",
        "-c -emit-llvm x.c",
        "-c -Xclang -emit-pch x.c",
        "--analyze x.c",
        "-c -o /dev/null x.c",
        "-c x.c -o -",
        "-c -",
        "-x c -c -",
        "-c -x c /dev/null -o t.o",
        "-c",
        "-c x.o",
        "-dM -E -x c -",
        "-cc1 -emit-obj x.c -o x.o",
        "-cc1as x.s",
        "-c a.c b.c -o x.o",
        "-c x.c -o",
    ] {
        passes(line);
    }
}

#[test]
fn questions_pass_through() {
    for line in [
        "",
        "--version",
        "-v",
        "--help",
        "--help=optimizers",
        "-###",
        "-### -c x.c",
        "-print-prog-name=ld",
        "--print-search-dirs",
        "-dumpmachine",
        "-dumpversion",
        "-dumpspecs",
        "--target-help",
        "-Wl,--version",
        "-Wl,-z,now,--help x.o",
        "-Xlinker --version",
    ] {
        passes(line);
    }
}

#[test]
fn link_time_optimisation() {
    let lto = |line| matches!(parsed(line), Invocation::Compile(CompileJob { lto: true, .. }));
    assert!(lto("-c -flto x.c") && lto("-c -flto=thin x.c"));
    assert!(!lto("-c -flto -fno-lto x.c"));
    assert_eq!(outputs("-c -flto -fno-lto x.c"), ["x.o"]);
    assert_eq!(outputs("-c -flto-partition=none x.c"), ["x.o"]);
    assert!(!link("-flto x.c -o x").compiles);
    assert!(link("x.c -o x").compiles);
    assert!(!link("x.o -o x").compiles);
}

#[test]
fn links() {
    assert_eq!(link("x.o").output, Path::new("a.out"));
    assert_eq!(link("-shared -Wl,--whole-archive,libx.a -o libx.so").output, Path::new("libx.so"));
    assert_eq!(link("-shared -lfoo -olibx.so").output, Path::new("libx.so"));
    assert_eq!(link("-r x.o y.o -o z.o").linker, LinkerChoice::Default);
    assert_eq!(link("x.o -fuse-ld=gold").linker, LinkerChoice::Named("gold".into()));
    assert_eq!(link("x.o -fuse-ld=gold -fuse-ld=ld").linker, LinkerChoice::Default);
    assert_eq!(
        link("x.o -fuse-ld=/opt/ld.x").linker,
        LinkerChoice::NamedByPath("/opt/ld.x".into())
    );
    assert_eq!(link("x.o --ld-path=ld.x -fuse-ld=lld").linker, LinkerChoice::Path("ld.x".into()));
    let job = link("-B one -Btwo -m32 --target=arm x.o -target aarch64 --sysroot /s");
    assert_eq!(job.prefixes, [Path::new("one"), Path::new("two")]);
    assert_eq!(
        job.search,
        ["-Bone", "-Btwo", "-m32", "--target=arm", "-target", "aarch64", "--sysroot", "/s"]
    );
}

#[test]
fn probes_pass_through() {
    passes("-c conftest.c");
    passes("-o conftest x.c -lm");
    passes("-c /b/CMakeFiles/CMakeScratch/TryCompile-1/src.c -o x.o");
    let folder = Path::new("/b/meson-private/tmp1");
    assert_eq!(
        parse(&["-c".into(), "x.c".into()], folder),
        Invocation::PassThrough("it is a probe")
    );
}

#[test]
fn paths_need_not_be_text() {
    let source = OsStr::from_bytes(b"\xff\xfe.c").to_owned();
    let job = parse(&["-c".into(), source], Path::new("/b"));
    let object = PathBuf::from(OsStr::from_bytes(b"\xff\xfe.o"));
    let Invocation::Compile(job) = job else { panic!("{job:?}") };
    assert_eq!((job.outputs, job.compiles, job.is_c), (vec![object], true, true));
}

proptest! {
    #[test]
    fn no_arguments_panic(words in prop::collection::vec(prop::collection::vec(1u8.., 0..6), 0..12)) {
        let words: Vec<OsString> = words.iter().map(|word| OsStr::from_bytes(word).to_owned()).collect();
        parse(&words, Path::new("/b"));
    }

    #[test]
    fn no_mixture_of_options_panics(words in prop::collection::vec("(-[a-zA-Z-]{1,3}|@?[a-z.]{1,4})=?[a-z.,/]{0,3}", 0..12)) {
        let words: Vec<OsString> = words.iter().map(OsString::from).collect();
        parse(&words, Path::new("/b"));
    }
}
