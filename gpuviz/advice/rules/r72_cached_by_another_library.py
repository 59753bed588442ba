"""R72: a library caches memory that it needs no more while another one reserves its own."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from gpuviz.advice.evidence import Evidence
from gpuviz.advice.finding import Finding, named
from gpuviz.advice.host_lines import line_of, text_of
from gpuviz.advice.rule import Rule
from gpuviz.analysis.initial_state import INACTIVE, initial_state
from gpuviz.analysis.pools import allocator_beside, cache_of, is_torchs, private_pools
from gpuviz.data.columns import codes, plain
from gpuviz.data.recording_data import RecordingData
from gpuviz.data.tables import ACTIONS
from gpuviz.quantities import format_bytes, format_counted

RULES = (
    Rule(
        "R72",
        "memory cached by another library",
        "at the peak of the reserved bytes of two allocators, such as PyTorch's and CuPy's, one of "
        "them has segments without a block, of which it never uses more than half again, and which "
        "were unused when the other one reserved new memory; without them from then on, the peak "
        "of both together is at least 10 % lower",
        "release the cache of the first library before the second one reserves its memory, or "
        "serve both from one pool",
    ),
)

# Of the reserved bytes at the peak.
_LEAST_SAVED = 0.1
# Of a segment, in bytes that are used again.
_MOST_USED_AGAIN = 0.5
# In bytes; what is reserved again is a multiple of it.
_SMALLEST_SEGMENT = 2 << 20
_GROWING, _SHRINKING = (
    [ACTIONS.index(f"segment_{name}") for name in names]
    for names in (("alloc", "map"), ("free", "unmap"))
)
_ALLOC, _FREED = ACTIONS.index("alloc"), ACTIONS.index("free_completed")


@dataclass(frozen=True, eq=False, slots=True)
class _Release:
    """Segments of one allocator that are released before another one reserves memory.

    Attributes:
        of_torch: Whether the first allocator is torch's own.
        before: The event by which the other one reserves memory.
        last: The last allocation in the segments; -1 if it was before the recording.
        segments: How many segments there are.
        bytes: Their sizes together.
        again: For how many bytes of them they are used after the peak.
        saved: By how much the peak of the reserved bytes decreases.
    """

    of_torch: bool
    before: int
    last: int
    segments: int
    bytes: int
    again: int
    saved: int


def find(recording: RecordingData) -> Iterator[Finding]:
    """Find memory that one library caches for nothing while another one reserves new memory.

    Trigger: on a device with the segments of two allocators, see the rule. Segments of private
    pools do not count: their graphs may need them. Nor does a line that the first allocator's work
    has followed in an earlier round of a loop: in the next round it may follow again.

    Saving: the decrease of the peak of reserved bytes if these segments were released right before
    the other allocator's first reservation after their last use, and what they are used for after
    the peak were reserved again then. Those that are used until a later reservation are left if
    releasing all others earlier saves more.
    """
    if recording.dropped or not allocator_beside(recording.tables):
        return
    for device in recording.devices:
        reserved = _Reserved(recording, device)
        found = [reserved.release(of_torch=of_torch) for of_torch in (False, True)]
        best = max((each for each in found if each), key=lambda each: each.saved, default=None)
        if best is not None and best.saved >= _LEAST_SAVED * reserved.peak:
            yield _finding(recording, device, reserved, best)


class _Reserved:
    """What all allocators have reserved on a device.

    Attributes:
        peak: The most bytes that all have reserved.
        row: The event that reserved the last of them.
    """

    def __init__(self, recording: RecordingData, device: int) -> None:
        self._recording, self._device = recording, device
        events = recording.tables["memory_events"]
        self._rows = np.flatnonzero(plain(events["device"]) == device)
        self._address = plain(events["address"])[self._rows]
        self._size = plain(events["size"])[self._rows].astype(np.int64)
        self._actions = codes(events["action"], ACTIONS)[self._rows]
        self._stack = plain(events["stack"])[self._rows]
        self._of_torch = is_torchs(plain(events["pool"])[self._rows])
        self._grows = np.isin(self._actions, _GROWING)
        sign = self._grows.astype(np.int64) - np.isin(self._actions, _SHRINKING)
        self._reserved = np.cumsum(sign * self._size)
        self._peak_at = int(np.argmax(self._reserved)) if len(self._rows) else 0
        self.peak = int(self._reserved.max(initial=0))
        self.row = int(self._rows[self._peak_at]) if len(self._rows) else -1

    def release(self, *, of_torch: bool) -> _Release | None:
        """Return which unused segments of an allocator to release; None if there are none."""
        if self.row < self._recording.manifest.initial_events:
            return None
        address, size = self._unused_at_peak(of_torch=of_torch)
        place = self._places(address, size)
        after = np.arange(len(place)) > self._peak_at
        again = self._used_again(place, size)
        last = np.full(len(size), -1)
        np.maximum.at(last, place[~after & (place >= 0)], np.flatnonzero(~after & (place >= 0)))
        is_other = (self._of_torch != of_torch) & ~after & (self._stack != 0)
        others = np.flatnonzero(self._grows & is_other)
        others = others[self._rows[others] >= self._recording.manifest.initial_events]
        able = again <= _MOST_USED_AGAIN * size
        able &= last < (others[-1] if len(others) else -1)
        if not able.any():
            return None
        # What is released before each reservation that follows the last use of some of them.
        before = np.unique(others[np.searchsorted(others, last[able], side="right")])
        released = np.array([int(size[able & (last < each)].sum()) for each in before])
        earlier = np.maximum.accumulate(self._reserved)[np.maximum(before - 1, 0)]
        best = int(np.argmin(np.maximum(earlier, self.peak - released)))
        chosen = able & (last < before[best])
        used = np.flatnonzero(~after & (self._actions == _ALLOC) & (place >= 0))
        used = used[chosen[place[used]]]
        is_same_line = is_other & (self._stack == self._stack[before[best]])
        if is_same_line[: max(int(last[chosen].max()), 0)].any():
            return None
        return _Release(
            of_torch=of_torch,
            before=int(self._rows[before[best]]),
            last=int(self._rows[used[-1]]) if len(used) else -1,
            segments=int(chosen.sum()),
            bytes=int(released[best]),
            again=int(again[chosen].sum()),
            saved=self.peak - self._without(chosen, place, size, again, int(before[best])),
        )

    def _unused_at_peak(self, *, of_torch: bool) -> tuple[np.ndarray, np.ndarray]:
        """Return the addresses, ascending, and sizes of an allocator's segments without a block."""
        first = self._recording.manifest.initial_events
        state = initial_state(self._recording)
        state.apply(self._recording.memory_columns, first, self.row + 1)
        segments, blocks = state.segments(), state.blocks()
        unused = segments["device"] == self._device
        unused[blocks["segment"][(blocks["state"] != INACTIVE) & (blocks["segment"] >= 0)]] = False
        unused &= is_torchs(segments["pool"]) == of_torch
        unused &= ~np.isin(segments["pool"], private_pools(self._recording.tables))
        address, size = (segments[name][unused] for name in ("address", "size"))
        order = np.argsort(address)
        return address[order], size[order].astype(np.int64)

    def _places(self, address: np.ndarray, size: np.ndarray) -> np.ndarray:
        """Return in which of some segments each event is; -1 if in none."""
        place = np.searchsorted(address, self._address, side="right") - 1
        inside = np.append(address + size.astype(address.dtype), 0)[place] > self._address
        found: np.ndarray = np.where((place >= 0) & inside, place, -1)
        return found

    def _used_again(self, place: np.ndarray, size: np.ndarray) -> np.ndarray:
        """Return the most bytes for which each of some segments is used after the peak."""
        rows = np.arange(self._peak_at + 1, len(place))
        rows = rows[(place[rows] >= 0) & np.isin(self._actions[rows], (_ALLOC, _FREED))]
        rows = rows[np.argsort(place[rows], kind="stable")]
        change = np.where(self._actions[rows] == _ALLOC, self._size[rows], -self._size[rows])
        level, again = np.cumsum(change), np.zeros(len(size), np.int64)
        _, first, number = np.unique(place[rows], return_index=True, return_inverse=True)
        before = np.append(0, level)[first]
        np.maximum.at(again, place[rows], level - before[number.ravel()])
        return again

    def _without(
        self,
        chosen: np.ndarray,
        place: np.ndarray,
        size: np.ndarray,
        again: np.ndarray,
        before: int,
    ) -> int:
        """Return the peak without some segments from an event on, until they are used again."""
        later = np.flatnonzero(np.append(chosen, False)[place])
        later = later[later > self._peak_at]
        is_released = np.isin(self._actions[later], _SHRINKING)
        anew = np.minimum(-(-again // _SMALLEST_SEGMENT) * _SMALLEST_SEGMENT, size)
        change = np.zeros(len(self._reserved) + 1, np.int64)
        change[before] = -int(size[chosen].sum())
        for rows, back in (
            (later[self._actions[later] == _ALLOC], anew),
            (later[is_released], size - anew),
        ):
            # Later segments at the same addresses are others.
            found, first = np.unique(place[rows], return_index=True)
            np.add.at(change, rows[first], back[found])
        return int((self._reserved + np.cumsum(change)[:-1]).max())


def _finding(
    recording: RecordingData, device: int, reserved: _Reserved, release: _Release
) -> Finding:
    events = recording.tables["memory_events"]
    request = events.slice(release.before, 1).to_pylist()[0]
    line = line_of(recording, request["stack"], format_bytes(request["size"]))
    own, call = cache_of(recording.manifest, of_torch=release.of_torch)
    other, _ = cache_of(recording.manifest, of_torch=not release.of_torch)
    segments = format_counted(release.segments, "segment")
    them = "it" if release.segments == 1 else "them"
    later = f"nothing uses {them} again"
    if release.again:
        later = f"after the peak, only {format_bytes(release.again)} of {them} is used again"
    last = "arrays from before the recording"
    if release.last >= 0:
        stack = events.slice(release.last, 1)["stack"][0].as_py()
        last = f"arrays of {text_of(line_of(recording, stack, ''))}"
    times = plain(events["time"])
    return Finding(
        rule="R72",
        title=f"{format_bytes(release.bytes)} stays cached by {own} while {other} reserves new "
        f"memory for {named(line.site, line.source)}.",
        reason=f"Each library reuses only memory of its own. {segments} of {own} last held "
        f"{last}, and {later}. Both have reserved {format_bytes(reserved.peak)} at the peak.",
        change=f"Call `{call}` before that line. Or let one pool serve both libraries, as "
        "`gpuviz.allocators.torch.install()` does.",
        certainty="likely",
        device=device,
        saved_reserved_bytes=release.saved,
        lines=(line,),
        evidence=Evidence(
            "memory_events",
            (release.before,),
            (int(times[max(release.last, 0)]), int(times[reserved.row]) + 1),
        ),
    )
