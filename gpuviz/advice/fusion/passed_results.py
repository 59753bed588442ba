"""Results that launches pass on to others, and that one kernel would not write."""

import numpy as np

from gpuviz.advice.arrays.elementwise import READ, WRITE
from gpuviz.advice.fusion.fusible_launches import FusibleLaunches
from gpuviz.analysis.grouping import numbered
from gpuviz.data.first_rows import first_rows

# A single one may be the result of a loop.
_LEAST_CHOSEN = 2


def passed_on(launches: FusibleLaunches) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the writers, readers and bytes of arrays that one kernel would not need."""
    device, used, elementwise = launches.device, launches.used, launches.elementwise
    count = len(elementwise)
    writer = np.full(len(used.blocks), -1)
    able = np.flatnonzero(launches.is_able[:count])
    able = able[used.first[elementwise.target[able]] == elementwise.call[able]]
    place = device.place[elementwise.target[able]]
    free = device.is_freed[place] & device.is_seen[place]
    free &= ~device.is_shared[place] & ~device.is_initial[place] & ~device.is_kept[place]
    able = able[free]
    writer[elementwise.target[able]] = able
    touch = np.flatnonzero(writer[used.block] >= 0)
    source = writer[used.block[touch]]
    is_write = used.call[touch] == elementwise.call[source]
    node_of_call = first_rows(launches.call + 1, used.call[touch] + 1)
    reads = (node_of_call >= 0) & ~is_write & (used.mode[touch] != WRITE)
    target = np.where(reads, node_of_call, source)
    of_launch = target < count
    elements = np.append(elementwise.elements, 0)[np.where(of_launch, target, count)]
    reads &= ~of_launch | ((elements == elementwise.elements[source]) & (used.mode[touch] == READ))
    reads &= launches.is_able[target] & used.at_begin[touch]
    before = launches.host_reads(launches.call)
    reads &= before[source] == before[target]
    seen = np.flatnonzero(reads)
    same_line, follows = launches.paths.lie(source[seen], target[seen])
    # In another round of a loop, the line reads the result of the round before.
    runs, rounds = launches.runs, launches.round
    same_round = (runs[source] == runs[target]) & (rounds[source] == rounds[target])
    reads[seen] = follows | (same_line & same_round[seen])
    # An array that the writer itself reads, as in `x += 1`, or that something else uses.
    bad = np.zeros(len(launches), bool)
    bad[source[~reads & ~(is_write & (used.mode[touch] == WRITE))]] = True
    bad[_chosen_by_the_host(launches)] = True
    bad[_read_again(launches, source[reads], target[reads])] = True
    good = reads & ~bad[source]
    pairs = np.unique(np.stack([source[good], target[good]]), axis=1)
    pairs = pairs[:, _are_usual(launches, pairs[0], pairs[1])]
    return pairs[0], pairs[1], used.blocks.requested[elementwise.target[pairs[0]]]


def _are_usual(launches: FusibleLaunches, source: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Return which arrays are passed on to a line to which most arrays of their line are.

    The result of a loop is another matter than what each round passes on.
    """
    function = launches.elementwise.function
    maker = numbered(launches.stacks[: len(function)], function)[0]
    way = numbered(maker[source], launches.stacks[target])[0]
    usual: np.ndarray = 2 * np.bincount(way)[way] >= np.bincount(maker)[maker[source]]
    return usual


def _read_again(launches: FusibleLaunches, source: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Return the launches whose results a line of a loop reads in several rounds."""
    rounds = launches.runs[target], launches.round[target]
    seen = np.unique(np.stack([source, launches.stacks[target], *rounds]), axis=1)
    again = (np.diff(seen[:2], axis=1) == 0).all(axis=0)
    found: np.ndarray = np.unique(seen[0, 1:][again])
    return found


def _chosen_by_the_host(launches: FusibleLaunches) -> np.ndarray:
    """Return the launches whose results the host may use or not by what it reads meanwhile.

    Such as steps that the program accepts or rejects: results of the same function on the same
    line are used after the host has read something, at least two of them not the last ones.
    """
    used, elementwise = launches.used, launches.elementwise
    writer = np.full(len(used.blocks), -1)
    first = np.flatnonzero(used.first[elementwise.target] == elementwise.call)
    writer[elementwise.target[first]] = first
    touch = np.flatnonzero(writer[used.block] >= 0)
    source = writer[used.block[touch]]
    reads = launches.host_reads(launches.call)
    is_late = np.zeros(len(launches), bool)
    is_late[source[launches.host_reads(used.call[touch]) > reads[source]]] = True
    key = numbered(launches.paths.lines()[first], elementwise.function[first])[0].astype(np.int64)
    last = np.zeros(key.max(initial=-1) + 1, np.int64)
    np.maximum.at(last, key, first)
    chosen = np.bincount(key, is_late[first] & (first != last[key]), len(last))
    ends = used.blocks.end[elementwise.target[first]]
    outlives = (ends < 0) | (np.searchsorted(launches.read_times, ends) > reads[first])
    found: np.ndarray = first[outlives & (chosen >= _LEAST_CHOSEN)[key]]
    return found
