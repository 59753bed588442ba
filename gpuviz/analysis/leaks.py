"""Table of the lines of a program whose memory grows, with what keeps it alive."""

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from gpuviz.analysis.growing_lines import GrowingLine, growing_lines
from gpuviz.analysis.lifetimes import Lifetimes, lifetimes
from gpuviz.analysis.processes import processes
from gpuviz.data.recording_data import RecordingData


def leaks(
    recording: RecordingData,
    device: int | None = None,
    holders: Mapping[tuple[int, int], str] | None = None,
) -> pa.Table:
    """Return one row for each line of the program whose live memory grows.

    A line's live bytes, as requested, are compared at the ends of the iterations of the main loop
    (see `gpuviz.analysis.iterations.iterations`; without streams, of the lines that allocate in a
    repeating order; in a loop without such an order, each launch of the line that launches most
    kernels, at least ten, begins one), else at the ends of the notebook cells in which it
    allocated; lines of cells are the same if their text is. See `gpuviz.analysis.growth.growth` for
    what counts as growth. A cache that has filled up, a warm-up and a double buffer do not.

    A line that runs in neither is listed by the rule of succession (Laplace), as in Scalene's leak
    score: of n blocks that it allocated, f were freed, so that the next is freed with probability
    (f + 1) / (n + 2). Its ``score`` is 1 minus that. It is listed from ten allocations and a score
    of 0.9 on, if it grew as much in the second half of the recorded operations as in the first.

    Columns: ``site``, ``source``, ``stack`` as in `Recording.sites`; ``device``; ``by``
    (``iteration``, ``cell`` or ``recording``); ``periods`` (how many iterations, or runs of cells);
    ``growth_bytes`` an iteration or run, with ``growth_low_bytes`` and ``growth_high_bytes``, its
    95 % confidence interval (the same if each adds the same blocks); ``live_bytes`` and
    ``live_count`` at the end of the last one; ``score``; ``certainty`` that it grows; ``use`` of
    the blocks that are older than three iterations or runs: ``unused`` if none of them was used
    after the iteration that follows its own, ``used`` if all were, ``partly``, or ``unknown``; and
    ``unused_bytes`` of those that were not; and ``kept_by``, what keeps most of the live bytes,
    empty if unknown. Other values that are unknown are null: kernels whose arrays are unknown, such
    as those of graphs, may use any block. Unused memory comes first, then most bytes.

    Args:
        recording: The recording.
        device: Ordinal; all devices if None.
        holders: What keeps the blocks alive that are live at the end, by device and address.

    Raises:
        ValueError: The recording has no such device.
    """
    devices = recording.devices if device is None else (recording.device_or_first(device),)
    parts = [each.recording for each in processes(recording)] or [recording]
    lines = ((part, each) for part in parts for each in growing_lines(part))
    found = [
        _row(recording, line) | {"kept_by": _kept_by(lifetimes(part), line, holders or {})}
        for part, line in lines
        if line.device in devices
    ]
    whole = pa.int64()
    kinds = {
        "site": pa.utf8(),
        "source": pa.utf8(),
        "stack": pa.uint32(),
        "device": pa.int16(),
        "by": pa.utf8(),
        "periods": whole,
        "growth_bytes": whole,
        "growth_low_bytes": whole,
        "growth_high_bytes": whole,
        "live_bytes": whole,
        "live_count": whole,
        "score": pa.float64(),
        "certainty": pa.utf8(),
        "use": pa.utf8(),
        "unused_bytes": whole,
        "kept_by": pa.utf8(),
    }
    return pa.Table.from_pylist(found, pa.schema(kinds))


def _kept_by(blocks: Lifetimes, line: GrowingLine, holders: Mapping[tuple[int, int], str]) -> str:
    """Return what keeps most of a line's live bytes; empty if that is unknown."""
    sums: dict[str, int] = {}
    live = line.blocks
    for address, size in zip(
        blocks.address[live].tolist(), blocks.size[live].tolist(), strict=True
    ):
        name = holders.get((line.device, address), "")
        sums[name] = sums.get(name, 0) + size
    return max(sums, key=lambda name: sums[name], default="")


def _row(recording: RecordingData, line: GrowingLine) -> dict[str, Any]:
    site, source = recording.call_stacks.call_site(line.stack)
    grown = line.growth
    return {
        "site": site,
        "source": source,
        "stack": line.stack,
        "device": line.device,
        "by": line.by,
        "periods": line.periods,
        "growth_bytes": None if grown is None else round(grown.slope),
        "growth_low_bytes": None if grown is None else round(grown.low),
        "growth_high_bytes": None if grown is None else round(grown.high),
        "live_bytes": line.live_bytes,
        "live_count": len(line.blocks),
        "score": line.score,
        "certainty": line.certainty,
        "use": line.use,
        "unused_bytes": line.unused_bytes,
    }
