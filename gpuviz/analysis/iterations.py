"""The iterations of a program's main loop, and what each of them cost."""

from typing import Any

import pyarrow as pa

from gpuviz.analysis.launch_sequence import LaunchSequence
from gpuviz.analysis.main_loop import main_loop
from gpuviz.analysis.seen_part import seen_part
from gpuviz.analysis.span_costs import busy_ns, peak_bytes, wait_ns
from gpuviz.data.conclusions import schemas
from gpuviz.data.recording_data import RecordingData


def median_iteration(iterations: pa.Table) -> dict[str, Any]:
    """Return the iteration of the median duration, of an even number the shorter one.

    Args:
        iterations: `gpuviz.Recording.iterations`, with at least one row.
    """
    rows = sorted(iterations.to_pylist(), key=lambda row: (row["duration_ns"], row["number"]))
    middle: dict[str, Any] = rows[(len(rows) - 1) // 2]
    return middle


def iterations(recording: RecordingData, device: int) -> pa.Table:
    """Return one row for each iteration of the program's main loop; no rows if none is loop.

    Iterations are the ranges of one name (``gpuviz.range`` or NVTX) that ran at least three times
    in one thread, one after the other; of several names, that with the most time. Without such
    ranges they are the steps of a training program, each until an optimizer of PyTorch has run: of
    several lines that run one, that which does so most often, of those the last. Of a snapshot of
    PyTorch they are the times between the ends of an optimizer's steps. Otherwise they are found by
    the order of the user's lines that launched kernels, copies and memsets: at least two lines that
    repeat at least three times, with eight launches or more. More than half of the repetitions must
    be equal, and all together differ by at most 5 % of their launches, or 20 % if at least 85 % are
    equal, as when every tenth step logs. Of three lines or more that take turns, each may launch
    any number of times in a row. Where the user's lines have no such order, it is that of call
    stacks, as in a loop of a library, or of kernels, in what XLA made of a function. If several
    threads run the same loop, iterations
    are those of the one that launches most. An iteration ends where the next one begins; the last
    one ends with its last launch or the work of it. If the GPU has work left when the host begins
    an iteration, it begins when the GPU does. Of nested loops this is the inner one if launches
    outside it are that few, else the outer one. It is also the outer one if all of these launches
    are in lines that are less indented, as those beside the loop over the layers of a model, unless
    that has fewer rounds than the inner one has in each of them, as epochs do. In all cases,
    iterations have at least half of the launches or of the recorded time.

    Columns: ``number`` (from 1); ``name`` of the range, empty without one; ``start``, ``end``,
    ``duration_ns``; in this time, ``peak_bytes`` (most bytes allocated), ``busy_ns`` (in which an
    activity ran) and ``wait_ns`` (in which the host was blocked, summed over threads, also by other
    devices); and what the host launched in the iteration, also if it ran later: ``kernel_ns``,
    ``kernel_count`` (kernels and graphs, concurrent ones counted separately), ``copy_ns``,
    ``copy_bytes`` (without memsets); of ``kernel_ns``, ``forward_ns``, ``backward_ns`` and
    ``optimizer_ns`` in these parts of a training step. A window of a recording has the iterations
    that are found in it and begin and end in it; if streams were recorded in windows, they are
    those of the longest one.

    Args:
        recording: The recording.
        device: Ordinal.
    """
    schema = pa.schema([field for field in schemas()["iterations"] if field.name != "device"])
    loop = main_loop(recording)
    if loop is None or not len(loop.start):
        return schema.empty_table()
    spans = loop.start, loop.end
    launches = LaunchSequence(seen_part(recording))
    columns = {
        "number": range(1, len(loop.start) + 1),
        "name": [loop.name] * len(loop.start),
        "start": loop.start,
        "end": loop.end,
        "duration_ns": loop.end - loop.start,
        "peak_bytes": peak_bytes(recording, device, *spans),
        "busy_ns": busy_ns(recording, device, *spans),
        "wait_ns": wait_ns(recording, device, *spans),
    } | launches.totals(device, loop.host_start, loop.host_end)
    return pa.table([pa.array(columns[field.name], field.type) for field in schema], schema=schema)
