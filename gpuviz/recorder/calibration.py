"""What recording a CUDA call costs on this machine, measured with calls of gpuviz's own."""

import json
import logging
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from gpuviz import _core
from gpuviz.messages import log

Costs = dict[str, tuple[int, int]]

# Has no row in ``api_calls``, and so no ``own_cost``.
QUERY = "event_query"
# In the order of `CalibrationCalls`.
KINDS = (
    "launch",
    "copy",
    "read_back",
    "event_record",
    QUERY,
    "stream_wait",
    "synchronize",
    "graph_node",
)
# How much later a kernel of a graph begins after the one before.
GRAPH_GAP = "graph_gap"
_ROUNDS, _GRAPHS = 5, 3
_CALLS_IN_A_ROW, _CALLS_BETWEEN_WORK = 20, 20
_TEXT = json.dumps({"shape": [1024, 1024], "name": "layer " * 8, "scale": 0.5})
_WORD = re.compile(r"(\w+)\s")

_known: dict[str, Costs] = {}


def tracing_costs(library: str) -> Mapping[str, tuple[int, int]]:
    """Return what CUPTI costs a call of each kind, in ns: the least and the most.

    Measured in the current context of this thread, once per process, in about a tenth of a second;
    nothing is returned, and the reason logged, if that is not possible.

    Args:
        library: The path of CUPTI, which must not be in use.
    """
    if library not in _known:
        try:
            _known[library] = measured_costs(library)
        except RuntimeError as error:
            log(logging.DEBUG, f"The cost of recording is unknown: {error}")
            return {}
    return _known[library]


def known_costs(library: str) -> Mapping[str, tuple[int, int]]:
    """Return what `tracing_costs` has measured in this process."""
    return _known.get(library, {})


def measured_costs(library: str) -> Costs:
    """Measure what CUPTI costs a call of each kind and graphs, and how long a launch takes with it.

    The least is that of calls that follow each other. A program does other things between its
    calls, whose code evicts that of CUDA and CUPTI from the processor's caches, so that recording
    costs more: in the middle of the interval is what it costs when Python works in between.

    Recorded and unrecorded calls take turns, because other work of the machine makes both slower.

    Raises:
        RuntimeError: This thread has no CUDA context, or CUDA or CUPTI refuses.
    """
    calls = _core.CalibrationCalls()
    _measured(calls)  # what comes first takes longer
    plain, traced = [_measured(calls)], []
    own: list[int] = []
    launches: list[int] = []
    for _ in range(_ROUNDS):
        session = _core.Session(stack_depth=0, launch_blocks=False)
        session.start()
        try:
            traced.append(_traced(calls, session, library))
        finally:
            session.stop()
        began, ended = (each - session.start_ns for each in traced[-1].launched)
        for rows in session.take_tables(flush=True)["api_calls"]:
            own += rows["own_cost"].tolist()
            durations = rows["end"] - rows["time"]
            launches += durations[(rows["time"] >= began) & (rows["end"] <= ended)].tolist()
        plain.append(_measured(calls))
    own_ns = median(own) if own else 0
    costs = {}
    for number, kind in enumerate(KINDS):
        in_a_row, between = (
            median(
                during.times[way][number]
                - (before.times[way][number] + after.times[way][number]) / 2
                for during, (before, after) in zip(traced, pairwise(plain), strict=True)
            )
            for way in (0, 1)
        )
        costs[kind] = _interval(in_a_row, between, 0 if kind == QUERY else own_ns)
    # Measured with a launch of them all.
    low, high = costs["graph_node"]
    nodes = _core.CalibrationCalls.graph_nodes
    costs["graph_node"] = (round(low / nodes), round(high / nodes))
    costs[GRAPH_GAP] = (_graph_gap(plain, traced),) * 2
    return costs | {"launch_duration": (round(median(launches or [0])),) * 2}


@dataclass(frozen=True, eq=False, slots=True)
class _Measured:
    """How long calls take.

    Attributes:
        times: The time of a call of each kind in ns: of calls in a row, and of calls with work in
            between, which it includes.
        launched: When the launches with work in between began and ended.
        graph: The time of a graph on the GPU, in ns.
    """

    times: tuple[Sequence[float], Sequence[float]]
    launched: tuple[int, int]
    graph: int


def _graph_gap(plain: Sequence[_Measured], traced: Sequence[_Measured]) -> int:
    """Return how much later CUPTI lets a kernel of a graph begin after the one before, in ns."""
    before, during = (median(each.graph for each in measured) for measured in (plain, traced))
    gaps = _core.CalibrationCalls.long_graph_nodes - 1
    return max(round((during - before) / gaps), 0)


def _traced(calls: _core.CalibrationCalls, session: _core.Session, library: str) -> _Measured:
    tracer = _core.CuptiTracer(library, session, stacks=False)
    tracer.start()
    try:
        return _measured(calls)
    finally:
        tracer.stop()


def _measured(calls: _core.CalibrationCalls) -> _Measured:
    in_a_row = calls.measure(_CALLS_IN_A_ROW)
    began_ns = time.monotonic_ns()
    first = _between_work(calls, 0)
    ended_ns = time.monotonic_ns()
    between = [first, *(_between_work(calls, number) for number in range(1, len(KINDS)))]
    return _Measured((in_a_row, between), (began_ns, ended_ns), calls.time_graph(_GRAPHS))


def _between_work(calls: _core.CalibrationCalls, kind: int) -> float:
    """Return the time of work as programs in Python do it, with a call of a kind after it."""
    times = []
    for _ in range(_CALLS_BETWEEN_WORK):
        began = time.perf_counter_ns()
        shape = json.loads(_TEXT)
        _WORD.sub("-", shape["name"])
        sorted(f"{number:.3f} {shape['scale']}" for number in shape["shape"])
        calls.make(kind)
        times.append(time.perf_counter_ns() - began)
    return median(times)


def _interval(in_a_row: float, between: float, own: float) -> tuple[int, int]:
    """Return the costs of calls in a row and, in the middle, of calls with work in between.

    These cost no less, though their times vary so much on a busy machine that it may seem so.
    """
    low = max(round(in_a_row - own), 0)
    middle = max(round(between - own), low)
    return low, 2 * middle - low
