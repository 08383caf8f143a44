"""Running a test, plainly or through `tasting run`, and what is to be compared of how it ended."""

import dataclasses
import os
import re
import resource
import signal
import subprocess
import tempfile
import time

# Mutated programs ask for all the memory there is, or write for ever. The address space is not
# limited: then nothing would be traced.
LIMITS = {resource.RLIMIT_DATA: 4 << 30, resource.RLIMIT_FSIZE: 64 << 20, resource.RLIMIT_CORE: 0}
# What differs from run to run: addresses, numbers of processes.
UNSTEADY = re.compile(rb"0x[0-9a-fA-F]{6,}|\bpid \d+|==\d+==")
HANGS = "hangs"
FLOODS = "prints more than is kept"


@dataclasses.dataclass(frozen=True)
class Outcome:
    """How a test ended; the time that it took does not count."""
    status: object
    stdout: bytes
    stderr: bytes
    seconds: float = dataclasses.field(compare=False)

    def describe(self):
        def tail(text):
            return text[-1500:].decode(errors="replace")
        return f"status {self.status}\nstdout: {tail(self.stdout)}\nstderr: {tail(self.stderr)}"


def run_test(test, seconds, before=()):
    """Runs a test, with other words before its command, in a group of processes that ends with it."""
    with tempfile.TemporaryFile() as stdout, tempfile.TemporaryFile() as stderr:
        start = time.perf_counter()
        process = subprocess.Popen([*before, *test.command], cwd=test.folder, stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr,
                                   start_new_session=True, preexec_fn=limit)
        status = wait(process, seconds)
        took = time.perf_counter() - start
        if status == HANGS:
            return Outcome(HANGS, b"", b"", took)
        if any(os.fstat(file.fileno()).st_size >= LIMITS[resource.RLIMIT_FSIZE] for file in (stdout, stderr)):
            # Whoever writes gets the signal: the test, or `tasting run`.
            return Outcome(FLOODS, b"", b"", took)
        return Outcome(status, steady(stdout), steady(stderr), took)


def limit():
    for what, most in LIMITS.items():
        resource.setrlimit(what, (most, most))


def wait(process, seconds):
    try:
        # As a shell would show it: that is how `tasting run` may tell of a signal too.
        status = process.wait(timeout=seconds)
        return status if status >= 0 else 128 - status
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return HANGS


def steady(file):
    file.seek(0)
    return UNSTEADY.sub(b"~", file.read())
