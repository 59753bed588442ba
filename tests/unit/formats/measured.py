"""What damaged files cost: each is handled in a process of its own, with its time and memory."""

import os
import random
import resource
import shutil
import sys
import tempfile
import traceback
from pathlib import Path


def measured(path, outcome):
    """Handle a file in a child process; return its exit code, CPU seconds and bytes.

    The code is 0 if ``outcome(path)`` is True, 3 if it is False, else 1.
    """
    process = os.fork()
    if process == 0:
        resource.setrlimit(resource.RLIMIT_CPU, (60, 60))
        resource.setrlimit(resource.RLIMIT_AS, (16 << 30, 16 << 30))
        code = 1
        try:
            found = outcome(path)
            if isinstance(found, Exception):
                traceback.print_exception(found, limit=-4)
            code = {True: 0, False: 3}.get(found, 1)
        finally:
            os._exit(code)
    _, status, usage = os.wait4(process, 0)
    return os.waitstatus_to_exitcode(status), usage.ru_utime + usage.ru_stime, usage.ru_maxrss << 10


def show(line):
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def fuzz(cases, kinds, outcome, longest_s, most_bytes):
    """Print what the damaged files of each kind cost; return whether all kept the limits."""
    good = True
    for name, make in kinds.items():
        longest = most = loaded = 0
        for seed in range(cases):
            folder = Path(tempfile.mkdtemp(prefix="gpuviz-fuzz-"))
            path = make(folder, random.Random(f"{name}-{seed}"))
            code, seconds, nbytes = measured(path, outcome)
            loaded += code == 0
            longest, most = max(longest, seconds), max(most, nbytes)
            if code not in {0, 3} or seconds > longest_s or nbytes > most_bytes:
                good = False
                show(f"{name} {seed}: exit {code}, {seconds:.2f} s, {nbytes >> 20} MiB: {path}")
                continue
            shutil.rmtree(folder)
            if seed % 250 == 249:
                show(f"{name}: {seed + 1} files so far")
        show(f"{name}: {loaded} of {cases} loaded, {longest:.2f} s, {most >> 20} MiB")
    return good
