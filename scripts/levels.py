#!/usr/bin/env python3
"""Which edits each level sees: a small program is built before and after each edit, at the code level and at the AST level.

    BUILT=target/release scripts/levels.py [COMPILER…]       prints the table of docs/reuse.md; gcc and clang, with -O2
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
BUILT = (REPOSITORY / os.environ.get("BUILT", "target/release")).resolve()

REBATE = "static int rebate(int sum) { return sum > LIMIT ? sum / 10 : 0; }\n"
IDLE = "int idle(int x) { return x + 1; }\n"

FILES = {
    "item.h": """#ifndef ITEM_H
#define ITEM_H
#include <assert.h>
#define LIMIT 100
enum kind { SMALL, LARGE };
struct item { int price, count; enum kind kind; };
static inline int total(const struct item *it) { return it->price * it->count; }
int order(struct item *items, int number);
#endif
""",
    "main.c": """#include <stdio.h>
#include "item.h"
int main(void) { struct item items[] = { { 3, 4, SMALL }, { 5, 6, LARGE } }; printf("%d\\n", order(items, 2)); return 0; }
""",
    "order.c": """#include "item.h"
static int rebate(int sum) { return sum > LIMIT ? sum / 10 : 0; }
int idle(int x) { return x + 1; }
int order(struct item *items, int number) {
    int sum = 0;
    assert(number >= 0);
    for (int i = 0; i < number; i++)
        sum += total(&items[i]);
    return sum - rebate(sum);
}
""",
}

# What is edited, the file, the old text, the new text.
EDITS = [
    ("the body of a function that is called", "order.c", "sum / 10", "sum / 20"),
    ("the body of a static function in a header, inlined", "item.h", "it->price * it->count", "it->price * it->count + 1"),
    ("the body of a function that nobody calls", "order.c", "x + 1", "x + 2"),
    ("a macro that is used", "item.h", "LIMIT 100", "LIMIT 99"),
    ("a macro that is not used", "item.h", "#define LIMIT", "#define OTHER 1\n#define LIMIT"),
    ("a comment within a line", "order.c", "int sum = 0;", "int sum = 0; /* none yet */"),
    ("a comment on lines of its own, above an `assert`", "order.c", "static int", "/* less\n   for many */\nstatic int"),
    ("layout", "main.c", "{ struct item items", "{\n    struct item items"),
    ("a prototype added", "item.h", "int order", "int width(int);\nint order"),
    ("an enumerator added behind those in use", "item.h", "SMALL, LARGE", "SMALL, LARGE, HUGE"),
    ("a field added behind those in use", "item.h", "enum kind kind; }", "enum kind kind; int weight; }"),
    ("a local variable renamed", "order.c", "sum", "all"),
    ("a static function renamed", "order.c", "rebate", "discount"),
    ("a cast without effect", "order.c", "return sum -", "return (int)sum -"),
    ("operands exchanged: `a * b`, `b * a`", "item.h", "it->price * it->count", "it->count * it->price"),
    ("`i++` written `++i`", "order.c", "i++", "++i"),
    ("`const` added to a parameter", "order.c", "rebate(int sum)", "rebate(const int sum)"),
    ("a statement that can never be reached", "order.c", "int sum = 0;", "int sum = 0; if (0) sum = sum / 10;"),
    ("functions in another order", "order.c", REBATE + IDLE, IDLE + REBATE),
]


def fingerprint(folder, files, compiler, level):
    folder.mkdir()
    for name, text in files.items():
        (folder / name).write_text(text)
    environment = os.environ | {"TASTING_LEVEL": level, "TASTING_DIR": str(folder.parent / "store"), "TASTING_CC": compiler,
                                "PATH": f"{BUILT}:{os.environ['PATH']}"}
    for name in ("main", "order"):
        subprocess.run(["tasting-cc", "-O2", "-c", f"{name}.c"], cwd=folder, env=environment, check=True)
    subprocess.run(["tasting-cc", "main.o", "order.o", "-o", "prog"], cwd=folder, env=environment, check=True)
    shown = subprocess.run(["tasting", "fingerprint", "prog"], cwd=folder, env=environment, check=True, capture_output=True, text=True)
    return shown.stdout.split()[0]


def after(edit):
    title, name, old, new = edit
    files = dict(FILES)
    if old not in files[name]:
        sys.exit(f"levels: {title}: {old!r} is not in {name}")
    files[name] = files[name].replace(old, new)
    return files


def main():
    compilers = sys.argv[1:] or ["gcc", "clang"]
    columns = [(compiler, level) for level in ("code", "ast") for compiler in compilers]
    print(f"| edit | {' | '.join(f'{level}, {compiler}' for compiler, level in columns)} |\n|{'---|' * (len(columns) + 1)}")
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        before = {key: fingerprint(scratch / f"before-{key[0]}-{key[1]}", FILES, *key) for key in columns}
        for number, edit in enumerate(EDITS):
            seen = [fingerprint(scratch / f"{number}-{key[0]}-{key[1]}", after(edit), *key) != before[key] for key in columns]
            print(f"| {edit[0]} | {' | '.join('changes' if it else '–' for it in seen)} |", flush=True)


main()
