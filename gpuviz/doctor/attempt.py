"""A trial recording."""

import warnings
from collections.abc import Iterator

from gpuviz.doctor.finding import Finding
from gpuviz.errors import GpuvizError
from gpuviz.frameworks.cupy_current import import_cupy
from gpuviz.quantities import format_duration

_ELEMENTS = 1 << 20


def findings() -> Iterator[Finding]:
    """Create a context on the first GPU, allocate, launch a kernel, and yield what was recorded."""
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
        found = f"{status.events} memory events and {status.activities} GPU activities in {took}"
        yield Finding("attempt", "ok", found)
    notes = dict.fromkeys((*status.notes, *(str(warning.message) for warning in caught)))
    if notes or not status.activities:
        found = " ".join(notes) or "no GPU activity was recorded"
        yield Finding("streams", "warning", found, "Only memory can be recorded.")


def _compute() -> int:
    cupy = import_cupy()
    return int(cupy.ones(_ELEMENTS, dtype=cupy.int32).sum())
