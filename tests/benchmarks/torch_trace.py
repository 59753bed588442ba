"""Overhead of recording torch's allocator, for a transformer step.

Needs a GPU. Without a recording, with one of memory, one of memory without call stacks, and with
torch's own history, in turn. Figures are medians of the rounds.
"""

import statistics
import time
from collections.abc import Callable, Iterator

from tests.benchmarks.recording import Row

NEEDS_GPU = True
ROUNDS = 3
STEPS = 100
MOST = 1.05


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
        return time.perf_counter() - began

    return run


def rows() -> Iterator[Row]:
    import torch

    import gpuviz

    run = _steps()
    events = 0

    def recorded(*, stacks: bool, streams: bool) -> Callable[[], float]:
        def measure() -> float:
            nonlocal events
            with gpuviz.record(stacks=stacks, streams=streams, launch_sites=streams) as recorder:
                seconds = run()
            events = recorder.recording.table("memory_events").num_rows
            return seconds

        return measure

    def history() -> float:
        torch.cuda.memory._record_memory_history(stacks="python", max_entries=10_000_000)
        try:
            return run()
        finally:
            torch.cuda.memory._record_memory_history(enabled=None)

    cases = {
        "none": run,
        "memory": recorded(stacks=True, streams=False),
        "memory without stacks": recorded(stacks=False, streams=False),
        "memory and streams": recorded(stacks=True, streams=True),
        "torch's own history with Python stacks": history,
    }
    seconds: dict[str, list[float]] = {case: [] for case in cases}
    run()
    for turn in range(ROUNDS):
        for case in list(cases)[:: -1 if turn % 2 else 1]:
            seconds[case].append(cases[case]())
    medians = {case: statistics.median(values) for case, values in seconds.items()}
    none = medians.pop("none")
    for case, value in medians.items():
        bound = f"{MOST}x" if case == "memory" else "no bound"
        shown = (
            f"{value / STEPS * 1e3:.2f} against {none / STEPS * 1e3:.2f} ms: {value / none:.3f}x"
        )
        yield f"transformer step, {case}", bound, shown, case != "memory" or value <= MOST * none
    rate = events / medians["memory"]
    yield "events of torch a second", "no bound", f"{rate:,.0f}", True
