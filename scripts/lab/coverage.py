"""Which tests execute which function, as gcov sees it: an account that owes nothing to Tasting."""

import json
import os
import subprocess
from pathlib import Path

from projects import Copy


class Coverage:
    """The functions of the mutated files, as spans of lines, each with the tests that execute it."""

    def __init__(self, project, folder):
        # Without optimisation: a function that is always inlined would not be counted.
        flags = "--coverage -O0"
        self.copy = Copy(project, folder, [f"-DCMAKE_C_FLAGS={flags}", f"-DCMAKE_CXX_FLAGS={flags}", "-DCMAKE_BUILD_TYPE=None"])
        self.mutated = {os.path.realpath(file): file.relative_to(self.copy.tree) for file in self.copy.files()}
        self.functions = {}

    def measure(self, tests):
        """Runs the tests that are named."""
        for test in self.copy.tests():
            if test.name in tests:
                self.forget()
                subprocess.run(test.command, cwd=test.folder, stdin=subprocess.DEVNULL, capture_output=True, timeout=60)
                self.note(test.name)

    def counts(self):
        return list(self.copy.build_folder.rglob("*.gcda"))

    def forget(self):
        for file in self.counts():
            file.unlink()

    def note(self, test):
        names = {file.name for file in self.mutated.values()}
        files = [file for file in self.counts() if file.name.removesuffix(".gcda") in names]
        if not files:
            return
        done = subprocess.run(["gcov", "--json-format", "--stdout", *files], cwd=self.copy.build_folder, capture_output=True, text=True)
        for document in map(json.loads, done.stdout.splitlines()):
            self.note_document(document, test)

    def note_document(self, document, test):
        for file in document["files"]:
            path = self.mutated.get(os.path.realpath(Path(document["current_working_directory"], file["file"])))
            for function in file["functions"] if path else []:
                span = (function["start_line"], function["end_line"])
                tests = self.functions.setdefault(str(path), {}).setdefault(span, set())
                if function["execution_count"]:
                    tests.add(test)

    def executing(self, path, line):
        """The tests that execute the innermost function around a line; `None` if the line is in no function."""
        around = [(end - start, tests) for (start, end), tests in self.functions.get(str(path), {}).items() if start <= line <= end]
        return min(around, key=lambda entry: entry[0])[1] if around else None
