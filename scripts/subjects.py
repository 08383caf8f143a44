#!/usr/bin/env python3
"""Real projects that nobody here wrote, by their own build systems and with their own tests, plainly and with Tasting.

    BUILT=target/release scripts/subjects.py [--readme] [NAME…]     (default: every scripts/subjects/NAME.recipe)

For each: it is built plainly and with the shims, and its tests end alike; every executable and shared library has a manifest
that holds; a second run reuses everything; after an edit only what the edit touches runs, and ends as in the plain build; with
the edit undone everything is reused. Ends with 1 where one of these does not hold.

A recipe is a piece of bash. It sets `package`, a Debian source package, or `crate`, as NAME@VERSION of crates.io, and
  title    what it is, for the table
  edit     FILE, OLD and NEW: in FILE, the text OLD (which is there once) becomes NEW
  unkept   how many tests are not reused though nothing has changed, and why (a comment); none if it is not set
and defines, for the folder with its sources:
  build    builds with $CC and $CXX; CMake and Meson with $cmake_options and $meson_options instead; cargo as it does
  check    runs its tests, with $run before each command ($meson_wrapper for Meson; CTest and cargo know by themselves), and
           prints for each how it ended: the same in both builds, whatever a test says of times and places
"""

import argparse
import fcntl
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
RECIPES = REPOSITORY / "scripts/subjects"
CACHE = Path(os.environ.get("CARGO_TARGET_DIR") or REPOSITORY / "target").resolve() / "subjects"
HEADER = ["project", "objects", "tests", "build, to plain", "tests alone", "first run", "second run", "after an edit"]
# What the outside may not change about a build.
UNSET = ("MAKEFLAGS MFLAGS MAKELEVEL CFLAGS CXXFLAGS CPPFLAGS LDFLAGS CC CXX RUSTFLAGS CARGO_TARGET_DIR CARGO_BUILD_TARGET_DIR "
         "RUSTC_WRAPPER RUST_BACKTRACE").split()


class Wrong(Exception):
    """Something does not hold."""


class Subject:
    def __init__(self, name, prefix):
        self.name, self.prefix, self.folder = name, prefix, CACHE / name
        self.recipe = RECIPES / f"{name}.recipe"
        if not self.recipe.exists():
            raise Wrong(f"there is no {self.recipe}")
        told = "printf '%s\\0' \"${package-}\" \"${crate-}\" \"$title\" \"${unkept-0}\" \"${edit[@]}\""
        package, crate, self.title, unkept, *edit = self.bash(told, RECIPES, {}).split("\0")[:-1]
        self.source_name, self.unkept, self.edit = package or f"crate:{crate}", int(unkept), edit

    def bash(self, command, folder, environment, log=None):
        """Runs a command that knows the recipe; what it prints."""
        script = f". {shlex.quote(str(RECIPES / 'common.sh'))}; . {shlex.quote(str(self.recipe))}; {command}"
        everything = {name: value for name, value in os.environ.items() if name not in UNSET and not name.startswith("TASTING_")}
        everything |= {"LC_ALL": "C", "CCACHE_DISABLE": "1", "jobs": str(os.cpu_count()), "recipes": str(RECIPES), "run": "", "cmake_options": "",
                       "meson_options": "", "meson_wrapper": ""} | environment
        done = subprocess.run(["bash", "-euo", "pipefail", "-c", script], cwd=folder, env=everything, text=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, errors="replace")
        if log:
            log.write_text(done.stdout + done.stderr)
        if done.returncode != 0:
            raise Wrong(f"`{command}` ended with {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
        return done.stdout

    def examine(self):
        """All that the head of this file says. The line of the table."""
        self.folder.mkdir(parents=True, exist_ok=True)
        # One at a time; the lock goes with the process.
        self.lock = (self.folder / "lock").open("w")
        fcntl.flock(self.lock, fcntl.LOCK_EX)
        if not (self.folder / "source").is_dir():
            subprocess.run([RECIPES / "fetch.sh", self.source_name, "source"], cwd=self.folder, check=True)
        shutil.rmtree(self.folder / "store", ignore_errors=True)
        plain = Copy(self, "plain", {"CC": "cc", "CXX": "c++"})
        tasted = Copy(self, "tasted", tasting_environment(self))
        self.same(plain.check(), tasted.check(), "the tests end")
        if tasted.executed == 0:
            raise Wrong("no test went through Tasting")
        tests, alone, first = tasted.executed + tasted.reused, plain.test_time, tasted.test_time
        tasted.has_manifests()

        self.same(plain.results, tasted.check(), "the tests that were reused end")
        self.all_reused(tasted, "the second run")
        second, reused = tasted.test_time, tasted.reused

        plain.change(*self.edit)
        tasted.change(*self.edit)
        self.same(plain.check(), tasted.check(), "after the edit the tests end")
        after, touched = tasted.test_time, tasted.executed
        if touched == 0 or (tests > 1 and touched + self.unkept >= tests):
            raise Wrong(f"the edit makes {touched} of {tests} tests run")
        file, old, new = self.edit
        plain.change(file, new, old)
        tasted.change(file, new, old)
        self.same(plain.check(), tasted.check(), "with the edit undone the tests end")
        self.all_reused(tasted, "the run with the edit undone")
        return [f"{self.name}: {self.title}", str(tasted.objects()), str(tests), f"{tasted.build_time / plain.build_time:.2f}",
                f"{alone:.2f} s", f"{first:.2f} s", f"{second:.2f} s, {reused} reused", f"{after:.2f} s, {touched} run"]

    def same(self, plain, tasted, what):
        if plain != tasted:
            missing, more = sorted(set(plain) - set(tasted)), sorted(set(tasted) - set(plain))
            raise Wrong(f"{what} differently with Tasting: {missing[:9]} have become {more[:9]} ({self.folder})")

    def all_reused(self, tasted, what):
        if tasted.executed > self.unkept:
            reasons = "\n".join(f"{' '.join(one['argv'])[:200]}: {one['reason'][:300]}" for one in tasted.decisions
                                if one["decision"] == "executed")
            raise Wrong(f"{what} executes {tasted.executed} tests, of which {self.unkept} are known:\n{reasons}")


def tasting_environment(subject):
    bin_folder, target = subject.prefix / "bin", f"CARGO_TARGET_{os.uname().machine.upper()}_UNKNOWN_LINUX_GNU"
    return {"CC": "tasting-cc", "CXX": "tasting-c++", "run": "tasting run --", "PATH": f"{bin_folder}:{os.environ['PATH']}",
            "cmake_options": f"--toolchain {subject.prefix}/share/tasting/cmake/tasting.cmake",
            "meson_options": f"--native-file {subject.prefix}/share/tasting/meson/tasting.ini",
            "meson_wrapper": "--wrapper=tasting run --", f"{target}_LINKER": "tasting-cc", f"{target}_RUNNER": "tasting run --",
            "TASTING_DIR": str(subject.folder / "store"), "TASTING_ROOT": str(subject.folder / "tasted")}


class Copy:
    """A copy of the sources, built in one way."""

    def __init__(self, subject, name, environment):
        self.subject, self.tree, self.environment = subject, subject.folder / name, environment
        shutil.rmtree(self.tree, ignore_errors=True)
        shutil.copytree(subject.folder / "source", self.tree, symlinks=True)
        self.build_time = self.build()
        self.results, self.decisions, self.known = [], [], 0

    def build(self):
        start = time.monotonic()
        self.subject.bash("build", self.tree, self.environment, self.tree.with_suffix(".log"))
        return time.monotonic() - start

    def check(self):
        """How the tests end, sorted."""
        start = time.monotonic()
        printed = self.subject.bash("check", self.tree, self.environment, self.tree.with_suffix(".check"))
        self.test_time = time.monotonic() - start
        self.results = sorted(printed.splitlines())
        if not self.results:
            raise Wrong("its tests print nothing")
        if "TASTING_DIR" in self.environment:
            self.read_decisions()
        return self.results

    def read_decisions(self):
        log = self.subject.bash("tasting log --json -n 1000000", self.tree, self.environment).splitlines()
        self.decisions, self.known = [json.loads(line) for line in log[self.known:]], len(log)
        verdicts = [decision["decision"] for decision in self.decisions]
        self.executed, self.reused = verdicts.count("executed"), verdicts.count("reused")

    def change(self, file, old, new):
        path = self.tree / file
        text = path.read_text()
        if text.count(old) != 1:
            raise Wrong(f"{old!r} is {text.count(old)} times in {file}")
        path.write_text(text.replace(old, new))
        self.build()

    def objects(self):
        return sum(1 for path in self.tree.rglob("*.o") if "CMakeScratch" not in path.parts)

    def linked_files(self):
        """Every linked file, as the kernel sees it; the build systems' own probes leave no manifest."""
        for path in self.tree.rglob("*"):
            probes = {"CMakeFiles", "meson-private", "build-script-build"} & set(path.parts)
            if probes or path.suffix in (".o", ".a", ".rlib") or path.is_symlink() or not path.is_file():
                continue
            with path.open("rb") as file:
                start = file.read(18)
            if start.startswith(b"\x7fELF") and start[16] in (2, 3):
                yield path

    def has_manifests(self):
        files = sorted(self.linked_files())
        if not files:
            raise Wrong("nothing was linked")
        for file in files:
            self.subject.bash(f"tasting fingerprint {shlex.quote(str(file))} | grep -qE '^[0-9a-f]{{32}}  '", self.tree, self.environment)


def table(lines):
    return "\n".join("| " + " | ".join(line) + " |" for line in [HEADER, ["---"] * len(HEADER), *lines]) + "\n"


def put_into_readme(text):
    readme, (start, end) = REPOSITORY / "README.md", ("<!-- subjects -->\n", "<!-- end of subjects -->\n")
    before, rest = readme.read_text().split(start)
    readme.write_text(before + start + text + end + rest.split(end)[1])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--readme", action="store_true", help="put the table into README.md, too, with the latest good run of each project")
    parser.add_argument("names", nargs="*", default=sorted(path.stem for path in RECIPES.glob("*.recipe")))
    arguments = parser.parse_args()
    lines, failed = [], False
    with tempfile.TemporaryDirectory() as prefix:
        subprocess.run([REPOSITORY / "scripts/install.sh", prefix], check=True, stdout=subprocess.DEVNULL)
        for name in arguments.names:
            try:
                lines.append(Subject(name, Path(prefix)).examine())
                (CACHE / name / "line.json").write_text(json.dumps(lines[-1]))
                print(f"{name}: " + ", ".join(f"{title} {value}" for title, value in zip(HEADER[1:], lines[-1][1:])), flush=True)
            except (Wrong, subprocess.CalledProcessError) as error:
                failed = True
                print(f"{name}: FAILED: {error}", file=sys.stderr, flush=True)
    if lines:
        print("\n" + table(lines), end="")
    if arguments.readme and not failed:
        kept = sorted(path for path in CACHE.glob("*/line.json") if (RECIPES / f"{path.parent.name}.recipe").exists())
        put_into_readme(table([json.loads(path.read_text()) for path in kept]))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
