"""Cost of merging the files of eight processes, of a million memory events each."""

import json
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from gpuviz.recording import Recording
from tests.benchmarks import recording
from tests.benchmarks.recording import Row

PROCESSES = 8
# In a process of its own, whose peak is that of the merge.
MERGE = """
import json, resource, sys, time
import gpuviz
start = time.perf_counter()
merged = gpuviz.merge(sys.argv[1])
seconds = time.perf_counter() - start
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
assert merged.tables["memory_events"].num_rows > 7_900_000
print(json.dumps([seconds, peak / 2**20]))
"""


def rows() -> list[Row]:
    """Measure everything; return the lines of the table."""
    one = recording.recorded()
    with tempfile.TemporaryDirectory() as folder:
        for number in range(PROCESSES):
            facts = {"process_id": number + 1, "boot_id": "one", "host": "node"}
            times = {"start_monotonic_ns": 10**9 + number * 12_345, "start_unix_ns": 10**18}
            launch = {"rank": number, "ranks": PROCESSES}
            manifest = replace(one.manifest, launch=launch, **facts, **times)
            Recording(one.tables, manifest).save(Path(folder, f"{number}.gpuviz"))
        found = subprocess.run(
            [sys.executable, "-c", MERGE, folder], check=True, capture_output=True, text=True
        )
    seconds, peak_gib = json.loads(found.stdout)
    text = f"{seconds:.1f} s, {peak_gib:.1f} GiB"
    is_met = seconds <= 5 and peak_gib <= 3
    return [("merge of 8 files of a million events", "5 s, 3 GiB", text, is_met)]
