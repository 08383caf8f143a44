#!/usr/bin/env python3
"""Builds a project of the laboratory with the shims, and prints its tests as JSON: name, command, folder.

    BUILT=target/release scripts/lab/suite.py --folder FOLDER PROJECT

The build stays in FOLDER/PROJECT/tree. Used by the laboratory (`lab suites`), which destroys what tests do not use.
"""

import argparse
import dataclasses
import json
import os
import tempfile
from pathlib import Path

from projects import PROJECTS, REPOSITORY, Copy, run


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--folder", type=Path, required=True)
    arguments.add_argument("project", choices=sorted(PROJECTS))
    options = arguments.parse_args()
    os.environ["LC_ALL"] = "C"
    folder = options.folder / options.project
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as prefix:
        run([REPOSITORY / "scripts/install.sh", prefix])
        os.environ["PATH"] = f"{prefix}/bin:{os.environ['PATH']}"
        os.environ["TASTING_DIR"] = str(folder / "store")
        toolchain = f"-DCMAKE_TOOLCHAIN_FILE={prefix}/share/tasting/cmake/tasting.cmake"
        tests = Copy(PROJECTS[options.project], folder / "tree", [toolchain]).tests()
    print(json.dumps([dataclasses.asdict(test) for test in tests]))


if __name__ == "__main__":
    main()
