"""What XLA, JAX's compiler, does: its own NVTX ranges around compilations and runs of functions."""

import re

import numpy as np

from gpuviz.analysis.intervals import Intervals
from gpuviz.analysis.launches import have_frame
from gpuviz.data.call_stacks import Frame
from gpuviz.data.columns import codes, distinct, plain
from gpuviz.data.once import Once
from gpuviz.data.recording_data import RecordingData
from gpuviz.data.strings import texts
from gpuviz.data.tables import DICTIONARIES

_NVTX = DICTIONARIES["ranges", "kind"].index("nvtx")
_MODULE = re.compile(r"#(?:hlo_)?module=([^,#]*)")
# Results are copied a while after the run that they are of has been launched.
_AFTER_NS = 20_000_000
# Of a thread's calls.
_LEAST_SHARE = 0.5
# A file of JAX, which calls XLA.
_JAX = re.compile(r"[/\\]jax[/\\]_src[/\\]")
# Functions of JAX that run an operation; a function under `jax.jit` is run by none of them.
_OPERATION = re.compile(
    r"jax[/\\]_src[/\\](?:(?:numpy|lax|nn|scipy|ops|image)[/\\].*|random|dispatch)\.py$"
)
_JIT = re.compile(r"[/\\]jax[/\\]_src[/\\]pjit\.py$")


@Once
def xla_compilations(recording: RecordingData) -> np.ndarray:
    """Return the rows of ``ranges`` in which a thread waits until XLA has compiled a function.

    XLA's thread pool has ranges of its own, such as ``XlaCompileBackend``, in the same time.
    """
    return _rows_of(recording, "XlaCompile:")


@Once
def runs_of_xla(recording: RecordingData) -> np.ndarray:
    """Return the rows of ``ranges`` in which a thread launches what XLA made of a function."""
    return _rows_of(recording, "XlaModule:")


def is_operation(frame: Frame) -> bool:
    """Return whether a function runs an operation of JAX outside of `jax.jit`."""
    return frame.is_installed and _OPERATION.search(frame.filename) is not None


def runs_operation(recording: RecordingData, stack: int) -> bool:
    """Return whether a call stack runs an operation of JAX outside of `jax.jit`.

    JAX runs it by a function under `jax.jit`. Such a function of the program calls operations, too,
    while JAX traces it.
    """
    outer = recording.call_stacks.frames(stack)[::-1]
    first = next((each for each in outer if is_operation(each) or _JIT.search(each.filename)), None)
    return first is not None and is_operation(first)


@Once
def threads_of_xla(recording: RecordingData) -> dict[int, int]:
    """Return the thread for which each of XLA's threads launches.

    XLA tries kernels in a pool of threads while it compiles, and others copy the arguments and
    results of its functions. They work for the thread with Python code that compiles and runs these
    functions; of several such threads, nothing is known. A thread without Python code is XLA's if
    it makes most of its CUDA calls while the other compiles or launches a function, or shortly
    afterwards; others are the program's or another library's.

    XLA that ran before the first recording marks neither. The calls and samples that have JAX in
    their call stacks then say when a thread works for it.
    """
    tables = recording.tables
    working, begin, end = _work_of_xla(recording)
    if not len(working):
        return {}
    has_code = set[int]()
    for name in ("api_calls", "host_samples"):
        with_stack = plain(tables[name]["stack"]) != 0
        has_code |= {*distinct(plain(tables[name]["thread"])[with_stack]).tolist()}
    callers = {*distinct(working).tolist()} & has_code
    if len(callers) != 1:
        return {}
    (caller,) = callers
    own = working == caller
    beside = _calls_beside(recording, begin[own], end[own])
    threads = plain(tables["api_calls"]["thread"])
    return {
        thread: caller
        for thread in distinct(threads).tolist()
        if thread not in has_code and beside[threads == thread].mean() > _LEAST_SHARE
    }


def function_of(name: str) -> str:
    """Return the name of the function in the name of a range, such as ``jit_update``."""
    found = _MODULE.search(name)
    return found[1] if found else ""


def _work_of_xla(
    recording: RecordingData,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the threads that compile and launch functions of XLA, and when they do, in columns."""
    rows = np.concatenate([xla_compilations(recording), runs_of_xla(recording)])
    if len(rows):
        parts = [("ranges", rows)]
    else:
        parts = [(name, _rows_in_jax(recording, name)) for name in ("api_calls", "host_samples")]
    thread, begin, end = (
        np.concatenate([plain(recording.tables[name][column])[rows] for name, rows in parts])
        for column in ("thread", "time", "end")
    )
    return thread, begin, np.maximum(np.where(end < 0, recording.duration_ns, end), begin)


def _rows_in_jax(recording: RecordingData, name: str) -> np.ndarray:
    """Return the rows of a table whose call stack has a function of JAX."""
    stacks = plain(recording.tables[name]["stack"])
    return np.flatnonzero((stacks != 0) & have_frame(recording, stacks, _is_of_jax))


def _is_of_jax(frame: Frame) -> bool:
    return frame.is_installed and _JAX.search(frame.filename) is not None


def _calls_beside(recording: RecordingData, begin: np.ndarray, end: np.ndarray) -> np.ndarray:
    """Return whether each call begins in one of some spans, or shortly afterwards."""
    called = plain(recording.tables["api_calls"]["time"])
    found: np.ndarray = Intervals(begin, end + _AFTER_NS).within(called, called + 1) > 0
    return found


def _rows_of(recording: RecordingData, prefix: str) -> np.ndarray:
    table = recording.tables["ranges"]
    rows = np.flatnonzero(codes(table["kind"], DICTIONARIES["ranges", "kind"]) == _NVTX)
    names = plain(table["name"])[rows]
    known = distinct(names)
    chosen = [each.startswith(prefix) for each in texts(recording.tables, known)]
    found: np.ndarray = rows[np.isin(names, known[chosen])]
    return found
