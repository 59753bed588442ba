"""Arrays of a line that hold the same values at the same time."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from gpuviz.advice.arrays.device_blocks import DeviceBlocks
from gpuviz.advice.arrays.work_values import WorkValues
from gpuviz.advice.replay.peak_replay import Change
from gpuviz.advice.source.own_lines import is_own
from gpuviz.analysis.categories import block_categories
from gpuviz.analysis.grouping import numbered
from gpuviz.data.codes import CATEGORIES
from gpuviz.data.columns import plain
from gpuviz.data.recording_data import RecordingData
from gpuviz.data.strings import are_named

# Fewer may be there for a reason, such as a copy to go back to.
_LEAST_ARRAYS = 4
_PARAMETER = CATEGORIES.index("parameter")
# PyTorch's kernels that convert numbers to two bytes each, called by its layers under autocast.
_TO_HALF = re.compile(r"\bat::native::\w*(bfloat16|float16|direct)_copy_kernel_cuda\(")
_LAYERS = re.compile(r"[/\\]torch[/\\]nn[/\\](modules[/\\](?!module\.py)|functional\.py$)")
_TWICE = 2


@dataclass(frozen=True, eq=False, slots=True)
class EqualArrays:
    """The arrays of a line that hold the same values as others of the line.

    Attributes:
        blocks: Indices of the device's blocks, ordered by their values and then in time.
        value: For each, a number that is equal for the same values.
        work: For each, the index of the work that fills it.
        is_autocast: Whether autocast makes them from parameters of a model.
    """

    blocks: np.ndarray
    value: np.ndarray
    work: np.ndarray
    is_autocast: bool

    @property
    def is_first(self) -> np.ndarray:
        """Whether each array is the first with its values."""
        first: np.ndarray = np.diff(self.value, prepend=-1) != 0
        return first

    def change(self, device: DeviceBlocks) -> Change:
        """Return the lifetimes if the first array with each value is kept instead of the others."""
        begin, end = device.begin[self.blocks].copy(), device.begin[self.blocks].copy()
        starts = np.flatnonzero(self.is_first)
        end[starts] = np.maximum.reduceat(device.end[self.blocks], starts)
        return Change(self.blocks, begin, end)


def equal_arrays(device: DeviceBlocks, values: WorkValues) -> Iterator[EqualArrays]:
    """Yield the arrays of each line of which at least four are equal and allocated at the peak.

    Each is an array that only one kernel writes, from inputs with the same values, and that
    something else uses. The program
    makes them itself, or autocast does by converting a parameter of a model.
    """
    at_peak = np.zeros(len(device.used.blocks), bool)
    at_peak[device.number] = device.at_peak
    if not values.are_filled_alike(at_peak, _LEAST_ARRAYS):
        return
    work, block = values.new_arrays()
    place = device.place[block]
    known = place >= 0
    known[known] = device.is_seen[place[known]] & ~device.is_shared[place[known]]
    # What nothing has used yet may be there to be written in part.
    known[known] = device.used.last[block[known]] != values.call[work[known]]
    work, place = work[known], place[known]
    if not len(work):
        return
    value = numbered(values.value[work] >> 32, values.value[work] & 0xFFFFFFFF)[0].astype(np.int64)
    line = values.lines[work]
    held = np.bincount(value, device.at_peak[place], int(value.max()) + 1)
    for each in np.unique(line[held[value] >= _LEAST_ARRAYS]).tolist():
        rows = np.flatnonzero(line == each)
        rows = rows[np.bincount(value[rows])[value[rows]] > 1]
        own = is_own(device.recording, values.stacks[work[rows]])
        cast = _casts_of_parameters(device, values, work[rows], place[rows])
        for chosen, is_autocast in ((rows[own], False), (rows[cast & ~own], True)):
            most = np.bincount(value[chosen], device.at_peak[place[chosen]]).max(initial=0)
            if most >= _LEAST_ARRAYS:
                order = chosen[np.lexsort((device.begin[place[chosen]], value[chosen]))]
                yield EqualArrays(place[order], value[order], work[order], is_autocast)


def _casts_of_parameters(
    device: DeviceBlocks, values: WorkValues, work: np.ndarray, place: np.ndarray
) -> np.ndarray:
    """Return which work converts parameters to numbers of half the bytes for a layer of PyTorch."""
    recording = device.recording
    names = plain(recording.tables["activities"]["name"])[np.maximum(values.activity[work], 0)]
    _, categories = block_categories(recording)
    read = values.first_read(work)
    blocks = device.used.blocks
    found: np.ndarray = are_named(recording.tables, names, _TO_HALF.search)
    found &= (read >= 0) & (categories[read] == _PARAMETER)
    found &= blocks.requested[read] == device.requested[place] * _TWICE
    found &= _by_layers(recording, values.stacks[work])
    return found


def _by_layers(recording: RecordingData, stacks: np.ndarray) -> np.ndarray:
    """Return whether a layer of PyTorch makes the call with each stack itself."""
    numbers, first = numbered(stacks)
    frames = (recording.call_stacks.frames(stack)[:1] for stack in stacks[first].tolist())
    of_distinct = [any(_LAYERS.search(each.filename) for each in inner) for inner in frames]
    found: np.ndarray = np.array(of_distinct, bool)[numbers]
    return found
