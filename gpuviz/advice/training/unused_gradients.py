"""Gradients that backward passes compute and nothing uses, and the work and memory behind them."""

from dataclasses import replace
from functools import cached_property

import numpy as np

from gpuviz.advice.arrays.device_blocks import DeviceBlocks
from gpuviz.advice.arrays.training_blocks import (
    ACTIVATION,
    BACKWARD,
    GRADIENT,
    OPTIMIZER,
    TEMPORARY,
    WORKSPACE,
    TrainingBlocks,
)
from gpuviz.advice.arrays.without_graph import ends_without_graph
from gpuviz.advice.replay.peak_replay import Change
from gpuviz.advice.source.backward_lines import compute_from_others, has_reentrant_checkpoints
from gpuviz.analysis.categories import named_blocks
from gpuviz.analysis.grouping import numbered
from gpuviz.analysis.launches import phases_of
from gpuviz.analysis.phases import PhasedWork
from gpuviz.analysis.touches import without_touches
from gpuviz.data.columns import plain
from gpuviz.data.tables import DICTIONARIES

_MODES = DICTIONARIES["launch_blocks", "mode"]
_READ, _WRITE, _READ_WRITE = map(_MODES.index, ("read", "write", "read_write"))
_OTHER = 0
_STACKS = 1 << 32  # more than there are ids of stacks
# Fewer may be of the first steps, or of a pass that the program drops for a reason.
_LEAST_PASSES = 3


class UnusedGradients:
    """The gradients of a device that nothing uses but backward passes, and what they cost.

    Either the optimizer says so, because their learning rate is 0, or no optimizer gets them before
    its last step and no work reads them but that of backward passes that add to them.

    A backward pass computes the gradients of later modules first. What it does after the last
    array that something needs is needless, and before that what only writes these gradients.

    Args:
        device: The device's blocks.
        training: The same, as those of a training program.

    Attributes:
        blocks: The gradients without any use, as indices of the device's blocks.
        is_frozen: Whether the learning rate of each of the device's blocks is 0.
        passes: How many backward passes compute gradients that are not used.
    """

    def __init__(self, device: DeviceBlocks, training: TrainingBlocks) -> None:
        self._device, self._training = device, training
        tables, used = device.recording.tables, device.used
        self._time = plain(tables["api_calls"]["time"])
        self._stack = plain(tables["api_calls"]["stack"])
        self._phase = phases_of(tables, self._stack)
        self._touch_phase = self._phase[used.call]
        self._place = device.place[used.block]
        # What a library leaves in its workspace is needed by nothing.
        self._of_device = (self._place >= 0) & (training.category != WORKSPACE)[self._place]
        self._known: dict[str, tuple[np.ndarray, np.ndarray]] = {}
        self.is_frozen = self._named("unused_gradient") & ~self._named("gradient")
        self._unused = self._unused_touches()
        self.passes = 0
        if self._unused.any():
            self.passes = len(np.unique(self._pass[used.call[self._unused]]))
        if self.passes < _LEAST_PASSES:
            self._unused &= False
        is_gradient = self._of_device & (self._touch_phase == BACKWARD)
        partly, needed = (np.zeros(len(device.size), bool) for _ in range(2))
        partly[self._place[self._unused]] = True
        needed[self._place[is_gradient & ~self._unused]] = True
        self._is_unused = partly & ~needed
        self.blocks = np.flatnonzero(self._is_unused)

    @property
    def bytes_each(self) -> int:
        """The bytes of these gradients in the pass that has most of them."""
        used, device = self._device.used, self._device
        pairs = np.stack([self._pass[used.call[self._unused]], self._place[self._unused]])
        number, block = np.unique(pairs, axis=1)
        return int(np.bincount(number, device.size[block]).max(initial=0))

    @property
    def partly(self) -> np.ndarray:
        """The blocks with such gradients, whether or not other passes need them."""
        return np.unique(self._place[self._unused])

    def _named(self, category: str) -> np.ndarray:
        """Return which blocks an optimizer got as gradients of a category, before its last step.

        Afterwards, a recording names the gradients of all models.
        """
        blocks, times = self._named_blocks(category)
        place = self._device.place[blocks[times <= self._steps.max(initial=-1)]]
        found = np.zeros(len(self._device.size), bool)
        found[place[place >= 0]] = True
        return found

    def _named_blocks(self, category: str) -> tuple[np.ndarray, np.ndarray]:
        if category not in self._known:
            self._known[category] = named_blocks(self._device.recording, category)[:2]
        return self._known[category]

    @cached_property
    def _pass_begins(self) -> np.ndarray:
        """When each backward pass began, in ns."""
        return PhasedWork.of(self._device.recording).begins_of(BACKWARD)

    def _number(self, times: np.ndarray) -> np.ndarray:
        """Return how many backward passes had begun at some times."""
        found: np.ndarray = np.searchsorted(self._pass_begins, times, side="right")
        return found

    @cached_property
    def _pass(self) -> np.ndarray:
        """The number of backward passes that had begun before each call, with its own."""
        return self._number(self._time)

    def _unused_touches(self) -> np.ndarray:
        """Return which uses by backward passes make gradients that nothing uses afterwards.

        Only of call stacks that make no others of this size: one makes the gradients of a module's
        parameters and of its input.
        """
        used, training = self._device.used, self._training
        rows = self._of_device & (self._touch_phase == BACKWARD)
        rows &= (training.category == GRADIENT)[self._place]
        stack = self._stack[used.call]
        unused = rows & self.is_frozen[self._place]
        if not has_reentrant_checkpoints(self._device.recording):
            unused |= rows & (self._time[used.call] > self._needed_before[self._place])
        # The last step of the recording may be missing.
        known = rows & (self._time[used.call] < self._steps.max(initial=-1))
        kind = numbered(stack, self._device.size[self._place])[0]
        others = np.unique(kind[known & ~unused])
        found: np.ndarray = unused & known & (stack != 0) & ~np.isin(kind, others)
        return found

    @cached_property
    def _steps(self) -> np.ndarray:
        """When optimizers worked, in ns."""
        times: np.ndarray = self._time[self._phase == OPTIMIZER]
        return times

    @cached_property
    def _needed_before(self) -> np.ndarray:
        """When an optimizer last got each block, or other work than a backward pass's read it.

        Unknown of blocks that work may have read without naming them.
        """
        device, used, never = self._device, self._device.used, np.iinfo(np.int64).max
        until = np.full(len(device.size), -1)
        blocks, times = self._named_blocks("gradient")
        if not len(self._steps) or not len(blocks):
            return np.full(len(until), never)
        is_step = (times <= self._steps.max()) & (device.place[blocks] >= 0)
        np.maximum.at(until, device.place[blocks[is_step]], times[is_step])
        other = (self._touch_phase != BACKWARD) & (used.mode != _WRITE)
        is_workspace = (self._place >= 0) & ~self._of_device
        computes = compute_from_others(device.recording, used, is_workspace)
        other |= (self._touch_phase == BACKWARD) & computes
        other &= self._of_device
        np.maximum.at(until, self._place[other], self._time[used.call[other]])
        # A graph, for one, may read any array.
        hidden = np.sort(self._time[used.opaque[self._phase[used.opaque] == _OTHER]])
        ends = used.blocks.end_or_never[device.number]
        last = np.append(-1, hidden)[np.searchsorted(hidden, ends)]
        until = np.where(last > used.blocks.begin[device.number], np.maximum(until, last), until)
        until[device.is_shared | device.is_initial] = never
        return until

    @cached_property
    def _needed_until(self) -> np.ndarray:
        """For each number of a backward pass, when it last does something that is needed, in ns."""
        device, training, used = self._device, self._training, self._device.used
        is_made = training.phase == BACKWARD
        is_kept = is_made & np.isin(training.category, (GRADIENT, ACTIVATION))
        is_kept |= training.category == GRADIENT
        until = np.full(len(self._pass_begins) + 1, -1)
        rows = self._of_device & (self._touch_phase == BACKWARD) & ~self._unused
        is_written = (used.mode == _WRITE) | (used.mode == _READ_WRITE)
        rows &= is_kept[self._place] | (is_written & ~is_made[self._place])
        # Work that names no arrays may write what its line has allocated.
        kept = np.flatnonzero(is_kept & is_made & ~self._is_unused)
        begins = used.blocks.begin[device.number[kept]]
        allocated = self._number(begins)
        keys = allocated * _STACKS + device.stack[kept].astype(np.int64)
        hidden = used.opaque[self._phase[used.opaque] == BACKWARD]
        own = self._pass[hidden] * _STACKS + self._stack[hidden].astype(np.int64)
        needed = np.concatenate([used.call[rows], hidden[np.isin(own, keys)]])
        np.maximum.at(until, self._pass[needed], self._time[needed])
        np.maximum.at(until, allocated, begins)
        return until

    @cached_property
    def needless_calls(self) -> np.ndarray:
        """A mask of the calls whose work only leads to these gradients.

        From the last to the first: work is needless if all that it writes is such a gradient, or a
        temporary array that only needless work uses afterwards.
        """
        used = self._device.used
        passes = np.unique(self._pass[used.call[self._unused]])
        found: np.ndarray = (self._phase == BACKWARD) & np.isin(self._pass, passes)
        rows = np.flatnonzero(self._of_device & found[used.call])
        found &= self._time > self._needed_until[self._pass]
        rows = rows[np.lexsort((used.call[rows], -self._time[used.call[rows]]))]
        _, first = np.unique(-self._time[used.call[rows]], return_index=True)
        block, is_output = self._place[rows].tolist(), self._outputs(rows).tolist()
        unused = self._unused[rows].tolist()
        is_temporary = (self._training.category == TEMPORARY) & (self._training.phase == BACKWARD)
        may_be_needless = (is_temporary & ~self._may_be_hidden).tolist()
        # Which blocks later work uses: only needless work, or other work, too.
        only_needless, needed = set[int](), set[int]()
        call = used.call[rows[first]].tolist()
        ends = [*first[1:].tolist(), len(rows)]
        for number, begin, end in zip(call, first.tolist(), ends, strict=True):
            written = [row for row in range(begin, end) if is_output[row]]
            is_needless = bool(written) and all(
                unused[row] or (may_be_needless[block[row]] and block[row] in only_needless)
                for row in written
            )
            found[number] |= is_needless
            if found[number]:
                only_needless.update(set(block[begin:end]) - needed)
            else:
                needed.update(block[begin:end])
                only_needless.difference_update(block[begin:end])
        return found

    def _outputs(self, rows: np.ndarray) -> np.ndarray:
        """Return which uses write, as far as is known: those of calls without any may all do."""
        used, call = self._device.used, self._device.used.call[rows]
        mode, is_made = used.mode[rows], (self._training.phase == BACKWARD)[self._place[rows]]
        is_first = used.first[self._device.number[self._place[rows]]] == call
        found = (mode == _WRITE) | ((mode != _READ) & (self._unused[rows] | (is_first & is_made)))
        is_known = np.isin(call, call[found])
        outputs: np.ndarray = found | (~is_known & is_made & (mode != _READ))
        return outputs

    @cached_property
    def _may_be_hidden(self) -> np.ndarray:
        """Whether work of a backward pass that names no arrays may have used each block."""
        device, used = self._device, self._device.used
        hidden = np.sort(self._time[used.opaque[self._phase[used.opaque] == BACKWARD]])
        begin, end = used.blocks.begin[device.number], used.blocks.end_or_never[device.number]
        found: np.ndarray = np.searchsorted(hidden, begin) < np.searchsorted(hidden, end)
        return found

    @cached_property
    def stepping(self) -> tuple[np.ndarray, np.ndarray]:
        """The optimizers' calls that get these gradients, and the share of these in each."""
        device, used = self._device, self._device.used
        rows = self._of_device & (self._touch_phase == OPTIMIZER)
        rows = np.flatnonzero(rows & (self._training.category == GRADIENT)[self._place])
        calls, number = np.unique(used.call[rows], return_inverse=True)
        size, unused = device.size[self._place[rows]], self._is_unused[self._place[rows]]
        all_bytes = np.bincount(number, size, len(calls))
        share = np.bincount(number, size * unused, len(calls)) / np.maximum(all_bytes, 1)
        return calls[share > 0], share[share > 0]

    def change(self) -> Change:
        """Return the lifetimes of blocks if these gradients were not computed."""
        device = self._device
        gone = [self.blocks, self._needless_temporaries(), self._states()]
        gone_blocks = np.unique(np.concatenate(gone))
        kept = np.setdiff1d(self._activations(), gone_blocks)
        kept = kept[np.argsort(device.begin[kept], kind="stable")]
        end, begin = self._after_forward(kept), device.begin[gone_blocks]
        return Change(
            np.concatenate([gone_blocks, kept]),
            np.concatenate([begin, device.begin[kept]]),
            np.concatenate([begin, end]),
        )

    def _is_in_tail(self, times: np.ndarray) -> np.ndarray:
        """Return whether something in a backward pass at some times leads to these gradients."""
        number = self._number(times)
        needless = np.unique(self._pass[self.needless_calls])
        found: np.ndarray = np.isin(number, needless) & (times > self._needed_until[number])
        return found

    def _needless_temporaries(self) -> np.ndarray:
        """Return the temporary arrays that needless work makes, or only needless work uses."""
        device, training = self._device, self._training
        chosen = (training.phase == BACKWARD) & (training.freed_in == BACKWARD)
        needed, needless = self._used_backward
        is_needless = needless & ~needed & ~self._may_be_hidden
        is_needless |= self._is_in_tail(device.used.blocks.begin[device.number])
        return np.flatnonzero(chosen & is_needless)

    def _states(self) -> np.ndarray:
        """Return the states that an optimizer has for the parameters that it does not change."""
        recording = self._device.recording
        _, _, frozen = named_blocks(recording, "unused_gradient")
        _, _, others = named_blocks(recording, "gradient")
        blocks, _, names = named_blocks(recording, "optimizer_state")
        names_only = np.setdiff1d(frozen, np.append(others, 0))
        place = self._device.place[blocks[np.isin(names, names_only)]]
        found: np.ndarray = np.unique(place[place >= 0])
        return found

    def _activations(self) -> np.ndarray:
        """Return the activations that only needless work of backward passes uses."""
        device, training, used = self._device, self._training, self._device.used
        chosen = (training.category == ACTIVATION) & (training.freed_in == BACKWARD)
        chosen &= (training.phase != BACKWARD) & ~device.is_shared & training.is_differentiable
        needed, needless = self._used_backward
        ends = used.blocks.end[device.number]
        return np.flatnonzero(chosen & ~needed & (needless | self._is_in_tail(ends)))

    @cached_property
    def _used_backward(self) -> tuple[np.ndarray, np.ndarray]:
        """Which blocks needed work of backward passes uses, and which their needless work."""
        rows = self._of_device & (self._touch_phase == BACKWARD)
        is_needless = self.needless_calls[self._device.used.call]
        needed, needless = (np.zeros(len(self._device.size), bool) for _ in range(2))
        needed[self._place[rows & ~is_needless]] = True
        needless[self._place[rows & is_needless]] = True
        return needed, needless

    def _after_forward(self, blocks: np.ndarray) -> np.ndarray:
        """Return where forward passes would free activations that no graph keeps.

        Args:
            blocks: Those, in the order of their allocations.
        """
        device, used = self._device, self._device.used
        needless = self.needless_calls[used.call]
        opaque = used.opaque[self._phase[used.opaque] != BACKWARD]
        left = without_touches(device.recording, replace(used, opaque=opaque), needless)
        last = left.last[device.number[blocks]]
        known = np.full(len(device.size), -1)
        place = device.place[left.block]
        known[place[place >= 0]] = left.call[place >= 0]
        known = known[blocks]
        begin, end = device.begin[blocks], device.end[blocks]
        after = np.where(last >= 0, np.clip(device.after_lines(last), begin, end), begin)
        return ends_without_graph(device, blocks, after, known, last != known)[0]
