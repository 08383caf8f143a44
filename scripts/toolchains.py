#!/usr/bin/env python3
"""Tries Tasting with compilers and linkers other than Debian's default ones, and writes the table of docs/toolchains.md.

A toolchain is a folder with links that stands first in PATH: `clang` is then clang 19, `ld.lld` is lld 19, and tests and
laboratory use them without knowing. For each toolchain: every fixture of tests/it (both levels, all linkers), builds with
the options that its compiler is known for (FEATURES), and a hunt of the laboratory with MINUTES of time.

    scripts/toolchains.py [--minutes 10] [--write docs/toolchains.md] [NAME ...]

Run as root, it installs the packages that are missing. State and evidence lie in target/toolchains; a hunt goes on where it was.
"""
import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
FOLDER = TARGET / "toolchains"
BUILT = pathlib.Path(os.environ.get("BUILT", TARGET / "debug")).resolve()


def llvm(version):
    names = ["clang", "clang++", "ld.lld"]
    packages = [f"clang-{version}", f"libclang-rt-{version}-dev", f"lld-{version}"]
    return {"compiler": "clang", "packages": packages, "links": {name: f"/usr/bin/{name}-{version}" for name in names}}


# The folder's links, and the Debian packages that they need.
TOOLCHAINS = {
    "gcc-11": {
        "compiler": "gcc",
        "packages": ["gcc-11", "g++-11"],
        "links": {"gcc": "/usr/bin/gcc-11", "g++": "/usr/bin/g++-11"},
    },
    "gcc-12": {"compiler": "gcc", "packages": [], "links": {"gcc": "/usr/bin/gcc-12", "g++": "/usr/bin/g++-12"}},
    "clang-14": llvm(14),
    "clang-16": llvm(16),
    "clang-19": llvm(19),
    "clang-22": llvm(22),
}

C = """
#include <stdio.h>
#include <stdlib.h>
static const char *const names[] = {"one", "two", "three"};
__attribute__((noinline)) int used(int x) { return x * 3 + USED; }
__attribute__((noinline)) int unused(int x) { return x * 5 + UNUSED; }
int (*volatile table[2])(int) = {used, abs};
int main(int argc, char **argv) {
    if (argc > 5) puts("many");
    printf("%d %s\\n", used(argc) + table[0](argc), names[argc % 3]);
    return 0;
}
int other(int x) { return unused(x); }
"""
CXX = """
#include <cstdio>
#include <string>
struct Base { virtual int value(int) = 0; virtual ~Base() {} };
struct Derived : Base { int value(int x) override { if (x > 100) throw x; return x * 3 + USED; } };
__attribute__((noinline)) int unused(int x) { std::string text("abc"); return (int)text.size() * x + UNUSED; }
int other(int x) { return unused(x); }
int main(int argc, char **) {
    Derived derived;
    Base *base = &derived;
    try { std::printf("%d\\n", base->value(argc)); } catch (int thrown) { std::printf("caught %d\\n", thrown); }
}
"""
COROUTINE = """
#include <coroutine>
#include <cstdio>
struct Numbers {
    struct promise_type {
        int value;
        Numbers get_return_object() { return {std::coroutine_handle<promise_type>::from_promise(*this)}; }
        std::suspend_always initial_suspend() { return {}; }
        std::suspend_always final_suspend() noexcept { return {}; }
        std::suspend_always yield_value(int x) { value = x; return {}; }
        void return_void() {}
        void unhandled_exception() {}
    };
    std::coroutine_handle<promise_type> handle;
};
Numbers numbers() { for (int i = 0; i < 3; i++) co_yield i * 2 + USED; }
__attribute__((noinline)) int unused(int x) { return x * 5 + UNUSED; }
int other(int x) { return unused(x); }
int main() {
    auto all = numbers();
    for (int i = 0; i < 3; i++) { all.handle.resume(); std::printf("%d\\n", all.handle.promise().value); }
    all.handle.destroy();
}
"""
# Name: who knows it ("" is both), options of the compilation, options of the link, the program. Whoever refuses an option
# when it is called plainly does not have it.
RELR, LLD = "-Wl,-z,pack-relative-relocs", "-fuse-ld=lld"
FEATURES = {
    "RELR, GNU ld": ("", "-O1 -fPIE", f"-pie -fuse-ld=bfd {RELR}", C),
    "RELR, mold": ("", "-O1 -fPIE", f"-pie -fuse-ld=mold {RELR}", C),
    "RELR, lld": ("clang", "-O1 -fPIE", f"-pie {LLD} {RELR}", C),
    "packed relocations": ("clang", "-O1 -fPIE", f"-pie {LLD} -Wl,--pack-dyn-relocs=android+relr", C),
    "CREL": ("clang", "-O1 -Wa,--crel,--allow-experimental-crel", LLD, C),
    "compressed debug information": ("", "-O1 -g -gz=zlib", "-gz=zlib", C),
    "zstd": ("clang", "-O1 -g -gz=zstd", LLD, C),
    "split DWARF 5": ("", "-O1 -g -gdwarf-5 -gsplit-dwarf", "", C),
    "BTF": ("gcc", "-O1 -gbtf", "", C),
    "C23": ("", "-std=c2x -O1", "", C),
    "sections of basic blocks": ("clang", "-O2 -fbasic-block-sections=all", LLD, C),
    "map of basic blocks": ("clang", "-O2 -fbasic-block-address-map", LLD, C),
    "sections of one name": ("clang", "-O1 -ffunction-sections -fno-unique-section-names", LLD, C),
    "control-flow protection": ("", "-O1 -fcf-protection=full", "-Wl,-z,shstk", C),
    "no PLT": ("", "-O1 -fno-plt", "", C),
    "large code model": ("", "-O1 -mcmodel=large -fno-pie", "-no-pie", C),
    "patchable entries": ("", "-O1 -fpatchable-function-entry=5,2", "", C),
    "profile, generated": ("", "-O1 -fprofile-generate", "-fprofile-generate", C),
    "coverage mapping": ("clang", "-O1 -fprofile-instr-generate -fcoverage-mapping", "-fprofile-instr-generate", C),
    "AddressSanitizer": ("", "-O1 -fsanitize=address", "-fsanitize=address", C),
    "SafeStack": ("clang", "-O1 -fsanitize=safe-stack", "-fsanitize=safe-stack", C),
    "XRay": ("clang", "-O1 -fxray-instrument", "-fxray-instrument", C),
    "link-time optimisation": ("", "-O2 -flto", "-flto -O2", C),
    "link-time optimisation, lld": ("clang", "-O2 -flto", f"-flto {LLD}", C),
    "ThinLTO": ("clang", "-O2 -flto=thin", f"-flto=thin {LLD}", C),
    "unified LTO": ("clang", "-O2 -flto -funified-lto", f"-flto=thin {LLD}", C),
    "fat objects": ("gcc", "-O2 -flto -ffat-lto-objects", "-flto", C),
    "fat objects, lld": ("clang", "-O2 -flto -ffat-lto-objects", f"-flto -ffat-lto-objects {LLD}", C),
    "order by call graph": ("clang", "-O2", f"{LLD} -Wl,--call-graph-profile-sort=cdsort", C),
    "order by compression": ("clang", "-O1", f"{LLD} -Wl,--bp-compression-sort=both", C),
    "shuffled sections": ("clang", "-O2", f"{LLD} -Wl,--shuffle-sections=*=1", C),
    "C++20": ("", "-std=c++20 -O1", "", CXX),
    "C++23": ("", "-std=c++23 -O2", "", CXX),
    "relative vtables": ("clang", "-O1 -fexperimental-relative-c++-abi-vtables", "", CXX),
    "control-flow integrity": (
        "clang",
        "-O1 -flto -fsanitize=cfi -fvisibility=hidden",
        f"-flto -fsanitize=cfi {LLD}",
        CXX,
    ),
    "coroutines": ("", "-std=c++20 -O2", "", COROUTINE),
}
# The original, an edit that the program prints, one that it cannot see, and one in the text alone.
VERSIONS = {"original": "", "used": "", "unused": "", "text": "/* a comment\n */\n"}


def shell(words, folder, environment=None):
    return subprocess.run(
        words, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300
    )


class Failed(Exception):
    """A step of a build; its message is what the tool said."""


def build(folder, compiler, feature, version, environment, level):
    """What a version prints and, built with a shim at a level, its fingerprint."""
    _, compiling, linking, program = feature
    is_cxx = program is not C
    source = "a.cc" if is_cxx else "a.c"
    folder.mkdir(parents=True)
    defines = f"#define USED {2 if version == 'used' else 1}\n#define UNUSED {2 if version == 'unused' else 1}\n"
    (folder / source).write_text(VERSIONS[version] + defines + program)
    real = {"gcc": "g++", "clang": "clang++"}[compiler] if is_cxx else compiler
    tool = real
    if level:
        tool = BUILT / ("tasting-cxx" if is_cxx else "tasting-cc")
        environment = environment | {"TASTING_CXX" if is_cxx else "TASTING_CC": real, "TASTING_LEVEL": level}
    for words in ([*compiling.split(), "-c", source, "-o", "a.o"], [*linking.split(), "a.o", "-o", "program"]):
        done = shell([tool, *words], folder, environment)
        if done.returncode:
            raise Failed(done.stdout)
    ran = shell(["./program"], folder, environment)
    if not level:
        return ran.returncode, ran.stdout, None
    printed = shell([BUILT / "tasting", "fingerprint", "program"], folder, environment)
    return ran.returncode, ran.stdout, printed.stdout.split()[0] if printed.returncode == 0 else None


def try_feature(folder, compiler, name, environment, level):
    """None if this compiler does not know the feature; else what is wrong, and whether the unused function counts."""
    feature = FEATURES[name]
    try:
        plain = build(folder / "plain", compiler, feature, "original", environment, None)
    except Failed:
        return None
    if plain[0] != 0:
        # Such as mold 1.10 with RELR: what it links does not start.
        return None
    try:
        made = {v: build(folder / v, compiler, feature, v, environment, level) for v in VERSIONS}
    except Failed as failure:
        return [f"breaks: {failure}"], False
    wrong = []
    if made["original"][:2] != plain[:2]:
        wrong.append("prints something else")
    if made["original"][1] == made["used"][1]:
        wrong.append("the edit shows nothing")
    prints = {version: fingerprint for version, (_, _, fingerprint) in made.items()}
    if prints["original"] is not None and prints["original"] == prints["used"]:
        wrong.append("MISSED")
    return wrong, prints["original"] is None or prints["original"] != prints["unused"]


def features(name, toolchain, environment):
    """Counts of those that are built and selected right at both levels; and which count more than they need."""
    scratch = FOLDER / name / "features"
    shutil.rmtree(scratch, ignore_errors=True)
    right, wrong, coarse = 0, [], []
    for number, feature in enumerate(FEATURES):
        if FEATURES[feature][0] not in ("", toolchain["compiler"]):
            continue
        for level in ("code", "ast"):
            found = try_feature(scratch / f"{number}-{level}", toolchain["compiler"], feature, environment, level)
            if found is None:
                break
            wrong += [f"{name}, {feature}, level {level}: {text}" for text in found[0]]
            right += not found[0]
            coarse += [feature] if found[1] and level == "code" else []
    shutil.rmtree(scratch, ignore_errors=True)
    return right, wrong, coarse


def fixtures(name, toolchain, environment):
    """The lines of cargo's report that tell of failures."""
    words = ["cargo", "test", "--locked", "--test", "it", "--", "--include-ignored", "edits::"]
    done = shell_long(words, environment | {"TASTING_FIXTURE_WITH": toolchain["compiler"]})
    (FOLDER / name / "fixtures.log").write_text(done.stdout)
    found = re.search(r"test result: \w+\. (\d+) passed; (\d+) failed", done.stdout)
    return (int(found[1]), int(found[2])) if found else (0, 1)


def shell_long(words, environment):
    return subprocess.run(words, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def hunt(name, toolchain, environment, minutes, seed):
    """The laboratory's sums after so many minutes more."""
    folder = FOLDER / name / "lab"
    words = [BUILT / "lab", "programs", "--compilers", toolchain["compiler"], "--level", "code", "--folder", folder]
    shell_long([*words, "--built", BUILT, "--minutes", str(minutes), "--seed", str(seed)], environment)
    state = folder / f"state-{seed}.json"
    return json.loads(state.read_text())["sums"] if state.exists() else {}


def install(toolchain):
    missing = [link for link in toolchain["links"].values() if not os.path.exists(link)]
    if missing:
        words = ["apt-get", "install", "-y", "--no-install-recommends", *toolchain["packages"]]
        if subprocess.run(words, stdout=subprocess.DEVNULL).returncode:
            sys.exit(f"toolchains: {' '.join(words)} failed; install these packages first")


def lay_out(name, toolchain):
    """The folder of links, and an environment with it first in PATH."""
    links = FOLDER / name / "bin"
    shutil.rmtree(links, ignore_errors=True)
    links.mkdir(parents=True)
    for link, to in toolchain["links"].items():
        (links / link).symlink_to(to)
    path = f"{links}{os.pathsep}{os.environ['PATH']}"
    return dict(os.environ) | {"PATH": path, "TASTING_DIR": str(FOLDER / name / "store"), "LC_ALL": "C"}


def version_of(program, environment):
    line = shell([program, "--version"], ROOT, environment).stdout.splitlines()[0]
    return re.search(r"\d+\.\d+(\.\d+)?", line)[0]


def row(name, arguments):
    toolchain = TOOLCHAINS[name]
    install(toolchain)
    environment = lay_out(name, toolchain)
    right, wrong, coarse = features(name, toolchain, environment)
    passed, failed = fixtures(name, toolchain, environment) if not arguments.no_fixtures else (0, 0)
    sums = hunt(name, toolchain, environment, arguments.minutes, arguments.seed) if arguments.minutes else {}
    misses = sum(sums.get(kind, 0) for kind in ("static_misses", "executed_misses", "object_misses"))
    for text in wrong:
        print(text, file=sys.stderr)
    cells = [
        f"{toolchain['compiler']} {version_of(toolchain['compiler'], environment)}",
        f"lld {version_of('ld.lld', environment)}",
        f"{right} right, {len(wrong)} wrong",
        f"{passed} passed, {failed} failed" if passed + failed else "not run",
        f"{sums.get('changing', 0):,} mutants, {misses} missed" if sums else "not run",
        ", ".join(coarse) or "none",
    ]
    return "| " + " | ".join(cells) + " |", bool(wrong or failed or misses)


HEAD = """| compiler | lld beside GNU ld, gold and mold | options | fixtures | laboratory | count more than needed |
|---|---|---|---|---|---|"""


def write(page, rows):
    """Puts the rows between the page's marks."""
    text = page.read_text()
    begin, end = "<!-- table of toolchains -->\n", "<!-- end -->"
    before, rest = text.split(begin)
    page.write_text(before + begin + "\n".join([HEAD, *rows]) + "\n" + end + rest.split(end)[1])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=list(TOOLCHAINS), metavar="NAME", help=", ".join(TOOLCHAINS))
    parser.add_argument("--minutes", type=float, default=10, help="of the laboratory, for each toolchain; 0: none")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--no-fixtures", action="store_true", help="leave out the tests of tests/it")
    parser.add_argument("--write", type=pathlib.Path, help="the page whose table is written anew")
    arguments = parser.parse_args()
    unknown = [name for name in arguments.names if name not in TOOLCHAINS]
    if unknown:
        parser.error(f"no such toolchain: {', '.join(unknown)}")
    rows, is_wrong = [], False
    for name in arguments.names:
        line, has_failed = row(name, arguments)
        print(line, flush=True)
        rows.append(line)
        is_wrong |= has_failed
    if arguments.write:
        write(arguments.write, rows)
    return int(is_wrong)


if __name__ == "__main__":
    sys.exit(main())
