"""What the blocks of a training program hold: parameters, gradients, activations and so on."""

import re

import numpy as np
import pyarrow as pa

from gpuviz.analysis.derived_tables import derived
from gpuviz.analysis.launches import calls_of, phases_of, stacks_of
from gpuviz.analysis.lifetimes import Lifetimes, lifetimes
from gpuviz.analysis.phases import PhasedWork
from gpuviz.data.codes import CATEGORIES, COPY_KINDS, PHASES, TENSOR_CATEGORIES
from gpuviz.data.columns import codes, distinct, plain
from gpuviz.data.conclusions import schemas
from gpuviz.data.once import Once
from gpuviz.data.recording_data import RecordingData

_UNKNOWN, _PARAMETER, _GRADIENT, _STATE, _INPUT, _ACTIVATION, _TEMPORARY, _WORKSPACE = range(
    len(CATEGORIES)
)
_UNUSED_GRADIENT = TENSOR_CATEGORIES.index("unused_gradient")
_OTHER, _FORWARD, _BACKWARD, _OPTIMIZER = range(len(PHASES))
_FOREVER = 2**62
# The method of `torch.nn.Module` with which `to`, `half` and others replace parameters and buffers.
_CONVERSION = re.compile(r".*/torch/nn/modules/module\.py:(Module\.)?_apply")
# A tensor that begins within a block, such as a view of a bucket, is looked for in the blocks of
# that many addresses below it.
_MOST_BELOW = 64


@Once
def block_categories(recording: RecordingData) -> tuple[Lifetimes, np.ndarray]:
    """Return the blocks of a recording, and the position in ``CATEGORIES`` of each.

    Parameters, gradients, states of optimizers and workspaces are those that their owners named
    (``tensors``) while the block existed; a workspace is known by its size, and is one only if no
    optimizer allocated it and it is never freed. For the others, the phase decides in which they
    were allocated:

    - forward: an activation, or temporary if the same call stack freed it;
    - backward: a gradient if it is left when the pass ends, an activation if another backward pass
      frees it then, otherwise temporary;
    - optimizer: a state if it is left when the step ends and no step frees it, otherwise temporary;
    - another one, or none: an input if a forward pass reads it, or if the host filled it and it is
      left when one begins; temporary if the same call stack freed it; a parameter or buffer if a
      module freed it in a conversion, such as ``model.half()``; otherwise unknown.

    In a recording without modules and phases all are unknown.
    """
    blocks = lifetimes(recording)
    found = np.full(len(blocks), _UNKNOWN, np.int8)
    phases = phases_of(recording.tables, blocks.stack)
    if not is_training(recording):
        return blocks, found
    steps = _Steps(recording)
    end = np.where(blocks.end < 0, _FOREVER, blocks.end)
    freeing = freeing_stacks(recording, blocks)
    is_own = (blocks.stack != 0) & (freeing == blocks.stack)
    forward, backward, optimizer = (phases == each for each in (_FORWARD, _BACKWARD, _OPTIMIZER))
    found[forward] = np.where(is_own[forward], _TEMPORARY, _ACTIVATION)
    for chosen, phase, kept in ((backward, _BACKWARD, _GRADIENT), (optimizer, _OPTIMIZER, _STATE)):
        left = steps.end_of_phase(phase, blocks.begin[chosen])
        found[chosen] = np.where(end[chosen] > left, kept, _TEMPORARY)
    freed_in = phases_of(recording.tables, freeing)
    found[backward & (found == _GRADIENT) & (freed_in == _BACKWARD)] = _ACTIVATION
    # The last step of a recording has no work after it that would tell its end.
    found[optimizer & (freed_in == _OPTIMIZER)] = _TEMPORARY
    other = phases == _OTHER
    found[other & is_own] = _TEMPORARY
    found[other & ~is_own & _converted(recording, freeing)] = _PARAMETER
    is_input = _read_in_forward(recording, blocks)
    is_filled = _filled_by_host(recording, blocks)
    begins = steps.next_of_phase(_FORWARD, blocks.begin)
    found[other & (is_input | (is_filled & (end > begins)))] = _INPUT
    _take_named(recording, blocks, end, phases, found)
    return blocks, found


def is_training(recording: RecordingData) -> bool:
    """Return whether the recording has a phase, or a tensor of which the owner is known."""
    known = codes(recording.tables["stacks"]["phase"], PHASES)
    return bool((known != _OTHER).any()) or recording.tables["tensors"].num_rows > 0


def live_at(blocks: Lifetimes, device: int | None, time: int) -> np.ndarray:
    """Return which blocks of a device, or of all, were allocated at a time."""
    live = (blocks.begin <= time) & ((blocks.end < 0) | (blocks.end > time))
    return live if device is None else live & (blocks.device == device)


def category_bytes(recording: RecordingData, device: int, time: int) -> dict[str, int]:
    """Return the bytes of the blocks allocated at a time by category, most first.

    Those that are unknown are under the empty name.
    """
    blocks, found = block_categories(recording)
    chosen = live_at(blocks, device, time)
    sums = np.zeros(len(CATEGORIES), np.int64)
    np.add.at(sums, found[chosen], blocks.size[chosen])
    order = sorted(range(len(CATEGORIES)), key=lambda each: (-sums[each], each))
    return {CATEGORIES[each]: int(sums[each]) for each in order if sums[each]}


def category_rows(recording: RecordingData) -> pa.Table:
    """Return the table ``categories`` of `gpuviz.data.conclusions`."""
    blocks, found = block_categories(recording)
    known = np.flatnonzero(found != _UNKNOWN)
    devices = plain(recording.tables["memory_events"]["device"])
    event = np.zeros(len(devices), np.int32)
    for device in np.unique(devices):
        rows = np.flatnonzero(devices == device)
        event[rows] = np.arange(len(rows))
    words = [CATEGORIES[code].replace("_", " ") for code in found[known].tolist()]
    columns = {
        "device": pa.array(blocks.device[known], pa.int16()),
        "event": pa.array(event[blocks.alloc[known]], pa.int32()),
        "category": pa.array(words, pa.utf8()),
    }
    return pa.table(columns, schema=schemas()["categories"])


def phase_at(recording: RecordingData, device: int, time: int) -> tuple[str, str]:
    """Return the phase and the module of the allocation of a device at a time.

    Both are empty if nothing was allocated then, or if they are unknown.
    """
    blocks, _ = block_categories(recording)
    rows = np.flatnonzero((blocks.device == device) & (blocks.begin == time))
    if not rows.size:
        return "", ""
    stack = int(blocks.stack[rows[-1]])
    phase = recording.call_stacks.phase(stack)
    names = {"forward": "forward pass", "backward": "backward pass", "optimizer": "optimizer step"}
    return names.get(phase, ""), recording.call_stacks.module(stack)


class _Steps:
    """The phases of a program over time: when something was allocated or launched in each.

    Attributes:
        times: Ascending times of what belongs to a phase.
        phases: The phase of each.
    """

    def __init__(self, recording: RecordingData) -> None:
        work = PhasedWork.of(recording)
        known = work.phase != _OTHER
        self.times: np.ndarray = work.begin[known]
        self.phases: np.ndarray = work.phase[known]

    def next_of_phase(self, phase: int, times: np.ndarray) -> np.ndarray:
        """Return when the phase next has something after each time; `_FOREVER` if never."""
        found = np.append(self.times[self.phases == phase], _FOREVER)
        after: np.ndarray = found[np.searchsorted(found, times, "right").clip(max=len(found) - 1)]
        return after

    def end_of_phase(self, phase: int, times: np.ndarray) -> np.ndarray:
        """Return when another phase next has something after each time; `_FOREVER` if never."""
        found = np.append(self.times[self.phases != phase], _FOREVER)
        after: np.ndarray = found[np.searchsorted(found, times, "right").clip(max=len(found) - 1)]
        return np.where(after == _FOREVER, self._last(), after)

    def _last(self) -> int:
        return int(self.times[-1]) if self.times.size else 0


def freeing_stacks(recording: RecordingData, blocks: Lifetimes) -> np.ndarray:
    """Return the call stack that freed each block; 0 if unknown, or if it was never freed."""
    stacks = np.append(plain(recording.tables["memory_events"]["stack"]), np.uint32(0))
    freeing: np.ndarray = stacks[np.minimum(blocks.free, len(stacks) - 1)]
    return freeing


def _converted(recording: RecordingData, freeing: np.ndarray) -> np.ndarray:
    """Return which call stacks that freed blocks are of a module that replaces its tensors."""
    stacks = distinct(freeing)
    innermost = (recording.call_stacks.frames(each)[:1] for each in stacks.tolist())
    converts = [
        any(_CONVERSION.fullmatch(f"{frame.filename}:{frame.name}") for frame in frames)
        for frames in innermost
    ]
    return np.isin(freeing, stacks[converts])


def _read_in_forward(recording: RecordingData, blocks: Lifetimes) -> np.ndarray:
    """Return whether a launch of a forward pass got a pointer into each block."""
    calls = calls_of(recording.tables, plain(recording.tables["launch_blocks"]["correlation"]))
    phases = phases_of(recording.tables, stacks_of(recording.tables, calls))
    return _accessed(recording, blocks, phases == _FORWARD)


def _filled_by_host(recording: RecordingData, blocks: Lifetimes) -> np.ndarray:
    """Return whether the host copied something into each block."""
    activities = recording.tables["activities"]
    copies = codes(activities["copy_kind"], COPY_KINDS) == COPY_KINDS.index("host_to_device")
    launches = plain(recording.tables["launch_blocks"]["correlation"])
    from_host = np.isin(launches, plain(activities["correlation"])[copies])
    return _accessed(recording, blocks, from_host)


def _accessed(recording: RecordingData, blocks: Lifetimes, chosen: np.ndarray) -> np.ndarray:
    """Return whether one of the chosen rows of ``launch_blocks`` is about each block."""
    accessed = derived(recording)["accessed_blocks"]
    known = chosen & (plain(accessed["event"]) >= 0)
    device, event = (plain(accessed[name])[known] for name in ("device", "event"))
    return np.isin(blocks.alloc, _rows_of(recording, device, event))


def _rows_of(recording: RecordingData, device: np.ndarray, event: np.ndarray) -> np.ndarray:
    """Return the rows of ``memory_events`` of some events, which are counted by device."""
    devices = plain(recording.tables["memory_events"]["device"])
    rows = np.zeros(len(event), np.int64)
    for each in np.unique(device):
        chosen = device == each
        rows[chosen] = np.flatnonzero(devices == each)[event[chosen]]
    return rows


def _take_named(
    recording: RecordingData,
    blocks: Lifetimes,
    end: np.ndarray,
    phases: np.ndarray,
    found: np.ndarray,
) -> None:
    """Set the categories of the blocks that tensors with a known owner were in."""
    tensors = recording.tables["tensors"]
    category = codes(tensors["category"], TENSOR_CATEGORIES)
    category = np.where(category == _UNUSED_GRADIENT, _GRADIENT, category)
    # What follows is stronger.
    for order in ((_WORKSPACE,), (_GRADIENT,), (_STATE,), (_PARAMETER,)):
        rows = np.flatnonzero(np.isin(category, order))
        block = _blocks_of(tensors.take(rows), blocks, end)
        kept = block >= 0
        if order == (_WORKSPACE,):
            kept &= (end[block] == _FOREVER) & (phases[block] != _OPTIMIZER)
        found[block[kept]] = category[rows[kept]]


def named_blocks(
    recording: RecordingData, category: str
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the blocks that tensors of a category were in, when, and the tensors' names.

    Args:
        recording: The recording.
        category: A word of ``TENSOR_CATEGORIES``.

    Returns:
        Indices of `block_categories`'s blocks, times in ns, and ids of ``strings``.
    """
    blocks, _ = block_categories(recording)
    tensors = recording.tables["tensors"]
    known = codes(tensors["category"], TENSOR_CATEGORIES)
    rows = tensors.take(np.flatnonzero(known == TENSOR_CATEGORIES.index(category)))
    block = _blocks_of(rows, blocks, np.where(blocks.end < 0, _FOREVER, blocks.end))
    found = np.flatnonzero(block >= 0)
    return block[found], plain(rows["time"])[found], plain(rows["name"])[found]


def _blocks_of(tensors: pa.Table, blocks: Lifetimes, end: np.ndarray) -> np.ndarray:
    """Return the block that each tensor is in; -1 if there is none."""
    devices, addresses, times = (plain(tensors[name]) for name in ("device", "address", "time"))
    found = np.full(len(times), -1, np.int64)
    for device in np.unique(devices):
        wanted = np.flatnonzero(devices == device)
        rows = np.flatnonzero(blocks.device == device)
        if rows.size:
            places = _Places(blocks, rows, end, times[wanted])
            found[wanted] = places.blocks_at(addresses[wanted])
    return found


class _Places:
    """The blocks of a device by their address and time.

    Args:
        blocks: All blocks.
        rows: Those of the device.
        end: When each block was freed.
        times: When they are looked for.
    """

    def __init__(
        self, blocks: Lifetimes, rows: np.ndarray, end: np.ndarray, times: np.ndarray
    ) -> None:
        self._blocks, self._end, self._times = blocks, end, times
        self._addresses = np.unique(blocks.address[rows])
        place = np.searchsorted(self._addresses, blocks.address[rows])
        moments = np.unique(np.concatenate([blocks.begin[rows], times]))
        self._count = len(moments)
        self._moments = np.searchsorted(moments, times)
        keys = place * self._count + np.searchsorted(moments, blocks.begin[rows])
        order = np.argsort(keys, kind="stable")
        self._keys, self._rows = keys[order], rows[order]

    def blocks_at(self, addresses: np.ndarray) -> np.ndarray:
        """Return the block around each address then; -1 if there is none."""
        found = np.full(len(addresses), -1, np.int64)
        first = np.searchsorted(self._addresses, addresses, "right") - 1
        for below in range(_MOST_BELOW):
            wanted = np.flatnonzero((found < 0) & (first >= below))
            if not wanted.size:
                break
            found[wanted] = self._blocks_from(first[wanted] - below, wanted, addresses[wanted])
        return found

    def _blocks_from(
        self, place: np.ndarray, wanted: np.ndarray, addresses: np.ndarray
    ) -> np.ndarray:
        """Return the block that begins at an address of the device and contains another one."""
        keys = place * self._count + self._moments[wanted]
        position = np.searchsorted(self._keys, keys, "right") - 1
        row = self._rows[position]
        begins_here = (position >= 0) & (self._keys[position] // self._count == place)
        # Both are unsigned, and the block begins at the address or before.
        within = addresses - self._blocks.address[row] < self._blocks.size[row].astype(np.uint64)
        kept = begins_here & within & (self._end[row] >= self._times[wanted])
        return np.where(kept, row, -1)
