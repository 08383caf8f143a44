"""The projects of the laboratory: their sources, their builds with the shims, their own tests, one process each."""

import dataclasses
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]


@dataclasses.dataclass(frozen=True)
class Project:
    """A project that CMake builds and CTest tests."""
    name: str
    # A Debian source package, or a folder with sources.
    package: str
    # Patterns of the files that are mutated.
    mutated: tuple
    options: tuple = ()
    # The GoogleTest programs among the tests: each of their cases is a test of its own.
    suites: tuple = ()
    # Links to make in the sources before they are built, by name.
    links: tuple = ()


PROJECTS = {project.name: project for project in [
    Project("jansson", "jansson", ("src/*.c",),
            ("-DJANSSON_BUILD_SHARED_LIBS=ON", "-DJANSSON_EXAMPLES=OFF", "-DJANSSON_BUILD_DOCS=OFF", "-DCMAKE_BUILD_TYPE=Release")),
    Project("yaml-cpp", "yaml-cpp", ("src/*.cpp",), ("-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_CXX_FLAGS_RELEASE=-O2"),
            ("yaml-cpp-tests",), (("test/gtest-1.10.0", "/usr/src/googletest"),)),
    Project("tiny", str(REPOSITORY / "fixtures/lab"), ("lib/*.c",)),
]}


@dataclasses.dataclass(frozen=True)
class Test:
    name: str
    command: tuple
    folder: str


class Copy:
    """A copy of a project's sources and its build."""

    def __init__(self, project, folder, options=()):
        self.project, self.tree, self.build_folder = project, folder, folder / "build"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(sources(project, folder.parent), folder, symlinks=True)
        for name, target in project.links:
            (folder / name).symlink_to(target)
        # The root is here, wherever the laboratory is.
        (folder / "tasting.toml").touch()
        run(["cmake", "-S", folder, "-B", self.build_folder, "-G", "Ninja", *project.options, *options])
        if problem := self.build():
            sys.exit(f"lab: {project.name} cannot be built:\n{problem}")

    def build(self):
        """What the compiler complains of, or nothing."""
        done = subprocess.run(["ninja", "-C", self.build_folder], stdin=subprocess.DEVNULL, capture_output=True, text=True)
        return None if done.returncode == 0 else done.stdout[-4000:] + done.stderr[-1000:]

    def files(self):
        return sorted(file for pattern in self.project.mutated for file in self.tree.glob(pattern))

    def tests(self):
        listed = json.loads(run(["ctest", "--show-only=json-v1"], cwd=self.build_folder))["tests"]
        tests = [self.test_of(entry) for entry in listed if "command" in entry]
        return [case for test in tests for case in self.cases(test)]

    def test_of(self, entry):
        properties = {item["name"]: item["value"] for item in entry.get("properties", [])}
        command = entry["command"]
        if command[1:3] == ["run", "--ctest"]:
            # Whether and how Tasting comes before it is ours to say.
            command = command[command.index("--") + 1:]
        return Test(entry["name"], tuple(command), properties.get("WORKING_DIRECTORY", str(self.build_folder)))

    def cases(self, test):
        if os.path.basename(test.command[0]) not in self.project.suites:
            return [test]
        listed = run([*test.command, "--gtest_list_tests"], cwd=test.folder)
        return [Test(name, (*test.command, f"--gtest_filter={name}", "--gtest_print_time=0"), test.folder)
                for name in case_names(listed)]


def case_names(listed):
    """The cases that a GoogleTest program lists: suites at the margin, their cases below."""
    suite = ""
    for line in listed.splitlines():
        word = re.split(r"\s+#", line)[0].rstrip()
        if not word.startswith(" "):
            suite = word if word.endswith(".") else ""
        elif suite:
            yield suite + word.strip()


def sources(project, folder):
    if os.path.isabs(project.package):
        return Path(project.package)
    if not (folder / "source").is_dir():
        folder.mkdir(parents=True, exist_ok=True)
        run([REPOSITORY / "scripts/subjects/fetch.sh", project.package, "source"], cwd=folder)
    return folder / "source"


def run(command, **how):
    done = subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL, capture_output=True, text=True, **how)
    if done.returncode != 0:
        sys.exit(f"lab: {' '.join(map(str, command))} ended with {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-4000:]}")
    return done.stdout
