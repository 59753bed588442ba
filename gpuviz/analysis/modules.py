"""Modules table of a recording: memory, GPU time and launches of a neural network's parts."""

import numpy as np
import pyarrow as pa

from gpuviz.analysis.categories import block_categories, live_at
from gpuviz.analysis.launches import calls_of, durations, stacks_of
from gpuviz.analysis.peak import peak
from gpuviz.data.arrays import integer_table, texts
from gpuviz.data.codes import CATEGORIES, PHASES
from gpuviz.data.columns import codes, plain
from gpuviz.data.recording_data import RecordingData
from gpuviz.data.tables import ACTIONS, DICTIONARIES

_KINDS = DICTIONARIES["activities", "kind"]
_WORK = ("kernel", "graph")


def modules(recording: RecordingData, device: int | None = None) -> pa.Table:
    """Return one row for each module of a neural network, most bytes at the peak first.

    A row has what the module does itself, without the modules that it calls. Columns: ``module``
    (its path, such as ``layer3.5.conv2``; empty for what belongs to none, or is unknown);
    ``peak_bytes``, allocated in it at the peak, and ``activation_bytes``, those of them that its
    forward pass keeps for the backward pass; ``total_bytes`` and ``count`` of all of its
    allocations; ``forward_ns`` and ``backward_ns`` of kernels and graphs on the GPU, and
    ``other_ns`` of those of other phases; ``launches``, their number. Of a backward pass, the
    module is the one whose gradients are computed. In a window, times are those in it.

    Args:
        recording: The recording.
        device: Ordinal; all devices if None.

    Raises:
        ValueError: The recording has no such device.
    """
    if device is not None:
        recording.device_or_first(device)
    sums = _Sums(recording)
    _add_memory(recording, device, sums)
    _add_work(recording, device, sums)
    return sums.table()


_COLUMNS = (
    "peak_bytes",
    "activation_bytes",
    "total_bytes",
    "count",
    "forward_ns",
    "backward_ns",
    "other_ns",
    "launches",
)
# By which columns the rows are sorted, largest values first.
_ORDER = ("peak_bytes", "forward_ns", "backward_ns", "other_ns", "total_bytes")


class _Sums:
    """Sums by module, of rows that have call stacks."""

    def __init__(self, recording: RecordingData) -> None:
        stacks = recording.tables["stacks"]
        ids = plain(stacks["id"])
        last = int(ids.max(initial=0))
        numbers: dict[str, int] = {"": 0}
        of_stacks = [
            numbers.setdefault(module, len(numbers)) for module in stacks["module"].to_pylist()
        ]
        self._module = np.zeros(last + 1, np.int64)
        self._module[ids] = of_stacks
        self._phase = np.zeros(last + 1, np.int8)
        self._phase[ids] = codes(stacks["phase"], PHASES)
        self._names = list(numbers)
        self._sums = {name: np.zeros(len(numbers), np.int64) for name in _COLUMNS}

    def add(self, name: str, stacks: np.ndarray, values: np.ndarray | None = None) -> None:
        """Add values of rows with these call stacks; None counts the rows."""
        counted = np.ones(len(stacks), np.int64) if values is None else values
        np.add.at(self._sums[name], self._module[stacks], counted.astype(np.int64))

    def phases(self, stacks: np.ndarray) -> np.ndarray:
        """Return the position in ``PHASES`` of each call stack."""
        found: np.ndarray = self._phase[stacks]
        return found

    def table(self) -> pa.Table:
        """Return the modules that have anything, in the order of `_ORDER`, then of their paths."""
        used = np.any([each != 0 for each in self._sums.values()], axis=0)
        # `Table.sort_by` would import pyarrow.compute.
        least_important_first = [
            np.array(self._names),
            *(-self._sums[name] for name in reversed(_ORDER)),
        ]
        order = np.lexsort(least_important_first)
        kept = order[used[order]]
        found = integer_table({name: each[kept] for name, each in self._sums.items()})
        return found.add_column(0, "module", texts([self._names[row] for row in kept.tolist()]))


def _add_memory(recording: RecordingData, device: int | None, sums: _Sums) -> None:
    blocks, categories = block_categories(recording)
    live = live_at(blocks, device, peak(recording, device).time_ns)
    sums.add("peak_bytes", blocks.stack[live], blocks.size[live])
    live &= categories == CATEGORIES.index("activation")
    sums.add("activation_bytes", blocks.stack[live], blocks.size[live])
    events = recording.tables["memory_events"].slice(recording.manifest.initial_events)
    chosen = codes(events["action"], ACTIONS) == ACTIONS.index("alloc")
    if device is not None:
        chosen &= plain(events["device"]) == device
    stacks = plain(events["stack"])[chosen]
    sums.add("total_bytes", stacks, plain(events["size"])[chosen])
    sums.add("count", stacks)


def _add_work(recording: RecordingData, device: int | None, sums: _Sums) -> None:
    activities = recording.tables["activities"]
    kinds = codes(activities["kind"], _KINDS)
    chosen = np.isin(kinds, [_KINDS.index(kind) for kind in _WORK])
    if device is not None:
        chosen &= plain(activities["device"]) == device
    calls = calls_of(recording.tables, plain(activities["correlation"])[chosen])
    stacks = stacks_of(recording.tables, calls)
    lengths = durations(activities, recording.bounds)[chosen]
    phases = sums.phases(stacks)
    forward, backward = (phases == PHASES.index(name) for name in ("forward", "backward"))
    others = {"forward": forward, "backward": backward, "other": ~(forward | backward)}
    for name, rows in others.items():
        sums.add(f"{name}_ns", stacks[rows], lengths[rows])
    sums.add("launches", stacks)
