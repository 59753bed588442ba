"""Losses that the rounds of a loop add up before one backward pass, without modules."""

import re
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from gpuviz.advice.arrays.device_blocks import DeviceBlocks
from gpuviz.advice.arrays.training_blocks import ACTIVATION, BACKWARD, TrainingBlocks
from gpuviz.advice.source.model_calls import are_in_models
from gpuviz.analysis.grouping import numbered
from gpuviz.analysis.launches import phases_of, stacks_of
from gpuviz.data.call_stacks import Frame
from gpuviz.data.columns import distinct, plain
from gpuviz.data.strings import are_named

SCALAR_BYTES = 512
"""Size of a loss, as the allocator rounds it."""
_LEAST_ROUNDS = 2
# Backward passes of a line, of which all have the same rounds.
_MOST_CHECKED = 16
# PyTorch's kernels that add two arrays, and those that scale one by a number of the host.
_ADD = re.compile(r".*functor_?add", re.IGNORECASE | re.DOTALL)
_SCALE = re.compile(r".*UnaryFunctor<.*(Mul|Div)Functor", re.DOTALL)


@dataclass(frozen=True, eq=False, slots=True)
class AddedLosses:
    """Rounds of a loop before one backward pass.

    Attributes:
        begin: When the first activation of each round was allocated, in ns.
        blocks: The activations of each that the backward pass frees.
        made: All activations of each.
    """

    begin: list[int]
    blocks: list[np.ndarray]
    made: list[np.ndarray]


@dataclass(frozen=True, eq=False, slots=True)
class _Graph:
    """The activations until one backward pass, in the order of their allocation.

    Attributes:
        made: The activations.
        part: The round of each: from 0 on, -1 before the loop, and the number of rounds after it.
        is_freed: Whether the backward pass frees each.
        rounds: The number of rounds.
    """

    made: np.ndarray
    part: np.ndarray
    is_freed: np.ndarray
    rounds: int


def added_losses(device: DeviceBlocks, training: TrainingBlocks) -> list[AddedLosses]:
    """Return the rounds of a loop that adds up losses, for each run of its backward pass.

    It is the backward pass that frees most of the peak. The rounds run the same lines of the
    function that calls it. Before it, nothing uses the activations of a round after the next one
    has begun, or those from before the loop, but for the sum of losses: kernels that add two arrays
    read it, or such that scale it after the loop. Any other function of the losses needs all graphs
    at once, what all rounds use would be differentiated in each, and which losses the sum leaves
    out may only be known after the loop.

    Empty if modules are called; see `model_calls`.
    """
    is_made = (training.category == ACTIVATION) & training.is_differentiable & ~device.is_shared
    is_freed = is_made & (training.freed_in == BACKWARD)
    at_peak = np.flatnonzero(is_freed & device.at_peak)
    made = np.flatnonzero(is_made)
    if not len(at_peak) or are_in_models(device.recording, distinct(device.stack[made])).any():
        return []
    made = made[np.argsort(device.begin[made], kind="stable")]
    freeing, first = numbered(training.freed_by[at_peak])
    most = first[np.argmax(np.bincount(freeing, device.size[at_peak]))]
    path = _path(device, int(training.freed_by[at_peak[most]]))
    for depth in range(len(path), 0, -1):
        place = _Place(device, path[:depth])
        graphs = place.graphs(made, training.freed_by, is_freed)
        if graphs:
            checked = graphs[:: -(-len(graphs) // _MOST_CHECKED)]
            times = device.call_times[device.used.call]
            is_sum = all(_is_sum(device, each, times) for each in checked)
            return [_losses(device, each) for each in graphs] if is_sum else []
    return []


class _Place:
    """A line of a function that calls ``backward()``, and what leads to it.

    Args:
        device: The blocks.
        path: The frames from the outermost one to the line.
    """

    def __init__(self, device: DeviceBlocks, path: tuple[Frame, ...]) -> None:
        self.device, self.path = device, path

    def lines(self, stacks: np.ndarray) -> np.ndarray:
        """Return the line of the function that each stack goes through; 0 of others."""
        number, first = numbered(stacks)
        depth, within, found = len(self.path) - 1, _functions(self.path), []
        for stack in stacks[first].tolist():
            frames = _path(self.device, stack)[: depth + 1]
            found.append(frames[depth].line if _functions(frames) == within else 0)
        lines: np.ndarray = np.array(found, np.int64)[number]
        return lines

    def graphs(self, made: np.ndarray, freed_by: np.ndarray, is_freed: np.ndarray) -> list[_Graph]:
        """Return the activations of each backward pass with several rounds of a loop before it.

        None if that of the peak has no rounds, or if a sum leaves out the loss of a round.
        """
        rows = _Rows(
            made=made,
            begin=self.device.begin[made],
            end=self.device.end[made],
            line=self.lines(self.device.stack[made]),
            is_freed=is_freed[made] & (self.lines(freed_by[made]) == self.path[-1].line),
        )
        freed = np.flatnonzero(rows.is_freed)
        if not len(freed):
            return []
        first = freed[np.append(True, rows.begin[freed[1:]] > rows.end[freed[:-1]])]
        bounds = list(pairwise([*first.tolist(), len(made)]))
        at_peak = int(np.flatnonzero(rows.is_freed & self.device.at_peak[made])[0])
        bounds.sort(key=lambda rows: not rows[0] <= at_peak < rows[1])
        found: list[_Graph] = []
        for start, stop in bounds:
            graph = _graph(rows, start, stop)
            if graph.rounds >= _LEAST_ROUNDS:
                if _leaves_out(rows, graph, start):
                    return []
                found.append(graph)
            elif not found:
                return []
        return found


@dataclass(frozen=True, eq=False, slots=True)
class _Rows:
    """The activations in the order of their allocation.

    Attributes:
        made: The activations.
        begin: When each was allocated, as of `DeviceBlocks`.
        end: When each was freed.
        line: The line of the function that each was allocated in; 0 of others.
        is_freed: Whether the backward pass that the function calls frees each.
    """

    made: np.ndarray
    begin: np.ndarray
    end: np.ndarray
    line: np.ndarray
    is_freed: np.ndarray


def _graph(rows: _Rows, start: int, stop: int) -> _Graph:
    """Return the activations between two rows, until the backward pass frees the first of them.

    Also earlier ones that are still alive, of lines that are not of the rounds: the backward pass
    may free only what leads to them.
    """
    begin, end = rows.begin, rows.end
    ours = np.arange(start, stop)
    ours = ours[begin[ours] < end[ours[rows.is_freed[ours]]].min()]
    part = np.full(len(ours), -1)
    is_of_function = rows.line[ours] > 0
    rounds = 0
    if is_of_function.any():
        part[is_of_function], rounds = _parts(rows.line[ours[is_of_function]])
        part = np.maximum.accumulate(part)
    earlier = np.flatnonzero(end[:start] > begin[start])
    of_rounds = rows.line[ours[(part >= 0) & is_of_function]]
    earlier = earlier[~np.isin(rows.line[earlier], of_rounds)]
    part = np.append(np.full(len(earlier), -1), part)
    ours = np.append(earlier, ours)
    return _Graph(rows.made[ours], part, rows.is_freed[ours], rounds)


def _leaves_out(rows: _Rows, graph: _Graph, start: int) -> bool:
    """Return whether the sum leaves out the loss of a round.

    The backward pass frees nothing of this round. If it is the first one, it is before the graph.
    """
    if len(distinct(graph.part[graph.is_freed & (graph.part >= 0)])) < graph.rounds:
        return True
    freed_before = rows.end[:start][rows.is_freed[:start]].max(initial=-1)
    earlier = rows.line[:start][rows.begin[:start] > freed_before]
    is_of_rounds = np.isin(rows.made, graph.made[(graph.part >= 0) & (graph.part < graph.rounds)])
    others = distinct(rows.line[is_of_rounds & (rows.line != rows.line[start])])
    return bool(np.isin(earlier, others[others > 0]).any())


def _losses(device: DeviceBlocks, graph: _Graph) -> AddedLosses:
    of_rounds = [graph.part == number for number in range(graph.rounds)]
    of_rounds[-1] |= graph.part == graph.rounds
    made = [graph.made[rows] for rows in of_rounds]
    begins = device.used.blocks.begin
    return AddedLosses(
        begin=[int(begins[device.number[blocks[0]]]) for blocks in made],
        blocks=[graph.made[rows & graph.is_freed] for rows in of_rounds],
        made=made,
    )


def _path(device: DeviceBlocks, stack: int) -> tuple[Frame, ...]:
    """Return the frames of a stack in the program's own files, outermost first."""
    return device.recording.call_stacks.user_frames(stack)[::-1]


def _functions(path: tuple[Frame, ...]) -> list[tuple[str, str]]:
    return [(frame.name, frame.filename) for frame in path]


def _parts(lines: np.ndarray) -> tuple[np.ndarray, int]:
    """Return the part of each row, as `_Graph` has them, and the number of rounds; 0 if none."""
    starts = np.flatnonzero(np.append(True, lines[1:] != lines[:-1]))
    runs = lines[starts].tolist()
    repeated = [run for run in dict.fromkeys(runs) if runs.count(run) > 1]
    nothing = np.full(len(lines), -1)
    if not repeated:
        return nothing, 0
    begins = [place for place, run in enumerate(runs) if run == repeated[0]]
    pattern = runs[begins[0] : begins[1]]
    after = begins[-1] + len(pattern)
    if runs[begins[0] : after] != pattern * len(begins):
        return nothing, 0
    edges = [starts[place] for place in begins]
    edges += [starts[after]] if after < len(runs) else []
    part = np.searchsorted(np.array(edges), np.arange(len(lines)), side="right") - 1
    return part, len(begins)


def _is_sum(device: DeviceBlocks, graph: _Graph, times: np.ndarray) -> bool:
    """Return whether only a sum of numbers connects the rounds, and what follows scales it."""
    is_after = graph.part == graph.rounds
    if (device.size[graph.made[is_after]] > SCALAR_BYTES).any():
        return False
    uses = _uses(device, graph, times)
    if uses is None:
        return False
    every, used_in, made_in = uses
    is_late = (used_in > made_in) | (made_in == graph.rounds)
    touches, used_in, made_in = every[is_late], used_in[is_late], made_in[is_late]
    blocks = device.place[device.used.block[touches]]
    is_add = _are_named(device, touches, _ADD)
    is_allowed = is_add | (_are_named(device, touches, _SCALE) & (used_in == graph.rounds))
    is_allowed &= (device.size[blocks] <= SCALAR_BYTES) & (made_in >= 0)
    added = distinct(made_in[is_add & (made_in < graph.rounds)])
    if not is_allowed.all() or len(added) < graph.rounds - 1:
        return False
    # What a round makes of an earlier sum is the next sum, and not another function of it.
    sums = distinct(blocks[np.isin(made_in, used_in) & (made_in < graph.rounds)])
    every = every[np.isin(device.place[device.used.block[every]], sums)]
    writing = every[device.used.call[every] == device.used.first[device.used.block[every]]]
    return bool(_are_named(device, writing, _ADD).all())


def _uses(
    device: DeviceBlocks, graph: _Graph, times: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """Return the touches of a graph before its backward pass; None if some may be hidden.

    Also the parts that each is in, and that its block was made in.
    """
    used = device.used
    begin = used.blocks.begin[device.number[graph.made]]
    until = int(used.blocks.end[device.number[graph.made[graph.is_freed]]].min())
    second = int(begin[graph.part > 0][0])
    if _forward(device, used.opaque[_between(device.call_times[used.opaque], second, until)]).any():
        return None
    touches = np.arange(len(used.call))[_between(times, int(begin[0]), until)]
    touches = touches[_forward(device, used.call[touches])]
    place = device.place[used.block[touches]]
    is_ours = (place >= 0) & np.isin(place, graph.made)
    touches, place = touches[is_ours], place[is_ours]
    order = np.argsort(graph.made)
    made_in = graph.part[order[np.searchsorted(graph.made[order], place)]]
    before = np.searchsorted(begin, times[touches], side="right") - 1
    return touches, graph.part[before], made_in


def _forward(device: DeviceBlocks, calls: np.ndarray) -> np.ndarray:
    """Return whether each call is not of a backward pass.

    One within a round only reads what the forward work of this round has used.
    """
    tables = device.recording.tables
    is_forward: np.ndarray = phases_of(tables, stacks_of(tables, calls)) != BACKWARD
    return is_forward


def _between(times: np.ndarray, begin: int, end: int) -> slice:
    """Return the rows of ascending times from a begin until before an end."""
    return slice(*np.searchsorted(times, (begin, end)).tolist())


def _are_named(device: DeviceBlocks, touches: np.ndarray, pattern: re.Pattern[str]) -> np.ndarray:
    """Return whether the kernels of touches have such a name; not if they are unknown."""
    tables, rows = device.recording.tables, device.used.activity[touches]
    names = plain(tables["activities"]["name"])[np.maximum(rows, 0)]
    found: np.ndarray = (rows >= 0) & are_named(tables, names, pattern.match)
    return found
