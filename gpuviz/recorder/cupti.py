"""The CUPTI tracer of GPU activities."""

import logging
import os
import time
import warnings
from collections.abc import Mapping
from pathlib import Path

from gpuviz import _core
from gpuviz.messages import log
from gpuviz.recorder.calibration import QUERY, known_costs, tracing_costs
from gpuviz.recorder.cupti_library import find_cupti, loaded_libraries
from gpuviz.recorder.tracer import TracerOptions

_SANITIZER = "libsanitizer-collection.so"
_INJECTION_VARIABLES = ("NVTX_INJECTION64_PATH", "CUDA_INJECTION64_PATH")

# What CUPTI costs a call, at most, unless it was measured.
_MOST_NS_PER_CALL = 2_000

# What recording fewer calls cost takes less time than to measure it.
_FEWEST_CALLS = 100

_warned: set[str] = set()


class CuptiTracing:
    """GPU activities of this process, of any library; see `gpuviz.recorder.tracer.Tracer`.

    If CUPTI is not available, the recording continues without activities; a ``RuntimeWarning``,
    once per process, and `notes` give the reason.

    Args:
        cuda_major: The major version of the CUDA runtime, which determines the version of CUPTI.
        options: What to record.
    """

    def __init__(self, cuda_major: int, options: TracerOptions) -> None:
        self._cuda_major = cuda_major
        self._options = options
        self._tracer: _core.CuptiTracer | None = None
        self._problem = ""
        self._library = ""
        self._session: _core.Session | None = None
        self.costs: Mapping[str, tuple[int, int]] = {}

    def begin(self, session: _core.Session) -> None:
        """Start recording activities into the session, if possible."""
        try:
            self._tracer = self._started(session)
        except RuntimeError as error:
            self._problem = f"Only memory is recorded, streams are not: {error}"
            if self._problem not in _warned:
                _warned.add(self._problem)
                warnings.warn(self._problem, RuntimeWarning, stacklevel=2)

    def end(self) -> None:
        """Stop recording, after everything that the GPU has completed is recorded.

        Then measure what recording cost, if there were many calls.
        """
        if self._tracer is not None:
            self._tracer.stop()
            if self._tracer.calls >= _FEWEST_CALLS:
                self.costs = self._measured(self._tracer)

    def _measured(self, tracer: _core.CuptiTracer) -> Mapping[str, tuple[int, int]]:
        costs = dict(tracing_costs(self._library))
        if QUERY in costs:
            share = tracer.other_calls / max(tracer.calls, 1)
            low, high = costs.pop(QUERY)
            costs["other_calls"] = (round(share * low), round(share * high))
        return costs

    def pause(self) -> int:
        """Detach from the process; return from when on no call is recorded."""
        assert self._tracer is not None  # noqa: S101 - it is active
        return self._since_start(self._tracer.pause())

    def resume(self) -> int | None:
        """Record again; return from when on, or None if another tool uses CUPTI now."""
        assert self._tracer is not None  # noqa: S101 - it is active
        try:
            self._tracer.start()
        except RuntimeError as error:
            log(logging.DEBUG, f"Streams are not recorded again: {error}")
            return None
        return self._since_start(time.monotonic_ns())

    def _since_start(self, time_ns: int) -> int:
        return 0 if self._session is None else self._session.since_start(time_ns)

    @property
    def cost_ns(self) -> int:
        """What recording has cost so far: attaching, detaching, and each recorded call."""
        if self._tracer is None:
            return 0
        _, most = known_costs(self._library).get("launch", (0, _MOST_NS_PER_CALL))
        of_calls = self._tracer.calls * most
        return self._tracer.attach_ns + self._tracer.own_ns + of_calls

    def flush(self) -> None:
        """Send completed activities to the session now."""
        if self._tracer is not None:
            self._tracer.flush()

    @property
    def is_active(self) -> bool:
        """Whether activities are, or were, recorded."""
        return self._tracer is not None

    @property
    def notes(self) -> tuple[str, ...]:
        """Messages for the user, in sentences."""
        if self._tracer is None:
            return (self._problem,) if self._problem else ()
        if self._tracer.launches and not self._tracer.records:
            return ("Another tool took over CUPTI's buffers; GPU activities are missing.",)
        unreadable = self._tracer.unreadable_launches
        if unreadable and self._options.needs_arguments:
            count = f"{unreadable} launches"
            return (
                f"record_stream does not protect the memory of {count} with unknown arguments.",
            )
        return ()

    def abandon(self) -> None:
        """Deactivate the tracer in the child of a fork, where CUDA cannot be used."""
        if self._tracer is not None:
            self._tracer.abandon_after_fork()

    def _started(self, session: _core.Session) -> _core.CuptiTracer:
        require_no_sanitizer()
        library = find_cupti(self._cuda_major)
        log(logging.DEBUG, f"CUPTI: {library}")
        self._library = str(library)
        tracer = _core.CuptiTracer(
            self._library,
            session,
            launch_sites=self._options.launch_sites,
            stacks=self._options.stacks,
            api_calls=self._options.api_calls,
            follow_streams=self._options.needs_arguments,
            graph_nodes=self._options.graph_nodes,
        )
        if self._options.needs_arguments and not tracer.reads_arguments:
            raise RuntimeError(
                "the driver does not report the parameters of kernels; update it to CUDA 12.4."
            )
        tracer.start()
        self._session = session
        return tracer


def sanitizer_is_present() -> bool:
    """Whether compute-sanitizer checks this process; no other CUDA tool may start then."""
    return any(
        Path(os.environ.get(variable, "")).name == _SANITIZER for variable in _INJECTION_VARIABLES
    ) or any(path.name == _SANITIZER for path in loaded_libraries())


def require_no_sanitizer() -> None:
    """Raise RuntimeError if compute-sanitizer checks this process."""
    if sanitizer_is_present():
        raise RuntimeError("compute-sanitizer is running, which CUPTI would disturb.")
