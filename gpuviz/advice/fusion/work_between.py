"""Other work that has to run between launches that one kernel could do otherwise."""

from typing import Literal

import numpy as np

from gpuviz.advice.arrays.elementwise import READ, WRITE
from gpuviz.advice.fusion.fusible_launches import FusibleLaunches
from gpuviz.data.first_rows import first_rows


def are_cut(
    launches: FusibleLaunches,
    label: np.ndarray,
    source: np.ndarray,
    target: np.ndarray,
) -> np.ndarray:
    """Return which arrays passed on are read after other work that has to run in between.

    Such an array is written in any case.

    Args:
        launches: The launches.
        label: The group of each, given by its first launch.
        source: The launches that pass an array on.
        target: The launches that read it.
    """
    between = WorkBetween(launches, label, source, target)
    group, place = between.group, between.place
    span = np.int64(len(launches.places) + 1)
    is_whole = between.is_whole[group]
    cuts = np.sort(group[~is_whole] * span + place[~is_whole])
    places = launches.places[launches.call]
    # Launches of a group with the same number of cuts before them are a part of it.
    part = np.searchsorted(cuts, label * span + places) - np.searchsorted(cuts, label * span)
    cut: np.ndarray = np.isin(source, source[part[source] != part[target]])
    return cut


class WorkBetween:
    """Other work between launches that pass arrays on to each other, in groups.

    Args:
        launches: The launches.
        label: The group of each, given by its first launch.
        source: The launches that pass an array on.
        target: The launches that read it.

    Attributes:
        is_whole: For each launch, whether there is a time at which one kernel could do the group
            that is named after it. It is after other work has written what the group reads, and
            before other work uses what the group writes. Other work must not overwrite meanwhile
            what the group has read.
        group: The group that each piece of such other work is between.
        place: Its place among all calls, in the order of time.
    """

    def __init__(
        self,
        launches: FusibleLaunches,
        label: np.ndarray,
        source: np.ndarray,
        target: np.ndarray,
    ) -> None:
        members = np.unique(np.append(source, target))
        if not len(members):
            self.is_whole, self.group, self.place = np.ones(len(launches), bool), members, members
            return
        times = _Times(launches, label, members)
        touches = _TouchesOfGroups(launches, label, members)
        touches.limit_by_results(times)
        touches.limit_by_updates(times)
        touches.limit_by_others(times)
        self.is_whole = times.earliest < times.latest
        self.group, self.place = np.concatenate([np.stack(each) for each in times.between], axis=1)


class _Times:
    """The bounds of the time at which one kernel could do each group, as places among all calls.

    Attributes:
        first: By the launch that a group is named after, its first launch.
        last: Its last launch.
        earliest: What the kernel must come after.
        latest: What it must come before.
        between: Groups and places of the work that bounds them.
    """

    def __init__(self, launches: FusibleLaunches, label: np.ndarray, members: np.ndarray) -> None:
        count, calls = len(launches), len(launches.places)
        groups, when = label[members], launches.places[launches.call[members]]
        self.first, self.last = np.full(count, calls), np.full(count, -1)
        self.earliest: np.ndarray = np.full(count, -1)
        self.latest: np.ndarray = np.full(count, calls)
        np.minimum.at(self.first, groups, when)
        np.maximum.at(self.last, groups, when)
        self.between: list[tuple[np.ndarray, np.ndarray]] = []

    def never(self, groups: np.ndarray) -> None:
        """Let no time be left for some groups."""
        self.latest[groups] = -1


class _TouchesOfGroups:
    """Which touches are of groups of launches, or of the arrays that these make.

    Args:
        launches: The launches.
        label: The group of each, given by its first launch.
        members: The launches that pass an array on or read it.
    """

    def __init__(self, launches: FusibleLaunches, label: np.ndarray, members: np.ndarray) -> None:
        used, elementwise = launches.used, launches.elementwise
        self._launches, self._used = launches, used
        self._node = node = first_rows(launches.call + 1, used.call + 1)
        self._group = np.where((node >= 0) & np.isin(node, members), label[node], -1)
        self._place = launches.places[used.call]
        self._is_reduction = (self._group >= 0) & (node >= len(elementwise))
        is_result = self._is_reduction & (used.mode == WRITE)
        self._reduced = used.block[is_result]
        made_by = np.full(len(used.blocks), -1)
        own = members[members < len(elementwise)]
        own = own[~elementwise.is_update[own]]
        made_by[elementwise.target[own]] = label[own]
        made_by[self._reduced] = self._group[is_result]
        self._maker = made_by[used.block]
        self._reads = (self._group >= 0) & (used.mode == READ) & (self._maker != self._group)
        of_launch = np.minimum(node, len(elementwise) - 1)
        updates = (self._group >= 0) & (node < len(elementwise)) & elementwise.is_update[of_launch]
        self._updates = updates & (used.block == elementwise.target[of_launch])

    def limit_by_results(self, times: _Times) -> None:
        """Let each group be done before other work uses what it makes."""
        group, maker, place = self._group, self._maker, self._place
        # A kernel has the result of its reduction only when it ends.
        too_early = (maker >= 0) & (group == maker) & ~self._is_reduction
        too_early &= np.isin(self._used.block, self._reduced)
        np.maximum.at(times.earliest, maker[too_early], place[too_early])
        outside = (maker >= 0) & ((group != maker) | too_early)
        np.minimum.at(times.latest, maker[outside], place[outside])
        times.between.append((maker[outside], (place - too_early)[outside]))

    def limit_by_updates(self, times: _Times) -> None:
        """Let no group be done whose threads update elements that other threads read."""
        used = self._used
        pairs = self._group * len(used.blocks) + used.block
        turned = self._reads & np.isin(pairs, pairs[self._updates])
        turned &= self._launches.is_turned[np.maximum(self._node, 0)] | ~used.at_begin
        times.between.append((self._group[turned], self._place[turned]))
        times.never(self._group[turned])

    def limit_by_others(self, times: _Times) -> None:
        """Let nothing else write what a group reads meanwhile, nor use what it updates."""
        used, span = self._used, np.int64(len(self._launches.places) + 1)
        keys = used.block.astype(np.int64) * span + self._place
        is_written = used.mode != READ
        every = _TouchesOfOthers(keys, self._group, span)
        writes = _TouchesOfOthers(keys[is_written], self._group[is_written], span)
        for is_touch, others in ((self._reads, writes), (self._updates, every)):
            touch = np.flatnonzero(is_touch)
            for is_before in (True, False):
                found = others.nearest(keys[touch], self._group[touch], is_before=is_before)
                same = found // span == used.block[touch]
                place, group = (found % span)[same], self._group[touch][same]
                inside = (place > times.first[group]) & (place <= times.last[group])
                times.between.append((group[inside], place[inside]))
                if is_before:
                    np.maximum.at(times.earliest, group[inside], place[inside])
                else:
                    times.never(group[inside])


class _TouchesOfOthers:
    """Touches in order, to find the nearest one of a block that is not of a group's own.

    Args:
        keys: For each touch, its block times ``span``, plus its place in time.
        groups: The group that each belongs to; -1 without one.
        span: More than any place in time.
    """

    def __init__(self, keys: np.ndarray, groups: np.ndarray, span: np.int64) -> None:
        order = np.argsort(keys, kind="stable")
        self._keys, self._groups, self._span = keys[order], groups[order], span
        runs = np.stack([self._keys // span, self._groups])
        starts = np.flatnonzero((np.diff(runs, prepend=-2) != 0).any(axis=0))
        run = np.searchsorted(starts, np.arange(len(order)), side="right")
        self._start = np.append(starts[run - 1], 0) if len(order) else np.zeros(1, np.int64)
        self._end = np.append(np.append(starts, len(order))[run], 0)

    def nearest(self, keys: np.ndarray, groups: np.ndarray, *, is_before: bool) -> np.ndarray:
        """Return the nearest keys of other groups before or after some; -1 if there is none."""
        side: Literal["left", "right"] = "left" if is_before else "right"
        place = np.searchsorted(self._keys, keys, side=side) - int(is_before)
        at = np.clip(place, -1, len(self._keys))
        is_own = np.append(self._groups, -1)[at] == groups
        is_own &= np.append(self._keys, -1)[at] // self._span == keys // self._span
        skipped = self._start[at] - 1 if is_before else self._end[at]
        found: np.ndarray = np.append(self._keys, -1)[np.where(is_own, skipped, at)]
        return found
