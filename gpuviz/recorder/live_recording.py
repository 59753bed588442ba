"""`LiveRecording`: the parts of a recording in progress, and what they report about it."""

import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from gpuviz import _core
from gpuviz.data.manifest import Manifest
from gpuviz.quantities import format_counted
from gpuviz.recorder.budget import BudgetTracing
from gpuviz.recorder.environment import environment_fields, iso_time
from gpuviz.recorder.host_ranges import HostRanges
from gpuviz.recorder.options import RecorderOptions
from gpuviz.recorder.post_mortem import MOST_BYTES, PostMortem
from gpuviz.recorder.pump import Pump
from gpuviz.recorder.source import Source
from gpuviz.recorder.status import RecorderStatus
from gpuviz.recorder.store import Store
from gpuviz.recorder.tracer import NoTracer, PausingTracer, Tracer
from gpuviz.recording import Recording

STACK_DEPTH = 128


class LiveRecording:
    """The parts of one recording, from which its counts, costs, notes and manifest follow.

    Any thread may ask for them at any time, also before the recording begins and after its end.
    A start that fails uses up the session and the ranges; `renew` replaces them.

    Args:
        options: What is recorded, and where.
        source: What sends memory events.
        tracer: What records GPU activities; None to record none.
        budget: The share of the program's time that the tracer may cost; None for no limit.
        is_active: Returns whether the recorder is active.

    Attributes:
        session: The native queues of what is recorded.
        ranges: What sends ranges and collectives to the session.
        tracer: What records GPU activities into the session.
        post_mortem: What writes pages about failed requests for memory.
        store: Where rows are kept; None before the recording begins.
        pump: What moves rows from the session to the store; None before the recording begins.
        initial_events: Number of events that describe the state before the recording.
        worked_ns: Time until the end of the recorded program; 0 before.
        duration_ns: Duration of the finished recording; 0 before.
        source_notes: Messages for the user that the source returned at the end.
        raised: A message for the user about the exception that ended what is recorded.
        device_links: What joins the devices; known at the end.
    """

    def __init__(
        self,
        options: RecorderOptions,
        source: Source,
        tracer: PausingTracer | None,
        budget: float | None,
        *,
        is_active: Callable[[], bool],
    ) -> None:
        self.options = options
        self.source = source
        self._windows = None if tracer is None or not budget else BudgetTracing(tracer, budget)
        self.tracer: Tracer = self._windows or tracer or NoTracer()
        self._is_active = is_active
        self.post_mortem = PostMortem(partial(self.drained, MOST_BYTES), options.path)
        self.worked_ns = 0
        self.duration_ns = 0
        self.source_notes: tuple[str, ...] = ()
        self.raised: tuple[str, ...] = ()
        self.device_links: Mapping[str, Any] = {}
        self.renew()

    def renew(self) -> None:
        """Become a recording that has not begun, with a new session."""
        self.store: Store | None = None
        self.pump: Pump | None = None
        self.initial_events = 0
        self.session = self._new_session()
        self.ranges = HostRanges(self.session, self.tracer)

    def _new_session(self) -> _core.Session:
        options = self.options
        return _core.Session(
            stack_depth=STACK_DEPTH if options.stacks else 0,
            launch_blocks=options.launch_blocks,
            checks_pinned=options.hazards or options.prevention.poison,
            guards_pages=options.prevention.poison,
            # A simulated clock is not that of the threads.
            host_samples=options.host_samples and self.source.now_ns() is None,
        )

    @property
    def is_active(self) -> bool:
        """Whether the recorder is active."""
        return self._is_active()

    @property
    def clock_ns(self) -> int:
        """Time since time zero of the session, in ns; 0 before."""
        return self.session.since_start(self.source.now_ns() or time.monotonic_ns())

    @property
    def elapsed_ns(self) -> int:
        """Time since the start of the recording; its duration once stopped, 0 before."""
        if self.store is None:
            return 0
        return self.duration_ns or self.clock_ns

    def poll(self) -> None:
        """Let the parts that must be polled add to the session."""
        if self._windows is not None:
            self._windows.tend(self.clock_ns)
        self.ranges.poll()

    def unrecorded_spans(self) -> tuple[tuple[int, int], ...]:
        """Return when streams were not recorded, in ns; -1 as the end of a span that lasts."""
        return () if self._windows is None else self._windows.unrecorded_spans

    def drained(self, most_bytes: int | None = None) -> Recording:
        """Return everything that was sent to the session up to now; see `so_far`."""
        assert self.pump is not None  # noqa: S101
        self.pump.drain()
        return self.so_far(most_bytes)

    def so_far(self, most_bytes: int | None = MOST_BYTES) -> Recording:
        """Return everything stored so far, or the finished recording.

        Args:
            most_bytes: Tables of activities with more bytes on disk are omitted, with a note.
        """
        assert self.store is not None  # noqa: S101
        return self.store.so_far(self.manifest(complete=False), most_bytes)

    def status(self) -> RecorderStatus:
        """Return the current counts, sizes and costs."""
        store = self.store
        return RecorderStatus(
            recording=self.is_active,
            streams=self.tracer.is_active,
            events=self.session.events,
            activities=self.session.activities,
            dropped=self._dropped,
            dropped_activities=self._dropped_activities,
            dropped_oldest=0 if store is None else store.dropped_oldest,
            bytes_in_memory=self.session.bytes + (0 if store is None else store.bytes_in_memory),
            bytes_on_disk=0 if store is None else store.bytes_on_disk,
            own_cost_ns=self._own_cost_ns(),
            notes=(*self._urgent_notes(), *self.post_mortem.notes),
        )

    def manifest(self, *, complete: bool) -> Manifest:
        """Return the facts about the recording as a whole, as of now.

        Args:
            complete: Whether the recording has ended.
        """
        start_unix_ns = self.session.wall_start_ns or time.time_ns()
        fields = environment_fields() | dict(self.source.manifest_fields())
        stacks = () if self.pump is None else self.pump.stack_notes
        return Manifest(
            created=iso_time(start_unix_ns),
            start_unix_ns=start_unix_ns,
            start_monotonic_ns=self.session.start_ns,
            duration_ns=fields.pop("duration_ns", self.worked_ns or self.clock_ns),
            complete=complete,
            events=self.session.events - (0 if self.pump is None else self.pump.lost),
            dropped=self._dropped,
            dropped_activities=self._dropped_activities,
            initial_events=self.initial_events,
            own_cost_ns=self._own_cost_ns(),
            costs=self._costs(),
            allocator=self.source.allocator,
            allocator_name=self.source.allocator_name,
            failures=dict(self.post_mortem.details),
            device_links=self.device_links,
            notes=(*self._urgent_notes(), *stacks),
            record_stream=self.options.prevention.record_stream,
            hazards=self.options.hazards,
            forbid_default_stream=self.options.forbid_default_stream,
            **fields,
        )

    @property
    def _dropped(self) -> int:
        return self.session.dropped + (0 if self.pump is None else self.pump.lost)

    @property
    def _dropped_activities(self) -> int:
        lost = 0 if self.pump is None else self.pump.lost_activities
        return self.session.dropped_activities + lost

    def _own_cost_ns(self) -> int:
        pump_ns = 0 if self.pump is None else self.pump.cpu_ns
        in_program_ns = self.session.memory_events_ns + self.session.comparison_ns
        own_threads_ns = self.session.collector_cpu_ns + self.session.sampler_cpu_ns
        return in_program_ns + own_threads_ns + pump_ns

    def _costs(self) -> dict[str, list[int]]:
        costs = {kind: list(interval) for kind, interval in self.tracer.costs.items()}
        if costs:
            events = self.session.events + self.session.host_memory_events
            costs["memory_event"] = [round(self.session.memory_events_ns / max(events, 1))] * 2
        return costs

    def _urgent_notes(self) -> tuple[str, ...]:
        """Return what is missing; not of stacks, each of which says what it leaves out."""
        failure = None if self.store is None else self.store.failure
        lost = () if self.pump is None else self.pump.notes
        failed = () if failure is None else (failure,)
        windows = () if self._windows is None else self._windows.span_notes(self.elapsed_ns)
        notes = (
            *self.raised,
            *self.source_notes,
            *self.tracer.notes,
            *self.ranges.notes,
            *lost,
            *failed,
        )
        return (*notes, *windows, *_not_looked_after(self.session))

    def abandon_after_fork(self) -> None:
        """Deactivate the parts in the child of a fork."""
        self.tracer.abandon()
        self.ranges.abandon_after_fork()
        self.session.abandon_after_fork()
        if self.pump is not None:
            self.pump.abandon_after_fork()


def _not_looked_after(session: _core.Session) -> tuple[str, ...]:
    """Return sentences on copies whose pinned memory was not compared or watched, if any."""
    counts = session.skipped_comparisons, session.unwatched_copies
    compared, watched = (format_counted(count, "copy", "copies") for count in counts)
    not_compared = (
        f"The pinned memory of {compared} was not compared, to keep the overhead low; "
        "what the host wrote to it too early was not found."
    )
    not_watched = (
        f"The pinned memory of {watched} to the host was not watched, because the system does not "
        "allow it or to keep the overhead low; what the host read too early was not found."
    )
    sentences = (not_compared, not_watched)
    return tuple(each for count, each in zip(counts, sentences, strict=True) if count)
