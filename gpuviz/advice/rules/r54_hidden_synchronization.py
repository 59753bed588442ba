"""R54: an operation fetches the size of its result from the GPU, and waits for it."""

import re
from typing import TYPE_CHECKING

import numpy as np

from gpuviz.advice.host_lines import text_of
from gpuviz.advice.trace import COPY, KERNEL
from gpuviz.advice.waits import Waits, longest_waits, without_waits
from gpuviz.data.columns import plain
from gpuviz.data.strings import texts
from gpuviz.quantities import format_counted, format_duration

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpuviz.advice.finding import Finding
    from gpuviz.advice.schedule import Schedule

# Kernels that count or place the elements that a mask or a condition selects: CuPy's and CUB's.
_SELECTS = re.compile(
    r"cupy_\w*(nonzero|mask|inclusive_scan|boolean_array_indexing)"
    r"|.*\bDevice(Scan|Select|RunLengthEncode|ReduceByKey)\w*Kernel\b"
)
# A count, or several of them.
_MOST_BYTES = 64


def find(schedule: "Schedule") -> "Iterator[Finding]":
    """Find boolean masks, ``nonzero``, ``unique`` and ``where`` that wait for the GPU.

    Trigger: see `gpuviz.advice.waits.longest_waits`; the line launches a kernel that counts what a
    condition selects, and copies at most 64 bytes to the host: the size of its result.

    Saving: the recording's `Schedule`, replayed without any wait of the line. A result of a fixed
    size may do more work: ``possible``.
    """
    for waits in longest_waits(schedule):
        if not fetches_a_size(schedule, waits):
            continue
        removed = without_waits(schedule, waits)
        waited = format_duration(removed.waited_ns)
        yield removed.finding(
            "R54",
            title=(
                f"{text_of(removed.lines[0])} waits {waited} for the size of its result, in "
                f"{format_counted(len(waits.rows), 'call')}."
            ),
            reason=(
                f"{removed.reason} How many elements a mask or a condition selects is known on the "
                "GPU only, and the host needs it to allocate the result."
            ),
            change=(
                "Keep a fixed size: multiply by the mask, or use `cupy.where(condition, x, y)`, "
                "`out=` or `cupy.count_nonzero` and let later kernels skip what is not selected."
            ),
        )


def fetches_a_size(schedule: "Schedule", waits: Waits) -> bool:
    """Return whether a line's waits are for the size of what it selects."""
    if not waits.is_copy:
        return False
    tables = schedule.recording.tables
    copies = np.isin(schedule.call, waits.all_calls) & (schedule.kind == COPY)
    sizes = plain(tables["activities"]["bytes"])[schedule.rows[copies]]
    if not len(sizes) or int(sizes.max()) > _MOST_BYTES:
        return False
    own = schedule.lines == schedule.lines[np.flatnonzero(copies)[0]]
    names = plain(tables["activities"]["name"])[schedule.rows[own & (schedule.kind == KERNEL)]]
    return any(_SELECTS.match(text) for text in texts(tables, np.unique(names)))
