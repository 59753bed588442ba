"""Elementwise operations of a function that one kernel could do, with the reductions after them."""

import re
from dataclasses import dataclass, fields
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from gpuviz.advice.call_paths import CallPaths
from gpuviz.advice.elementwise import READ, WRITE, type_bytes
from gpuviz.advice.host_lines import line_numbers
from gpuviz.advice.own_lines import is_own
from gpuviz.advice.rounds import Updates, consecutive
from gpuviz.analysis.grouping import numbered
from gpuviz.analysis.launches import calls_of, stacks_of
from gpuviz.data.columns import codes, plain
from gpuviz.data.first_rows import first_rows
from gpuviz.data.strings import are_named
from gpuviz.data.tables import DICTIONARIES

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gpuviz.advice.device_blocks import DeviceBlocks
    from gpuviz.data.recording_data import RecordingData

_COPY_KINDS = DICTIONARIES["activities", "copy_kind"]
_TO_HOST = _COPY_KINDS.index("device_to_host")
_COPIES = ("copy", "fill")
# A single one may be the result of a loop.
_LEAST_CHOSEN = 2
# The kernels of CuPy's reductions, its own and those of CUB.
_REDUCTION = re.compile(
    r"cupy_(cub_)?(nan)?(sum|prod|max|min|amax|amin|mean|any|all|argmax|argmin|count_nonzero"
    r"|var_core|l[012]?norm)(_|$)|.*\bDevice\w*Reduce\w*Kernel\b"
)


# What may read the elements of an array in another order, or some of them for all.
_TURN = re.compile(r"\.m?T\b|transpose|swapaxes|moveaxis|permute|rot90|einsum|\[[^\]\"']*[:\d]")
# An operator of Python or a call in the text of a line.
_OPERATION = re.compile(r"[-+*/%&|^<>~(]")


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

    group: "NDArray[Any]"
    call: "NDArray[Any]"
    activity: "NDArray[Any]"
    launch: "NDArray[Any]"
    moved: "NDArray[Any]"
    passed: "NDArray[Any]"
    temporary: "NDArray[Any]"
    round: "NDArray[Any]"
    rounds: "NDArray[Any]"

    def of(self, rows: "NDArray[Any]") -> "Groups":
        """Return some rows."""
        return Groups(*(getattr(self, each.name)[rows] for each in fields(self)))


def fusible(device: "DeviceBlocks") -> Groups:
    """Return the elementwise launches of a device that one kernel could do, by group.

    A launch passes its result on if only elementwise launches with as many elements read it, those
    that update an array with it too, and reductions, and if the program frees it and no list keeps
    it: the array is not needed then. The reader is on the same line, in the same statement, or on a
    later line of a function; either may be in a function called from there.
    Launches that pass results to each other are a group, unless other work writes to what they read
    meanwhile. A group with a reduction has no other result. Consecutive rounds of a loop that
    update one array are a group, too; see `gpuviz.advice.rounds`.
    """
    return _Fusion(device).groups()


def are_reductions(recording: "RecordingData", activities: "NDArray[Any]") -> "NDArray[Any]":
    """Return whether some rows of ``activities`` are kernels of CuPy's reductions."""
    names = plain(recording.tables["activities"]["name"])[activities]
    return are_named(recording.tables, names, _REDUCTION.match)


def operations_of(recording: "RecordingData", stacks: "NDArray[Any]") -> "NDArray[Any]":
    """Return how many operators and calls the text of the line of each call stack has."""
    call_site = recording.call_stacks.call_site
    sources = (call_site(stack)[1] for stack in stacks.tolist())
    return np.array([len(_OPERATION.findall(source)) for source in sources], np.int64)


class _Fusion:
    """The search for launches that pass results on.

    The first nodes are the elementwise launches; the others are reductions.
    """

    def __init__(self, device: "DeviceBlocks") -> None:
        self._device, self._used = device, device.used
        launches = device.elementwise
        self._reductions, self._reduction_activity = self._find_reductions()
        self._call = np.concatenate([launches.call, self._reductions])
        self._activity = np.concatenate([launches.activity, self._reduction_activity])
        self._stacks = stacks_of(device.recording.tables, self._call)
        self._is_own = is_own(device.recording, self._stacks)
        operations = partial(operations_of, device.recording)
        self._paths = CallPaths(device.recording, self._call, operations)
        # A copy can be a change of type within an expression.
        able = launches.where(lambda each: each.name not in _COPIES or len(set(each.types)) > 1)
        able &= launches.is_whole & (device.place[launches.target] >= 0)
        self._is_able = np.append(able, np.ones(len(self._reductions), bool)) & self._is_own
        self._runs = device.line_runs(self._call)
        self._round = self._rounds(self._runs)

    def groups(self) -> Groups:
        """Return the groups; see `fusible`."""
        source, target, size = self._passed_on()
        for is_left in (self._is_cut, self._is_left_to_reductions, self._is_cut):
            label = components(len(self._call), source, target)
            kept = ~is_left(label, source, target)
            source, target, size = source[kept], target[kept], size[kept]
        label = components(len(self._call), source, target)
        label[~self._work_between(label, source, target)[0][label]] = -1
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
        launches = self._device.elementwise
        temporary[writers] = self._device.place[launches.target[writers]]
        rows = rows[np.lexsort((self._times()[self._call[rows]], label[rows]))]
        is_elementwise = rows < len(launches)
        return Groups(
            np.unique(label[rows], return_inverse=True)[1],
            self._call[rows],
            self._activity[rows],
            np.where(is_elementwise, rows, -1),
            np.maximum(moved[rows], passed[rows]),
            passed[rows].astype(np.int64),
            temporary[rows],
            self._round[rows],
            rounds[rows],
        )

    def _join_rounds(
        self, label: "NDArray[Any]", members: "NDArray[Any]", source: "NDArray[Any]"
    ) -> "tuple[NDArray[Any], NDArray[Any]]":
        """Join the groups of consecutive rounds that update one array; see `consecutive`.

        Returns:
            For each node, the number of rounds of its group, and the bytes of the updated array
            that one kernel for all rounds would not read or write.
        """
        device, launches, count = self._device, self._device.elementwise, len(self._call)
        rounds, kept_bytes = np.ones(count, np.int64), np.zeros(count, np.int64)
        node = np.flatnonzero(launches.is_update & self._is_able[: len(launches)])
        place = device.place[launches.target[node]]
        node = node[device.is_seen[place] & ~device.is_shared[place]]
        # A group with an update has no other result.
        results = np.bincount(label[np.setdiff1d(members, source)], minlength=count)
        is_result = np.isin(node, members) & ~np.isin(node, source)
        node = node[np.where(is_result, results[label[node]] == 1, label[node] == node)]
        group = np.full(count, -1)
        group[members] = label[members]
        group[node] = label[node]
        reads = self._host_reads(self._call[node])
        keys = np.stack([self._paths.lines()[node], launches.function[node], reads])
        equal = np.unique(keys, axis=1, return_inverse=True)[1].ravel()
        updates = Updates(node, group, self._call, launches.target[node], equal)
        first = consecutive(self._used, self._times(), updates)
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
        order = joined[np.lexsort((self._times()[self._call[node[joined]]], first[joined]))]
        is_first = np.append(True, np.diff(first[order]) != 0)[: len(order)]
        is_last = np.append(is_first[1:], True)[: len(order)]
        size = self._used.blocks.requested[launches.target[node[order]]]
        kept_bytes[node[order]] = size * (~is_first).astype(np.int64) + size * ~is_last
        return rounds, kept_bytes

    def _is_left_to_reductions(
        self, label: "NDArray[Any]", source: "NDArray[Any]", target: "NDArray[Any]"
    ) -> "NDArray[Any]":
        """Return which arrays passed on are read by reductions that stay kernels of their own.

        A kernel that reduces has that one result: not two of them, and no array beside it.
        """
        count, reduces = len(self._device.elementwise), target >= len(self._device.elementwise)
        groups = np.zeros(len(self._call), np.int64)
        np.add.at(groups, label[np.unique(target[reduces])], 1)
        members = np.unique(np.append(source, target))
        results = np.setdiff1d(members[members < count], source)
        is_apart = groups > 1
        is_apart[label[results]] |= groups[label[results]] > 0
        writers = source[reduces & is_apart[label[source]]]
        left: NDArray[Any] = np.isin(source, writers)
        return left

    def _times(self) -> "NDArray[Any]":
        return plain(self._device.recording.tables["api_calls"]["time"])

    def _find_reductions(self) -> "tuple[NDArray[Any], NDArray[Any]]":
        """Return the calls and the activities of reductions, in the order of the calls."""
        used = self._used
        seen = np.flatnonzero(used.activity >= 0)
        seen = seen[are_reductions(self._device.recording, used.activity[seen])]
        _, first = np.unique(used.call[seen], return_index=True)
        rows = seen[np.sort(first)]
        return used.call[rows], used.activity[rows]

    def _passed_on(self) -> "tuple[NDArray[Any], NDArray[Any], NDArray[Any]]":
        """Return the writers, readers and bytes of arrays that one kernel would not need."""
        device, used, launches = self._device, self._used, self._device.elementwise
        count = len(launches)
        writer = np.full(len(used.blocks), -1)
        able = np.flatnonzero(self._is_able[:count])
        able = able[used.first[launches.target[able]] == launches.call[able]]
        place = device.place[launches.target[able]]
        free = device.is_freed[place] & device.is_seen[place]
        free &= ~device.is_shared[place] & ~device.is_initial[place] & ~device.is_kept[place]
        able = able[free]
        writer[launches.target[able]] = able
        touch = np.flatnonzero(writer[used.block] >= 0)
        source = writer[used.block[touch]]
        is_write = used.call[touch] == launches.call[source]
        node_of_call = first_rows(self._call + 1, used.call[touch] + 1)
        reads = (node_of_call >= 0) & ~is_write & (used.mode[touch] != WRITE)
        target = np.where(reads, node_of_call, source)
        of_launch = target < count
        elements = np.append(launches.elements, 0)[np.where(of_launch, target, count)]
        reads &= ~of_launch | ((elements == launches.elements[source]) & (used.mode[touch] == READ))
        reads &= self._is_able[target] & used.at_begin[touch]
        reads &= self._host_reads(self._call[source]) == self._host_reads(self._call[target])
        seen = np.flatnonzero(reads)
        same_line, follows = self._paths.lie(source[seen], target[seen])
        # In another round of a loop, the line reads the result of the round before.
        runs, rounds = self._runs, self._round
        same_round = (runs[source] == runs[target]) & (rounds[source] == rounds[target])
        reads[seen] = follows | (same_line & same_round[seen])
        # An array that the writer itself reads, as in `x += 1`, or that something else uses.
        bad = np.zeros(len(self._call), bool)
        bad[source[~reads & ~(is_write & (used.mode[touch] == WRITE))]] = True
        bad[self._chosen_by_the_host()] = True
        bad[self._read_again(source[reads], target[reads])] = True
        good = reads & ~bad[source]
        pairs = np.unique(np.stack([source[good], target[good]]), axis=1)
        pairs = pairs[:, self._is_usual(pairs[0], pairs[1])]
        return pairs[0], pairs[1], used.blocks.requested[launches.target[pairs[0]]]

    def _is_usual(self, source: "NDArray[Any]", target: "NDArray[Any]") -> "NDArray[Any]":
        """Return which arrays are passed on to a line to which most arrays of their line are.

        The result of a loop is another matter than what each round passes on.
        """
        function = self._device.elementwise.function
        maker = numbered(self._stacks[: len(function)], function)[0]
        way = numbered(maker[source], self._stacks[target])[0]
        usual: NDArray[Any] = 2 * np.bincount(way)[way] >= np.bincount(maker)[maker[source]]
        return usual

    def _read_again(self, source: "NDArray[Any]", target: "NDArray[Any]") -> "NDArray[Any]":
        """Return the launches whose results a line of a loop reads in several rounds."""
        rounds = self._runs[target], self._round[target]
        seen = np.unique(np.stack([source, self._stacks[target], *rounds]), axis=1)
        again = (np.diff(seen[:2], axis=1) == 0).all(axis=0)
        found: NDArray[Any] = np.unique(seen[0, 1:][again])
        return found

    def _chosen_by_the_host(self) -> "NDArray[Any]":
        """Return the launches whose results the host may use or not by what it reads meanwhile.

        Such as steps that the program accepts or rejects: results of the same function on the same
        line are used after the host has read something, at least two of them not the last ones.
        """
        used, launches = self._used, self._device.elementwise
        writer = np.full(len(used.blocks), -1)
        first = np.flatnonzero(used.first[launches.target] == launches.call)
        writer[launches.target[first]] = first
        touch = np.flatnonzero(writer[used.block] >= 0)
        source = writer[used.block[touch]]
        reads = self._host_reads(self._call)
        is_late = np.zeros(len(self._call), bool)
        is_late[source[self._host_reads(used.call[touch]) > reads[source]]] = True
        key = numbered(self._paths.lines()[first], launches.function[first])[0].astype(np.int64)
        last = np.zeros(key.max(initial=-1) + 1, np.int64)
        np.maximum.at(last, key, first)
        chosen = np.bincount(key, is_late[first] & (first != last[key]), len(last))
        ends = used.blocks.end[launches.target[first]]
        outlives = (ends < 0) | (np.searchsorted(self._read_times, ends) > reads[first])
        found: NDArray[Any] = first[outlives & (chosen >= _LEAST_CHOSEN)[key]]
        return found

    def _rounds(self, runs: "NDArray[Any]") -> "NDArray[Any]":
        """Return the round of a loop that each launch belongs to, in runs of a line with several.

        In such a run there are more launches than operations in the line's text, and the functions
        repeat from its beginning on; the shortest such sequence is a round, if it has several. Only
        launches that one kernel can do count: what `stack` copies at last does not.
        """
        launches, times = self._device.elementwise, self._times()
        rounds = np.zeros(len(self._call), np.int64)
        stacks = stacks_of(self._device.recording.tables, self._call[: len(launches)])
        lines = line_numbers(self._device.recording, stacks)
        distinct, first = np.unique(lines, return_index=True)
        most = np.zeros(int(lines.max(initial=-1)) + 1, np.int64)
        most[distinct] = operations_of(self._device.recording, stacks[first])
        order = np.lexsort((times[launches.call], runs[: len(launches)], lines))
        order = order[self._is_able[order]]
        keys = np.stack([lines, runs[: len(launches)]])[:, order]
        starts = np.flatnonzero((np.diff(keys, prepend=-1) != 0).any(axis=0))
        counts = np.diff(np.append(starts, len(order)))
        for part in np.flatnonzero(counts > most[keys[0, starts]]).tolist():
            rows = order[starts[part] : starts[part] + counts[part]]
            functions = launches.function[rows]
            for length in range(1, int(most[lines[rows[0]]]) + 1):
                if (functions[length:] == functions[:-length]).all():
                    rounds[rows] = np.arange(len(rows)) // length if length > 1 else 0
                    break
            # A reduction belongs to the round of the launch before it.
            reductions = len(launches) + np.flatnonzero(runs[len(launches) :] == runs[rows[0]])
            before = np.searchsorted(times[self._call[rows]], times[self._call[reductions]])
            rounds[reductions] = rounds[rows[np.maximum(before - 1, 0)]]
        return rounds

    def _host_reads(self, calls: "NDArray[Any]") -> "NDArray[Any]":
        """Return how often the host read results before each of some calls.

        What is launched after that may depend on what was read.
        """
        before: NDArray[Any] = np.searchsorted(self._read_times, self._times()[calls])
        return before

    @cached_property
    def _read_times(self) -> "NDArray[Any]":
        tables = self._device.recording.tables
        kinds = codes(tables["activities"]["copy_kind"], _COPY_KINDS)
        launched = plain(tables["activities"]["correlation"])[kinds == _TO_HOST]
        read = calls_of(tables, launched)
        return np.sort(self._times()[read[read >= 0]])

    def _is_cut(
        self, label: "NDArray[Any]", source: "NDArray[Any]", target: "NDArray[Any]"
    ) -> "NDArray[Any]":
        """Return which arrays passed on are read after other work that has to run in between.

        Such an array is written in any case.
        """
        is_whole, group, rank = self._work_between(label, source, target)
        span = np.int64(len(self._times()) + 1)
        cuts = np.sort(group[~is_whole[group]] * span + rank[~is_whole[group]])
        times = self._times()
        ranks = np.searchsorted(np.sort(times, kind="stable"), times)[self._call]
        # Launches of a group with the same number of cuts before them are a part of it.
        part = np.searchsorted(cuts, label * span + ranks) - np.searchsorted(cuts, label * span)
        cut: NDArray[Any] = np.isin(source, source[part[source] != part[target]])
        return cut

    def _are_updated(self, group: "NDArray[Any]", updates: "NDArray[Any]") -> "NDArray[Any]":
        """Return which touches are of blocks that their group updates, by some of them."""
        place = group * len(self._used.blocks) + self._used.block
        updated: NDArray[Any] = np.isin(place, place[updates])
        return updated

    def _are_elsewhere(self, node: "NDArray[Any]") -> "NDArray[Any]":
        """Return which touches may be of other elements than the one that a thread writes.

        Args:
            node: The node of each touch.
        """
        elsewhere: NDArray[Any] = self._is_turned[np.maximum(node, 0)] | ~self._used.at_begin
        return elsewhere

    @cached_property
    def _is_turned(self) -> "NDArray[Any]":
        """Whether the text of each node's line has a part of an array, or another order."""
        call_site = self._device.recording.call_stacks.call_site
        stacks, place = np.unique(self._stacks, return_inverse=True)
        found = [_TURN.search(call_site(stack)[1]) is not None for stack in stacks.tolist()]
        return np.array(found, bool)[place.ravel()]

    def _work_between(
        self, label: "NDArray[Any]", source: "NDArray[Any]", target: "NDArray[Any]"
    ) -> "tuple[NDArray[Any], NDArray[Any], NDArray[Any]]":
        """Return for each node whether there is a time at which one kernel could do its group.

        It is after other work has written what the group reads, and before other work uses what the
        group writes. Other work must not overwrite meanwhile what the group has read. Also return
        the groups and the places among all calls of such other work.
        """
        members = np.unique(np.append(source, target))
        if not len(members):
            return np.ones(len(self._call), bool), members, members
        used, times = self._used, np.sort(self._times())
        ranks = np.searchsorted(times, self._times())
        # By the first node of each group: its first and last launch, and the bounds of that time.
        groups, when = label[members], ranks[self._call[members]]
        first = np.full(len(self._call), len(times))
        last, earliest = np.full((2, len(self._call)), -1)
        np.minimum.at(first, groups, when)
        np.maximum.at(last, groups, when)
        latest = np.full(len(self._call), len(times))
        node = first_rows(self._call + 1, used.call + 1)
        group = np.where((node >= 0) & np.isin(node, members), label[node], -1)
        writer = np.full(len(used.blocks), -1)
        launches = self._device.elementwise
        own = members[members < len(launches)]
        own = own[~launches.is_update[own]]
        writer[launches.target[own]] = label[own]
        is_reduction = (group >= 0) & (node >= len(launches))
        reduced = used.block[is_reduction & (used.mode == WRITE)]
        writer[reduced] = group[is_reduction & (used.mode == WRITE)]
        maker, rank = writer[used.block], ranks[used.call]
        # A kernel has the result of its reduction only when it ends.
        too_early = (maker >= 0) & (group == maker) & ~is_reduction & np.isin(used.block, reduced)
        np.maximum.at(earliest, maker[too_early], rank[too_early])
        outside = (maker >= 0) & ((group != maker) | too_early)
        np.minimum.at(latest, maker[outside], rank[outside])
        between = [(maker[outside], (rank - too_early)[outside])]
        span = np.int64(len(times) + 1)
        keys = used.block.astype(np.int64) * span + rank
        every = _TouchesOfOthers(keys, group, span)
        is_written = used.mode != READ
        writes = _TouchesOfOthers(keys[is_written], group[is_written], span)
        reads = (group >= 0) & (used.mode == READ) & (maker != group)
        of_launch = np.minimum(node, len(launches) - 1)
        updates = (group >= 0) & (node < len(launches)) & launches.is_update[of_launch]
        updates &= used.block == launches.target[of_launch]
        # Threads cannot update elements that other threads read.
        turned = reads & self._are_updated(group, updates) & self._are_elsewhere(node)
        between.append((group[turned], rank[turned]))
        latest[group[turned]] = -1
        # Nothing else may write what is read meanwhile, nor use what is updated.
        for touch, others in ((np.flatnonzero(reads), writes), (np.flatnonzero(updates), every)):
            for is_before in (True, False):
                found = others.nearest(keys[touch], group[touch], is_before=is_before)
                same = found // span == used.block[touch]
                rank_of_other, of_group = (found % span)[same], group[touch][same]
                inside = (rank_of_other > first[of_group]) & (rank_of_other <= last[of_group])
                between.append((of_group[inside], rank_of_other[inside]))
                if is_before:
                    np.maximum.at(earliest, of_group[inside], rank_of_other[inside])
                else:
                    latest[of_group[inside]] = -1
        work = np.concatenate([np.stack(each) for each in between], axis=1)
        return earliest < latest, work[0], work[1]

    def _moved(self, label: "NDArray[Any]") -> "tuple[NDArray[Any], NDArray[Any]]":
        """Return the bytes that each node reads and writes, and those its group has read before.

        Of reductions, only the arrays that are passed on to them count.
        """
        launches = self._device.elementwise
        read = np.minimum(
            self._used.blocks.requested[launches.source],
            launches.elements[launches.launch] * int(type_bytes().max()),
        )
        moved = np.bincount(launches.launch, read, minlength=len(self._call))
        written_bytes = launches.elements * type_bytes()[launches.output]
        moved = moved + np.append(written_bytes, np.zeros(len(self._reductions)))
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


class _TouchesOfOthers:
    """Touches in order, to find the nearest one of a block that is not of a group's own.

    Args:
        keys: For each touch, its block times ``span``, plus its place in time.
        groups: The group that each belongs to; -1 without one.
        span: More than any place in time.
    """

    def __init__(self, keys: "NDArray[Any]", groups: "NDArray[Any]", span: np.int64) -> None:
        order = np.argsort(keys, kind="stable")
        self._keys, self._groups, self._span = keys[order], groups[order], span
        runs = np.stack([self._keys // span, self._groups])
        starts = np.flatnonzero((np.diff(runs, prepend=-2) != 0).any(axis=0))
        run = np.searchsorted(starts, np.arange(len(order)), side="right")
        self._start = np.append(starts[run - 1], 0) if len(order) else np.zeros(1, np.int64)
        self._end = np.append(np.append(starts, len(order))[run], 0)

    def nearest(
        self, keys: "NDArray[Any]", groups: "NDArray[Any]", *, is_before: bool
    ) -> "NDArray[Any]":
        """Return the nearest keys of other groups before or after some; -1 if there is none."""
        side: Literal["left", "right"] = "left" if is_before else "right"
        place = np.searchsorted(self._keys, keys, side=side) - int(is_before)
        at = np.clip(place, -1, len(self._keys))
        is_own = np.append(self._groups, -1)[at] == groups
        is_own &= np.append(self._keys, -1)[at] // self._span == keys // self._span
        skipped = self._start[at] - 1 if is_before else self._end[at]
        found: NDArray[Any] = np.append(self._keys, -1)[np.where(is_own, skipped, at)]
        return found


def components(count: int, source: "NDArray[Any]", target: "NDArray[Any]") -> "NDArray[Any]":
    """Return for each of some nodes the least number of a node that pairs connect it with."""
    label = np.arange(count)
    while True:
        least = np.minimum(label[source], label[target])
        np.minimum.at(label, source, least)
        np.minimum.at(label, target, least)
        following = label[label]
        if (following == label).all() and (label[source] == label[target]).all():
            return label
        label = following
