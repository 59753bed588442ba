"""Orders between streams that no common memory needs."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from weakref import WeakKeyDictionary

import numpy as np

from gpuviz.advice.replay.schedule import Schedule, ScheduleChange
from gpuviz.advice.replay.work_orders import BY_DEFAULT_STREAM, BY_EVENT
from gpuviz.advice.waits.sharing import sharing
from gpuviz.data.columns import codes, plain
from gpuviz.data.tables import DICTIONARIES

_STREAMS = DICTIONARIES["streams", "kind"]
_READ = DICTIONARIES["launch_blocks", "mode"].index("read")


@dataclass(frozen=True, eq=False, slots=True)
class NeedlessOrders:
    """Pairs of activities of a device whose order no common memory needs.

    Attributes:
        device: Ordinal.
        before: The activities that end first.
        after: For each, the one that waits for it.
        waited_ns: How long it waited for the first, after its launch and the work before it on its
            stream.
        change: The schedule without these orders.
        saved_ns: What that saves.
        on_default: For each pair, the activity of the default stream; -1 for orders by events.
        is_shared: Whether the line of that uses arrays of another stream.
    """

    device: int
    before: np.ndarray
    after: np.ndarray
    waited_ns: np.ndarray
    change: ScheduleChange
    saved_ns: int
    on_default: np.ndarray
    is_shared: np.ndarray

    @property
    def is_mostly_shared(self) -> bool:
        """Whether most of the waiting is for lines of the default stream with others' arrays."""
        return bool(2 * self.waited_ns[self.is_shared].sum() > self.waited_ns.sum())


@dataclass(frozen=True, eq=False, slots=True)
class _Uses:
    """Uses of blocks by work, in the order of their calls."""

    block: np.ndarray
    work: np.ndarray
    stream: np.ndarray
    writes: np.ndarray


_known: WeakKeyDictionary[Schedule, dict[int, tuple[NeedlessOrders, ...]]] = WeakKeyDictionary()


def needless_orders(schedule: Schedule, reason: int) -> tuple[NeedlessOrders, ...]:
    """Return the orders of a kind that take at least 1 % of the recording, for each device.

    Of the default stream's orders, those of two operations that use the same block stay, if one of
    them writes it, and so do those of an operation with each of several streams whose blocks it
    uses, and all if others share memory only through them. They are computed once for a schedule.

    Args:
        schedule: The recording's schedule.
        reason: `BY_EVENT` or `BY_DEFAULT_STREAM`.
    """
    known = _known.setdefault(schedule, {})
    if reason not in known:
        known[reason] = tuple(_needless_orders(schedule, reason))
    return known[reason]


def _needless_orders(schedule: Schedule, reason: int) -> Iterator[NeedlessOrders]:
    rows, before, after = schedule.orders(reason)
    default = default_streams(schedule) if reason == BY_DEFAULT_STREAM else None
    shared = sharing(schedule, apart_from=default) if len(rows) else None
    if shared is None:
        return
    _, *orders = schedule.orders(BY_DEFAULT_STREAM, BY_EVENT)
    is_needless = ~shared.between(before, after, np.stack(orders))
    needed = None if default is None else _orders_of_blocks(schedule, before, after, default)
    ready = np.maximum(schedule.launch_begin(), _previous_end(schedule))
    waited = schedule.end[before] - ready[after]
    is_late = waited > 0
    on_default, is_shared = np.full(len(before), -1), np.zeros(len(before), bool)
    if default is not None and needed is not None:
        is_late &= ~np.isin(_pairs(before, after), _pairs(*needed))
        is_first = np.isin(schedule.stream[before], default)
        on_default, other = np.where(is_first, (before, after), (after, before))
        is_needless &= ~_joins(schedule, on_default, schedule.stream[other], default)
        beside = np.concatenate(needed)[np.tile(shared.in_one_epoch(*needed), 2)]
        beside = beside[np.isin(schedule.stream[beside], default)]
        is_shared = np.isin(schedule.lines[on_default], schedule.lines[beside])
    for device in schedule.recording.devices:
        chosen = is_needless & (schedule.device[after] == device)
        change = replace(schedule.without(rows[chosen]), orders=needed)
        saved_ns = schedule.saved_alone(change) if chosen.any() else 0
        late = chosen & is_late
        if saved_ns >= schedule.relevant_ns and late.any():
            yield NeedlessOrders(
                device,
                before[late],
                after[late],
                waited[late],
                change,
                saved_ns,
                on_default[late],
                is_shared[late],
            )


def begins_without(schedule: Schedule, device: int) -> list[np.ndarray]:
    """Return when activities begin, as recorded and without needless orders of each kind.

    Those of the default stream and of events, if the device has such orders.
    """
    return [
        schedule.begin,
        *(
            schedule.times_after(orders.change)[schedule.moments.begun]
            for reason in (BY_DEFAULT_STREAM, BY_EVENT)
            for orders in needless_orders(schedule, reason)
            if orders.device == device
        ),
    ]


def default_streams(schedule: Schedule) -> np.ndarray:
    """Return the ids of the legacy default streams."""
    streams = schedule.recording.tables["streams"]
    is_default = codes(streams["kind"], _STREAMS) == _STREAMS.index("default")
    default: np.ndarray = np.unique(plain(streams["id"])[is_default])
    return default


def _orders_of_blocks(
    schedule: Schedule, before: np.ndarray, after: np.ndarray, default: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the activities of a default stream and of others that the same block orders.

    Only those of streams that wait for each other, given by activities that do.
    """
    of_streams = _pairs(schedule.stream[before], schedule.stream[after])
    uses = _uses_beside(schedule, default)
    found = [
        pair
        for first, last in _runs(uses.block)
        for pair in _needed_of_block(
            uses.work[first:last].tolist(),
            uses.stream[first:last].tolist(),
            uses.writes[first:last].tolist(),
        )
    ]
    pairs = np.array(sorted(set(found)), np.int64).reshape(-1, 2)
    first, last = pairs[:, 0], pairs[:, 1]
    ordered = np.isin(_pairs(schedule.stream[first], schedule.stream[last]), of_streams)
    ordered &= schedule.end[first] <= schedule.begin[last]
    return first[ordered], last[ordered]


def _joins(
    schedule: Schedule,
    on_default: np.ndarray,
    streams: np.ndarray,
    default: np.ndarray,
) -> np.ndarray:
    """Return whether activities of a default stream join streams, of which each is one.

    Those that join streams use blocks of several, and they or the streams write these blocks.
    """
    uses = _uses_beside(schedule, default)
    is_default = np.isin(uses.stream, default)
    work, block, writes = (each[is_default] for each in (uses.work, uses.block, uses.writes))
    count = np.zeros(len(schedule.stream), np.int64)
    is_joined = np.zeros(len(on_default), bool)
    for stream in np.unique(uses.stream[~is_default]):
        of_stream = uses.stream == stream
        shares = np.isin(block, uses.block[of_stream & uses.writes])
        shares |= writes & np.isin(block, uses.block[of_stream])
        joined = np.unique(work[shares])
        count[joined] += 1
        is_joined |= (streams == stream) & np.isin(on_default, joined)
    found: np.ndarray = is_joined & (count[on_default] > 1)
    return found


def _uses_beside(schedule: Schedule, default: np.ndarray) -> _Uses:
    """Return the uses of blocks that a default stream and another stream use."""
    used = schedule.touches
    if used is None:
        none = np.zeros(0, np.int64)
        return _Uses(none, none, none, none)
    touch = np.flatnonzero(used.activity >= 0)
    work = schedule.number[used.activity[touch]]
    touch, work = touch[work >= 0], work[work >= 0]
    block, stream = used.block[touch], schedule.stream[work]
    is_default = np.isin(stream, default)
    both = np.isin(block, block[is_default]) & np.isin(block, block[~is_default])
    rows = np.flatnonzero(both)
    rows = rows[np.argsort(block[rows], kind="stable")]
    return _Uses(block[rows], work[rows], stream[rows], used.mode[touch[rows]] != _READ)


def _needed_of_block(
    works: list[int], streams: list[int], writes: list[bool]
) -> Iterator[tuple[int, int]]:
    """Yield pairs of activities of two streams that one block orders, by its uses in order.

    Whoever uses a block waits for the last that wrote it, and whoever writes it for all who used
    it since.
    """
    writer: tuple[int, int] | None = None
    readers: dict[int, int] = {}
    for work, stream, is_write in zip(works, streams, writes, strict=True):
        if writer is not None and writer[1] != stream and writer[0] != work:
            yield writer[0], work
        if not is_write:
            readers[stream] = work
            continue
        yield from (
            (reader, work)
            for other, reader in readers.items()
            if other != stream and reader != work
        )
        writer, readers = (work, stream), {}


def _runs(values: np.ndarray) -> Iterator[tuple[int, int]]:
    """Yield the begin and the end of each run of equal values."""
    edges = np.flatnonzero(np.append(True, values[1:] != values[:-1])) if len(values) else values
    yield from pairwise([*edges.tolist(), len(values)])


def _pairs(first: np.ndarray, last: np.ndarray) -> np.ndarray:
    pairs: np.ndarray = (first.astype(np.int64) << 32) | last.astype(np.int64)
    return pairs


def _previous_end(schedule: Schedule) -> np.ndarray:
    """Return when the previous activity of the same stream ended; 0 without one."""
    order = np.lexsort((schedule.begin, schedule.stream))
    before, after = order[:-1], order[1:]
    same = schedule.stream[before] == schedule.stream[after]
    ends = np.zeros_like(schedule.begin)
    ends[after[same]] = schedule.end[before[same]]
    return ends
