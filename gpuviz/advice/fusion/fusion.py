"""Elementwise operations of a function that one kernel could do, with the reductions after them."""

from dataclasses import dataclass, fields
from functools import partial

import numpy as np

from gpuviz.advice.arrays.device_blocks import DeviceBlocks
from gpuviz.advice.arrays.elementwise import type_bytes
from gpuviz.advice.fusion.fusible_launches import FusibleLaunches
from gpuviz.advice.fusion.passed_results import passed_on
from gpuviz.advice.fusion.rounds import Updates, consecutive
from gpuviz.advice.fusion.work_between import WorkBetween, are_cut
from gpuviz.analysis.grouping import components


@dataclass(frozen=True, eq=False, slots=True)
class Groups:
    """Launches that one kernel could do, in columns; those of a group follow each other.

    Attributes:
        group: The number of each launch's group, ascending.
        call: The row of ``api_calls`` of each launch, ascending in each group.
        activity: The row of ``activities`` of each.
        launch: An index of the device's elementwise launches; -1 of a reduction.
        moved: The bytes that each reads and writes.
        passed: The bytes of those that one kernel would not read or write.
        temporary: The block that one kernel would not need, which each writes: an index of the
            device's blocks; -1 without one.
        round: The round of a loop within the line that each belongs to; 0 where there is none.
        rounds: How many rounds of a loop its group does.
    """

    group: np.ndarray
    call: np.ndarray
    activity: np.ndarray
    launch: np.ndarray
    moved: np.ndarray
    passed: np.ndarray
    temporary: np.ndarray
    round: np.ndarray
    rounds: np.ndarray

    def of(self, rows: np.ndarray) -> "Groups":
        """Return some rows."""
        return Groups(*(getattr(self, each.name)[rows] for each in fields(self)))


def fusible(device: DeviceBlocks) -> Groups:
    """Return the elementwise launches of a device that one kernel could do, by group.

    A launch passes its result on if only elementwise launches with as many elements read it, those
    that update an array with it too, and reductions, and if the program frees it and no list keeps
    it: the array is not needed then. The reader is on the same line, in the same statement, or on a
    later line of a function; either may be in a function called from there.
    Launches that pass results to each other are a group, unless other work writes to what they read
    meanwhile. A group with a reduction has no other result. Consecutive rounds of a loop that
    update one array are a group, too; see `gpuviz.advice.fusion.rounds`.
    """
    return _Fusion(device).groups()


class _Fusion:
    """The search for launches that pass results on."""

    def __init__(self, device: DeviceBlocks) -> None:
        self._device, self._used = device, device.used
        self._launches = FusibleLaunches(device)
        self._elementwise = self._launches.elementwise
        self._call, self._round = self._launches.call, self._launches.round.copy()

    def groups(self) -> Groups:
        """Return the groups; see `fusible`."""
        source, target, size = passed_on(self._launches)
        cut = partial(are_cut, self._launches)
        for is_left in (cut, self._is_left_to_reductions, cut):
            label = components(len(self._call), source, target)
            kept = ~is_left(label, source, target)
            source, target, size = source[kept], target[kept], size[kept]
        label = components(len(self._call), source, target)
        between = WorkBetween(self._launches, label, source, target)
        label[~between.is_whole[label]] = -1
        kept = label[source] >= 0
        source, target, size = source[kept], target[kept], size[kept]
        count = len(self._call)
        # Each reader reads the array, and its writer writes it once.
        writers, first = np.unique(source, return_index=True)
        passed = np.bincount(target, size, minlength=count)
        passed[writers] += size[first]
        rows = np.union1d(source, target)
        rounds, kept_bytes = self._join_rounds(label, rows, source)
        rows = np.union1d(rows, np.flatnonzero(rounds > 1))
        moved, again = self._moved(label)
        passed = passed + again + kept_bytes
        temporary = np.full(count, -1)
        temporary[writers] = self._device.place[self._elementwise.target[writers]]
        rows = rows[np.lexsort((self._device.call_times[self._call[rows]], label[rows]))]
        is_elementwise = rows < len(self._elementwise)
        return Groups(
            np.unique(label[rows], return_inverse=True)[1],
            self._call[rows],
            self._launches.activity[rows],
            np.where(is_elementwise, rows, -1),
            np.maximum(moved[rows], passed[rows]),
            passed[rows].astype(np.int64),
            temporary[rows],
            self._round[rows],
            rounds[rows],
        )

    def _join_rounds(
        self, label: np.ndarray, members: np.ndarray, source: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Join the groups of consecutive rounds that update one array; see `consecutive`.

        Returns:
            For each node, the number of rounds of its group, and the bytes of the updated array
            that one kernel for all rounds would not read or write.
        """
        device, launches, count = self._device, self._elementwise, len(self._call)
        rounds, kept_bytes = np.ones(count, np.int64), np.zeros(count, np.int64)
        node = np.flatnonzero(launches.is_update & self._launches.is_able[: len(launches)])
        place = device.place[launches.target[node]]
        node = node[device.is_seen[place] & ~device.is_shared[place]]
        # A group with an update has no other result.
        results = np.bincount(label[np.setdiff1d(members, source)], minlength=count)
        is_result = np.isin(node, members) & ~np.isin(node, source)
        node = node[np.where(is_result, results[label[node]] == 1, label[node] == node)]
        group = np.full(count, -1)
        group[members] = label[members]
        group[node] = label[node]
        reads = self._launches.host_reads(self._call[node])
        keys = np.stack([self._launches.paths.lines()[node], launches.function[node], reads])
        equal = np.unique(keys, axis=1, return_inverse=True)[1].ravel()
        updates = Updates(node, group, self._call, launches.target[node], equal)
        first = consecutive(self._used, self._device.call_times, updates)
        together = np.bincount(first, minlength=len(node))[first]
        joined = np.flatnonzero(together > 1)
        # A number for each group of several rounds.
        of_group = np.full(count, -1)
        of_group[label[node[joined]]] = joined
        mine = np.flatnonzero((group >= 0) & (of_group[group] >= 0))
        update = of_group[group[mine]]
        rounds[mine] = together[update]
        self._round[mine] = update
        label[mine] = label[node[first[update]]]
        order = joined[
            np.lexsort((self._device.call_times[self._call[node[joined]]], first[joined]))
        ]
        is_first = np.append(True, np.diff(first[order]) != 0)[: len(order)]
        is_last = np.append(is_first[1:], True)[: len(order)]
        size = self._used.blocks.requested[launches.target[node[order]]]
        kept_bytes[node[order]] = size * (~is_first).astype(np.int64) + size * ~is_last
        return rounds, kept_bytes

    def _is_left_to_reductions(
        self, label: np.ndarray, source: np.ndarray, target: np.ndarray
    ) -> np.ndarray:
        """Return which arrays passed on are read by reductions that stay kernels of their own.

        A kernel that reduces has that one result: not two of them, and no array beside it.
        """
        count = len(self._elementwise)
        reduces = target >= count
        groups = np.zeros(len(self._call), np.int64)
        np.add.at(groups, label[np.unique(target[reduces])], 1)
        members = np.unique(np.append(source, target))
        results = np.setdiff1d(members[members < count], source)
        is_apart = groups > 1
        is_apart[label[results]] |= groups[label[results]] > 0
        writers = source[reduces & is_apart[label[source]]]
        left: np.ndarray = np.isin(source, writers)
        return left

    def _moved(self, label: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the bytes that each node reads and writes, and those its group has read before.

        Of reductions, only the arrays that are passed on to them count.
        """
        launches = self._elementwise
        read = np.minimum(
            self._used.blocks.requested[launches.source],
            launches.elements[launches.launch] * int(type_bytes().max()),
        )
        moved = np.bincount(launches.launch, read, minlength=len(self._call))
        written_bytes = launches.elements * type_bytes()[launches.output]
        moved = moved + np.append(written_bytes, np.zeros(len(self._call) - len(launches)))
        # What a group writes itself is passed on already.
        written = np.full(len(self._used.blocks), -1)
        written[launches.target] = label[: len(launches)]
        group = label[launches.launch]
        is_input = (group >= 0) & (written[launches.source] != group)
        keys = np.where(is_input, group * len(written) + launches.source, -1)
        is_again = np.ones(len(keys), bool)
        is_again[np.unique(keys, return_index=True)[1]] = False
        again = np.where(is_input & is_again, read, 0)
        return moved, np.bincount(launches.launch, again, minlength=len(self._call))
