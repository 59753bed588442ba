"""Cost of ``record_stream="auto"`` for a program with one stream: allocate, use and free.

Needs a GPU. Every figure is the median of interleaved rounds of a recording.
"""

import gc
import statistics
import time

NEEDS_GPU = True
ROUNDS = 15
STEPS = 4_000
MOST = 0.05

Row = tuple[str, str, str, bool]


def seconds_of_a_step(record_stream: str, *, own_stream: bool) -> float:
    """Return the seconds of one allocation, launch and free."""
    import cupy

    import gpuviz

    stream = cupy.cuda.Stream(non_blocking=True) if own_stream else cupy.cuda.Stream.null
    gc.collect()
    with gpuviz.record(record_stream=record_stream), stream:  # type: ignore[arg-type]
        for _ in range(200):
            cupy.empty(1000, cupy.float32).fill(1)
        stream.synchronize()
        began = time.perf_counter()
        for _ in range(STEPS):
            cupy.empty(1000, cupy.float32).fill(1)
        seconds = (time.perf_counter() - began) / STEPS
        stream.synchronize()
    return seconds


def rows() -> list[Row]:
    """Return a row for each kind of stream."""
    table = []
    for own_stream in (False, True):
        measured: dict[str, list[float]] = {"off": [], "auto": []}
        for _ in range(ROUNDS):
            for mode, seconds in measured.items():
                seconds.append(seconds_of_a_step(mode, own_stream=own_stream))
        off, auto = (statistics.median(measured[mode]) for mode in ("off", "auto"))
        name = "a stream of its own" if own_stream else "the default stream"
        table.append(
            (
                f"record_stream='auto' with {name}: allocate, use, free",
                f"+{MOST:.0%}",
                f"{auto / off - 1:+.1%} ({off * 1e6:.2f} -> {auto * 1e6:.2f} µs)",
                auto <= (1 + MOST) * off,
            )
        )
    return table
