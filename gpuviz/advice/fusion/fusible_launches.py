"""Launches that one kernel could do together, and the rounds of loops that they belong to."""

import re
from functools import cached_property

import numpy as np

from gpuviz.advice.arrays.cupy_reductions import are_reductions
from gpuviz.advice.arrays.device_blocks import DeviceBlocks
from gpuviz.advice.host_lines import line_numbers
from gpuviz.advice.source.call_paths import CallPaths, operations_of
from gpuviz.advice.source.own_lines import is_own
from gpuviz.analysis.launches import calls_of, stacks_of
from gpuviz.data.columns import codes, plain
from gpuviz.data.tables import DICTIONARIES

_COPY_KINDS = DICTIONARIES["activities", "copy_kind"]
_TO_HOST = _COPY_KINDS.index("device_to_host")
_COPIES = ("copy", "fill")
# What may read the elements of an array in another order, or some of them for all.
_TURN = re.compile(r"\.m?T\b|transpose|swapaxes|moveaxis|permute|rot90|einsum|\[[^\]\"']*[:\d]")


class FusibleLaunches:
    """The elementwise launches of a device, followed by its reductions.

    Args:
        device: The blocks of the device.

    Attributes:
        device: The same.
        used: Which work used the recording's blocks.
        elementwise: The first of the launches.
        call: The row of ``api_calls`` of each launch.
        activity: The row of ``activities`` of each.
        stacks: The call stack of each.
        is_able: Whether one kernel could do each with others: the program itself makes it, and it
            writes a whole array.
        paths: The calls of the program's functions that led to each.
        runs: When the run of its line began; see `gpuviz.analysis.statements.Statements`.
    """

    def __init__(self, device: DeviceBlocks) -> None:
        self.device, self.used, self.elementwise = device, device.used, device.elementwise
        launches = self.elementwise
        reductions, activities = self._reductions()
        self.call = np.concatenate([launches.call, reductions])
        self.activity = np.concatenate([launches.activity, activities])
        self.stacks = stacks_of(device.recording.tables, self.call)
        # A copy can be a change of type within an expression.
        able = launches.where(lambda each: each.name not in _COPIES or len(set(each.types)) > 1)
        able &= launches.is_whole & (device.place[launches.target] >= 0)
        self.is_able = np.append(able, np.ones(len(reductions), bool))
        self.is_able &= is_own(device.recording, self.stacks)
        self.paths = CallPaths(device.recording, self.call)
        self.runs = device.line_runs(self.call)

    def __len__(self) -> int:
        return len(self.call)

    def _reductions(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the calls and the activities of reductions, in the order of the calls."""
        used = self.used
        seen = np.flatnonzero(used.activity >= 0)
        seen = seen[are_reductions(self.device.recording, used.activity[seen])]
        _, first = np.unique(used.call[seen], return_index=True)
        rows = seen[np.sort(first)]
        return used.call[rows], used.activity[rows]

    @cached_property
    def round(self) -> np.ndarray:
        """The round of a loop that each launch belongs to, in runs of a line with several.

        In such a run there are more launches than operations in the line's text, and the functions
        repeat from its beginning on; the shortest such sequence is a round, if it has several. Only
        launches that one kernel can do count: what `stack` copies at last does not.
        """
        launches, times, runs = self.elementwise, self.device.call_times, self.runs
        rounds = np.zeros(len(self.call), np.int64)
        stacks = self.stacks[: len(launches)]
        lines = line_numbers(self.device.recording, stacks)
        distinct, first = np.unique(lines, return_index=True)
        most = np.zeros(int(lines.max(initial=-1)) + 1, np.int64)
        most[distinct] = operations_of(self.device.recording, stacks[first])
        order = np.lexsort((times[launches.call], runs[: len(launches)], lines))
        order = order[self.is_able[order]]
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
            before = np.searchsorted(times[self.call[rows]], times[self.call[reductions]])
            rounds[reductions] = rounds[rows[np.maximum(before - 1, 0)]]
        return rounds

    @cached_property
    def is_turned(self) -> np.ndarray:
        """Whether the text of each launch's line has a part of an array, or another order."""
        call_site = self.device.recording.call_stacks.call_site
        stacks, place = np.unique(self.stacks, return_inverse=True)
        found = [_TURN.search(call_site(stack)[1]) is not None for stack in stacks.tolist()]
        return np.array(found, bool)[place.ravel()]

    @cached_property
    def places(self) -> np.ndarray:
        """The place of each row of ``api_calls`` in the order of time."""
        times = self.device.call_times
        places: np.ndarray = np.searchsorted(np.sort(times), times)
        return places

    def host_reads(self, calls: np.ndarray) -> np.ndarray:
        """Return how often the host read results before each of some calls.

        What is launched after that may depend on what was read.
        """
        before: np.ndarray = np.searchsorted(self.read_times, self.device.call_times[calls])
        return before

    @cached_property
    def read_times(self) -> np.ndarray:
        """When the host called what reads results, in ns, ascending."""
        tables = self.device.recording.tables
        kinds = codes(tables["activities"]["copy_kind"], _COPY_KINDS)
        launched = plain(tables["activities"]["correlation"])[kinds == _TO_HOST]
        read = calls_of(tables, launched)
        return np.sort(self.device.call_times[read[read >= 0]])
