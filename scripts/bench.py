#!/usr/bin/env python3
"""What Tasting costs, as ratios to the plain tools in the same run on the same machine.

    BUILT=target/release scripts/bench.py [--rounds N] [PART…]       parts: build ast link pass memory hash graph observe run trace suite remote

Each round measures every variant once, one after the other; a ratio is the median of the rounds' ratios, so that
what else the machine does meets all variants alike. Needs what scripts/install-test-tools.sh installs.
"""

import argparse
import json
import os
import resource
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
TARGET = REPOSITORY / os.environ.get("CARGO_TARGET_DIR", "target")
CACHE = TARGET / "bench"
SECTION_FLAGS = "-ffunction-sections -fdata-sections"
LINKERS = ["bfd", "gold", "lld", "mold"]


def main():
    parts = {"build": bench_build, "ast": bench_ast, "link": bench_link, "pass": bench_pass_through, "memory": bench_memory,
             "hash": bench_hash, "record": bench_record, "graph": bench_graph, "observe": bench_observe, "run": bench_run, "trace": bench_trace, "suite": bench_suite, "remote": bench_remote}
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--rounds", type=int, default=5, help="of builds; links get four times as many")
    arguments.add_argument("parts", nargs="*", metavar="PART", help=" ".join(parts))
    options = arguments.parse_args()
    if unknown := set(options.parts) - set(parts):
        arguments.error(f"no such part: {' '.join(sorted(unknown))}")

    os.environ["LC_ALL"] = "C"
    for name in list(os.environ):
        if name in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "CFLAGS", "CXXFLAGS", "LDFLAGS") or name.startswith("TASTING_"):
            del os.environ[name]
    with tempfile.TemporaryDirectory() as folder:
        prefix = Path(folder)
        run([REPOSITORY / "scripts/install.sh", prefix])
        # What the shims remember has to be there from the second round on, and to be nobody else's.
        os.environ["TASTING_DIR"] = str(prefix / "store")
        os.environ["PATH"] = f"{prefix}/bin:{os.environ['PATH']}"
        for name, part in parts.items():
            if name in (options.parts or parts):
                part(options.rounds)


# Measuring


class Cost:
    """Wall-clock and processor seconds of one command with all its children."""

    def __init__(self, command, **how):
        before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        run(command, **how)
        after, self.wall = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter() - start
        self.cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def run(command, **how):
    done = subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL, capture_output=True, text=True, **how)
    if done.returncode != 0:
        print(done.stdout[-2000:], done.stderr[-4000:], file=sys.stderr)
        sys.exit(f"bench: {' '.join(map(str, command))[:400]} ended with {done.returncode}")
    return done.stdout


def interleaved(rounds, variants, warm_up=True):
    """Runs each variant (a function that returns its cost) once a round; gives a list of costs for each."""
    if warm_up:
        for measure in variants.values():
            measure()
    costs = {name: [] for name in variants}
    for _ in range(rounds):
        for name, measure in variants.items():
            costs[name].append(measure())
    return costs


def ratio(costs, of, to, what="wall"):
    return statistics.median(getattr(a, what) / getattr(b, what) for a, b in zip(costs[of], costs[to]))


def least_ratio(costs, of, to, what="wall"):
    """On a machine that is busy with other work the least is what says most."""
    return min(getattr(cost, what) for cost in costs[of]) / min(getattr(cost, what) for cost in costs[to])


def table(title, head, rows):
    print(f"\n### {title}\n")
    print(f"| {' | '.join(head)} |\n|{'---|' * len(head)}")
    for row in rows:
        print(f"| {' | '.join(f'{cell:.3f}' if isinstance(cell, float) else str(cell) for cell in row)} |")
    sys.stdout.flush()


# Subjects


def sources(package):
    folder = CACHE / package
    if not (folder / "source").is_dir():
        folder.mkdir(parents=True, exist_ok=True)
        run([REPOSITORY / "scripts/subjects/fetch.sh", package, "source"], cwd=folder)
    return folder / "source"


def tcl_configured(name, compiler):
    """A copy of Tcl, 160 C files and plain make, configured for the compiler."""
    copy = CACHE / "tcl8.6" / name
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(sources("tcl8.6"), copy, symlinks=True)
    run(["./configure", f"CC={compiler}"], cwd=copy / "unix")
    return copy / "unix"


def tcl_objects():
    """The objects of Tcl's shell and library, with records: what `tclsh` is when it is linked in one piece."""
    folder = tcl_configured("objects", "tasting-cc")
    run(["make", f"-j{os.cpu_count()}", "binaries"], cwd=folder)
    return sorted(path for path in folder.glob("*.o") if not path.name.endswith("StubLib.o"))


def pugixml_objects():
    """The objects of pugixml's tests, with records."""
    build = CACHE / "pugixml" / "build"
    shutil.rmtree(build, ignore_errors=True)
    compilers = ["-DCMAKE_C_COMPILER=tasting-cc", "-DCMAKE_CXX_COMPILER=tasting-c++"]
    run(["cmake", "-G", "Ninja", "-S", sources("pugixml"), "-B", build, "-DPUGIXML_BUILD_TESTS=ON", *compilers])
    run(["cmake", "--build", build])
    return sorted(build.glob("CMakeFiles/pugixml-*/**/*.o"))


# Parts


def bench_build(rounds):
    compilers = {"plain": "gcc", "flags": f"gcc {SECTION_FLAGS}", "shims": "tasting-cc"}
    folders = {name: tcl_configured(name, compiler) for name, compiler in compilers.items()}

    def clean_build(folder):
        run(["make", "clean"], cwd=folder)
        return Cost(["make", f"-j{os.cpu_count()}", "binaries"], cwd=folder)

    costs = interleaved(rounds, {name: lambda folder=folder: clean_build(folder) for name, folder in folders.items()})
    rows = [
        ("with the shims / plain", "shims", "plain"),
        ("… of which the section flags / plain", "flags", "plain"),
        ("… of which the shims / the section flags", "shims", "flags"),
    ]
    table(
        f"Clean build of Tcl ({len(list(folders['plain'].glob('*.o')))} objects, {rounds} rounds)",
        ["ratio", "wall clock", "processor"],
        [(title, ratio(costs, of, to), ratio(costs, of, to, "cpu")) for title, of, to in rows],
    )


AST = {"TASTING_LEVEL": "ast"}
REUSE = {**AST, "TASTING_REUSE_OBJECTS": "1"}


def bench_ast(rounds):
    """The AST level on a clean build; and a rebuild after an edit in a header that all files include."""
    with tempfile.TemporaryDirectory() as caches:
        environments = {
            "plain": ("gcc", {}),
            "ast": ("tasting-cc", AST),
            "reuse": ("tasting-cc", {**REUSE, "TASTING_DIR": f"{caches}/reuse"}),
            "sloppy": ("tasting-cc", {**REUSE, "TASTING_DIR": f"{caches}/sloppy", "TASTING_SLOPPINESS": "messages"}),
            "ccache": ("ccache gcc", {"CCACHE_DIR": f"{caches}/ccache"}),
        }
        folders = {name: tcl_configured(f"ast-{name}", compiler) for name, (compiler, _) in environments.items()}

        def build(name):
            run(["make", "clean"], cwd=folders[name])
            environment = os.environ | environments[name][1]
            return Cost(["make", f"-j{os.cpu_count()}", "binaries"], cwd=folders[name], env=environment)

        def rows(costs, titles):
            return [(title, ratio(costs, of, to), ratio(costs, of, to, "cpu"), budget) for title, of, to, budget in titles]

        costs = interleaved(rounds, {name: lambda name=name: build(name) for name in ("plain", "ast")})
        clean = rows(costs, [("clean build at the AST level / plain", "ast", "plain", "1.10")])
        for edit, text in [("a comment", "/* {0} */"), ("a declaration that nobody uses", "int tasting_bench_{0}(int);")]:
            count = [0]

            def rebuild(name):
                count[0] += 1
                header = folders[name].parent / "generic" / "tcl.h"
                # Behind the guard, as people do it: all lines below move.
                before, guard, after = header.read_text().partition("#define _TCL\n")
                header.write_text(before + guard + text.format(count[0]) + "\n" + after)
                return build(name)

            names = ("plain", "reuse", "sloppy", "ccache")
            for name in names:
                build(name)
            costs = interleaved(rounds, {name: lambda name=name: rebuild(name) for name in names})
            clean += rows(costs, [
                (f"rebuild after {edit} in a header of all files, reusing objects / plain", "reuse", "plain", "0.35"),
                (f"… / with ccache", "reuse", "ccache", "0.5"),
                (f"… with TASTING_SLOPPINESS=messages / plain", "sloppy", "plain", "0.35"),
                (f"… / with ccache", "sloppy", "ccache", "0.5"),
            ])
        table(f"The AST level, and objects that are reused: Tcl with -O2 ({rounds} rounds)",
              ["ratio", "wall clock", "processor", "budget"], clean)


def bench_link(rounds):
    programs = [
        ("dynamic C (Tcl)", "gcc", "tasting-cc", tcl_objects(), ["-Wl,--export-dynamic", "-ldl", "-lz", "-lpthread", "-lm"]),
        ("static C++ (pugixml's tests)", "g++", "tasting-c++", pugixml_objects(), ["-static"]),
    ]
    rows = [link_row(rounds * 4, program, linker) for program in programs for linker in LINKERS]
    table(
        f"Links, with the same objects ({rounds * 4} rounds)",
        ["program", "linker", "objects", "with the shim / plain", "with a map / plain"],
        rows,
    )


def link_row(rounds, program, linker):
    title, plain, shim, objects, libraries = program
    with tempfile.TemporaryDirectory() as folder:
        arguments = [f"-fuse-ld={linker}", "-o", f"{folder}/program", *objects, *libraries]
        costs = interleaved(
            rounds,
            {
                "plain": lambda: Cost([plain, *arguments]),
                "map": lambda: Cost([plain, *arguments, f"-Wl,-Map={folder}/map"]),
                "shim": lambda: Cost([shim, *arguments]),
            },
        )
        run(["tasting", "fingerprint", f"{folder}/program"])
    return title, linker, len(objects), ratio(costs, "shim", "plain"), ratio(costs, "map", "plain")


def bench_pass_through(_rounds):
    rows = []
    for title, arguments in [("--version", ["--version"]), ("a preprocessor probe", ["-E", "-x", "c", "/dev/null"])]:
        costs = interleaved(
            200, {tool: lambda tool=tool: Cost([tool, *arguments]) for tool in ("/usr/bin/gcc", "tasting-cc")}
        )
        difference = statistics.median(a.wall - b.wall for a, b in zip(costs["tasting-cc"], costs["/usr/bin/gcc"]))
        rows.append((title, f"{difference * 1000:+.2f} ms"))
    table("A call that only passes through, more than gcc (200 rounds)", ["call", "difference"], rows)


# Notes the peak of each process that is one of our programs when it ends; its children are none of our memory.
PEAK_AGENT = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

__attribute__((destructor)) static void note_peak(void)
{
    char exe[4096] = "", line[256];
    FILE *status, *log;
    if (readlink("/proc/self/exe", exe, sizeof exe - 1) < 0 || !strstr(exe, "/tasting"))
        return;
    status = fopen("/proc/self/status", "r");
    log = fopen(getenv("PEAK_LOG"), "a");
    while (status && log && fgets(line, sizeof line, status))
        if (!strncmp(line, "VmHWM:", 6))
            fprintf(log, "%s %ld\n", strrchr(exe, '/') + 1, strtol(line + 6, NULL, 10));
    if (log)
        fclose(log);
}
"""


def bench_memory(_rounds):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "peak.c").write_text(PEAK_AGENT)
        run(["gcc", "-shared", "-fPIC", "-o", folder / "peak.so", folder / "peak.c"])
        (folder / "program.c").write_text("\n".join(f"int f{i}(int x) {{ return x * {i}; }}" for i in range(5000)))
        compile_one = ["tasting-cc", "-c", "-o", folder / "program.o", folder / "program.c"]
        link_static = ["tasting-c++", "-static", "-o", folder / "tests", *pugixml_objects()]
        rows = []
        for title, command in [("compiling 5,000 functions", compile_one), ("linking pugixml's tests statically", link_static)]:
            log = folder / "log"
            log.unlink(missing_ok=True)
            run(command, env=os.environ | {"LD_PRELOAD": str(folder / "peak.so"), "PEAK_LOG": str(log)})
            if not log.exists():
                sys.exit(f"bench: no process of Tasting's came to its end while {title}")
            peaks = [line.split() for line in log.read_text().splitlines()]
            rows += [(title, program, f"{int(peak) / 1024:.1f} MB") for program, peak in peaks]
    table("Peak memory of a shim, with the files that it maps", ["call", "process", "peak"], rows)


def bench_hash(_rounds):
    print("\n### Hashing, which has to resist collisions made on purpose\n")
    print(example("hash"))


def bench_record(_rounds):
    print("\n### The record of an object of 200 KB\n")
    print(example("record"))


def bench_graph(_rounds):
    print("\n### 50,000 atoms, from records to fingerprint\n")
    print(example("graph"))


LOOKS = """
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
int main(int count, char **words) {
    struct stat found;
    static char names[1000][16];
    for (int i = 0; i < 1000; i++) sprintf(names[i], "many/%d", i);
    int file = open("data", O_RDONLY);
    for (int i = atoi(words[2]); i > 0; i--)
        switch (words[1][0]) {
        case 'f': fstat(file, &found); break;
        case 's': stat("data", &found); break;
        case 'm': close(open(names[i % 1000], O_RDONLY)); break;
        default: close(open("data", O_RDONLY));
        }
    return 0;
}
"""


def bench_observe(rounds):
    print("\n### Executions that are watched\n")
    print(example("observe", str(rounds * 40)))
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        (folder / "looks.c").write_text(LOOKS)
        (folder / "data").write_text("data\n")
        (folder / "tasting.toml").write_text("")
        (folder / "many").mkdir()
        for number in range(5_000):
            (folder / f"many/{number}").write_text(f"{number}\n")
        for number in range(3):
            with open(folder / f"sparse{number}", "wb") as sparse:
                sparse.truncate(2 << 30)
        run(["gcc", "-O2", "looks.c", "-o", "looks"], cwd=folder)
        time.sleep(3)
        stored = {**os.environ, "TASTING_DIR": str(folder / ".store"), "TASTING_NOTRACE": "1"}
        anew = {**stored, "TASTING_RECACHE": "1"}
        tests = {
            "200,000 `fstat`": (["./looks", "fstat", "200000"], anew),
            "100,000 `stat`": (["./looks", "stat", "100000"], anew),
            "100,000 opens for reading": (["./looks", "open", "100000"], anew),
            "100,000 opens for reading, of 1,000 files in turns": (["./looks", "many", "100000"], anew),
            "`stat` of three sparse files of 2 GiB": (["stat", "-t", "sparse0", "sparse1", "sparse2"], anew),
            "`find -size` over 5,000 files, reused": (["find", "many", "-size", "+1k"], stored),
            "`/bin/true`, reused": (["/bin/true"], stored),
        }
        rows = []
        for title, (command, environment) in tests.items():
            variants = {"plain": lambda: Cost(command, cwd=folder),
                        "watched": lambda: Cost(["tasting", "run", "--", *command], cwd=folder, env=environment)}
            variants["watched"]()
            costs = interleaved(rounds * 4, variants)
            rows.append([title, ratio(costs, "watched", "plain"), least_ratio(costs, "watched", "plain"),
                         ratio(costs, "watched", "plain", "cpu"), least_ratio(costs, "watched", "plain", "cpu")])
        table("Many calls that look at files",
              ["test", "`tasting run` / plain", "the least of each", "processor", "the least of each"], rows)


FILES_OF_A_TEST = 50
TEST = """
#include <stdio.h>
int main(int argc, char **argv) {
    char name[99], text[99];
    for (int i = 0; i < %d; i++) {
        snprintf(name, sizeof name, "data%%d", i);
        FILE *file = fopen(name, "r");
        if (file && fgets(text, sizeof text, file)) fputs(text, stdout);
        if (file) fclose(file);
    }
    return 0;
}
""" % FILES_OF_A_TEST


def project_with_files(folder):
    """A project whose test opens many files."""
    (folder / "t.c").write_text(TEST)
    (folder / "tasting.toml").write_text("")
    for number in range(FILES_OF_A_TEST):
        (folder / f"data{number}").write_text(f"line {number}\n")
    run(["tasting-cc", "t.c", "-o", "t"], cwd=folder)
    # Contents of files that are younger are not remembered.
    time.sleep(3)


def bench_run(rounds):
    """`tasting run` as a whole: a test that opens 50 files, reused and executed; among few and among 10,000 stored tests."""
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        project_with_files(folder)
        plain = {**os.environ, "CCACHE_DIR": str(folder / "ccache")}
        small = {**plain, "TASTING_DIR": str(folder / "small")}
        large = {**plain, "TASTING_DIR": str(folder / "large")}
        fill(folder, large)

        def cost(command, environment):
            return lambda: Cost(command, cwd=folder, env=environment)

        variants = {
            "ccache": cost(["ccache", "gcc", "-c", "t.c", "-o", "t.o"], plain),
            "plain": cost(["./t"], plain),
            "reused": cost(["tasting", "run", "./t"], small),
            "reused among 10,000": cost(["tasting", "run", "./t"], large),
            "watched": cost(["tasting", "run", "./t"], {**small, "TASTING_RECACHE": "1", "TASTING_NOTRACE": "1"}),
            "traced": cost(["tasting", "run", "./t"], {**small, "TASTING_RECACHE": "1"}),
        }
        for measure in variants.values():
            measure()
        costs = interleaved(rounds * 40, variants)

        def more(kind):
            median = statistics.median(a.wall - b.wall for a, b in zip(costs[kind], costs["plain"])) * 1000
            least = (min(cost.wall for cost in costs[kind]) - min(cost.wall for cost in costs["plain"])) * 1000
            return f"{median:+.2f} ms (least {least:+.2f} ms)"

        rows = [
            ["reused / a ccache hit", ratio(costs, "reused", "ccache"), ratio(costs, "reused", "ccache", "cpu")],
            ["reused among 10,000 stored tests / among few", ratio(costs, "reused among 10,000", "reused"),
             ratio(costs, "reused among 10,000", "reused", "cpu")],
            ["executed and watched, more than plain", more("watched"), ""],
            ["executed, watched and traced, more than plain", more("traced"), ""],
        ]
        table(f"`tasting run` of a test that opens {FILES_OF_A_TEST} files ({rounds * 40} rounds)",
              ["what", "wall clock", "processor"], rows)


FUNCTIONS = 20_000
CALLED = 2_000
PROCESSES = 100


def functions_program():
    """A program of many functions, which calls as many of them as it is told."""
    functions = (f"__attribute__((noipa)) static unsigned f{n}(unsigned x) {{ for (unsigned i = 0; i < x % 5; i++) x = x * 31 + {n}; return x ^ {n}; }}"
                 for n in range(FUNCTIONS))
    table_of_all = ", ".join(f"f{n}" for n in range(FUNCTIONS))
    return "\n".join(["#include <stdio.h>", "#include <stdlib.h>", *functions,
                      f"static unsigned (*const all[])(unsigned) = {{ {table_of_all} }};",
                      "int main(int argc, char **argv) {",
                      "    unsigned x = 1, step = argc > 2 ? atoi(argv[2]) : 1, at = argc > 3 ? atoi(argv[3]) : 0;",
                      f"    for (int i = 0; i < atoi(argv[1]); i++, at = step ? at + step : at * 1103515245 + 12345) x = all[(step ? at : at >> 8) % {FUNCTIONS}](x);",
                      "    for (volatile long rounds = argc > 4 ? atol(argv[4]) : 0; rounds > 0; rounds--);",
                      '    return !printf("%u\\n", x); }'])


def bench_trace(rounds):
    """Tests of which the functions are traced: next to the plain test, and next to one that is only watched."""
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        (folder / "tasting.toml").write_text("")
        (folder / "t.c").write_text(functions_program())
        (folder / "processes.sh").write_text(f"#!/bin/sh\nfor i in $(seq {PROCESSES}); do ./t {CALLED // PROCESSES} $i 0 $1 || exit 1; done\n")
        (folder / "processes.sh").chmod(0o755)
        (folder / "one.c").write_text("int main(void) { return 0; }\n")
        (folder / "one.sh").write_text(f"i=0\nwhile [ $i -lt {PROCESSES} ]; do ./one; i=$((i+1)); done\n")
        run(["tasting-cc", "-O1", "one.c", "-o", "one"], cwd=folder)
        run(["tasting-cc", "-O2", "t.c", "-o", "t"], cwd=folder)
        time.sleep(3)
        traced = {**os.environ, "TASTING_DIR": str(folder / "store"), "TASTING_RECACHE": "1"}
        watched = {**traced, "TASTING_NOTRACE": "1"}
        tests = {
            f"calls {CALLED:,} of {FUNCTIONS:,} functions": ["./t", CALLED, FUNCTIONS // CALLED],
            f"calls none of {FUNCTIONS:,} functions": ["./t", 0],
            f"{PROCESSES} processes that do next to nothing": ["./processes.sh", 0],
            f"{PROCESSES} processes that do a little more": ["./processes.sh", 3_000_000],
            f"{PROCESSES} processes of one function": ["sh", "one.sh"],
        }
        rows = []
        for title, command in tests.items():
            variants = {
                "plain": lambda: Cost(command, cwd=folder),
                "watched": lambda: Cost(["tasting", "run", "--", *command], cwd=folder, env=watched),
                "traced": lambda: Cost(["tasting", "run", "--", *command], cwd=folder, env=traced),
            }
            costs = interleaved(rounds * (4 if "processes" in title else 20), variants)

            def more(of, to):
                return f"{statistics.median(a.wall - b.wall for a, b in zip(costs[of], costs[to])) * 1000:+.2f} ms"

            rows.append([title, f"{statistics.median(cost.wall for cost in costs['plain']) * 1000:.2f} ms",
                         ratio(costs, "traced", "plain"), more("traced", "plain"), ratio(costs, "traced", "plain", "cpu"),
                         least_ratio(costs, "traced", "plain", "cpu"),
                         ratio(costs, "traced", "watched"), more("traced", "watched")])
        table("Functions that are traced", ["test", "plain", "traced / plain", "", "processor", "its least", "traced / only watched", ""], rows)
        cases, executed = 100, 3_000
        before = stored_bytes(folder / "store")
        for case in range(cases):
            run(["tasting", "run", "--", "./t", executed, 0, case], cwd=folder, env=traced)
        per_case = (stored_bytes(folder / "store") - before) / cases
        print(f"\nA case that executes {executed:,} of {FUNCTIONS:,} functions, chosen at random, takes {per_case:,.0f} bytes in the store: "
              f"10,000 of them {per_case / 100:.1f} MB.")


CASES, ATOMS, SEEING, FILES = 1000, 30_000, 7, 30
LONGER, MANY_TESTS = 100, 10_000


def suite_project(folder, atoms=ATOMS, cases=CASES, bodies=10):
    """A program of many functions in which GoogleTest has many cases of some milliseconds; each function `seen` is called by a few of them."""
    folder.mkdir(parents=True, exist_ok=True)
    per_file = atoms // FILES
    for file in range(FILES):
        functions = []
        for number in range(file * per_file, (file + 1) * per_file):
            is_last = number % per_file == per_file - 1 or number % 7 == 0
            body = "".join(f" x = x * {31 + step} + {number}; x ^= x >> {step % 13 + 3};" for step in range(bodies))
            follow = "" if is_last else f" + f{number + 1}(x)"
            functions.append(("" if is_last else f"unsigned f{number + 1}(unsigned);\n")
                             + f"__attribute__((noinline)) unsigned f{number}(unsigned x) {{{body} return x{follow}; }}\n")
        (folder / f"part{file}.c").write_text("".join(functions))
    step = atoms // cases
    lines = ["#include <gtest/gtest.h>", "#include <cstdlib>", 'extern "C" {']
    lines += [f"unsigned f{case * step}(unsigned);" for case in range(cases)]
    lines += [f"unsigned seen{number}(unsigned);" for number in range(cases // SEEING + 1)]
    lines += ["}", 'static void spin() { const char *n = getenv("SPIN"); for (volatile long i = n ? atol(n) : 0; i > 0; i--); }']
    lines += [f"TEST(Suite{case // 100}, Case{case}) {{ spin(); EXPECT_NE(f{case * step}({case}) | 1u, seen{case // SEEING}({case}) & ~1u); }}"
              for case in range(cases)]
    (folder / "cases.cc").write_text("\n".join(lines))
    write_seen(folder, cases, 0)
    (folder / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.20)\nproject(suite C CXX)\nenable_testing()\nfind_package(GTest REQUIRED)\n"
        "file(GLOB parts part*.c)\nadd_executable(t cases.cc seen.c ${parts})\ntarget_link_libraries(t GTest::gtest_main)\n"
        "include(GoogleTest)\ngtest_discover_tests(t DISCOVERY_TIMEOUT 300)\n")
    (folder / "tasting.toml").write_text("")


def write_seen(folder, cases, changed):
    """The functions that a few cases each see; one of them returns another number."""
    functions = (f"unsigned seen{number}(unsigned x) {{ return x ^ {4 * number + (changed if number == 5 else 0)}u; }}\n"
                 for number in range(cases // SEEING + 1))
    (folder / "seen.c").write_text("".join(functions))


def build_suite(folder, name, *words):
    run(["cmake", "-G", "Ninja", "-S", folder, "-B", folder / name, "-DCMAKE_C_FLAGS=-O1", *words])
    rebuild(folder, name)
    return folder / name


def rebuild(folder, name):
    run(["cmake", "--build", folder / name])
    # Files that are younger are not remembered.
    time.sleep(3)


def bench_suite(rounds):
    """Whole suites: `tasting suite` next to plain ctest, and the hook in the harness."""
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        suite_project(folder)
        module = REPOSITORY / "cmake/tasting.cmake"
        hooked = build_suite(folder, "hooked", f"-DCMAKE_PROJECT_TOP_LEVEL_INCLUDES={module}")
        plain = build_suite(folder, "plain")
        store = {**os.environ, "TASTING_DIR": str(folder / "store")}
        anew = {**store, "TASTING_RECACHE": "1"}
        jobs = f"-j{os.cpu_count()}"

        def ctest(build, environment, *words):
            return lambda: Cost(["ctest", "--test-dir", build, jobs, *words], env=environment)

        def suite(environment, *words):
            return lambda: Cost(["tasting", "suite", "--", "ctest", "--test-dir", hooked, jobs, *words], env=environment)

        rows = []

        def row(title, variants, warm_up=True, times=rounds):
            costs = interleaved(times, variants, warm_up)
            names = list(variants)
            rows.append([title, *(value for what in ("wall", "cpu") for value in (ratio(costs, *names, what), least_ratio(costs, *names, what)))])

        first = {"of": ctest(hooked, anew), "to": ctest(plain, os.environ)}
        row("first run, by the hook", first, warm_up=False, times=1)
        long = {name: {**environment, "SPIN": "12000000"} for name, environment in {"anew": anew, "plain": os.environ}.items()}
        some = ["-I", f"1,{LONGER}"]
        row(f"first run, {LONGER} cases of about 20 ms, as a suite", {"of": suite(long["anew"], *some), "to": ctest(plain, long["plain"], *some)}, times=1)
        suite(store)()
        row("nothing changed", {"of": suite(store), "to": ctest(plain, os.environ)})
        row("nothing changed, by the hook", {"of": ctest(hooked, store), "to": ctest(plain, os.environ)}, times=max(1, rounds // 4))
        changed = [0]

        def edited():
            changed[0] += 1
            write_seen(folder, CASES, 4 * CASES * changed[0])
            rebuild(folder, "hooked")
            return suite(store)()

        row(f"after an edit that {SEEING} cases see", {"of": edited, "to": ctest(plain, os.environ)})
        table(f"{CASES:,} GoogleTest cases of a program of {ATOMS:,} atoms",
              ["state", "of plain ctest", "the least of each", "processor", "the least of each"], rows)
        hook_after_an_edit(rounds, folder, hooked, store, changed)
        many_tests(rounds, folder)


def hook_after_an_edit(rounds, folder, hooked, store, changed):
    """One case by the hook: as it was, and after an edit elsewhere. The binary that was edited is new to each."""
    command = ["tasting", "run", "--", hooked / "t", "--gtest_filter=Suite9.Case950"]
    before, after = [], []
    for _ in range(rounds):
        changed[0] += 1
        write_seen(folder, CASES, 4 * CASES * changed[0])
        rebuild(folder, "hooked")
        after.append(Cost(command, env=store, cwd=hooked))
        before += [Cost(command, env=store, cwd=hooked) for _ in range(5)]
    milliseconds = {what: [min(getattr(cost, what) for cost in costs) * 1000 for costs in (before, after)] for what in ("wall", "cpu")}
    rows = [[what, *least, f"{least[1] - least[0]:+.2f} ms"] for what, least in milliseconds.items()]
    table("The hook, reusing one case (the least of each, ms)", ["", "nothing changed", "after an edit elsewhere", "more"], rows)


def many_tests(rounds, folder):
    """A list of reusable tests: time of the suite, and memory of its process."""
    (folder / "one.c").write_text("int main(void) { return 0; }\n")
    run(["tasting-cc", "one.c", "-o", "one"], cwd=folder)
    lines = [json.dumps({"name": str(number), "argv": ["./one", str(number)]}) for number in range(MANY_TESTS)]
    (folder / "tests.jsonl").write_text("\n".join(lines))
    environment = {**os.environ, "TASTING_DIR": str(folder / "many")}
    command = ["tasting", "suite", "--list", "tests.jsonl", f"-j{os.cpu_count()}"]
    run(command, cwd=folder, env=environment)
    costs = [Cost(command, cwd=folder, env=environment) for _ in range(rounds)]
    process = subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.DEVNULL)
    memory = os.wait4(process.pid, 0)[2].ru_maxrss
    table(f"{MANY_TESTS:,} reusable tests", ["wall, s", "processor, s", "each, ms of processor", "MB"],
          [[min(cost.wall for cost in costs), min(cost.cpu for cost in costs),
            min(cost.cpu for cost in costs) / MANY_TESTS * 1000, memory // 1000]])


def stored_bytes(store):
    return sum(path.stat().st_size for path in store.glob("results-*/??/*"))


def bench_remote(rounds):
    """A store for the team: a result that comes from there, and tests that are reused while it is away."""
    with tempfile.TemporaryDirectory() as folder, socket.socket() as silent:
        folder = Path(folder)
        (folder / "project").mkdir()
        project = folder / "project"
        project_with_files(project)
        port = free_port()
        redis = subprocess.Popen(["redis-server", "--port", str(port), "--save", ""], stdout=subprocess.DEVNULL, cwd=folder)
        try:
            wait_for(port)
            hits(rounds, folder, project, port)
        finally:
            redis.kill()
            redis.wait()
        # Takes connections, and never answers.
        silent.bind(("127.0.0.1", 0))
        silent.listen(1000)
        absences(rounds, folder, project, {"refuses": port, "hangs": silent.getsockname()[1]})


def hits(rounds, folder, project, port):
    remotes = {"redis": f"redis://127.0.0.1:{port}", "file": f"file:{folder}/shared"}
    plain = {**os.environ, "TASTING_DIR": str(folder / "embedded")}
    for remote in remotes.values():
        sender = {**os.environ, "TASTING_DIR": str(folder / "sender"), "TASTING_REMOTE": remote, "TASTING_RECACHE": "1"}
        run(["tasting", "run", "./t"], cwd=project, env=sender)
        run(["tasting", "push"], cwd=project, env=sender)

    def fetched(name, forget):
        store = folder / f"{name}-{forget.__name__}"
        environment = {**os.environ, "TASTING_DIR": str(store), "TASTING_REMOTE": remotes[name]}

        def measure():
            forget(store)
            return Cost(["tasting", "run", "./t"], cwd=project, env=environment)

        return measure

    variants = {"embedded": lambda: Cost(["tasting", "run", "./t"], cwd=project, env=plain)}
    variants |= {name: fetched(name, forget_results) for name in remotes}
    variants |= {f"{name}, empty store": fetched(name, forget_everything) for name in remotes}
    for _ in range(2):
        for measure in variants.values():
            measure()
    costs = interleaved(rounds * 40, variants)
    decided = run(["tasting", "stats", "--json"], env={**plain, "TASTING_DIR": str(folder / "redis-forget_results")}, cwd=project)
    if json.loads(decided)["executed"]:
        sys.exit("bench: a result was not found in the remote store")
    rows = [[f"from {name} / from the embedded store", ratio(costs, name, "embedded"), ratio(costs, name, "embedded", "cpu")]
            for name in variants if name != "embedded"]
    table(f"A result that comes from a remote store on loopback ({rounds * 40} rounds)", ["what", "wall clock", "processor"], rows)


def forget_results(store):
    """Results go; what is known of the contents of files stays."""
    for file in store.glob("results-1/??/*.[os]*"):
        file.unlink()


def forget_everything(store):
    shutil.rmtree(store, ignore_errors=True)


TESTS = 200


def absences(rounds, folder, project, ports):
    """Many tests whose results are in the embedded store, with a remote store that is away."""
    script = f"for i in $(seq {TESTS}); do tasting run ./t $i || exit; done"
    store = {**os.environ, "TASTING_DIR": str(folder / "many")}
    run(["sh", "-c", script], cwd=project, env=store)

    def cost(remote):
        return lambda: Cost(["sh", "-c", script], cwd=project, env={**store, "TASTING_REMOTE": remote} if remote else store)

    variants = {"none": cost(""), **{name: cost(f"redis://127.0.0.1:{port}") for name, port in ports.items()}}
    costs = interleaved(rounds * 2, variants)
    rows = [[f"the remote store {name} / none is configured", ratio(costs, name, "none"), ratio(costs, name, "none", "cpu")]
            for name in ports]
    table(f"{TESTS} tests that are reused ({rounds * 2} rounds)", ["what", "wall clock", "processor"], rows)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_for(port):
    for _ in range(500):
        try:
            return socket.create_connection(("127.0.0.1", port)).close()
        except OSError:
            time.sleep(0.02)
    sys.exit("bench: redis-server does not start")


def fill(folder, environment):
    """Stores 10,000 tests."""
    example("store", "fill", environment["TASTING_DIR"], "10000")


def example(name, *arguments):
    cargo = os.environ.get("CARGO", "cargo")
    return run([cargo, "run", "--quiet", "--release", "--locked", "--example", name, "--", *arguments], cwd=REPOSITORY)


if __name__ == "__main__":
    main()
