"""What XLA, JAX's compiler, does: its own NVTX ranges around compilations and runs of functions."""

import re
from typing import TYPE_CHECKING, Any

import numpy as np

from gpuviz.data.columns import codes, distinct, plain
from gpuviz.data.once import Once
from gpuviz.data.strings import texts
from gpuviz.data.tables import DICTIONARIES

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gpuviz.data.recording_data import RecordingData

_NVTX = DICTIONARIES["ranges", "kind"].index("nvtx")
_MODULE = re.compile(r"#(?:hlo_)?module=([^,#]*)")


@Once
def xla_compilations(recording: "RecordingData") -> "NDArray[Any]":
    """Return the rows of ``ranges`` in which a thread waits until XLA has compiled a function.

    XLA's thread pool has ranges of its own, such as ``XlaCompileBackend``, in the same time.
    """
    return _rows_of(recording, "XlaCompile:")


@Once
def runs_of_xla(recording: "RecordingData") -> "NDArray[Any]":
    """Return the rows of ``ranges`` in which a thread launches what XLA made of a function."""
    return _rows_of(recording, "XlaModule:")


@Once
def threads_of_xla(recording: "RecordingData") -> dict[int, int]:
    """Return the thread for which each thread without Python code launches, where XLA has threads.

    XLA tries kernels in a pool of threads while it compiles, and others copy the arguments of its
    functions. All work for the thread with Python code that compiles and runs these functions; of
    several such threads, nothing is known.
    """
    tables = recording.tables
    rows = np.concatenate([xla_compilations(recording), runs_of_xla(recording)])
    if not len(rows):
        return {}
    has_code = set[int]()
    for name in ("api_calls", "host_samples"):
        with_stack = plain(tables[name]["stack"]) != 0
        has_code |= {*distinct(plain(tables[name]["thread"])[with_stack]).tolist()}
    callers = {*distinct(plain(tables["ranges"]["thread"])[rows]).tolist()} & has_code
    if len(callers) != 1:
        return {}
    (caller,) = callers
    launching = distinct(plain(tables["api_calls"]["thread"])).tolist()
    return {thread: caller for thread in launching if thread not in has_code}


def function_of(name: str) -> str:
    """Return the name of the function in the name of a range, such as ``jit_update``."""
    found = _MODULE.search(name)
    return found[1] if found else ""


def _rows_of(recording: "RecordingData", prefix: str) -> "NDArray[Any]":
    table = recording.tables["ranges"]
    rows = np.flatnonzero(codes(table["kind"], DICTIONARIES["ranges", "kind"]) == _NVTX)
    names = plain(table["name"])[rows]
    known = distinct(names)
    chosen = [each.startswith(prefix) for each in texts(recording.tables, known)]
    found: NDArray[Any] = rows[np.isin(names, known[chosen])]
    return found
