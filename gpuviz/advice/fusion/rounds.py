"""Rounds of a loop that update one array, each with the same inputs, which one kernel could do."""

from dataclasses import dataclass

import numpy as np

from gpuviz.advice.arrays.elementwise import WRITE
from gpuviz.analysis.touches import Touches
from gpuviz.data.first_rows import first_rows
from gpuviz.data.mixing import GOLDEN, mixed

# Fewer are not worth a loop in a kernel.
_LEAST_ROUNDS = 4
# Of the bytes of the updated array: what each round may read anew.
_SMALL = 1 / 16


@dataclass(frozen=True, eq=False, slots=True)
class Updates:
    """Launches that update an array, each with the launches that only compute what it needs.

    Attributes:
        node: The launches' numbers.
        group: For each number of a launch, that of its group; -1 of launches that are in none.
        call: For each number, the row of ``api_calls``.
        target: The block that each updates, an index of ``used.blocks``.
        place: A number for each, equal for launches that one kernel can do: of the same line and
            function, without a read of the host in between.
    """

    node: np.ndarray
    group: np.ndarray
    call: np.ndarray
    target: np.ndarray
    place: np.ndarray


def consecutive(used: Touches, times: np.ndarray, updates: Updates) -> np.ndarray:
    """Return for each update the position of the first of its rounds, its own if it is alone.

    Rounds follow each other without other work on any array, in one place of the program, update
    the same array and read the same large arrays; the updated one only in the update itself.

    Args:
        used: Which work used which blocks.
        times: When each call began, in ns.
        updates: The updates.
    """
    count = len(updates.node)
    if count < _LEAST_ROUNDS:
        return np.arange(count)
    calls = np.unique(used.call)
    calls = calls[np.argsort(times[calls], kind="stable")]
    node = first_rows(updates.call + 1, calls + 1)
    group = np.where(node >= 0, np.append(updates.group, -1)[node], -1)
    begins = np.ones(len(calls), bool)
    begins[1:] = (group[1:] != group[:-1]) | (group[1:] < 0)
    part = np.cumsum(begins) - 1
    # Each update is the last of a part, which has all launches of its group.
    own = part[np.searchsorted(times[calls], times[updates.call[updates.node]])]
    of_group = updates.group[updates.node]
    parts = np.bincount(group[begins & (group >= 0)], minlength=int(of_group.max()) + 1)
    is_whole = (parts[of_group] == 1) & (group[begins][own] == of_group)
    update = np.full(int(begins.sum()), -1)
    update[own[is_whole]] = np.flatnonzero(is_whole)
    touched = update[part[np.searchsorted(times[calls], times[used.call])]]
    is_update = used.call == updates.call[updates.node][touched]
    of_target = used.block == updates.target[touched]
    is_bad = np.zeros(count, bool)
    is_bad[touched[(touched >= 0) & of_target & ~is_update]] = True
    # What a round writes itself is none of its inputs.
    span = np.int64(len(used.blocks) + 1)
    keys = touched * span + used.block
    written = np.unique(keys[(touched >= 0) & (used.mode == WRITE)])
    requested = used.blocks.requested
    is_large = requested[used.block] > _SMALL * requested[updates.target[touched]]
    reads = (touched >= 0) & (used.mode != WRITE) & is_large & ~np.isin(keys, written)
    inputs = np.zeros(count, np.uint64)
    of_address = mixed(used.address[reads].astype(np.uint64), GOLDEN)
    np.add.at(inputs, touched[reads], mixed(of_address, used.block[reads].astype(np.uint64)))
    first = np.arange(count)
    order = np.argsort(own, kind="stable")
    before, after = order[:-1], order[1:]
    joins = is_whole[before] & is_whole[after] & ~is_bad[before] & ~is_bad[after]
    joins &= (own[after] - own[before] == 1) & (inputs[before] == inputs[after])
    joins &= updates.target[before] == updates.target[after]
    joins &= updates.place[before] == updates.place[after]
    starts = np.append(True, ~joins)
    first[order] = order[np.maximum.accumulate(np.where(starts, np.arange(len(order)), 0))]
    rounds = np.bincount(first, minlength=count)[first]
    found: np.ndarray = np.where(rounds >= _LEAST_ROUNDS, first, np.arange(count))
    return found
