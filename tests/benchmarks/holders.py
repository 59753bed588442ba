"""Who keeps 10,000 blocks alive, in a process of ten million Python objects."""

import subprocess
import sys
from collections.abc import Iterator

OBJECTS = 10_000_000
BLOCKS = 10_000
BOUNDS_S = {"ten largest": 0.1, "all, held by variables": 3.0, "all, one of them by a cycle": 3.0}

_PROGRAM = f"""
import gc, time, gpuviz
gpu = gpuviz.SimulatedGPU(real_time=False, memory=1 << 40)
kept = {{number: gpu.empty((1 << 20) + 512 * number) for number in range({BLOCKS})}}
gc.disable()
data = [{{"number": number, "parts": [number]}} for number in range({OBJECTS // 3})]
gc.enable()
def seconds(**arguments):
    began = time.perf_counter()
    held = gpuviz.holders(**arguments)
    took = time.perf_counter() - began
    assert all(block.only is not None for block in held.blocks)
    print(took, len(held.blocks))
gpuviz.holders(most=1)
seconds(most=10)
seconds()
gc.disable()
cycle = [gpu.empty(1 << 20)]
cycle.append(cycle)
del cycle
seconds()
"""


def rows() -> Iterator[tuple[str, str, str, bool]]:
    command = [sys.executable, "-c", _PROGRAM]
    ran = subprocess.run(command, check=True, capture_output=True, text=True)
    for (name, bound), line in zip(BOUNDS_S.items(), ran.stdout.splitlines(), strict=True):
        took = float(line.split()[0])
        shown = f"{took * 1e3:.0f} ms"
        yield f"holders of blocks in 10^7 objects: {name}", f"{bound:g} s", shown, took <= bound
