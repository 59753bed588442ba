"""Bounds of the memory that a device's blocks need."""

import math
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from gpuviz._core import lifetimes, pack
from gpuviz.data.arrays import integer_table
from gpuviz.data.columns import plain, rows_at
from gpuviz.data.recording_data import RecordingData


@dataclass(frozen=True, slots=True)
class Packing:
    """How few bytes a device's blocks can share if none of them ever moves.

    The blocks, their sizes and their lifetimes are those recorded: sizes include rounding, and a
    block exists from its allocation until its free is completed. Blocks that exist at the same time
    do not overlap. Streams, pools and segments do not separate blocks, as they do in an allocator,
    and the order in time is that of the host.

    Attributes:
        device: Ordinal.
        lower_bound: Bytes that every packing needs: the maximum of active bytes.
        upper_bound: Bytes that the packing in ``blocks`` needs.
        load_time_ns: The first time of that maximum, in ns since the recording's start.
        blocks: One row for each block, in the order of allocation: ``event`` (the allocation's row
            of ``memory_events``), ``time`` and ``end`` (ns; ``end`` is -1 if the block exists at
            the recording's end), ``size`` and ``offset`` (bytes; from the start of the packing),
            ``stream``, ``pool``, ``stack``, and ``in_load`` (whether the block exists at the
            maximum of active bytes).
    """

    device: int
    lower_bound: int
    upper_bound: int
    load_time_ns: int
    blocks: pa.Table

    @property
    def is_optimal(self) -> bool:
        """Whether no packing needs fewer bytes than this one: both bounds are equal."""
        return self.lower_bound == self.upper_bound

    @property
    def gap(self) -> float:
        """The share by which this packing exceeds the lower bound; 0 if it is optimal."""
        return self.upper_bound / self.lower_bound - 1 if self.lower_bound else 0.0

    @property
    def load_blocks(self) -> pa.Table:
        """The rows of ``blocks`` that exist at the maximum of active bytes, largest first.

        Their sizes add up to ``lower_bound``: they are why no packing needs fewer bytes.
        """
        return self.blocks.filter(self.blocks["in_load"]).sort_by([("size", "descending")])


def packing(
    recording: RecordingData,
    device: int | None = None,
    *,
    seconds: float = 10.0,
) -> Packing:
    """Return bounds of the memory that a device's blocks need, and a packing.

    The search ends when the packing needs no more than the maximum of active bytes, when many
    attempts in turn have not improved it, or after ``seconds``; it can be interrupted. It places
    the blocks in several orders, each as low as it fits, and then those that reach too high
    earlier. The attempts depend on nothing but the blocks: more time continues them. With
    ``seconds=0`` only the packing of an allocator with best fit is computed, in n log n steps.

    Raises:
        ValueError: There is no such device, ``seconds`` is negative or not a number, or the blocks
            exceed 2**56 bytes.
    """
    device = recording.device_or_first(device)
    if math.isnan(seconds) or seconds < 0:
        raise ValueError(f"seconds must be 0 or more, got {seconds}")
    initial = recording.manifest.initial_events
    rows = lifetimes(recording.memory_columns, initial, device)
    events = recording.tables["memory_events"]
    times, sizes = plain(events["time"]), plain(events["size"])
    # Blocks of initial events begin together, before the first event that follows.
    begin = np.maximum(rows["begin"], initial - 1)
    size = np.ascontiguousarray(sizes[rows["begin"]])
    offsets, numbers = pack(begin, rows["end"], size, float(seconds))
    load_row = numbers["load_time"]
    in_load = (begin <= load_row) & (load_row < rows["end"])
    ends = np.append(times, -1)[rows["end"]]
    requests = rows_at(events.select(["stream", "pool", "stack"]), rows["begin"])
    columns = {"event": rows["begin"], "time": times[rows["begin"]], "end": ends, "size": size}
    own = integer_table(columns | {"offset": offsets, "in_load": in_load})
    blocks = pa.table(
        [*own.columns[:-1], *requests.columns, own["in_load"]],
        [*own.column_names[:-1], *requests.column_names, "in_load"],
    )
    return Packing(
        device=device,
        lower_bound=numbers["load"],
        upper_bound=numbers["height"],
        load_time_ns=int(times[load_row]) if len(size) and load_row >= initial else 0,
        blocks=blocks,
    )
