"""Whether kernels read and write what recordings say, from the memory before and after."""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from gpuviz.commands.workloads import WORKLOADS
from tests.gpu.access_programs import touches
from tests.gpu.record_workloads import record

MOST_UNKNOWN = 0.15
ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", WORKLOADS)
def test_most_blocks_that_launches_touch_have_a_known_mode(name):
    recording, _ = record(name)
    found = touches(recording)
    unknown = Counter(kernel[:80] for _, mode, kernel in found if mode == "unknown")
    share = sum(unknown.values()) / len(found)

    assert share <= MOST_UNKNOWN, (round(share, 3), unknown.most_common(6))


@pytest.mark.parametrize("library", ["cupy", "torch"])
def test_what_is_only_read_stays_and_what_is_new_is_written_first(library):
    pytest.importorskip(library)
    # In a process of its own, because libraries keep memory.
    command = [sys.executable, "-m", "tests.gpu.access_programs", library]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)

    assert json.loads(ran.stdout) == {"changed though read": [], "read first": []}
