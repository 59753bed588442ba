"""What the blocks of a training program are to autograd and to the steps of the training."""

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from gpuviz.analysis.categories import block_categories, freeing_stacks
from gpuviz.analysis.launches import phases_of, stacks_of, values_of_stacks
from gpuviz.data.codes import ACTIONS, CATEGORIES, PHASES
from gpuviz.data.columns import codes, plain

if TYPE_CHECKING:
    from gpuviz.advice.arrays.device_blocks import DeviceBlocks

ACTIVATION, TEMPORARY, GRADIENT, STATE, WORKSPACE = map(
    CATEGORIES.index, ("activation", "temporary", "gradient", "optimizer_state", "workspace")
)
OTHER, FORWARD, BACKWARD, OPTIMIZER = range(len(PHASES))
# One kept array in each iteration is a result, and no graph.
_LEAST_PARTS = 2
_LEAST_KEPT = 3
_LEAST_ENDED = 3
_LEAST_OF_LARGEST = 0.1
# Of what a line keeps, how many times as many bytes are not used later as are.
_LEAST_UNUSED = 9
_UNUSED = ("unused", "partly")
# Of a graph that a backward pass retains, what it frees at most.
_MOST_FREED = 0.05


class TrainingBlocks:
    """The blocks of a device with their categories and phases.

    Args:
        device: The blocks; those of a training program.

    Attributes:
        category: The position in ``CATEGORIES`` of each.
        phase: The position in ``PHASES`` of what allocated each.
        freed_in: The position in ``PHASES`` of what freed each; 0 if nothing did.
        freed_by: The call stack that freed each; 0 if nothing did.
    """

    def __init__(self, device: "DeviceBlocks") -> None:
        self._device = device
        tables = device.recording.tables
        blocks, categories = block_categories(device.recording)
        self.category = categories[device.number]
        self.phase = phases_of(tables, device.stack)
        self.freed_by = freeing_stacks(device.recording, blocks)[device.number]
        self.freed_in = phases_of(tables, self.freed_by)

    @cached_property
    def is_differentiable(self) -> np.ndarray:
        """Whether autograd recorded what allocated each block."""
        values = values_of_stacks(
            self._device.recording.tables, "differentiable", self._device.stack
        )
        found: np.ndarray = values == 1
        return found

    @cached_property
    def modules(self) -> list[str]:
        """The module that allocated each block; empty if it is unknown, or none."""
        module = self._device.recording.call_stacks.module
        return [module(stack) for stack in self._device.stack.tolist()]

    @cached_property
    def step(self) -> np.ndarray:
        """The number of the forward pass that each block was allocated in, or that came before it.

        A forward pass begins where the first work of this phase follows work of another.
        """
        known = np.flatnonzero(self.phase > 0)
        order = known[np.argsort(self._device.begin[known], kind="stable")]
        is_forward = self.phase[order] == FORWARD
        first = is_forward & ~np.append(False, is_forward[:-1])
        begins = self._device.begin[order][first]
        found: np.ndarray = np.searchsorted(begins, self._device.begin, side="right")
        return found

    @cached_property
    def kept_graphs(self) -> np.ndarray:
        """The blocks that stay with the graphs of losses, in the order of their allocations.

        A small part of them may be used later: outputs that are joined at last.
        """
        device = self._device
        is_graph = (self.category == ACTIVATION) & self.is_differentiable
        is_graph &= (self.freed_in != BACKWARD) & ~device.is_shared & ~device.is_collected
        found = [np.zeros(0, np.int64)]
        for line in device.growing:
            blocks = device.place[line.blocks]
            of_graph = np.setdiff1d(blocks[is_graph[blocks]], device.place[line.used])
            used_bytes = int(device.size[device.place[line.used]].sum())
            is_unused = used_bytes * _LEAST_UNUSED <= (line.unused_bytes or 0)
            if line.use in _UNUSED and is_unused and 2 * len(of_graph) > len(blocks):
                found.append(of_graph)
        graphs = np.sort(np.concatenate(found))
        # A stack with fewer is that of the last iteration, which still runs.
        _, rows, count = np.unique(device.stack[graphs], return_inverse=True, return_counts=True)
        is_kept = count >= _LEAST_KEPT
        graphs = graphs[is_kept[rows]]
        return graphs if int(is_kept.sum()) >= _LEAST_PARTS else graphs[:0]

    @cached_property
    def ended_graphs(self) -> tuple[np.ndarray, int]:
        """The blocks of graphs that ended without a backward pass, and the number of large graphs.

        Those with less than a tenth of the bytes of the largest are a few arrays of a line, as when
        ``autocast`` frees its copies of parameters. A graph ends with the last reference to its
        output, and frees all that it has saved: arrays of several modules, one after the other in
        one call stack. Arrays of a single one may be kept by the program itself.
        """
        blocks, graph = self._ended
        is_used = np.bincount(graph, self.is_used_backward[blocks], int(graph.max(initial=-1)) + 1)
        chosen = is_used[graph] == 0
        sizes = np.bincount(graph[chosen], self._device.size[blocks[chosen]])
        return blocks[chosen], int(
            np.count_nonzero(sizes > _LEAST_OF_LARGEST * sizes.max(initial=0))
        )

    @cached_property
    def last_graph(self) -> np.ndarray:
        """The blocks that the recording does not free, of call stacks that `ended_graphs` has.

        They are those of the last forward pass, whose output a variable still holds.
        """
        device, graphs = self._device, self.ended_graphs[0]
        is_open = (self.category == ACTIVATION) & self.is_differentiable
        is_open &= ~device.is_freed & ~device.is_initial & ~device.is_shared
        is_open &= ~self.is_used_backward & np.isin(device.stack, device.stack[graphs])
        is_open[self.kept_graphs] = False
        return np.flatnonzero(is_open)

    @cached_property
    def ended_inputs(self) -> np.ndarray:
        """The other blocks that are freed with the graphs of `ended_graphs`, such as their inputs.

        They are freed in the same call stack with nothing allocated in between.
        """
        device, graphs = self._device, self.ended_graphs[0]
        is_other = device.is_freed & (self.phase == OTHER) & ~device.is_shared
        is_other &= (self.freed_by != 0) & (device.stack != 0) & ~device.is_initial
        others = np.flatnonzero(is_other)
        keys = self.free_keys(np.append(graphs, others))
        # A number for each pair; the second is less than the number of events.
        pairs = keys[0] * (int(keys[1].max(initial=0)) + 1) + keys[1]
        found: np.ndarray = others[np.isin(pairs[len(graphs) :], pairs[: len(graphs)])]
        return found

    def free_keys(self, blocks: np.ndarray) -> np.ndarray:
        """Return the call stack that freed each block, and how much was allocated before."""
        device = self._device
        events = device.recording.tables["memory_events"]
        is_allocation = codes(events["action"], ACTIONS) == ACTIONS.index("alloc")
        allocated = np.cumsum(is_allocation & (plain(events["device"]) == device.device))
        before = allocated[device.used.blocks.free[device.number[blocks]]]
        return np.stack([self.freed_by[blocks].astype(np.int64), before])

    @cached_property
    def retained_graphs(self) -> tuple[np.ndarray, np.ndarray]:
        """The blocks of graphs that are kept after their backward pass, and a number of each graph.

        A backward pass frees what it has used unless it retains the graph. If it has freed more
        than a little of what was made meanwhile, the program itself keeps the others.
        """
        device = self._device
        blocks, graph = self._ended
        is_made = (self.category == ACTIVATION) & self.is_differentiable
        freed = np.flatnonzero(is_made & (self.freed_in == BACKWARD))
        freed = freed[np.argsort(device.begin[freed], kind="stable")]
        order = np.argsort(graph, kind="stable")
        _, first = np.unique(graph[order], return_index=True)
        kept = np.zeros(len(blocks), bool)
        for rows in np.split(order, first[1:]):
            ours = blocks[rows]
            if self.is_used_backward[ours].any():
                begin, last = device.begin[ours], int(device.after_known_use[ours].max())
                made = np.searchsorted(device.begin[freed], (begin.min(), begin.max()))
                beside = freed[slice(*made.tolist())]
                size = int(device.size[beside[device.end[beside] <= last]].sum())
                kept[rows] = size <= _MOST_FREED * device.size[ours].sum()
        return blocks[kept], graph[kept]

    @cached_property
    def is_used_backward(self) -> np.ndarray:
        """Whether work of a backward pass is known to have used each block."""
        device = self._device
        phase = phases_of(
            device.recording.tables, stacks_of(device.recording.tables, device.used.call)
        )
        place = device.place[device.used.block]
        found = np.zeros(len(device.size), bool)
        found[place[(place >= 0) & (phase == BACKWARD)]] = True
        return found

    @cached_property
    def _ended(self) -> tuple[np.ndarray, np.ndarray]:
        """The blocks of graphs that no backward pass freed, and a number of each block's graph."""
        device = self._device
        is_saved = (self.category == ACTIVATION) & self.is_differentiable
        is_saved &= device.is_freed & (self.freed_in != BACKWARD) & ~device.is_shared
        is_saved[self.kept_graphs] = False
        blocks = np.flatnonzero(is_saved & (self.freed_by != 0))
        # Between two frees of a graph nothing is allocated.
        keys = self.free_keys(blocks)
        _, graph, count = np.unique(keys, axis=1, return_inverse=True, return_counts=True)
        graph = graph.ravel()
        parts = np.unique(np.stack([graph, device.stack[blocks].astype(np.int64)]), axis=1)[0]
        is_graph = np.bincount(parts, minlength=len(count)) >= _LEAST_ENDED
        return blocks[is_graph[graph]], graph[is_graph[graph]]

    @cached_property
    def is_held(self) -> np.ndarray:
        """Whether torch keeps each block itself, so that no variable of the program lets it go.

        These are the activations of a graph of autograd, gradients, and temporary arrays of a
        backward pass or of an optimizer.
        """
        held: np.ndarray = (self.category == ACTIVATION) & (self.freed_in == BACKWARD)
        held |= self.category == GRADIENT
        held |= (self.category == TEMPORARY) & np.isin(self.phase, (BACKWARD, OPTIMIZER))
        held[self.kept_graphs] = True
        held[self.ended_graphs[0]] = True
        held[self.retained_graphs[0]] = True
        return held
