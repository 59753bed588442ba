"""Overhead of recording torch's allocator, for a transformer step.

Needs a GPU. Each case is measured in a process of its own, in turn with nothing recorded: CUPTI and
torch's history slow down what comes after them. Figures are medians of the rounds.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator

from tests.benchmarks.recording import Row

NEEDS_GPU = True
ROUNDS = 3
STEPS = 40
MOST = 1.05
TIMEOUT_S = 120
HISTORY = "torch's own history with Python stacks"
SAMPLES = "memory sampled, for lack of a tracker"
# The arguments of `gpuviz.record`.
MEMORY = {"streams": False, "launch_sites": False}
CASES: dict[str, dict[str, bool] | None] = {
    "memory": MEMORY,
    "memory without stacks": {**MEMORY, "stacks": False},
    "memory and streams": {},
    SAMPLES: MEMORY,
    HISTORY: None,
}


def _steps() -> Callable[[], float]:
    import torch

    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(512, 8, 2048, batch_first=True, dropout=0.0)
    model = torch.nn.TransformerEncoder(layer, 12, enable_nested_tensor=False).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    batch = torch.ones(8, 128, 512, device="cuda")

    def run() -> float:
        torch.cuda.synchronize()
        began = time.perf_counter()
        for _ in range(STEPS):
            model(batch).square().mean().backward()
            optimizer.step()
            optimizer.zero_grad()
        torch.cuda.synchronize()
        return (time.perf_counter() - began) / STEPS

    return run


def measured(case: str) -> dict[str, float]:
    """Return seconds of a step without and with a recording, and events a step."""
    import torch

    import gpuviz

    if case == SAMPLES:
        os.environ.update(CXX="/bin/false", XDG_CACHE_HOME=tempfile.mkdtemp())
    run, options, events = _steps(), CASES[case], 0

    def recorded() -> float:
        nonlocal events
        if options is None:
            torch.cuda.memory._record_memory_history(stacks="python", max_entries=10_000_000)
            try:
                return run()
            finally:
                torch.cuda.memory._record_memory_history(enabled=None)
        with gpuviz.record(**options) as recorder:
            seconds = run()
            events = recorder.status().events
        return seconds

    run()
    recorded()
    seconds: dict[str, list[float]] = {"none": [], "recorded": []}
    for _ in range(ROUNDS):
        seconds["none"].append(run())
        seconds["recorded"].append(recorded())
    medians = {name: statistics.median(values) for name, values in seconds.items()}
    return {**medians, "events": events / STEPS}


def rows() -> Iterator[Row]:
    program = "import json; from tests.benchmarks import torch_trace as t; "
    for case in CASES:
        done = subprocess.run(
            [sys.executable, "-c", f"{program}print(json.dumps(t.measured({case!r})))"],
            check=True,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
        )
        found = json.loads(done.stdout.splitlines()[-1])
        none, value = found["none"], found["recorded"]
        is_bound = case == "memory"
        shown = f"{value * 1e3:.2f} against {none * 1e3:.2f} ms: {value / none:.3f}x"
        if found["events"]:
            shown += f", {found['events'] / value:,.0f} events/s"
        bound = f"{MOST}x" if is_bound else "no bound"
        yield f"transformer step, {case}", bound, shown, not is_bound or value <= MOST * none
