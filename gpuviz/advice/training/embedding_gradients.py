"""Gradients of embeddings that have a row for every entry, though a step uses few entries."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gpuviz.advice.arrays.device_blocks import DeviceBlocks
from gpuviz.advice.arrays.training_blocks import (
    BACKWARD,
    FORWARD,
    GRADIENT,
    OPTIMIZER,
    OTHER,
    STATE,
    TEMPORARY,
    TrainingBlocks,
)
from gpuviz.advice.replay.peak_replay import Change
from gpuviz.advice.replay.schedule import Schedule
from gpuviz.advice.source.optimizers import optimizer_step
from gpuviz.analysis.launches import phases_of
from gpuviz.data.columns import plain
from gpuviz.data.strings import are_named
from gpuviz.data.tables import DICTIONARIES

# PyTorch's kernels that add the gradients of entries to the rows of a dense gradient.
_SCATTER = re.compile(r"\bat::native::.*\b(embedding_backward_feature_kernel|sum_and_scatter)\b")
_LOOKUP = re.compile(
    r"torch[/\\]nn[/\\](functional\.py:embedding|modules[/\\]sparse\.py:Embedding\.forward)$"
)
_READ = DICTIONARIES["launch_blocks", "mode"].index("read")
_LEAST_STEPS = 3
# How many times as many rows a gradient has as a step uses.
_LEAST_UNUSED = 4


@dataclass(frozen=True, eq=False, slots=True)
class DenseGradient:
    """The dense gradient of an embedding.

    Attributes:
        module: The path of the module.
        bytes: The bytes of the gradient, which are those of the table.
        used_bytes: The bytes of the rows that a step uses, at most: a row for each entry that
            forward passes look up.
        blocks: The gradients, as indices of the device's blocks, also those that a backward pass
            adds to an earlier one.
    """

    module: str
    bytes: int
    used_bytes: int
    blocks: np.ndarray

    @property
    def kept_share(self) -> float:
        """The share of the gradient that is left if it has only the rows that a step uses."""
        return self.used_bytes / self.bytes


class EmbeddingGradients:
    """The dense gradients of embeddings whose steps use at most a quarter of the rows.

    A gradient is that of an embedding if PyTorch's kernel for it writes the array in the backward
    pass of a module whose forward pass looks entries up. An optimizer gets it, and in the backward
    pass nothing else is added to it but another such gradient of the module: the weights of an
    output layer, too, would have a dense gradient.

    Args:
        device: The device's blocks.
        training: The same, as those of a training program.

    Attributes:
        found: The gradients, largest first.
    """

    def __init__(self, device: DeviceBlocks, training: TrainingBlocks) -> None:
        self._device, self._training = device, training
        used, tables = device.used, device.recording.tables
        self._stack = plain(tables["api_calls"]["stack"])
        self._phase = phases_of(tables, self._stack)[used.call]
        place = device.place[used.block]
        # Among the numbers that a kernel gets, some look like addresses within a large block.
        self._place = np.where(used.at_begin, place, -1)
        names = plain(tables["activities"]["name"])
        scatters = np.append(are_named(tables, names, _SCATTER.search), False)[used.activity]
        self._is_scatter = scatters & (self._phase == BACKWARD)
        self.found = sorted(self._gradients(), key=lambda each: -each.bytes)

    @property
    def blocks(self) -> np.ndarray:
        """All of their blocks."""
        return np.concatenate([np.zeros(0, np.int64), *(each.blocks for each in self.found)])

    def _gradients(self) -> Iterator[DenseGradient]:
        modules = np.array(self._training.modules, object)
        written = self._written()
        for module in np.unique(modules[written]).tolist():
            blocks = written[modules[written] == module]
            size = int(self._device.requested[blocks].max())
            steps = self._steps(blocks)
            looked_up = self._looked_up(np.flatnonzero(modules == module))
            is_few = 0 < looked_up * _LEAST_UNUSED <= size * steps
            is_alike = bool((self._device.requested[blocks] == size).all())
            if steps >= _LEAST_STEPS and is_few and is_alike and self._are_alone(blocks):
                yield DenseGradient(module, size, -(-looked_up // steps), blocks)

    def _written(self) -> np.ndarray:
        """Return the blocks that kernels for such gradients write, largest of each launch."""
        device, call = self._device, self._device.used.call
        rows = np.flatnonzero(self._is_scatter & (self._place >= 0) & (device.used.mode != _READ))
        rows = rows[(self._training.phase == BACKWARD)[self._place[rows]]]
        order = rows[np.lexsort((device.requested[self._place[rows]], call[rows]))]
        is_last = np.append(call[order][1:] != call[order][:-1], True)[: len(order)]
        blocks = np.unique(self._place[order[is_last]])
        return blocks[[bool(self._training.modules[block]) for block in blocks.tolist()]]

    def _steps(self, blocks: np.ndarray) -> int:
        """Return how many steps of an optimizer follow a backward pass that makes some blocks."""
        is_ours = np.isin(self._place, blocks)
        phase = self._phase[is_ours & np.isin(self._phase, (BACKWARD, OPTIMIZER))]
        return int(np.count_nonzero((phase[1:] == OPTIMIZER) & (phase[:-1] == BACKWARD)))

    def _looked_up(self, blocks: np.ndarray) -> int:
        """Return the bytes of rows that a module's forward passes looked up to be trained."""
        device, stacks = self._device, self._device.recording.call_stacks
        blocks = blocks[self._training.is_differentiable[blocks]]
        lookups = [
            stack
            for stack in np.unique(device.stack[blocks]).tolist()
            if any(_LOOKUP.search(f"{each.filename}:{each.name}") for each in stacks.frames(stack))
        ]
        return int(device.requested[blocks][np.isin(device.stack[blocks], lookups)].sum())

    def _are_alone(self, blocks: np.ndarray) -> bool:
        """Return whether backward passes use gradients of a module only with each other."""
        call = self._device.used.call
        rows = (self._phase == BACKWARD) & (self._place >= 0) & ~self._is_scatter
        is_ours = np.isin(self._place, blocks)
        calls = np.unique(call[rows & is_ours])
        return not (rows & ~is_ours & np.isin(call, calls)).any()

    @cached_property
    def kept(self) -> np.ndarray:
        """The share that is left of each of the device's blocks with rows for used entries only.

        Beside the gradients these are the parameters, states and temporary arrays of optimizers of
        the same size, if no other gradient is as large: a step leaves their other rows alone.
        """
        device, training = self._device, self._training
        kept = np.ones(len(device.size))
        is_ours = np.zeros(len(device.size), bool)
        is_ours[self.blocks] = True
        for gradient in self.found:
            is_alike = device.requested == gradient.bytes
            is_other = is_alike & (training.category == GRADIENT) & ~is_ours
            if not is_other.any():
                kept[is_alike] = gradient.kept_share
            kept[gradient.blocks] = gradient.kept_share
        return kept

    def change(self) -> Change:
        """Return the sizes of the gradients, and of a step's temporary arrays for them."""
        device, training = self._device, self._training
        is_temporary = (training.category == TEMPORARY) & (training.phase == OPTIMIZER)
        blocks = np.union1d(self.blocks, np.flatnonzero(is_temporary & (self.kept < 1)))
        size = np.ceil(device.size[blocks] * self.kept[blocks]).astype(np.int64)
        return Change(blocks, device.begin[blocks], device.end[blocks], size)

    def durations(self) -> np.ndarray:
        """Return how long each activity of the schedule takes with rows for used entries only.

        A function of an optimizer for all parameters takes as long for each as it has bytes.
        """
        schedule, call = self._device.schedule, self._device.used.call
        left = np.append(self._left_of_optimizer, 1.0)
        is_ours = np.isin(self._place, self.blocks) & ~self._is_scatter
        filled = np.flatnonzero(is_ours & (self._phase == BACKWARD))
        left[call[filled]] = self.kept[self._place[filled]]
        left[:-1][self._adding] = 0.0
        shorter: np.ndarray = (schedule.duration * left[schedule.call]).astype(np.int64)
        return shorter

    def needless(self) -> tuple[np.ndarray, np.ndarray]:
        """Return which calls a step does not make with rows for used entries only, as a mask.

        Also those of them that follow another call of the same function at once. Of the kernels
        that a function of SGD launches in a row, each for a part of the parameters, as many are
        left as of their bytes, and at least one. Other optimizers launch more for sparse gradients.
        """
        if not self.is_plain_sgd:
            none = np.zeros(len(self._stack), bool)
            return none, none
        left = np.maximum(np.ceil(self._runs.length * self._left_of_optimizer), 1)
        needless = self._adding | (self._runs.place >= left)
        return needless, needless & (self._runs.place > 0)

    @cached_property
    def _runs(self) -> "_Runs":
        return _Runs(self._device.schedule, self._stack)

    @cached_property
    def _adding(self) -> np.ndarray:
        """Which calls only make gradients of entries those of rows, as a mask.

        They sort the entries and add up equal ones. SGD adds a row to the parameters for each entry
        as a backward pass leaves it; other optimizers sort and add up themselves.
        """
        adding = np.zeros(len(self._stack), bool)
        if not self.is_plain_sgd or self.is_used_elsewhere:
            return adding
        call, runs = self._device.used.call, self._runs
        is_ours = self._is_scatter & np.isin(self._place, self.blocks)
        ours = np.unique(call[is_ours])
        others = np.setdiff1d(call[self._is_scatter], ours)
        for run in np.unique(runs.number[ours]).tolist():
            last = runs.place[ours[runs.number[ours] == run]].max()
            before = runs.place[others[runs.number[others] == run]]
            first = before[before < last].max(initial=-1) + 1
            calls = runs.of(run)
            adding[calls[first : last + 1]] = True
        return adding

    @cached_property
    def _left_of_optimizer(self) -> np.ndarray:
        """The share that is left of the work of each call, if it is an optimizer's; 1 of others."""
        call = self._device.used.call
        left = np.ones(len(self._stack))
        rows = np.flatnonzero((self._phase == OPTIMIZER) & (self._place >= 0))
        blocks = len(self._device.size)
        pairs = np.unique(self._stack[call[rows]].astype(np.int64) * blocks + self._place[rows])
        stack, block = np.divmod(pairs, blocks)
        stacks, number = np.unique(stack, return_inverse=True)
        size = self._device.size[block]
        kept = np.bincount(number, size * self.kept[block], len(stacks))
        share = kept / np.maximum(np.bincount(number, size, len(stacks)), 1)
        calls = np.unique(call[rows])
        left[calls] = share[np.searchsorted(stacks, self._stack[calls])]
        return left

    @property
    def optimizers(self) -> list[str]:
        """The classes of the optimizers that get them; empty names of those that are unknown."""
        is_ours = np.isin(self._place, self.blocks) & (self._phase == OPTIMIZER)
        stacks = np.unique(self._stack[self._device.used.call[is_ours]]).tolist()
        recording = self._device.recording
        return sorted({optimizer_step(recording, stack).name for stack in stacks})

    @cached_property
    def is_plain_sgd(self) -> bool:
        """Whether SGD gets them, and has no other arrays as large, as for momentum."""
        if self.optimizers != ["SGD"]:
            return False
        category = self._training.category
        is_needed = category == STATE
        is_needed |= (category == TEMPORARY) & (self._training.phase == OPTIMIZER)
        sizes = [each.bytes for each in self.found]
        return not np.isin(self._device.requested[is_needed], sizes).any()

    @property
    def is_used_elsewhere(self) -> bool:
        """Whether other work than that of backward passes and optimizers uses them."""
        is_other = np.isin(self._phase, (OTHER, FORWARD))
        return bool((is_other & np.isin(self._place, self.blocks)).any())


class _Runs:
    """Calls that follow each other in a thread and have the same call stack.

    Args:
        schedule: The calls.
        stack: The stack of each.

    Attributes:
        number: A number for the run of each call.
        place: The place of each in its run, from 0 on.
        length: The number of calls of its run.
    """

    def __init__(self, schedule: Schedule, stack: np.ndarray) -> None:
        order = np.lexsort((schedule.called, schedule.thread))
        keys = np.stack([schedule.thread[order], stack[order]])
        is_new = np.append(True, (keys[:, 1:] != keys[:, :-1]).any(axis=0))[: len(order)]
        self._order, self._begin = order, np.append(np.flatnonzero(is_new), len(order))
        self.number, self.place = np.zeros((2, len(order)), np.int64)
        self.number[order] = np.cumsum(is_new) - 1
        self.place[order] = np.arange(len(order)) - self._begin[self.number[order]]
        self.length = np.diff(self._begin)[self.number]

    def of(self, run: int) -> np.ndarray:
        """Return the calls of a run in their order."""
        calls: np.ndarray = self._order[self._begin[run] : self._begin[run + 1]]
        return calls
