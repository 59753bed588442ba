"""What recording a CUDA call costs on this machine, measured with calls of gpuviz's own."""

import logging
from statistics import median
from typing import TYPE_CHECKING

from gpuviz import _core
from gpuviz.messages import log

if TYPE_CHECKING:
    from collections.abc import Mapping

Costs = dict[str, tuple[int, int]]

# In the order of `CalibrationCalls`.
KINDS = ("launch", "copy", "event_record", "stream_wait", "synchronize")
# What a program reads between two calls: nothing, so that the code of CUDA and CUPTI stays in the
# processor's caches, or as much as they hold.
_BYTES_BETWEEN = (0, 1 << 20)
_CALLS, _ROUNDS = 40, 4

_known: dict[str, Costs] = {}


def tracing_costs(library: str) -> "Mapping[str, tuple[int, int]]":
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


def known_costs(library: str) -> "Mapping[str, tuple[int, int]]":
    """Return what `tracing_costs` has measured in this process, without how long a launch takes."""
    return {kind: cost for kind, cost in _known.get(library, {}).items() if kind in KINDS}


def measured_costs(library: str) -> Costs:
    """Measure what CUPTI costs a call of each kind, and how long a launch takes with it.

    Raises:
        RuntimeError: This thread has no CUDA context, or CUDA or CUPTI refuses.
    """
    calls = _core.CalibrationCalls()
    before = _times(calls)
    session = _core.Session(stack_depth=0, launch_blocks=False)
    session.start()
    try:
        tracer = _core.CuptiTracer(library, session, stacks=False)
        tracer.start()
        try:
            traced = _times(calls)
        finally:
            tracer.stop()
    finally:
        session.stop()
    # Other work of the machine makes some calls longer.
    plain = {kind: [*map(min, before[kind], after)] for kind, after in _times(calls).items()}
    own = _own_ns(session)
    more = {
        kind: [a - b - own for a, b in zip(traced[kind], plain[kind], strict=True)]
        for kind in KINDS
    }
    more["launch_duration"] = [each - own for each in traced["launch"]]
    return {kind: (max(min(each), 0), max(*each, 0)) for kind, each in more.items()}


def _own_ns(session: _core.Session) -> int:
    """Return what gpuviz took after a call, which recordings have for each call."""
    chunks = session.take_tables(flush=True)["api_calls"]
    costs = [each for chunk in chunks for each in chunk["own_cost"].tolist()]
    return int(median(costs)) if costs else 0


def _times(calls: _core.CalibrationCalls) -> dict[str, list[int]]:
    """Return the least median time of each kind of call, for each of `_BYTES_BETWEEN`."""
    by_size = [[calls.measure(each, _CALLS) for _ in range(_ROUNDS)] for each in _BYTES_BETWEEN]
    least = [[min(kind) for kind in zip(*rounds, strict=True)] for rounds in by_size]
    return {kind: [*values] for kind, values in zip(KINDS, zip(*least, strict=True), strict=True)}
