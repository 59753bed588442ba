"""Which streams use the same memory, so that their work has to be in order."""

from weakref import WeakKeyDictionary

import numpy as np

from gpuviz.advice.replay.schedule import Schedule
from gpuviz.advice.replay.trace import COPY
from gpuviz.advice.waits.pinned_memory import UNKNOWN, pinned_places
from gpuviz.analysis.derived_tables import derived
from gpuviz.analysis.touches import Touches
from gpuviz.data.columns import codes, plain
from gpuviz.data.derived import DICTIONARIES as WORDS
from gpuviz.data.tables import DICTIONARIES

_WAITS = WORDS["host_waits", "kind"]
_COPY_KINDS = DICTIONARIES["activities", "copy_kind"]
_READ = DICTIONARIES["launch_blocks", "mode"].index("read")
# Streams are compared in pairs, in each epoch.
_MOST_STREAMS = 64
_MOST_PAIRS = 1 << 22


class Sharing:
    """The pairs of streams whose work has to be in order because of their memory.

    Two streams share memory if one writes a block that the other uses too, or copies to memory of
    the host from which the other copies. Of pageable memory, and of some pinned memory, the
    recording has no addresses; see `gpuviz.advice.waits.pinned_memory.pinned_places`: any two
    copies of it may use the same. Work that may use any block shares memory with every stream.

    Memory is only compared within an *epoch*: between two synchronizations of the whole device,
    which order everything before them before everything after. If several threads launch work,
    the recording is one epoch.

    Args:
        schedule: The recording's schedule.
        used: Which work used which blocks.
        is_epochal: Whether synchronizations of the device separate epochs.
        apart_from: Streams whose blocks do not count, because their work is compared one by one.
    """

    def __init__(
        self,
        schedule: Schedule,
        used: Touches,
        *,
        is_epochal: bool = True,
        apart_from: np.ndarray | None = None,
    ) -> None:
        # The schedule itself would never be freed, since it is the key of what is known of it.
        self._stream = schedule.stream
        self._launched = np.where(schedule.call >= 0, schedule.launch_begin(), schedule.begin)
        self.streams = np.unique(schedule.stream)
        self._ends = _epoch_ends(schedule) if is_epochal else np.array([], np.int64)
        count = len(self.streams)
        if (len(self._ends) + 1) * count**2 > _MOST_PAIRS:
            self._ends = self._ends[:0]
        self._shared = np.zeros((len(self._ends) + 1, count, count), bool)
        if count <= _MOST_STREAMS:
            none = np.zeros(0, np.int64)
            self._share_blocks(schedule, used, none if apart_from is None else apart_from)
            self._share_host_memory(schedule)
        else:
            self._shared[:] = True

    def between(self, before: np.ndarray, after: np.ndarray, orders: np.ndarray) -> np.ndarray:
        """Return whether an order between two activities may matter.

        The stream of the first, and all streams that it waits for, must share no memory with the
        stream of the second, and all streams that wait for it.

        Args:
            before: Activities.
            after: For each, one of another stream that waits for it.
            orders: Pairs of activities of two streams, of which the second waits for the first.
        """
        stream = np.searchsorted(self.streams, self._stream)
        reached = np.eye(len(self.streams), dtype=bool)
        reached[stream[orders[0]], stream[orders[1]]] = True
        for through in range(len(self.streams)):
            reached |= reached[:, through, None] & reached[None, through, :]
        links = reached.astype(np.int64)
        # The sum over all streams that lead to the first, and all that the second leads to.
        matter = links.T @ self._shared @ links.T > 0
        found: np.ndarray = matter[self._epoch(before), stream[before], stream[after]]
        found |= self._epoch(before) != self._epoch(after)
        return found

    def in_one_epoch(self, first: np.ndarray, last: np.ndarray) -> np.ndarray:
        """Return whether no synchronization of the device separates two activities."""
        same: np.ndarray = self._epoch(first) == self._epoch(last)
        return same

    @property
    def is_any(self) -> bool:
        """Whether any two streams share memory, or may."""
        return bool(self._shared.any())

    def _epoch(self, work: np.ndarray) -> np.ndarray:
        epoch: np.ndarray = np.searchsorted(self._ends, self._launched[work])
        return epoch

    def _share_blocks(self, schedule: Schedule, used: Touches, apart_from: np.ndarray) -> None:
        """Mark the streams that use a common block, of which at least one writes it."""
        tables = schedule.recording.tables
        seen = used.activity >= 0
        times = plain(tables["api_calls"]["time"])
        opaque = times[np.union1d(used.opaque, used.call[~seen])]
        self._shared[np.searchsorted(self._ends, opaque)] = True
        stream = np.searchsorted(
            self.streams, schedule.stream[schedule.number[used.activity[seen]]]
        )
        epoch = np.searchsorted(self._ends, times[used.call[seen]])
        group = used.block[seen]
        if len(self._ends):
            keys = epoch.astype(np.int64) * len(used.blocks) + group
            group = np.unique(keys, return_inverse=True)[1]
        writes = used.mode[seen] != _READ
        counts = ~np.isin(self.streams, apart_from)
        for one in np.flatnonzero(counts):
            written = np.zeros(group.max(initial=0) + 1, bool)
            written[group[writes & (stream == one)]] = True
            common = written[group] & counts[stream]
            self._shared[epoch[common], one, stream[common]] = True
            self._shared[epoch[common], stream[common], one] = True
        everyone = np.arange(len(self.streams))
        self._shared[:, everyone, everyone] = False

    def _share_host_memory(self, schedule: Schedule) -> None:
        """Mark the streams of which one copies to memory of the host and another one from it."""
        kinds = codes(schedule.recording.tables["activities"]["copy_kind"], _COPY_KINDS)
        to_host, to_device = map(_COPY_KINDS.index, ("device_to_host", "host_to_device"))
        direction = kinds[schedule.rows]
        work = np.flatnonzero((schedule.kind == COPY) & np.isin(direction, [to_host, to_device]))
        stream = np.searchsorted(self.streams, schedule.stream[work])
        place, epoch = pinned_places(schedule, work), self._epoch(work)
        key = epoch.astype(np.int64) * (place.max(initial=UNKNOWN) + 2) + place
        is_read, is_written = direction[work] == to_device, direction[work] == to_host
        for one in np.unique(stream[is_written]):
            written = np.unique(key[is_written & (stream == one)])
            common = is_read & np.isin(key, written)
            self._shared[epoch[common], one, stream[common]] = True
            self._shared[epoch[common], stream[common], one] = True
        everyone = np.arange(len(self.streams))
        self._shared[:, everyone, everyone] = False


def _epoch_ends(schedule: Schedule) -> np.ndarray:
    tables = schedule.recording.tables
    threads = plain(tables["api_calls"]["thread"])[schedule.call[schedule.call >= 0]]
    several = len(np.unique(threads)) > 1 or len(schedule.recording.devices) > 1
    waits = derived(schedule.recording)["host_waits"]
    of_device = codes(waits["kind"], _WAITS) == _WAITS.index("context_synchronize")
    ends: np.ndarray = np.sort(plain(waits["end"])[of_device])
    return ends[:0] if several else ends


_known: WeakKeyDictionary[Schedule, dict[tuple[bool, tuple[int, ...]], Sharing | None]] = (
    WeakKeyDictionary()
)


def sharing(
    schedule: Schedule, *, is_epochal: bool = True, apart_from: np.ndarray | None = None
) -> Sharing | None:
    """Return which streams of a recording share memory; None if that is not recorded.

    It is computed once for a schedule.
    """
    known = _known.setdefault(schedule, {})
    key = is_epochal, () if apart_from is None else tuple(apart_from.tolist())
    if key not in known:
        used = schedule.touches
        known[key] = (
            None
            if used is None
            else Sharing(schedule, used, is_epochal=is_epochal, apart_from=apart_from)
        )
    return known[key]
