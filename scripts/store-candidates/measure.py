#!/usr/bin/env python3
"""Plain files, LMDB and SQLite as the store of results: what docs/store.md compares.

    cargo build --release --example store
    cargo build --release --manifest-path scripts/store-candidates/Cargo.toml
    scripts/store-candidates/measure.py [PART…]                parts: hit many damage disk

Every round measures each variant once, so that what else the machine does meets all of them alike. `hit` compares
with ccache, if that is installed; `disk` mounts a small tmpfs and a read-only folder, in a namespace of its own.
"""

import os
import random
import resource
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent.parent
SHARED = os.environ.get("CARGO_TARGET_DIR")
BUILT = Path(SHARED or Path(__file__).resolve().parent / "target") / "release"
STORE = Path(SHARED or REPOSITORY / "target") / "release/examples/store"
CANDIDATES = ["files", "lmdb", "sqlite"]
# Files beside the data that are made anew when they are missing.
EXTRA = ("lock.mdb", "database-shm", "database-wal")


def main():
    parts = {"hit": hit, "many": many, "damage": damage, "disk": disk}
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        for candidate in CANDIDATES:
            for count in (10, 10_000):
                put = output([BUILT / candidate, "fill", folder / f"{candidate}-{count}", count])
                print(f"{candidate}, {count} entries: {put}, {used(folder / f'{candidate}-{count}')} KiB")
        for count in (10, 10_000):
            print(f"Tasting's store, {count} entries: {output([STORE, 'fill', folder / f'store-{count}', count])}")
        for name in sys.argv[1:] or parts:
            print(f"\n## {name}")
            parts[name](folder)


def output(command):
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, check=True).stdout.strip()


def used(folder):
    return int(output(["du", "-sk", folder]).split()[0])


def cost(command, environment):
    """Wall-clock and processor milliseconds of one process."""
    command = list(map(str, command))
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    _, status = os.waitpid(os.posix_spawn(command[0], command, environment), 0)
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    if status != 0:
        sys.exit(f"{command} ended with {status}")
    return wall * 1e3, (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1e3


def hit(folder, rounds=400):
    variants = {"a process that does nothing": lambda: cost([BUILT / "nothing"], {})}
    if ccache := shutil.which("ccache"):
        (folder / "a.c").write_text("#include <stdio.h>\nint main(void) { return puts(\"x\"); }\n")
        environment = {"CCACHE_DIR": str(folder / "ccache"), "PATH": os.environ["PATH"], "HOME": str(folder)}
        compile_it = [ccache, shutil.which("gcc"), "-c", folder / "a.c", "-o", folder / "a.o"]
        subprocess.run(list(map(str, compile_it)), env=environment, check=True)
        variants["a ccache hit"] = lambda: cost(compile_it, environment)
    for count in (10, 10_000):
        for candidate in CANDIDATES:
            for mode in ("hit", "hit-and-log"):
                place = folder / f"{candidate}-{count}"
                variants[f"{candidate}, {mode}, {count} entries"] = (
                    lambda program=BUILT / candidate, mode=mode, place=place, count=count:
                    cost([program, mode, place, random.randrange(count)], {})
                )
        variants[f"Tasting's store, {count} entries"] = (
            lambda count=count: cost([STORE, "hit", folder / f"store-{count}", random.randrange(count)], {})
        )
    costs = {name: [] for name in variants}
    for _ in range(rounds):
        for name, measure in variants.items():
            costs[name].append(measure())
    for name, measured in costs.items():
        wall = sorted(wall for wall, _ in measured)
        processor = statistics.mean(processor for _, processor in measured)
        print(f"{name:34} least {wall[0]:.2f}  10 % {wall[rounds // 10]:.2f}  median {wall[rounds // 2]:.2f} ms, processor {processor:.2f} ms")


def many(folder):
    """64 processes store 50 entries each; in the second round they have more to do, and half of them are killed."""
    for candidate in CANDIDATES:
        for kill in (False, True):
            place, start = folder / f"{candidate}-many-{kill}", time.perf_counter()
            command = lambda number: [str(BUILT / candidate), "work", str(place), str(number * 1000), "500" if kill else "50"]
            workers = [
                subprocess.Popen(command(number), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                for number in range(64)
            ]
            for worker in workers[::2] if kill else []:
                time.sleep(random.random() * 0.01)
                worker.send_signal(signal.SIGKILL)
            told, errors = zip(*(worker.communicate() for worker in workers))
            seconds = time.perf_counter() - start
            stored = "".join(text[: text.rfind("\n") + 1] for text in told)
            killed = sum(worker.returncode < 0 for worker in workers)
            print(f"{candidate}: {seconds:.2f} s, {killed} killed, {sum(map(bool, errors))} with errors, {verified(candidate, place, stored)}")


def verified(candidate, place, numbers):
    done = subprocess.run([BUILT / candidate, "verify", place], input=numbers, capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else f"ended with {done.returncode}: {done.stderr.strip()[:100]}"


def damage(folder, rounds=40):
    """Bytes changed at random: what reading and then writing comes to."""
    for candidate in CANDIDATES:
        seen = {}
        for seed in range(rounds):
            place = folder / "hurt"
            shutil.rmtree(place, ignore_errors=True)
            shutil.copytree(folder / f"{candidate}-10", place)
            random.seed(seed)
            for file in [file for file in place.rglob("*") if file.is_file() and file.name not in EXTRA]:
                content = bytearray(file.read_bytes())
                for _ in range(2 if candidate == "files" else 200):
                    content[random.randrange(len(content))] ^= random.randrange(1, 256)
                file.write_bytes(content)
            verify = subprocess.run([BUILT / candidate, "verify", place], input="", capture_output=True)
            work = subprocess.run([BUILT / candidate, "work", place, "3", "1"], capture_output=True)
            end = (verify.returncode, work.returncode, "stored" if work.stdout else "an error")
            seen[end] = seen.get(end, 0) + 1
        print(f"{candidate}: (exit of reading, exit of writing, result): times: {seen}")


def disk(folder):
    for candidate in CANDIDATES:
        program, place = BUILT / candidate, folder / "tiny/store"
        script = f"mount -t tmpfs -o size=2m none {folder}/tiny"
        script += f" && {program} work {place} 0 3000 >{folder}/numbers 2>{folder}/errors; {program} verify {place} <{folder}/numbers"
        (folder / "tiny").mkdir(exist_ok=True)
        full = subprocess.run(["unshare", "-rm", "sh", "-c", script], capture_output=True, text=True)
        place = folder / f"{candidate}-10"
        script = f"mount --bind {place} {place} && mount -o remount,ro,bind {place} && {BUILT}/{candidate} hit {place} 3"
        read_only = subprocess.run(["unshare", "-rm", "sh", "-c", script], capture_output=True, text=True)
        print(f"{candidate}: full disk: {full.stdout.strip()}; read-only folder: {read_only.stderr.strip() or 'a hit'}")


main()
