"""The values that the GPU's work computes: which are the same as others."""

import re

import numpy as np

from gpuviz import _core
from gpuviz.advice.arrays.device_blocks import DeviceBlocks
from gpuviz.advice.arrays.elementwise import READ, WRITE
from gpuviz.advice.host_lines import line_numbers
from gpuviz.analysis.launches import stacks_of
from gpuviz.analysis.touches import PRODUCT
from gpuviz.data.columns import codes, plain
from gpuviz.data.first_rows import first_rows
from gpuviz.data.mixing import GOLDEN, mixed
from gpuviz.data.strings import are_named, ids_named
from gpuviz.data.tables import DICTIONARIES
from gpuviz.hazards.workspaces import is_of_plan

_KINDS = DICTIONARIES["activities", "kind"]
KERNEL, COPY, MEMSET = (_KINDS.index(each) for each in ("kernel", "memcpy", "memset"))
_COPY_KINDS = DICTIONARIES["activities", "copy_kind"]
TO_DEVICE, TO_HOST = (_COPY_KINDS.index(each) for each in ("host_to_device", "device_to_host"))
# Kernels without an input that still compute the same each time: `arange`, `full`, those that
# begin a scan, and those that clear the status of a factorization of cuSOLVER.
_CONSTANT = re.compile(
    r"cupy_(\w+__\w+|fill)$"
    r"|void at::native::vectorized_elementwise_kernel<\d+, at::native::FillFunctor<"
    r"|xxtrf4_set_info_ker\(|copy_info_kernel\("
    r"|.*\bcub::.*::Device(Scan|Compact)InitKernel<"
    r"|.*\bthrust::.*::__tabulate::functor<.*::compute_sequence_value<"
)
# Kernels of PyTorch that convert the elements of one whole array to another type; the byte that
# they get for a function without state has no value.
_CASTS = re.compile(
    r"\bat::native::vectorized_elementwise_kernel<\d+, at::native::\w*copy_kernel_cuda\("
)
_READS, _WRITES, _WRITES_ALL = 1, 2, 4  # as `value_numbers` takes them


class WorkValues:
    """The values that the work of a device computes.

    Two works compute the same if they have the same function, launch configuration and arguments
    other than arrays, and read arrays with the same values: those that nothing has written since,
    or that such works wrote.

    Args:
        device: The device's blocks.

    Attributes:
        call: For each work, its row of ``api_calls``, ascending.
        activity: For each, its row of ``activities``; -1 if unknown.
        value: For each, a number that is equal for the same values.
        stacks: For each, its call stack, an id of ``stacks``.
        lines: For each, a number that is equal for the same line of the program.
    """

    def __init__(self, device: DeviceBlocks) -> None:
        self._device, self._used = device, device.used
        used, tables = self._used, device.recording.tables
        self._times = plain(tables["api_calls"]["time"])
        order = np.lexsort((used.call, self._times[used.call]))
        self._block, self._mode = used.block[order], used.mode[order]
        self._at_begin, self._is_counted = used.at_begin[order], used.bytes[order] > 0
        self.call, first, self._work = np.unique(
            used.call[order], return_index=True, return_inverse=True
        )
        self.activity = used.activity[order][first]
        known = np.maximum(self.activity, 0)
        self._kind = np.where(
            self.activity >= 0, codes(tables["activities"]["kind"], _KINDS)[known], -1
        )
        self._copy_kind = codes(tables["activities"]["copy_kind"], _COPY_KINDS)[known]
        self.stacks = stacks_of(tables, self.call)
        self.lines = line_numbers(device.recording, self.stacks)
        self._is_scratch, self._begins, self._transform = self._transforms()
        self._is_first = used.first[self._block] == self.call[self._work]
        is_initial = used.blocks.alloc < device.recording.manifest.initial_events
        self._is_new = self._is_first & ~is_initial[self._block]
        self.value = self._values(order)

    def are_filled_alike(self, blocks: np.ndarray, least: int) -> bool:
        """Return whether works write as many as `least` of some blocks with the same values.

        Args:
            blocks: A mask of the recording's blocks.
            least: The number.
        """
        writes = np.flatnonzero(blocks[self._block] & (self._mode == WRITE))
        _, counts = np.unique(self.value[self._work[writes]], return_counts=True)
        return bool(counts.max(initial=0) >= least)

    def new_arrays(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the kernels with inputs that alone write a new array, and these arrays.

        Returns:
            Indices of works, and of the recording's blocks.
        """
        writes = np.flatnonzero((self._mode != READ) & ~self._is_scratch)
        of_block = np.bincount(self._block[writes], minlength=len(self._used.blocks))
        of_work = np.bincount(self._work[writes], minlength=len(self.call))
        work, block = self._work[writes], self._block[writes]
        reads = np.bincount(self._work[self._mode == READ], minlength=len(self.call)) > 0
        chosen = (of_block[block] == 1) & (of_work[work] == 1) & (self._mode[writes] == WRITE)
        chosen &= self._is_new[writes] & (self._kind == KERNEL)[work] & reads[work]
        return work[chosen], block[chosen]

    def first_read(self, work: np.ndarray) -> np.ndarray:
        """Return the block that each work reads first; -1 if it reads none."""
        reads = np.flatnonzero(self._mode == READ)[::-1]
        block = np.full(len(self.call), -1)
        block[self._work[reads]] = self._block[reads]
        first: np.ndarray = block[work]
        return first

    def _cast_bytes(self) -> np.ndarray:
        """Return the bytes of the new array that each work converts another to; 0 of other work."""
        tables = self._device.recording.tables
        casts = ids_named(tables, _CASTS.search)
        if not len(casts):
            return np.zeros(len(self.call), np.int64)
        names = plain(tables["activities"]["name"])[np.maximum(self.activity, 0)]
        is_cast = (self._kind == KERNEL) & np.isin(names, casts)
        size = np.zeros(len(self.call), np.int64)
        new = np.flatnonzero(self._is_new & self._at_begin & (self._mode == WRITE))
        size[self._work[new]] = self._used.blocks.requested[self._block[new]]
        return np.where(is_cast, size, 0)

    def _values(self, order: np.ndarray) -> np.ndarray:
        used, blocks = self._used, self._used.blocks
        offset = used.address[order] - blocks.address[self._block]
        is_all = self._at_begin & (used.bytes[order] >= blocks.requested[self._block])
        access = np.full(len(order), _READS | _WRITES, np.uint8)
        access[self._mode == READ] = _READS
        access[self._mode == WRITE] = np.where(
            is_all[self._mode == WRITE], _WRITES | _WRITES_ALL, _WRITES
        )
        access[self._begins] = _WRITES | _WRITES_ALL
        unseen = np.sort(self._times[self._unseen()])
        is_initial = blocks.alloc < self._device.recording.manifest.initial_events
        number = np.arange(1, len(blocks) + 1, dtype=np.uint64)
        contents = {
            "value": np.where(is_initial, mixed(number, GOLDEN), blocks.requested).astype(
                np.uint64
            ),
            "unseen": np.searchsorted(unseen, blocks.begin).astype(np.uint32),
        }
        accesses = {
            "work": self._work.astype(np.uint32),
            "block": self._block.astype(np.uint32),
            "place": mixed(offset.astype(np.uint64), used.bytes[order].astype(np.uint64)),
            "access": access,
            "unseen": np.searchsorted(unseen, self._times[used.call[order]]).astype(np.uint32),
        }
        values: np.ndarray = np.asarray(_core.value_numbers(self._functions(), contents, accesses))
        return values

    def _transforms(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return what belongs to FFTs, none of which reads what another left in the work area.

        A transform begins with work that uses an array that was used before it, by other work.

        Returns:
            Which touches are of the work area of a plan, which of those are the first of a
            transform, and the number of the transform of each work; -1 without one.
        """
        used, stacks = self._used, self._device.recording.call_stacks
        plans = [each for each in np.unique(used.blocks.stack) if is_of_plan(stacks, int(each))]
        is_scratch = np.isin(used.blocks.stack, plans)[self._block]
        begins, transform = np.zeros(len(is_scratch), bool), np.full(len(self.call), -1)
        if not plans:
            return is_scratch, begins, transform
        first = np.searchsorted(self._work, np.arange(len(self.call) + 1))
        used_before = used.first[self._block] != self.call[self._work]
        known: dict[int, set[int]] = {}
        latest: dict[int, tuple[int, int]] = {}
        for number, touch in enumerate(np.flatnonzero(is_scratch).tolist()):
            block, work = int(self._block[touch]), int(self._work[touch])
            rows = np.arange(first[work], first[work + 1])
            rows = rows[~is_scratch[rows]]
            own = known.setdefault(block, set())
            if not own or set(self._block[rows[used_before[rows]]].tolist()) - own:
                latest[block] = number, work
                own.clear()
            own.update(self._block[rows].tolist(), [block])
            transform[work], begun_by = latest[block]
            begins[touch] = begun_by == work
        return is_scratch, begins, transform

    def _unseen(self) -> np.ndarray:
        """Return the calls that may have written anything, rows of ``api_calls``.

        Such as what kernels read without an argument.
        """
        activities = self._device.recording.tables["activities"]
        is_copy = codes(activities["kind"], _KINDS) == COPY
        is_copy &= codes(activities["copy_kind"], _COPY_KINDS) != TO_HOST
        hidden = np.union1d(self._of_no_block(is_copy), self._hidden_memsets())
        return np.union1d(self._used.opaque, np.setdiff1d(hidden, self._cleared_areas()))

    def _hidden_memsets(self) -> np.ndarray:
        """Return the memsets of memory of no block, rows of ``api_calls``."""
        kinds = codes(self._device.recording.tables["activities"]["kind"], _KINDS)
        return self._of_no_block(kinds == MEMSET)

    def _of_no_block(self, activities: np.ndarray) -> np.ndarray:
        """Return the calls, rows of ``api_calls``, of those of a mask of activities."""
        tables = self._device.recording.tables
        correlation = plain(tables["activities"]["correlation"])[activities]
        call = first_rows(plain(tables["api_calls"]["correlation"]), correlation)
        hidden: np.ndarray = call[(call >= 0) & ~np.isin(call, self.call)]
        return hidden

    def _cleared_areas(self) -> np.ndarray:
        """Return the hidden memsets, rows of ``api_calls``, that products of matrices make.

        The memory is a work area of their library.
        """
        tables = self._device.recording.tables
        names = plain(tables["activities"]["name"])[np.maximum(self.activity, 0)]
        of_products = np.setdiff1d(self.stacks[are_named(tables, names, PRODUCT.search)], [0])
        calls = self._hidden_memsets()
        cleared: np.ndarray = calls[np.isin(stacks_of(tables, calls), of_products)]
        return cleared

    def _functions(self) -> np.ndarray:
        """Return a number for each work, equal for equal functions and arguments; 0 if unknown."""
        tables = self._device.recording.tables
        activities, touched = tables["activities"], tables["launch_blocks"]
        known = np.maximum(self.activity, 0)
        content = plain(touched["content"])
        rows = np.flatnonzero(content)
        correlation = plain(tables["api_calls"]["correlation"])[self.call]
        found = first_rows(plain(touched["correlation"])[rows], correlation)
        arguments = np.append(content[rows], np.uint64(0))[found]
        cast = self._cast_bytes().astype(np.uint64)
        arguments = np.where(cast, mixed(cast, GOLDEN), arguments) if cast.any() else arguments
        is_kernel, is_copy = self._kind == KERNEL, self._kind == COPY
        name = plain(activities["name"])[known]
        launch = plain(activities["launch"])[known]
        number = mixed(name.astype(np.uint64), launch.astype(np.uint64) + GOLDEN)
        number = mixed(number, arguments)
        # A memset's value is that of its line.
        what = np.where(self._kind == MEMSET, self.lines, self._copy_kind).astype(np.uint64)
        moved = mixed(plain(activities["bytes"])[known].astype(np.uint64), what + GOLDEN)
        number = np.where(is_kernel, number, moved)
        # A block that nothing has used before has no contents to read.
        is_read = (self._mode != WRITE) & ~self._is_first
        # It only reads what nothing is known to have written.
        is_new = self._is_new
        written = self._of_blocks((self._mode != READ) & is_new)
        unwritten = self._of_works((self._mode == READ) & is_new & ~written[self._block])
        reads = np.bincount(self._work[is_read], minlength=len(self.call)) > 0
        is_constant = are_named(tables, name, _CONSTANT.match) | self._only_fill()
        is_known = is_kernel & (arguments != 0) & (reads | is_constant)
        # What is known of the host's memory are samples, which can be equal where the rest differs.
        is_known |= is_copy & (self._copy_kind != TO_DEVICE)
        is_known |= self._kind == MEMSET
        is_known &= (self.activity >= 0) & ~unwritten & ~np.isin(self.call, self._used.opaque)
        functions: np.ndarray = np.where(is_known, np.maximum(number, 1), 0).astype(np.uint64)
        return functions

    def _only_fill(self) -> np.ndarray:
        """Return which works write elements that are counted, and read none.

        Elements are counted of CuPy's own kernels, and not of those that generate random numbers,
        whose state their libraries keep.
        """
        is_other = (self._mode != WRITE) | ~self._is_counted
        found: np.ndarray = np.bincount(self._work[is_other], minlength=len(self.call)) == 0
        return found

    def _of_blocks(self, touches: np.ndarray) -> np.ndarray:
        """Return which blocks some touches are of."""
        found = np.zeros(len(self._used.blocks), bool)
        found[self._block[touches]] = True
        return found

    def _of_works(self, touches: np.ndarray) -> np.ndarray:
        """Return which works some touches are of."""
        found = np.zeros(len(self.call), bool)
        found[self._work[touches]] = True
        return found
