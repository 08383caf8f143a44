#!/usr/bin/env python3
"""The mutation check: no result may be reused that a random change of the source has made wrong.

    BUILT=target/release scripts/lab/mutate.py [--seed N] [--mutations N] [--tests N] [PROJECT…]

Builds real projects with the shims and runs their tests with `tasting run`. Then, for each mutation: builds, runs every test with
`tasting run` and plainly, and compares. A reused result that is not what the test does now is a MISS: all that is needed to see it
again is printed and kept, and the exit status is 1. The table shows how many tests were selected: by the whole fingerprint, by
what they execute, and how many of them gcov sees executing the mutated function. Needs what scripts/install-test-tools.sh installs.
"""

import argparse
import collections
import dataclasses
import difflib
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from coverage import Coverage
from outcomes import HANGS, run_test
from projects import PROJECTS, REPOSITORY, Copy, run

# The laboratory, which has the mutations.
LAB = Path(os.environ.get("BUILT", "target/release"), "lab").absolute()
TARGET = REPOSITORY / os.environ.get("CARGO_TARGET_DIR", "target")
TASTING = ("tasting", "run", "--reuse-failures", "--")
# Said of this run; the reason of the next one repeats it in other words.
DISTURBED = "not kept: the test: ends differently when its functions are traced"
# A test that takes longer hangs; where many tests do, the rest gets less time.
PATIENCE, IMPATIENCE, MOST_HANGS = 4, 0.7, 6
# How often a test is run again to see whether it ends otherwise by itself.
RERUNS = 40


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--mutations", type=int, default=100, help="that compile, of each project")
    arguments.add_argument("--tests", type=int, default=150, help="at most, of each project; a random choice")
    arguments.add_argument("--blind", action="store_true", help="reuse everything, to see that the check finds what is wrong then")
    arguments.add_argument("--folder", type=Path, default=TARGET / "lab", help="where to build")
    arguments.add_argument("projects", nargs="*", metavar="PROJECT", help=" ".join(PROJECTS))
    options = arguments.parse_args()
    if unknown := set(options.projects) - set(PROJECTS):
        arguments.error(f"no such project: {' '.join(sorted(unknown))}")

    clean_environment()
    with tempfile.TemporaryDirectory() as prefix:
        run([REPOSITORY / "scripts/install.sh", prefix])
        os.environ["PATH"] = f"{prefix}/bin:{os.environ['PATH']}"
        toolchain = f"-DCMAKE_TOOLCHAIN_FILE={prefix}/share/tasting/cmake/tasting.cmake"
        labs = [Lab(PROJECTS[name], options, toolchain) for name in options.projects or ["jansson", "yaml-cpp"]]
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        interrupted = False
        try:
            for lab in labs:
                lab.work()
        except KeyboardInterrupt:
            # What was found until then is worth a table.
            interrupted, labs = True, [lab for lab in labs if lab.checked]
    print_tables(labs, options)
    sys.exit(1 if interrupted or any(lab.misses for lab in labs) else 0)


def clean_environment():
    os.environ["LC_ALL"] = "C"
    for name in list(os.environ):
        if name in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "CC", "CXX", "CFLAGS", "CXXFLAGS", "LDFLAGS") or name.startswith("TASTING_"):
            del os.environ[name]


@dataclasses.dataclass
class Checked:
    """What one mutation came to, with the names of tests."""
    number: int
    kind: str
    place: str
    # Whose program has another fingerprint.
    whole: list = dataclasses.field(default_factory=list)
    # That were run by `tasting run`.
    selected: list = dataclasses.field(default_factory=list)
    # That end differently from the unmutated build.
    changed: list = dataclasses.field(default_factory=list)
    # That execute the mutated function; `None` if it is in none.
    executing: object = None
    hangs: list = dataclasses.field(default_factory=list)
    disturbed: list = dataclasses.field(default_factory=list)
    unsteady: list = dataclasses.field(default_factory=list)


class Lab:
    """One project under mutation."""

    def __init__(self, project, options, toolchain):
        self.project, self.options, self.toolchain = project, options, toolchain
        self.folder = options.folder / project.name
        self.random = random.Random(f"{options.seed} {project.name}")
        self.checked, self.misses, self.broken = [], [], 0
        self.seconds = collections.defaultdict(list)

    def work(self):
        self.folder.mkdir(parents=True, exist_ok=True)
        self.use_store()
        self.copy = Copy(self.project, self.folder / "tree", [self.toolchain])
        self.choose_tests()
        self.coverage = Coverage(self.project, self.folder / "coverage")
        self.coverage.measure({test.name for test in self.tests})
        self.fill()
        while len(self.checked) < self.options.mutations:
            self.mutate()

    def use_store(self):
        store = self.folder / "store"
        subprocess.run(["rm", "-rf", store], check=True)
        os.environ["TASTING_DIR"] = str(store)

    def choose_tests(self):
        """A choice of tests that end the same way each time, and how they end."""
        tests = self.copy.tests()
        if len(tests) > self.options.tests:
            tests = self.random.sample(tests, self.options.tests)
        self.plain = {test: run_test(test, PATIENCE) for test in tests}
        self.tests = [test for test in tests if run_test(test, PATIENCE) == self.plain[test]]
        self.say(f"{len(self.tests)} tests, {len(tests) - len(self.tests)} left out because they end this way and that")

    def fill(self):
        """Fills the store with the unmutated build."""
        for test in self.tests:
            run_test(test, PATIENCE, TASTING)
        self.fingerprints = self.current_fingerprints()
        again = [run_test(test, PATIENCE, TASTING) for test in self.tests]
        decisions = self.decisions()
        unlike = [test.name for test, outcome in zip(self.tests, again) if outcome != self.plain[test]]
        never = {test.name: decisions[test]["reason"] for test in self.tests if decisions[test]["decision"] != "reused"}
        self.say(f"{len(never)} tests are not reused though nothing has changed {never or ''}, {len(unlike)} end differently {unlike or ''}")

    def decisions(self):
        """The latest decision about each test."""
        lines = run(["tasting", "log", "--json", "-n", str(len(self.tests))]).splitlines()
        by_command = {tuple(decision["argv"]): decision for decision in map(json.loads, lines)}
        return {test: by_command.get(test.command) for test in self.tests}

    def current_fingerprints(self):
        programs = {test.command[0] for test in self.tests}
        return {program: run(["tasting", "fingerprint", program]).split()[0] for program in programs}

    def mutate(self):
        """Takes a random mutation, builds it, checks it, and takes it back."""
        file, text, mutation = self.choose_mutation()
        try:
            file.write_text(mutation["text"])
            if self.copy.build():
                self.broken += 1
                return
            path = file.relative_to(self.copy.tree)
            line = mutation["line"]
            checked = Checked(len(self.checked) + 1, mutation["kind"], f"{path}:{line}", executing=self.executing(path, line))
            self.check(checked, difference(text, mutation, path))
            self.checked.append(checked)
            self.tell(checked)
        finally:
            # Built again with the next mutation.
            file.write_text(text)

    def choose_mutation(self):
        """A random mutation of one of the project's files."""
        seed = f"{self.options.seed} {self.project.name} {len(self.checked)} {self.broken}"
        mutation = json.loads(run([LAB, "--mutation-seed", seed, "--mutate", *self.copy.files()]))
        file = Path(mutation["file"])
        return file, file.read_text(), mutation

    def executing(self, path, line):
        executing = self.coverage.executing(path, line)
        return None if executing is None else sorted(executing)

    def check(self, checked, patch):
        fingerprints = self.current_fingerprints()
        checked.whole = [test.name for test in self.tests if fingerprints[test.command[0]] != self.fingerprints[test.command[0]]]
        if self.options.blind:
            traced, decisions = self.plain, dict.fromkeys(self.tests, {"decision": "reused", "reason": "blindly"})
        else:
            traced = {test: self.run_patiently(test, checked, TASTING) for test in self.tests}
            decisions = self.decisions()
        for test in self.tests:
            self.compare(test, traced[test], decisions[test], checked, patch)

    def run_patiently(self, test, checked, before):
        outcome = run_test(test, PATIENCE if len(checked.hangs) < MOST_HANGS else IMPATIENCE, before)
        if outcome.status == HANGS:
            checked.hangs.append(test.name)
        return outcome

    def compare(self, test, traced, decision, checked, patch):
        """Holds what `tasting run` gave against what the test does plainly."""
        # A test that hangs has been selected; there is nothing to compare.
        if traced.status == HANGS:
            checked.selected.append(test.name)
            checked.changed.append(test.name)
            return
        reused = decision["decision"] == "reused"
        plain = run_test(test, PATIENCE)
        self.seconds["plain"].append(plain.seconds)
        self.seconds["reused" if reused else "executed"].append(traced.seconds)
        if not reused:
            checked.selected.append(test.name)
        if DISTURBED in decision["reason"]:
            checked.disturbed.append(test.name)
        if plain != self.plain[test]:
            checked.changed.append(test.name)
        if plain == traced:
            return
        if is_unsteady(test, plain):
            checked.unsteady.append(test.name)
        else:
            self.miss(test, plain, traced, decision, checked, patch)

    def miss(self, test, plain, traced, decision, checked, patch):
        """Keeps and prints what is needed to see a wrong result again."""
        word = "MISS" if decision["decision"] == "reused" else "DISTURBED"
        folder = self.folder / "misses" / f"{self.options.seed}-{checked.number}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "mutation.patch").write_text(patch)
        text = "\n".join([
            f"{word}: {self.project.name}, seed {self.options.seed}, mutation {checked.number} ({checked.kind})", patch,
            f"test: cd {test.folder} && {' '.join(test.command)}", f"decision: {json.dumps(decision)}",
            f"plainly: {plain.describe()}", f"tasting run: {traced.describe()}", f"tasting explain: {explain(test)}"])
        (folder / f"{word} {test.name.replace('/', ' ')}.txt").write_text(text)
        self.misses.append((word, checked.number, test.name))
        print(text, flush=True)

    def tell(self, checked):
        (self.folder / f"seed-{self.options.seed}.jsonl").open("a").write(json.dumps(dataclasses.asdict(checked)) + "\n")
        executing = "-" if checked.executing is None else len(checked.executing)
        self.say(f"{checked.number} {checked.kind} {checked.place}: tests by fingerprint {len(checked.whole)}, selected {len(checked.selected)}, "
                 f"executing {executing}, changed {len(checked.changed)}"
                 + "".join(f", {what} {len(tests)}" for what in ("hangs", "disturbed", "unsteady") if (tests := getattr(checked, what))))

    def say(self, text):
        print(f"{self.project.name}: {text}", file=sys.stderr, flush=True)


def is_unsteady(test, outcome):
    """Mutated programs may read what nobody wrote, and end this way and, once in a while, that."""
    return any(run_test(test, 2 * PATIENCE) != outcome for _ in range(RERUNS))


def explain(test):
    """Asked under the same circumstances, which count."""
    return run_test(test, 60, ("tasting", "explain", "--reuse-failures", "--")).stdout.decode(errors="replace")


def difference(text, mutation, path):
    lines = difflib.unified_diff(text.splitlines(), mutation["text"].splitlines(), f"a/{path}", f"b/{path}", lineterm="")
    return "\n".join(lines) + "\n"


# What is shown


def print_tables(labs, options):
    head = ["project", "mutations (not compiled)", "tests", "selected by fingerprint", "selected by execution", "execute the function (gcov)",
            "end differently", "hang", "disturbed", "unsteady", "misses"]
    rows = [row(lab) for lab in labs]
    print(f"\nseed {options.seed}\n\n| {' | '.join(head)} |\n|{'---|' * len(head)}")
    for cells in rows:
        print(f"| {' | '.join(map(str, cells))} |")
    for lab in labs:
        times = ", ".join(f"{name} {1000 * statistics.median(seconds):.1f}" for name, seconds in lab.seconds.items())
        print(f"\n{lab.project.name}: milliseconds of a test (median): {times}")
        for kind in sorted({checked.kind for checked in lab.checked}):
            print(f"  {kind}: {sum(checked.kind == kind for checked in lab.checked)} mutations")


def row(lab):
    tests = len(lab.tests)
    in_function = [checked for checked in lab.checked if checked.executing is not None]
    executing = share(sum(len(checked.executing) for checked in in_function), len(in_function) * tests)
    counted = {name: sum(len(getattr(checked, name)) for checked in lab.checked)
               for name in ("whole", "selected", "changed", "hangs", "disturbed", "unsteady")}
    whole, selected, changed = (share(counted[name], len(lab.checked) * tests) for name in ("whole", "selected", "changed"))
    misses = sum(word == "MISS" for word, _, _ in lab.misses)
    disturbed = counted["disturbed"] + sum(word == "DISTURBED" for word, _, _ in lab.misses)
    return [lab.project.name, f"{len(lab.checked)} ({lab.broken})", tests, whole, selected, executing, changed, counted["hangs"], disturbed,
            counted["unsteady"], misses]


def share(part, whole):
    return f"{100 * part / whole:.1f} %" if whole else "-"


if __name__ == "__main__":
    main()
