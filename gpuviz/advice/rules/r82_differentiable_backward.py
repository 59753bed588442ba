"""R82: backward passes are recorded by autograd, and nothing differentiates them."""

from collections.abc import Iterator

import numpy as np

from gpuviz.advice.arrays.collected import CYCLE
from gpuviz.advice.arrays.device_blocks import DeviceBlocks
from gpuviz.advice.arrays.training_blocks import BACKWARD, TrainingBlocks
from gpuviz.advice.finding import Finding, named
from gpuviz.advice.replay.peak_replay import Change
from gpuviz.advice.rule import Rule
from gpuviz.advice.source.backward_lines import BACKWARD_CALL, BackwardLines
from gpuviz.analysis.categories import named_blocks
from gpuviz.analysis.launches import phases_of, stacks_of, values_of_stacks
from gpuviz.data.call_stacks import BACKWARD_OF, Frame
from gpuviz.data.columns import distinct, plain
from gpuviz.quantities import format_bytes

RULES = (
    Rule(
        "R82",
        "a backward pass that nothing differentiates",
        "autograd records at least 90 % of the work of the backward passes of a line that calls "
        "`backward`, at least twice, and no later backward pass differentiates them or uses what "
        "they made; the saving frees what they made, and what the graphs of these passes keep "
        "besides, after its last known use",
        "no `create_graph=True`",
    ),
)

_FEWEST_PASSES = 2
# Of the work of a pass; without `create_graph=True`, what checkpoints compute again is recorded.
_LEAST_RECORDED = 0.9


def find(device: DeviceBlocks) -> Iterator[Finding]:
    """Find backward passes that can be differentiated, and are not.

    Trigger: a line calls ``backward`` with ``create_graph=True``, so that autograd records the
    backward pass: at least 90 % of its work; and no work of a later backward pass uses what two or
    more of these passes made, except gradients, to which the next pass adds, or computes the
    gradient of what that line did. A pass begins with the first work of the call of ``backward``,
    and ends before the next work that is not of it.

    Saving: the decrease of the peak if what the passes made, except gradients, were freed after its
    last known use, and likewise what they used and did not free, if it ended together with what
    they made, or only a reference cycle holds it: a graph that can be differentiated is retained.
    What the recording does not free may be used later: ``possible``.
    """
    training = device.training
    if training is None:
        return
    passes = _Passes(device)
    is_made = training.is_differentiable & ~device.is_initial & ~device.is_shared
    gradients = device.place[named_blocks(device.recording, "gradient")[0]]
    is_made[gradients[gradients >= 0]] = False
    recorded = np.flatnonzero(is_made & (training.phase == BACKWARD))
    of_line = passes.lines.of_stacks(device.stack[recorded])
    for line in distinct(of_line).tolist():
        is_backward = passes.lines.called(line) == BACKWARD_CALL
        if not is_backward or passes.recorded_part(line) < _LEAST_RECORDED:
            continue
        made = recorded[of_line == line]
        number = passes.others_before(line, device.used.blocks.begin[device.number[made]])
        count = len(distinct(number))
        if count < _FEWEST_PASSES or passes.use_again(line, made, number):
            continue
        is_left = is_made & (training.freed_in != BACKWARD)
        made = made[is_left[made]]
        if not len(made) or passes.are_differentiated(line):
            continue
        others = np.flatnonzero(is_left & training.is_used_backward)
        blocks = np.union1d(made, others[_end_with(device, training, others, made)])
        change = Change(blocks, device.begin[blocks], device.after_known_use[blocks])
        yield _finding(device, change, count, passes.lines.frame(line))


class _Passes:
    """The backward passes of a program, by the line that runs them."""

    def __init__(self, device: DeviceBlocks) -> None:
        tables = device.recording.tables
        self._device = device
        self.lines = BackwardLines(device.recording)
        calls = device.schedule.call
        calls = distinct(calls[calls >= 0])
        self._called = plain(tables["api_calls"]["time"])
        self._calls = calls[np.argsort(self._called[calls], kind="stable")]
        self._line = self.lines.of_stacks(stacks_of(tables, self._calls))

    def recorded_part(self, line: int) -> float:
        """Return the part of the work of a line's passes that autograd records."""
        tables = self._device.recording.tables
        stacks = stacks_of(tables, self._calls[self._line == line])
        return float((values_of_stacks(tables, "differentiable", stacks) == 1).mean())

    def others_before(self, line: int, times: np.ndarray) -> np.ndarray:
        """Return how many calls that are not of a line's passes come before some times."""
        found: np.ndarray = np.searchsorted(self._others(line), times)
        return found

    def use_again(self, line: int, made: np.ndarray, number: np.ndarray) -> bool:
        """Return whether a backward pass uses what earlier ones of a line have made.

        Args:
            line: The line's number.
            made: The blocks.
            number: How many calls of others come before each.
        """
        device, used = self._device, self._device.used
        before = np.full(len(device.size), np.iinfo(np.int64).max)
        before[made] = number
        place = device.place[used.block]
        calls = used.call[place >= 0]
        stacks = stacks_of(device.recording.tables, calls)
        # The threads of a backward pass that PyTorch's own function does not run have no stack.
        is_backward = (phases_of(device.recording.tables, stacks) == BACKWARD) | (stacks == 0)
        later = self.others_before(line, self._called[calls]) > before[place[place >= 0]]
        return bool((is_backward & later).any())

    def are_differentiated(self, line: int) -> bool:
        """Return whether a backward pass computes gradients of what a line's passes did."""
        frame = self.lines.frame(line)
        if frame is None:
            return False
        sites = self._sites(self._calls[self._line != line])
        # A line may compute the loss as well, whose gradients its own passes compute.
        if frame.site not in sites:
            sites |= self._sites(self._calls[self._line == line])
        return f"{BACKWARD_OF}{frame.site}" in sites

    def _sites(self, calls: np.ndarray) -> set[str]:
        recording = self._device.recording
        stacks = distinct(stacks_of(recording.tables, calls)).tolist()
        return {recording.call_stacks.call_site(stack)[0] for stack in stacks}

    def _others(self, line: int) -> np.ndarray:
        times: np.ndarray = self._called[self._calls[self._line != line]]
        return times


def _end_with(
    device: DeviceBlocks,
    training: TrainingBlocks,
    blocks: np.ndarray,
    made: np.ndarray,
) -> np.ndarray:
    """Return whether each block ends together with one that a backward pass made.

    Nothing is allocated in between. Of those that the recording does not free, whether only a
    reference cycle holds it.
    """
    is_freed = device.is_freed[blocks]
    freed = made[device.is_freed[made]]
    allocated = training.free_keys(np.append(freed, blocks[is_freed]))[1]
    found = np.zeros(len(blocks), bool)
    found[is_freed] = np.isin(allocated[len(freed) :], allocated[: len(freed)])
    left = blocks[~is_freed]
    held = device.recording.tables["held_blocks"]
    rows = np.isin(plain(held["address"]), device.used.blocks.address[device.number[left]])
    holders = {holder for holder, row in zip(held["holder"].to_pylist(), rows, strict=True) if row}
    found[~is_freed] = holders == {CYCLE}
    return found


def _finding(device: DeviceBlocks, change: Change, passes: int, line: Frame | None) -> Finding:
    chosen = device.at_peak[change.blocks] & (change.end <= device.peak_place)
    at_peak = change.blocks[chosen] if chosen.any() else change.blocks
    size = format_bytes(int(device.size[at_peak].sum()))
    called = "The program" if line is None else named(line.site, line.source)
    is_open = not device.is_freed[change.blocks].any()
    return Finding(
        rule="R82",
        title=f"{size} of the peak belong to backward passes that autograd records, and that "
        "nothing differentiates.",
        reason=(
            f"{called} runs {passes} backward passes with `create_graph=True`: each keeps the "
            "arrays that it makes and those of the forward pass, so that gradients could be "
            "differentiated, but no later backward pass of the recording uses them. The gradients "
            "hold this graph, and the graph holds what has the gradients: a reference cycle, which "
            "only garbage collection frees, or replacing all gradients."
        ),
        change=(
            "Call `backward()` without `create_graph=True`; it frees each array after its use, and "
            "is faster. If another backward pass needs the graph of the forward pass, "
            "pass `retain_graph=True`. `torch.autograd.grad` with `create_graph=True` records only "
            "gradients that are differentiated again."
        ),
        certainty="possible" if is_open else "likely",
        device=device.device,
        lines=device.lines.lines_of(at_peak),
        evidence=device.lines.evidence(at_peak),
        lifetimes=change,
    )
