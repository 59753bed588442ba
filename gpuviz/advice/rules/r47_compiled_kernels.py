"""R47: the program waits while CuPy, Numba or XLA compiles its kernels."""

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from gpuviz.advice.evidence import Evidence
from gpuviz.advice.finding import Finding
from gpuviz.advice.host.remade_finding import remade_finding
from gpuviz.advice.host.remade_functions import remade_functions
from gpuviz.advice.host.sampled_compilations import SampledCompilations, sampled_compilations
from gpuviz.advice.host_lines import line_of, longest_lines, text_of
from gpuviz.advice.replay.schedule import Schedule, ScheduleChange
from gpuviz.advice.rule import Rule
from gpuviz.analysis.compilations import compilations
from gpuviz.analysis.intervals import Intervals
from gpuviz.analysis.launches import calls_of, stacks_of, user_frames
from gpuviz.analysis.repeated_compilations import RepeatedCompilation, repeated_compilations
from gpuviz.analysis.steady_state import steady_states
from gpuviz.analysis.xla import runs_operation, threads_of_xla
from gpuviz.data.columns import distinct, plain
from gpuviz.data.recording_data import RecordingData
from gpuviz.quantities import format_counted, format_duration

RULES = (
    Rule(
        "R47",
        "kernels that are compiled",
        "CuPy's, Numba's or XLA's compiler ran for at least 1 % of the time; a name of the "
        "program's own kernels for CuPy, or a function of XLA, that a line compiles eight times or "
        "more is a finding of its own, and so is one that it compiles five times or more, or "
        "three times for XLA, and that launches the same kernels each time; operations of JAX "
        "count once for each time that the line runs; if XLA ran before the first recording, "
        "samples of the host show its compilations, and a line that compiles each of the five "
        "times or more that it runs is a finding of its own; so is a fused function or a kernel of "
        "CuPy that is decorated or created before each call, as the text around the line shows, "
        "and that takes the host 250 µs or more five times, three of them sampled",
        "keep CuPy's cache, or JAX's, between runs; `cache=True` for Numba; pass values as "
        "arguments, if they are written into sources or static in JAX; pad arrays to a few shapes "
        "for JAX; decorate functions with `cupy.fuse` once, at module level",
    ),
)


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
        "before the loop. Put operations outside of `jax.jit` that follow each other, such as the "
        "creation of parameters, into one function under it.",
    ),
}
_ALIKE = {
    "CuPy": _Again(
        why="Each time it launches the same kernel on as many thread blocks, so its arguments seem "
        "to have the same shapes: its source, or the types of its arguments, were new.",
        change=_AGAIN["CuPy"].change,
    ),
    "XLA": _Again(
        why="Each time it launches the same kernels on as many thread blocks, so its arguments "
        "seem to have the same shapes: a static argument has another value each time, or "
        "`jax.jit` gets a new function, such as a lambda.",
        change="Pass what changes as an array or a number that JAX traces: remove it from "
        "`static_argnames` and `static_argnums`. Call `jax.jit` once, before the loop.",
    ),
}
# Before the names of functions, in those that JAX gives to XLA.
_JITTED = "jit_"
# What a line runs may be several functions, which samples do not tell apart.
_FEWEST_SAMPLED = 5


def find(schedule: Schedule) -> Iterator[Finding]:
    """Find kernels that were compiled, and those that were compiled again and again.

    Trigger: CuPy's compiler, Numba's, or XLA's for JAX, ran for at least 1 % of the recording. What
    was compiled again and again (`gpuviz.analysis.repeated_compilations`) is a finding of its own:
    it is ``possible`` that values are written into the source of CuPy's kernel, that XLA's
    functions are one function for other shapes or types, or, if they launch the same kernels on as
    many blocks, that a static argument changes. XLA that ran before the first recording does not
    mark its compilations: then samples of the host in JAX's compiler are, and a line that compiles
    each time that it runs, at least five times, is a finding of its own. So is a fused function or
    kernel of CuPy that is made anew before each call, though its compiled code is in CuPy's cache:
    see `gpuviz.advice.host.remade_functions`.

    Saving: the recording's `Schedule`, replayed without the time between calls in which the
    compiler ran, and at most its time: all of it, or all but the first time of a name. What
    precedes the first CUDA call of a thread is not counted. The first is what another run saves if
    CuPy's cache is kept, or if Numba or JAX keeps one: ``likely``.
    """
    table = compilations(schedule.recording)
    if not schedule.recording.devices:
        return
    yield from _sampled(schedule)
    for remade in remade_functions(schedule.recording):
        if remade.host_ns.sum() >= schedule.relevant_ns:
            yield remade_finding(schedule, remade)
    if not table.num_rows:
        return
    time_ns = plain(table["compile_ns"])
    compiler = np.array(table["compiler"].to_pylist())
    once = np.ones(table.num_rows, bool)
    for each in repeated_compilations(schedule.recording):
        once[each.rows] = False
        if time_ns[each.rows[1:]].sum() >= schedule.relevant_ns:
            yield _compiled_again(schedule, table, each)
    for name in _ONCE:
        rows = np.flatnonzero(once & (compiler == name))
        if len(rows) and time_ns[rows].sum() >= schedule.relevant_ns:
            yield _compiled_once(schedule, table, rows, name)


def _sampled(schedule: Schedule) -> Iterator[Finding]:
    """Return the findings about compilations that only samples of the host show, by line."""
    recording = schedule.recording
    found = sampled_compilations(recording)
    lines = user_frames(recording.tables, found.stack)
    is_again = np.zeros(len(lines), bool)
    for line in distinct(lines).tolist():
        rows = np.flatnonzero(lines == line)
        stack = int(found.stack[rows[0]])
        if len(rows) < _FEWEST_SAMPLED or _runs_of(recording, stack) > len(rows):
            continue
        # Those of other arrays each time, as of parameters that a line creates.
        if runs_operation(recording, stack):
            continue
        is_again[rows] = True
        spent = format_duration(int((found.end - found.begin)[rows].sum()))
        text = text_of(line_of(recording, stack, ""))
        title = (
            f"XLA compiled what {text} runs {len(rows)} times, in {spent}: each time that it ran."
        )
        yield from _of_samples(schedule, found, rows[1:], (title, *_AGAIN["XLA"]), is_once=False)
    rows = np.flatnonzero(~is_again)
    spent = format_duration(int((found.end - found.begin)[rows].sum()))
    title = f"XLA compiled {format_counted(len(rows), 'time', 'times')}, in {spent}."
    once = _ONCE["XLA"]
    yield from _of_samples(schedule, found, rows, (title, once.why, once.keep), is_once=True)


def _runs_of(recording: RecordingData, stack: int) -> int:
    """Return how often the line of a call stack launches the work that it launches most often."""
    stacks = stacks_of(
        recording.tables,
        distinct(calls_of(recording.tables, plain(recording.tables["activities"]["correlation"]))),
    )
    line = recording.call_stacks.user_frame(int(stack))
    known, counts = np.unique(stacks[stacks != 0], return_counts=True)
    own = [recording.call_stacks.user_frame(each) == line for each in known.tolist()]
    return int(counts[own].max(initial=0))


def _of_samples(
    schedule: Schedule,
    found: SampledCompilations,
    rows: np.ndarray,
    texts: tuple[str, str, str],
    *,
    is_once: bool,
) -> Iterator[Finding]:
    """Yield the finding about some compilations, if they take long enough."""
    title, reason, change = texts
    begin, end, recording = found.begin[rows], found.end[rows], schedule.recording
    if not len(rows) or (end - begin).sum() < schedule.relevant_ns:
        return
    less = ScheduleChange(
        shorter_gap=_less_between_calls(schedule, found.thread[rows], begin, end),
        at_most_ns=int((end - begin).sum()),
        is_of_preparation=is_once,
    )
    yield Finding(
        rule="R47",
        title=title,
        reason=f"{reason} The time is that of samples of the host while JAX traces and compiles.",
        change=change,
        certainty="likely" if is_once else "possible",
        device=recording.devices[0],
        saved_ns=schedule.saved_alone(less),
        schedule=less,
        lines=longest_lines(recording, found.stack[rows], end - begin),
        is_of_warm_up=is_once,
    )


def _compiled_again(schedule: Schedule, table: pa.Table, again: RepeatedCompilation) -> Finding:
    known = (_ALIKE if again.is_alike else _AGAIN)[again.compiler]
    time_ns = plain(table["compile_ns"])[again.rows]
    name = table["kernels"][int(again.rows[0])].as_py().removeprefix(_JITTED)
    spent = format_duration(int(time_ns.sum()))
    title = f"`{name}` was compiled {len(time_ns)} times, in {spent}."
    reason = f"{known.why} Compiling it once takes {format_duration(int(time_ns[0]))}."
    rows = again.rows[1:]
    begin = min((each.from_ns for each in steady_states(schedule.recording)), default=0)
    # Idle time before the steady state is no part of the time that savings are compared with.
    steady = rows[plain(table["time"])[rows] >= begin]
    rows = steady if len(steady) else rows
    found = _finding(schedule, table, rows, (title, reason, known.change), is_once=False)
    return replace(found, is_of_warm_up=not len(steady))


def _compiled_once(schedule: Schedule, table: pa.Table, rows: np.ndarray, compiler: str) -> Finding:
    known = _ONCE[compiler]
    spent = format_duration(int(plain(table["compile_ns"])[rows].sum()))
    count = format_counted(len(rows), known.one, known.several)
    title = f"{compiler} compiled {count} in {spent}."
    found = _finding(schedule, table, rows, (title, known.why, known.keep), is_once=True)
    return replace(found, is_of_warm_up=True)


def _finding(
    schedule: Schedule,
    table: pa.Table,
    rows: np.ndarray,
    texts: tuple[str, str, str],
    *,
    is_once: bool,
) -> Finding:
    """Return a finding about rows whose compiler's time can be saved: title, reason and change."""
    title, reason, change = texts
    recording = schedule.recording
    threads, begin, time_ns, length = (
        plain(table[name])[rows] for name in ("thread", "time", "compile_ns", "duration_ns")
    )
    end = begin + length
    shorter = _less_between_calls(schedule, threads, begin, end)
    less = ScheduleChange(
        shorter_gap=shorter, at_most_ns=int(time_ns.sum()), is_of_preparation=is_once
    )
    ranges = recording.tables["ranges"]
    shown = np.isin(plain(ranges["time"]), begin) & np.isin(plain(ranges["thread"]), threads)
    return Finding(
        rule="R47",
        title=title,
        reason=reason,
        change=change,
        certainty="likely" if is_once else "possible",
        device=recording.devices[0],
        saved_ns=schedule.saved_alone(less),
        schedule=less,
        lines=longest_lines(recording, plain(table["stack"])[rows], time_ns),
        evidence=Evidence(
            "ranges", tuple(np.flatnonzero(shown).tolist()), (int(begin.min()), int(end.max()))
        ),
    )


def _less_between_calls(
    schedule: Schedule, threads: np.ndarray, begin: np.ndarray, end: np.ndarray
) -> np.ndarray:
    """Return how much of the time before each call is in some spans of its thread, in ns.

    What another thread compiles does not delay a call, unless one of the two is XLA's and works for
    the other.
    """
    less = np.zeros(len(schedule.called), np.int64)
    caller = threads_of_xla(schedule.recording)
    by_thread = plain(schedule.recording.tables["api_calls"]["thread"])
    order = np.argsort(schedule.called, kind="stable")
    for thread in np.unique(by_thread).tolist():
        waited_for = [
            each
            for each in np.unique(threads).tolist()
            if thread in (each, caller.get(each)) or each == caller.get(thread)
        ]
        is_own = np.isin(threads, waited_for)
        if not is_own.any():
            continue
        spans = Intervals(begin[is_own], end[is_own])
        group = schedule.thread[by_thread == thread][0]
        calls = order[schedule.thread[order] == group]
        until = schedule.called[calls[1:]]
        since = np.minimum(schedule.returned[calls[:-1]], until)
        ends = by_thread[calls[1:]] == thread
        less[calls[1:][ends]] = spans.within(since[ends], until[ends])
    return less
