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
