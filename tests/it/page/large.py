#!/usr/bin/env python3
"""Writes a replay of 200 commits with 10,000 tests each, as `tasting history --json` prints it: large.py FILE.json. What `tasting
report --history` takes for it is in docs/history.md; large.mjs opens the page."""
import json
import sys

COMMITS, TESTS = 200, 10_000
NAMES = ["whole", "file", "static", "executed"]
# Of a hundred tests, how many run at each granularity.
SHARES = [60, 50, 20, 8]


def test(commit, number):
    chance = (commit * 31 + number * 17) % 100
    runs = [commit == 0 or chance < share for share in SHARES]
    program, function = f"build/tests/unit_{number // 10:04}", f"function_{(number + commit) % 3000}"
    shown = {
        "name": f"{program} --case {number}",
        "decision": {name: "executed" if run else "reused" for name, run in zip(NAMES, runs)},
        "exit_code": int((number * 13 + commit) % 4001 == 0),
        "duration_ms": number * 37 % 900 + 3,
    }
    if not runs[-1]:
        return shown | {"reason": f"unchanged since {max(0, commit - 3):010x}", "sort": "shadow", "audit": "same"}
    source = f"src/part_{(number + commit) % 90}.c:{number % 700}"
    changed = {"what": "changed", "name": function, "source": source, "chain": ["main", "run_tests", function]}
    return shown | {"reason": f"the program {program} has changed", "sort": "program-changed", "changed": [changed]}


def main():
    none = dict.fromkeys(NAMES, 0)
    # The report sums up anew.
    counts = dict.fromkeys(["commits", "not_built", "executions", "failures", "total_ms", "missed", "unstable"], 0)
    summary = counts | {"reused": none, "saved_ms": none, "misses": []}
    with open(sys.argv[1], "w") as out:
        out.write('{"project": "/home/u/project", "commits": [')
        for number in range(COMMITS):
            commit = {"sha": f"{number * 7919 + 1:040x}", "subject": f"Change number {number}", "time": 1_700_000_000 + number * 3600,
                      "built": True, "tests": [test(number, index) for index in range(TESTS)]}
            out.write((", " if number else "") + json.dumps(commit, separators=(",", ":")))
        out.write(f'], "summary": {json.dumps(summary)}}}')


main()
