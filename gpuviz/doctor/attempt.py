"""A trial recording."""

import warnings
from collections.abc import Iterator

from gpuviz.doctor import cupy_build
from gpuviz.doctor.finding import Finding
from gpuviz.errors import GpuvizError
from gpuviz.frameworks.cupy_current import import_cupy
from gpuviz.quantities import format_counted, format_duration
from gpuviz.recorder.calibration import measured_costs
from gpuviz.recorder.cupti_library import find_cupti

_ELEMENTS = 1 << 20
_KINDS = {
    "launch": "a launch",
    "copy": "a copy",
    "read_back": "a copy to the host",
    "event_record": "recording an event",
    "event_query": "querying it",
    "stream_wait": "waiting for it on a stream",
    "synchronize": "a synchronization",
    "graph_node": "a kernel of a graph",
}


def findings(*, calibrate: bool = False) -> Iterator[Finding]:
    """Create a context on the first GPU, allocate, launch a kernel, and yield what was recorded.

    Args:
        calibrate: Whether to yield also what recording costs a call.
    """
    # For start-up time: a recorder loads pyarrow.
    from gpuviz.recorder.record import record

    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            with record() as recorder:
                total = _compute()
    except (GpuvizError, RuntimeError, MemoryError) as error:
        yield Finding(
            "attempt", "problem", f"{type(error).__name__}: {error}", "Recording is impossible."
        )
        return
    status, took = recorder.status(), format_duration(recorder.elapsed_ns)
    if total != _ELEMENTS:
        yield Finding("attempt", "problem", f"the sum of ones is {total}, not {_ELEMENTS}")
    elif not status.events:
        yield Finding("attempt", "problem", "no memory event was recorded")
    else:
        events = format_counted(status.events, "memory event")
        activities = format_counted(status.activities, "GPU activity", "GPU activities")
        found = f"{events} and {activities} in {took}"
        yield Finding("attempt", "ok", found)
    notes = dict.fromkeys((*status.notes, *(str(warning.message) for warning in caught)))
    if notes or not status.activities:
        found = " ".join(notes) or "no GPU activity was recorded"
        yield Finding("streams", "warning", found, "Only memory can be recorded.")
    if calibrate:
        yield _cost()


def _cost() -> Finding:
    """Return what CUPTI costs a call of each kind."""
    try:
        costs = measured_costs(str(find_cupti(cupy_build.runtime_version() // 1000)))
    except RuntimeError as error:
        return Finding(
            "cost of recording",
            "warning",
            f"unknown: {error}",
            "Times of recordings include what recording cost.",
        )
    each = [
        f"{_KINDS[kind]} {' to '.join(dict.fromkeys(map(format_duration, interval)))}"
        for kind, interval in costs.items()
        if kind in _KINDS
    ]
    return Finding(
        "cost of recording",
        "ok",
        ", ".join(each),
        "The headline and the findings of a recording are without it.",
    )


def _compute() -> int:
    cupy = import_cupy()
    return int(cupy.ones(_ELEMENTS, dtype=cupy.int32).sum())
