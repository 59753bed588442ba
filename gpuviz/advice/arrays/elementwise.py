"""The launches of CuPy's elementwise functions, and the arrays that they read and write."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gpuviz.analysis.kernels import short_name
from gpuviz.analysis.touches import Touches
from gpuviz.data.columns import distinct, plain
from gpuviz.data.first_rows import first_rows
from gpuviz.data.recording_data import RecordingData
from gpuviz.data.strings import texts
from gpuviz.data.tables import DICTIONARIES

# CuPy names the kernels of its universal functions after them and the types of their arguments:
# `cupy_square__float32_float32` reads one array and writes another of the same type.
_UFUNC = re.compile(r"cupy_(?P<function>\w+?)__(?P<types>\w+)$")
# Kernels of cuBLAS and CUTLASS, whose names say how they multiply; convolutions are no products.
_PRODUCT = re.compile(r"(?!.*(?:conv|cudnn|dgrad|fprop|wgrad)).*gem[mv]|nvjet_")
_TWO_OUTPUTS = ("divmod", "frexp", "modf")
# The types of scalars, NumPy's too; other types are those of arrays.
SCALARS = ("int", "float", "complex")
_BYTES = {
    **dict.fromkeys(("bool", "int8", "uint8"), 1),
    **dict.fromkeys(("int16", "uint16", "float16"), 2),
    **dict.fromkeys(("int32", "uint32", "float32"), 4),
    **dict.fromkeys(("int64", "uint64", "float64", "complex64"), 8),
    "complex128": 16,
}
TYPES = tuple(_BYTES)
# The threads of a block in CuPy's elementwise kernels, one for each element, unless there are fewer
# elements.
_BLOCK = 128
_MOST_NAMES = 4
_MODES = DICTIONARIES["launch_blocks", "mode"]
UNKNOWN, READ, WRITE, READ_WRITE = (
    _MODES.index(each) for each in ("unknown", "read", "write", "read_write")
)
WRITES = (WRITE, READ_WRITE)


@dataclass(frozen=True, slots=True)
class Function:
    """An elementwise function with the types of its arguments.

    Attributes:
        name: CuPy's name, such as ``multiply``; ``copy`` is ``astype`` and assignments too.
        inputs: The types of its inputs, scalars too.
        output: The type of its output.
    """

    name: str
    inputs: tuple[str, ...]
    output: str

    @property
    def types(self) -> tuple[str, ...]:
        """The types of its inputs and of its output."""
        return (*self.inputs, self.output)

    @property
    def arrays(self) -> tuple[str, ...]:
        """The types of the inputs that are arrays."""
        return tuple(each for each in self.inputs if each not in SCALARS)


def function_of(kernel: str) -> Function | None:
    """Return the elementwise function with one output that a kernel is named after."""
    match = _UFUNC.match(kernel)
    if match is None or match["function"] in _TWO_OUTPUTS:
        return None
    *inputs, output = match["types"].split("_")
    known = output in TYPES and all(each in TYPES or each in SCALARS for each in inputs)
    return Function(match["function"], tuple(inputs), output) if known else None


def function_names(recording: RecordingData, activities: np.ndarray) -> str:
    """Return the functions of some kernels for a sentence."""
    tables = recording.tables
    kernels = texts(tables, plain(tables["activities"]["name"])[activities])
    names = list(dict.fromkeys(map(_name_of, dict.fromkeys(kernels))))
    more = " and others" if len(names) > _MOST_NAMES else ""
    return ", ".join(names[:_MOST_NAMES]) + more


def _name_of(kernel: str) -> str:
    function = function_of(kernel)
    if function is not None:
        return f"`{function.name}`"
    return "a matrix product" if _PRODUCT.match(kernel) else f"`{short_name(kernel)}`"


def type_bytes() -> np.ndarray:
    """Return the bytes of an element of each of `TYPES`."""
    return np.array(list(_BYTES.values()), np.int64)


def read_bytes_of_functions(recording: RecordingData, activities: np.ndarray) -> np.ndarray:
    """Return how many bytes some kernels read of each array at most; 0 if that is not known.

    An elementwise function has a thread for each element, and reads each of its inputs once.
    """
    name = plain(recording.tables["activities"]["name"])[activities]
    known = distinct(name)
    functions = [function_of(text) for text in texts(recording.tables, known)]
    arrays = [() if each is None else each.arrays for each in functions]
    widest = [max((_BYTES[kind] for kind in each), default=0) for each in arrays]
    widths = np.array(widest, np.int64)[np.searchsorted(known, name)]
    found: np.ndarray = kernel_threads(recording, activities) * widths
    return found


class Elementwise:
    """The launches of elementwise functions whose arrays gpuviz knows, in the order of their calls.

    Args:
        recording: The recording.
        used: Which work used the recording's blocks.

    Attributes:
        functions: The functions.
        call: For each launch, the row of ``api_calls``, ascending in time.
        function: For each launch, an index of ``functions``.
        activity: For each launch, the row of ``activities``.
        target: For each launch, the block that it writes, an index of ``used.blocks``.
        is_update: For each launch, whether it overwrites what it reads, as in ``x += 1``.
        is_whole: For each launch, whether it writes as many elements as fit into that block, from
            its beginning; fewer than 128 at the end may be missing.
        output: For each launch, the type of its output, an index of `TYPES`.
        elements: For each launch, how many elements the block of the output has.
        launch: For each array that is read, an index of the launches, ascending.
        source: For each array that is read, its block.
        address: For each array that is read, the address of its first element.
        at_begin: For each array that is read, whether its first element is the block's first.
        source_elements: For each array that is read, how many elements its block has; 0 if unknown.
        kind: For each array that is read, its type as an index of `TYPES`; -1 if unknown.
    """

    def __init__(self, recording: RecordingData, used: Touches) -> None:
        tables = recording.tables
        names = plain(tables["activities"]["name"])
        touched = np.flatnonzero(used.activity >= 0)
        name = names[used.activity[touched]]
        known = distinct(name)
        found = [function_of(text) for text in texts(tables, known)]
        self.functions = [each for each in found if each is not None]
        number = np.cumsum([each is not None for each in found], dtype=np.int64) - 1
        number[[each is None for each in found]] = -1
        number = number[np.searchsorted(known, name)]
        touched, number = touched[number >= 0], number[number >= 0]
        writes = used.mode[touched] != READ
        targets = touched[writes]
        calls, at, count = np.unique(used.call[targets], return_index=True, return_counts=True)
        at, calls = at[count == 1], calls[count == 1]
        order = np.argsort(targets[at], kind="stable")
        at, targets = at[order], targets[at[order]]
        self.call = calls[order]
        self.function = number[writes][at]
        self.activity = used.activity[targets]
        self.target = used.block[targets]
        # A kernel of CuPy gets the array twice, as an input and as its output.
        span, reads = len(used.blocks) + 1, touched[used.mode[touched] != WRITE]
        read = distinct(used.call[reads].astype(np.int64) * span + used.block[reads])
        written = self.call.astype(np.int64) * span + self.target
        self.is_update = np.append(read, -1)[np.searchsorted(read, written)] == written
        outputs = np.array([TYPES.index(each.output) for each in self.functions], np.int64)
        self.output = outputs[self.function]
        self.elements = used.blocks.requested[self.target] // type_bytes()[self.output]
        threads = kernel_threads(recording, self.activity)
        self.is_whole = used.at_begin[targets] & (threads - self.elements >= 0)
        self.is_whole &= threads - self.elements < _BLOCK

        place = first_rows(self.call + 1, used.call[reads] + 1)
        reads, place = reads[place >= 0], place[place >= 0]
        order = np.argsort(place, kind="stable")
        self.launch, reads = place[order], reads[order]
        self.source = used.block[reads]
        self.address = used.address[reads]
        self.at_begin = used.at_begin[reads]
        self.kind = self._kinds()
        elements = used.blocks.requested[self.source] // type_bytes()[self.kind]
        self.source_elements = np.where(self.kind >= 0, elements, 0)

    def __len__(self) -> int:
        return len(self.call)

    @cached_property
    def reads(self) -> np.ndarray:
        """How many arrays each launch reads."""
        counts: np.ndarray = np.bincount(self.launch, minlength=len(self))
        return counts

    def where(self, accepts: Callable[[Function], bool]) -> np.ndarray:
        """Return which launches are of functions that a condition accepts."""
        accepted = np.array([accepts(each) for each in self.functions], bool)
        found: np.ndarray = accepted[self.function]
        return found

    def _kinds(self) -> np.ndarray:
        """Return the type of each array that is read.

        The kernel's arguments are in the order of the types in its name. If some of them are not
        arrays but NumPy's scalars, it is unknown which.
        """
        most = max((len(each.arrays) for each in self.functions), default=0) + 1
        kinds = np.full((len(self.functions), most), -1)
        for row, each in zip(kinds, self.functions, strict=True):
            row[: len(each.arrays)] = [TYPES.index(kind) for kind in each.arrays]
        function = self.function[self.launch]
        first = np.searchsorted(self.launch, self.launch)
        place = np.minimum(np.arange(len(self.launch)) - first, most - 1)
        inputs = np.count_nonzero(kinds >= 0, axis=1)[function]
        found: np.ndarray = np.where(self.reads[self.launch] == inputs, kinds[function, place], -1)
        return found

    def name(self, launch: int) -> str:
        """Return the name of the function of a launch."""
        return self.functions[int(self.function[launch])].name


def kernel_threads(recording: RecordingData, activities: np.ndarray) -> np.ndarray:
    """Return how many threads each kernel has; 0 if unknown."""
    return _threads(recording, activities, ("grid", "block"))


def block_threads(recording: RecordingData, activities: np.ndarray) -> np.ndarray:
    """Return how many threads a block of each kernel has; 0 if unknown."""
    return _threads(recording, activities, ("block",))


def _threads(
    recording: RecordingData, activities: np.ndarray, parts: tuple[str, ...]
) -> np.ndarray:
    table = recording.tables["launch_configurations"]
    sides = [f"{of}_{axis}" for of in parts for axis in "xyz"]
    # A product of damaged numbers is wrong, but does not fail.
    threads = np.prod([plain(table[side]).astype(np.int64) for side in sides], axis=0)
    launch = plain(recording.tables["activities"]["launch"])[activities]
    rows = first_rows(plain(table["id"]), launch)
    found: np.ndarray = np.append(threads, 0)[rows]
    return found
