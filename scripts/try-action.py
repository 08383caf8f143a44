#!/usr/bin/env python3
"""Executes the shell steps of action.yml and summary/action.yml as GitHub's runner does, with a project in between, and checks
that the second job reuses the result of the first one. `make action-test`; $BUILT has the binaries. Needs PyYAML, and
check-jsonschema for the schema of actions, where it is installed."""
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

import yaml

REPOSITORY = pathlib.Path(__file__).resolve().parent.parent
ACTIONS = [REPOSITORY / "action.yml", REPOSITORY / "summary/action.yml"]


def expand(text, values):
    """The expressions that our steps use."""
    return re.sub(r"\$\{\{\s*(.*?)\s*\}\}", lambda match: values[match.group(1)], text)


class Job:
    """One job: files for variables, PATH and the summary, and a store that is brought back."""

    def __init__(self, work, number):
        self.work = work
        self.folder = work / f"job{number}"
        (self.folder / "temp").mkdir(parents=True)
        self.files = {name: self.folder / name for name in ["GITHUB_ENV", "GITHUB_PATH", "GITHUB_STEP_SUMMARY"]}
        for path in self.files.values():
            path.touch()
        self.values = {
            "inputs.prefix": str(work / "prefix"),
            "inputs.max-size": "1G",
            "runner.temp": str(self.folder / "temp"),
        }

    def environment(self):
        own = {name: value for name, value in os.environ.items() if not name.startswith(("TASTING_", "MAKE", "MFLAGS"))}
        own |= {name: str(path) for name, path in self.files.items()}
        own |= {"RUNNER_TEMP": self.values["runner.temp"], "GITHUB_ACTION_PATH": str(REPOSITORY), "CI": "true"}
        own |= dict(line.split("=", 1) for line in self.files["GITHUB_ENV"].read_text().splitlines())
        own["PATH"] = ":".join(self.files["GITHUB_PATH"].read_text().split() + [own["PATH"]])
        return own

    def shell(self, script, folder, extra=()):
        command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script]
        subprocess.run(command, cwd=folder, env=self.environment() | dict(extra), check=True, stdout=subprocess.DEVNULL)

    def action(self, path):
        for step in yaml.safe_load(path.read_text())["runs"]["steps"]:
            # The program is there already, as if it came from the cache.
            if "run" in step and "cache-hit" not in step.get("if", ""):
                extra = {name: expand(value, self.values) for name, value in step.get("env", {}).items()}
                self.shell(expand(step["run"], self.values), self.folder, extra)


def main():
    linter = shutil.which("check-jsonschema")
    if linter:
        subprocess.run([linter, "--builtin-schema", "vendor.github-actions", *ACTIONS], check=True)
    else:
        print("check-jsonschema is not installed: the schema of actions is not checked")
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        subprocess.run([REPOSITORY / "scripts/install.sh", work / "prefix"], check=True, stdout=subprocess.DEVNULL)
        shutil.copytree(REPOSITORY / "fixtures/demo", work / "demo")
        store = None
        for number, expected in enumerate(["0 of 1", "1 of 1"]):
            job = Job(work, number)
            if store:
                shutil.copytree(store, job.folder / "temp/tasting-store")
            job.action(ACTIONS[0])
            job.shell("make CC=tasting-cc RUNNER='tasting run --' till check", work / "demo", {"TASTING_ROOT": str(work / "demo")})
            job.action(ACTIONS[1])
            summary = job.files["GITHUB_STEP_SUMMARY"].read_text()
            assert f"Tasting: {expected} test results reused" in summary, summary
            store = job.folder / "temp/tasting-store"
    print("the action's steps do what they should")


main()
