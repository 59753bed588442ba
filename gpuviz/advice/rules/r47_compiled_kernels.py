"""R47: the program waits while CuPy, Numba or XLA compiles its kernels."""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gpuviz.advice.finding import Certainty, Evidence, Finding
from gpuviz.advice.host_lines import longest_lines
from gpuviz.advice.rule import Rule
from gpuviz.advice.schedule import Schedule, ScheduleChange
from gpuviz.analysis.compilations import compilations, first_calls
from gpuviz.data.columns import plain
from gpuviz.quantities import format_counted, format_duration, format_share

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa
    from numpy.typing import NDArray

RULES = (
    Rule(
        "R47",
        "kernels that are compiled",
        "CuPy's, Numba's or XLA's compiler ran for at least 1 % of the time; a name of the "
        "program's own kernels for CuPy, or a function of XLA, that was compiled eight times or "
        "more is a finding of its own",
        "keep CuPy's cache, or JAX's, between runs; `cache=True` for Numba; pass values as "
        "arguments, if they are written into sources; pad arrays to a few shapes for JAX",
    ),
)

# A kernel is compiled for each combination of types and dimensions of its arguments.
_FEWEST_AGAIN = 8


class _Compiler(NamedTuple):
    """What a compiler compiles, why it does, and how to keep the result."""

    one: str
    several: str
    why: str
    keep: str


class _Again(NamedTuple):
    """Why a compiler compiles a name again, and what to change."""

    why: str
    change: str


_ONCE = {
    "CuPy": _Compiler(
        one="module of kernels",
        several="modules of kernels",
        why="They were not in CuPy's cache on the disk. A run that finds them there only loads "
        "them.",
        keep="Measure a second run. If every run compiles them, as in a new container, keep the "
        "folder of CUPY_CACHE_DIR (~/.cupy/kernel_cache) between runs.",
    ),
    "Numba": _Compiler(
        one="kernel",
        several="kernels",
        why="Numba compiles a kernel for each combination of types of its arguments, in each "
        "process again unless it keeps the kernel on the disk. A run that finds it there only "
        "loads it.",
        keep="Pass `cache=True` to `numba.cuda.jit`, and measure a second run.",
    ),
    "XLA": _Compiler(
        one="function",
        several="functions",
        why="XLA compiles a function for each combination of shapes and types of its arguments, "
        "and each operation outside of `jax.jit` by itself; every process does so again, "
        "unless JAX's compilation cache is enabled.",
        keep='Keep it: `jax.config.update("jax_compilation_cache_dir", "FOLDER")` before the first '
        "computation, and measure a second run. Put what runs once per program, such as the "
        "creation of parameters, into one function under `jax.jit`.",
    ),
}
_AGAIN = {
    "CuPy": _Again(
        why="Each time, its source, or the types or dimensions of its arguments, were new.",
        change="If values are written into its source, pass them as arguments instead, so that it "
        "is compiled once. Arguments of other types or dimensions need a kernel each.",
    ),
    "XLA": _Again(
        why="XLA compiles a function for new shapes or types of its arguments, for other values of "
        "static ones, and whenever `jax.jit` gets a new function, such as a lambda.",
        change="Pass arrays of one shape, or of a few: pad the last batch, or arrays whose length "
        "varies. Do not mark arguments as static whose values change, and call `jax.jit` once, "
        "before the loop.",
    ),
}
# Kernels that CuPy writes; their sources differ in nothing else.
_OF_CUPY = "cupy"


def find(schedule: Schedule) -> "Iterator[Finding]":
    """Find kernels that were compiled, and those that were compiled again and again.

    Trigger: CuPy's compiler, Numba's, or XLA's for JAX, ran for at least 1 % of the recording. A
    name of the program's own kernels for CuPy that was compiled at least eight times is a finding
    of its own: it is ``possible`` that values are written into its source. So is a name of
    functions that XLA compiled so often: they may be one function, for other shapes or types.

    Saving: the recording's `Schedule`, replayed without the gaps in which the compiler ran, and at
    most its time: all of it, or all but the first time of a name. What precedes the first CUDA call
    of a thread is not counted. The first is what another run saves if CuPy's cache is kept, or if
    Numba or JAX keeps one: ``likely``.
    """
    table = compilations(schedule.recording)
    table = table.filter(plain(table["compile_ns"]) > 0)
    if not table.num_rows or not schedule.recording.devices:
        return
    _, numbers, counts = np.unique(
        np.array(table["kernels"].to_pylist()), return_inverse=True, return_counts=True
    )
    numbers = numbers.ravel()
    compiler = np.array(table["compiler"].to_pylist())
    own = [not each.startswith(_OF_CUPY) for each in table["kernels"].to_pylist()]
    again = (counts[numbers] >= _FEWEST_AGAIN) & np.array(own) & np.isin(compiler, [*_AGAIN])
    time_ns = plain(table["compile_ns"])
    for number in np.unique(numbers[again]).tolist():
        rows = np.flatnonzero(numbers == number)
        if time_ns[rows[1:]].sum() >= schedule.relevant_ns:
            yield _compiled_again(schedule, table, rows)
    for name in _ONCE:
        rows = np.flatnonzero(~again & (compiler == name))
        if len(rows) and time_ns[rows].sum() >= schedule.relevant_ns:
            yield _compiled_once(schedule, table, rows, name)


def _compiled_again(schedule: Schedule, table: "pa.Table", rows: "NDArray[Any]") -> Finding:
    time_ns = plain(table["compile_ns"])[rows]
    name = table["kernels"][int(rows[0])].as_py()
    title = f"`{name}` was compiled {len(rows)} times: {_spent(schedule, int(time_ns.sum()))}."
    known = _AGAIN[table["compiler"][int(rows[0])].as_py()]
    reason = f"{known.why} Compiling it once takes {format_duration(int(time_ns[0]))}."
    return _finding(schedule, table, rows[1:], "possible", (title, reason, known.change))


def _compiled_once(
    schedule: Schedule, table: "pa.Table", rows: "NDArray[Any]", compiler: str
) -> Finding:
    known = _ONCE[compiler]
    spent = _spent(schedule, int(plain(table["compile_ns"])[rows].sum()))
    title = f"{compiler} compiled {format_counted(len(rows), known.one, known.several)}: {spent}."
    return _finding(schedule, table, rows, "likely", (title, known.why, known.keep))


def _spent(schedule: Schedule, time_ns: int) -> str:
    share = format_share(time_ns / max(schedule.recording.duration_ns, 1))
    return f"{format_duration(time_ns)}, {share} of the time"


def _finding(
    schedule: Schedule,
    table: "pa.Table",
    rows: "NDArray[Any]",
    certainty: Certainty,
    texts: tuple[str, str, str],
) -> Finding:
    """Return a finding about rows whose compiler's time can be saved: title, reason and change."""
    title, reason, change = texts
    recording = schedule.recording
    threads, begin, time_ns = (
        plain(table[name])[rows] for name in ("thread", "time", "compile_ns")
    )
    calls = first_calls(recording, threads, begin)
    removed = np.zeros(recording.tables["api_calls"].num_rows, bool)
    removed[calls[calls >= 0]] = True
    less = ScheduleChange(without_gap=removed, at_most_ns=int(time_ns.sum()))
    ranges = recording.tables["ranges"]
    shown = np.isin(plain(ranges["time"]), begin) & np.isin(plain(ranges["thread"]), threads)
    end = begin + plain(table["duration_ns"])[rows]
    return Finding(
        rule="R47",
        title=title,
        reason=reason,
        change=change,
        certainty=certainty,
        device=recording.devices[0],
        saved_ns=schedule.saved_alone(less),
        schedule=less,
        lines=longest_lines(recording, plain(table["stack"])[rows], time_ns),
        evidence=Evidence(
            "ranges", tuple(np.flatnonzero(shown).tolist()), (int(begin.min()), int(end.max()))
        ),
    )
