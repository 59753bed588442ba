"""The work of the GPU that used each block."""

import re
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from gpuviz import _core
from gpuviz.analysis.left_arguments import left_by_joins, of_strided_functions
from gpuviz.analysis.lifetimes import Lifetimes, lifetimes
from gpuviz.analysis.unseen import is_whole
from gpuviz.data.codes import TENSOR_CATEGORIES
from gpuviz.data.columns import codes, plain
from gpuviz.data.first_rows import first_rows
from gpuviz.data.recording_data import RecordingData
from gpuviz.data.strings import are_named, texts
from gpuviz.data.tables import DICTIONARIES, Tables

_GRAPH_CALLS = DICTIONARIES["graph_calls", "kind"]
_KINDS = DICTIONARIES["activities", "kind"]
# Kernels that receive their arrays as a table of pointers in device memory, by name. Those of
# strided batches receive the first address and a distance, as cuBLAS's for matrix and vector.
_BY_TABLE = re.compile(
    r"(?<!strided)(?<!strided_)batched|grouped|concatenate|_ptrs|ptr_array|multi_tensor",
    re.IGNORECASE,
)
# Kernels that use only what their library has allocated for itself: those of cuRAND that make the
# state of a generator from its seed, and of cuBLAS that reset the counters of triangular solves.
_OF_LIBRARY = re.compile(r"\bgenerate_seed_pseudo|\b[sdcz]trsv_init(_up)?\(int")
# CuPy's own kernels receive tables of pointers only if they are named above.
_OF_CUPY = re.compile(r"cupyx?_")
# PyTorch's own kernels receive all pointers as arguments: those of `cat` and of optimizers in
# structures (`CatArrInputTensorMetadata`, `TensorListMetadata`), which gpuviz reads.
_OF_TORCH = re.compile(r"\bat::native::")
# Kernels that multiply matrices, whose only output is a matrix.
PRODUCT = re.compile(r"gem[mv]|nvjet", re.IGNORECASE)
# Kernels of cuFFT; others with `fft` in their names are convolutions of cuDNN, or the program's.
TRANSFORM = re.compile(
    r"\b(?:(?:regular|vector|prime|composite|(?:\w+_)?bluestein)_(?:\w+_)?fft|[sd]pRadix\d)"
)
_MOST_OPERANDS = 3
_MODES = DICTIONARIES["launch_blocks", "mode"]
_UNKNOWN, _READ, _WRITE = (_MODES.index(each) for each in ("unknown", "read", "write"))
_LAUNCH = re.compile(r"cu(da)?(Graph)?Launch")
_POINTER = 8
_PARAMETER, _WORKSPACE = (TENSOR_CATEGORIES.index(each) for each in ("parameter", "workspace"))


@dataclass(frozen=True, eq=False)
class Touches:
    """Which calls gave which blocks to the GPU.

    gpuviz sees the addresses among the arguments of kernels, copies and memsets. It does not see
    what a kernel reaches through pointers in device memory or in a graph; such work is `opaque`.

    Attributes:
        blocks: The lifetimes.
        block: For each touch, an index of ``blocks``; touches are in the order of their calls.
        call: For each touch, the row of ``api_calls``.
        address: For each touch, the address that the call received, which is in the block.
        mode: For each touch, ``mode`` of ``launch_blocks`` as a code.
        bytes: For each touch, how much was accessed from the address on; 0 if that is not known.
        activity: For each touch, the first row of ``activities`` with the call's correlation, or
            -1.
        row: For each touch, the row of ``launch_blocks``.
        opaque: The rows of ``api_calls`` of opaque work, in the order of the calls.
        first: For each block, the row of ``api_calls`` that first used it or may have; -1 if none.
        last: For each block, the row of ``api_calls`` that last used it or may have; -1 if none.
    """

    blocks: Lifetimes
    block: np.ndarray
    call: np.ndarray
    address: np.ndarray
    mode: np.ndarray
    bytes: np.ndarray
    activity: np.ndarray
    row: np.ndarray
    opaque: np.ndarray
    first: np.ndarray
    last: np.ndarray

    @cached_property
    def at_begin(self) -> np.ndarray:
        """For each touch, whether the call received the first address of the block."""
        at_begin: np.ndarray = self.address == self.blocks.address[self.block]
        return at_begin

    @cached_property
    def used(self) -> np.ndarray:
        """Whether each block was used, or may have been."""
        used: np.ndarray = self.first >= 0
        return used


def touches(recording: RecordingData) -> Touches | None:
    """Return which work used which blocks; None if the recording does not have all of it."""
    tables = recording.tables
    if not is_whole(tables):
        return None
    launched, calls = tables["launch_blocks"], tables["api_calls"]
    if not (launched.num_rows and calls.num_rows and tables["activities"].num_rows):
        return None
    blocks = lifetimes(recording)
    if not len(blocks):
        return None
    correlation = plain(launched["correlation"])
    call = first_rows(plain(calls["correlation"]), correlation)
    times = plain(calls["time"])
    known = np.flatnonzero(call >= 0)
    block = alive(blocks, plain(launched["block"])[known], times[call[known]])
    known, block = known[block >= 0], block[block >= 0]
    order = np.argsort(times[call[known]], kind="stable")
    known, block = known[order], block[order]
    call = call[known]
    address = plain(launched["address"])[known]
    mode = codes(launched["mode"], _MODES)[known]
    size = plain(launched["bytes"])[known].astype(np.int64)
    activity = first_rows(plain(tables["activities"]["correlation"]), correlation[known])
    left = left_by_joins(recording, blocks, block, call, activity)
    columns = (block, call, address, mode, size, activity, known)
    block, call, address, mode, size, activity, known = _without(left, columns)
    mode, left = of_strided_functions(recording, blocks, block, call, activity, mode)
    columns = (block, call, address, mode, size, activity, known)
    block, call, address, mode, size, activity, known = _without(left, columns)

    opaque = _opaque_calls(recording, blocks, block, call, activity)
    opaque = opaque[np.argsort(times[opaque], kind="stable")]
    first, last = _ends(blocks, times, block, call, opaque)
    is_area = np.isin(block, work_areas(recording, blocks))
    activity_of = np.where(is_area, -1, activity)
    mode = _with_products(recording, blocks, first, block, call, activity_of, mode)
    return Touches(blocks, block, call, address, mode, size, activity, known, opaque, first, last)


def _without(left: np.ndarray, columns: tuple[np.ndarray, ...]) -> tuple[np.ndarray, ...]:
    """Return columns of touches without those of a mask."""
    return tuple(each[~left] for each in columns) if left.any() else columns


def without_touches(recording: RecordingData, used: Touches, removed: np.ndarray) -> Touches:
    """Return which work used which blocks if some touches, given by a mask, did not count."""
    kept = ~removed
    times = plain(recording.tables["api_calls"]["time"])
    block, call = used.block[kept], used.call[kept]
    first, last = _ends(used.blocks, times, block, call, used.opaque)
    return replace(
        used,
        block=block,
        call=call,
        address=used.address[kept],
        mode=used.mode[kept],
        bytes=used.bytes[kept],
        activity=used.activity[kept],
        row=used.row[kept],
        first=first,
        last=last,
    )


def alive(blocks: Lifetimes, address: np.ndarray, time: np.ndarray) -> np.ndarray:
    """Return the block alive at each address and time; -1 if there is none."""
    known = {"address": blocks.address, "begin": blocks.begin, "end": blocks.end}
    found: np.ndarray = np.asarray(_core.alive_blocks(known, address, time))
    return found


def _opaque_calls(
    recording: RecordingData,
    blocks: Lifetimes,
    block: np.ndarray,
    call: np.ndarray,
    activity: np.ndarray,
) -> np.ndarray:
    """Return the calls, rows of ``api_calls``, that may use blocks which they do not name.

    These are launches of graphs, launches that have not ended, kernels without the address of any
    block among their arguments unless they are known to use only memory of their library, kernels
    that are known to receive a table of pointers, and kernels of unknown programs that read what
    may be one.
    """
    tables = recording.tables
    activities = tables["activities"]
    kind = codes(activities["kind"], _KINDS)
    is_kernel = kind == _KINDS.index("kernel")
    call_of = first_rows(
        plain(tables["api_calls"]["correlation"]), plain(activities["correlation"])
    )
    is_graph = (kind == _KINDS.index("graph")) | (plain(activities["graph"]) != 0)
    is_silent = is_kernel & ~np.isin(call_of, call)
    names = np.unique(plain(activities["name"])[is_kernel])
    known = texts(tables, names)
    of_torch, of_cupy, in_library, with_table = (
        np.array([bool(matches(text)) for text in known], bool)
        for matches in (_OF_TORCH.search, _OF_CUPY.match, _OF_LIBRARY.search, _BY_TABLE.search)
    )
    name = plain(activities["name"])
    is_silent &= ~np.isin(name, names[in_library])
    readers = activity[_reads_of_tables(recording, blocks, block, activity)]
    readers = readers[is_kernel[readers] & ~np.isin(name[readers], names[of_torch | of_cupy])]
    opaque = is_graph | is_silent | (is_kernel & np.isin(name, names[with_table & ~of_torch]))
    opaque[readers] = True
    found = np.unique(call_of[opaque])
    return np.union1d(found[found >= 0], _unfinished_launches(tables))


def _with_products(  # noqa: PLR0913, PLR0917 - the columns of the touches
    recording: RecordingData,
    blocks: Lifetimes,
    first: np.ndarray,
    block: np.ndarray,
    call: np.ndarray,
    activity: np.ndarray,
    mode: np.ndarray,
) -> np.ndarray:
    """Return the modes of touches, with those of the operands of matrix products.

    A block that nothing has used before has nothing to read, so it is the output. Large products
    are made in parts, with a launch for each: for the later ones it is the block that the same
    call stack used first. With more operands, such as a bias, one may be a work area, which is
    never freed and which only products use; those that PyTorch names have no activity here.
    """
    tables = recording.tables
    name = plain(tables["activities"]["name"])
    rows = np.flatnonzero((activity >= 0) & are_named(tables, name, PRODUCT.search)[activity])
    if not len(rows):
        return mode
    stacks = plain(tables["api_calls"]["stack"])
    _, launch = np.unique(call[rows], return_inverse=True)
    launches = int(launch.max()) + 1
    operands, place = np.unique(launch * len(first) + block[rows], return_index=True)
    launch_of = operands // len(first)
    few = np.bincount(launch_of, minlength=launches) <= _MOST_OPERANDS
    unknown = np.bincount(launch, mode[rows] != _UNKNOWN, launches) == 0
    is_new = first[block[rows]] == call[rows]
    is_new &= blocks.alloc[block[rows]] >= recording.manifest.initial_events
    is_no_area = blocks.end >= 0
    is_no_area[np.delete(block, rows)] = True
    is_same = stacks[first[block[rows]]] == stacks[call[rows]]
    new, same = (np.bincount(launch_of, each[place], launches) for each in (is_new, is_same))
    sure = np.bincount(launch_of, (is_new & is_no_area[block[rows]])[place], launches)
    by_new = unknown & (new == 1) & (few | (sure == 1))
    by_same = unknown & few & (new == 0) & (same == 1)
    is_output = np.where(by_new[launch], is_new, is_same)
    known = np.where(is_output, _WRITE, _READ).astype(mode.dtype)
    mode = mode.copy()
    mode[rows] = np.where((by_new | by_same)[launch], known, mode[rows])
    return mode


def _unfinished_launches(tables: Tables) -> np.ndarray:
    """Return the launches, rows of ``api_calls``, without an activity, whose kernels are unknown.

    While a program runs, these are the latest. Launches that a capture recorded do not run.
    """
    calls = tables["api_calls"]
    is_launch = are_named(tables, plain(calls["name"]), _LAUNCH.match)
    correlations = plain(calls["correlation"])
    ended = np.isin(correlations, plain(tables["activities"]["correlation"]))
    captured = tables["graph_calls"]
    is_node = codes(captured["kind"], _GRAPH_CALLS) != _GRAPH_CALLS.index("launch")
    ended |= np.isin(correlations, plain(captured["correlation"])[is_node])
    return np.flatnonzero(is_launch & ~ended)


def _reads_of_tables(
    recording: RecordingData, blocks: Lifetimes, block: np.ndarray, activity: np.ndarray
) -> np.ndarray:
    """Return a mask of the touches of blocks that hold what may be pointers to other blocks.

    Such a table comes from the host, and has two pointers or more, at most two for each block. The
    parameters of a model are none.
    """
    activities = recording.tables["activities"]
    copy_kinds = DICTIONARIES["activities", "copy_kind"]
    size = plain(activities["bytes"])
    is_table = codes(activities["copy_kind"], copy_kinds) == copy_kinds.index("host_to_device")
    is_table &= (size % _POINTER == 0) & (size >= 2 * _POINTER)
    is_table &= size <= 2 * _POINTER * max(len(np.unique(blocks.address)), 1)
    fills = (activity >= 0) & is_table[activity]
    tables = np.setdiff1d(block[fills], _named(recording, blocks, _PARAMETER))
    reads: np.ndarray = np.isin(block, tables) & ~fills & (activity >= 0)
    return reads


def work_areas(recording: RecordingData, blocks: Lifetimes) -> np.ndarray:
    """Return the blocks that PyTorch's libraries work in.

    They are known by their size, which parameters can have too, and are never freed.
    """
    areas = _named(recording, blocks, _WORKSPACE)
    areas = areas[blocks.end[areas] < 0]
    return np.setdiff1d(areas, _named(recording, blocks, _PARAMETER))


def _named(recording: RecordingData, blocks: Lifetimes, category: int) -> np.ndarray:
    """Return the blocks that tensors of a category were in, as their owners name them."""
    tensors = recording.tables["tensors"]
    # Without `Table.take`, which imports `pyarrow.compute`, also while a program exits.
    chosen = codes(tensors["category"], TENSOR_CATEGORIES) == category
    block = alive(blocks, plain(tensors["address"])[chosen], plain(tensors["time"])[chosen])
    return block[block >= 0]


def _ends(
    blocks: Lifetimes,
    times: np.ndarray,
    block: np.ndarray,
    call: np.ndarray,
    opaque: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the first and the last call that used each block; -1 if none.

    Opaque work counts as a use of all blocks that lived then.
    """
    first = np.full(len(blocks), -1, np.int64)
    last = np.full(len(blocks), -1, np.int64)
    first[block[::-1]] = call[::-1]
    last[block] = call
    died = np.where(blocks.end < 0, np.iinfo(np.int64).max, blocks.end)
    after = np.searchsorted(times[opaque], blocks.begin)
    before = np.searchsorted(times[opaque], died, side="right") - 1
    within = np.flatnonzero(after <= before)
    earliest, latest = opaque[after[within]], opaque[before[within]]
    earlier = (first[within] < 0) | (times[earliest] < times[first[within]])
    first[within[earlier]] = earliest[earlier]
    later = (last[within] < 0) | (times[latest] > times[last[within]])
    last[within[later]] = latest[later]
    return first, last
