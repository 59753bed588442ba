"""`Recorder`: starts and stops a recording, and owns the native session."""

import atexit
import logging
import os
import sys
import threading
import time
import warnings
import weakref
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, ClassVar, Self

from gpuviz import _core
from gpuviz.allocator.failure_report import set_failure_listener
from gpuviz.conclusions.store import for_views, of_training
from gpuviz.data.manifest import Manifest
from gpuviz.errors import RecorderError
from gpuviz.hazards.verdict import verdict, without_verdict
from gpuviz.messages import log
from gpuviz.quantities import format_counted
from gpuviz.recorder.budget import BudgetTracing
from gpuviz.recorder.ending import Ending
from gpuviz.recorder.environment import environment_fields, iso_time
from gpuviz.recorder.feed import Feed, Listener
from gpuviz.recorder.host_ranges import HostRanges
from gpuviz.recorder.live_categories import LiveCategories
from gpuviz.recorder.live_classification import LiveClassification
from gpuviz.recorder.live_statistics import LiveStatistics
from gpuviz.recorder.post_mortem import MOST_BYTES, PostMortem
from gpuviz.recorder.prevention import NO_PREVENTION, Prevention
from gpuviz.recorder.pump import Pump
from gpuviz.recorder.status import RecorderStatistics, RecorderStatus
from gpuviz.recorder.store import Store
from gpuviz.recorder.tracer import NoTracer
from gpuviz.recording import Recording

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import pyarrow as pa

    from gpuviz.hazards.verdict import Verdict
    from gpuviz.recorder.source import Source
    from gpuviz.recorder.tracer import PausingTracer, Tracer

DEFAULT_MAX_EVENTS = 10_000_000
STACK_DEPTH = 128
# How often this thread and the pump's take turns with the GIL until the sampler knows its holder.
_GIL_TURNS = 2
_ABANDONED = "This process is a fork of the recording one; use the recorder there"


class Recorder:
    """Records memory events between `start` and `stop`, or inside a ``with`` block.

    One recorder makes one recording, and one recorder can be active in a process at a time.
    `start`, `stop` and the rest may be called from any thread. An active recorder needs no
    reference: it records until `stop`, or until the interpreter exits.

    Attributes:
        announces: Whether to log, when the interpreter exits, what was found of what the recorder
            was asked to look for, and that the recording could not be written.
        before_start: Called with each recorder before it starts; it may stop another recorder.
            Meant for background recordings.
    """

    before_start: "ClassVar[Callable[[Recorder], None] | None]" = None

    _active: "Recorder | None" = None
    # The recorder whose end has begun but was interrupted, or failed.
    _ending: "Recorder | None" = None
    _latest: "ClassVar[weakref.ref[Recorder] | None]" = None
    # Held during every start and stop in this process.
    _lifecycle = threading.RLock()

    def __init__(  # noqa: PLR0913 - the parts of a recording
        self,
        source: "Source",
        path: Path | None,
        *,
        stacks: bool,
        max_events: int,
        overwrite: bool = False,
        tracer: "PausingTracer | None" = None,
        budget: float | None = None,
        launch_blocks: bool = False,
        host_samples: bool = False,
        prevention: Prevention = NO_PREVENTION,
        hazards: bool = False,
        forbid_default_stream: bool = False,
    ) -> None:
        check_max_events(max_events)
        self._windows = None if tracer is None or not budget else BudgetTracing(tracer, budget)
        self._tracer: Tracer = self._windows or tracer or NoTracer()
        self._source = source
        self._path = path
        self._overwrite = overwrite
        self._max_events = max_events
        self._stack_depth = STACK_DEPTH if stacks else 0
        self._launch_blocks = launch_blocks
        # A simulated clock is not that of the threads.
        self._host_samples = host_samples and source.now_ns() is None
        self._prevention = prevention
        self._hazards = hazards
        self._forbid_default_stream = forbid_default_stream
        self._verdict: Verdict | None = None
        self.announces = True
        self._session = self._new_session()
        self._ranges = HostRanges(self._session, self._tracer)
        self._post_mortem = PostMortem(partial(self._drained, MOST_BYTES), path)
        self._store: Store | None = None
        self._pump: Pump | None = None
        self._feed = Feed(
            self._contents, lambda: self.elapsed_ns, LiveClassification(self._has_all_rows)
        )
        self._categories = LiveCategories(self._so_far)
        self._statistics = LiveStatistics()
        self._steps = Ending(
            self._end_ranges,
            self._tracer.end,
            self._end_source,
            self._end_session,
            self._find_holders,
        )
        self._held: list[dict[str, object]] = []
        self._held_at_end: Callable[[], list[dict[str, object]]] = list
        self._is_ended = False
        self._is_abandoned = False
        self._notes: tuple[str, ...] = ()
        self._raised: tuple[str, ...] = ()
        self._initial_events = 0
        self._duration_ns = 0
        self._worked_ns = 0
        self._device_links: Mapping[str, Any] = {}

    def _new_session(self) -> _core.Session:
        return _core.Session(
            stack_depth=self._stack_depth,
            launch_blocks=self._launch_blocks,
            checks_pinned=self._hazards or self._prevention.poison,
            guards_pages=self._prevention.poison,
            host_samples=self._host_samples,
        )

    def start(self) -> None:
        """Start recording.

        Raises:
            RecorderError: This recorder has been started before, another one is active, or
                ``record_stream`` or ``poison`` cannot work because launches are not visible.
            RecordingError: The path has the suffix of a web page.
            RecordingExistsError: The path already exists, and is not to be overwritten.
            SpoolError: The path's folder does not exist or is not writable.
            DeviceUnavailableError: CuPy, a GPU or a usable driver is missing.
        """
        with Recorder._lifecycle:
            if self._store is not None:
                raise RecorderError(
                    "This recorder has been started before; create a new one with record()",
                )
            if Recorder.before_start is not None:
                Recorder.before_start(self)
            if Recorder._ending is not None:
                Recorder._ending._end()  # noqa: SLF001
            if Recorder._active is not None:
                raise RecorderError("Another recorder is active in this process; stop it first")
            # Creating classes while Python exits would forget an interrupt.
            from gpuviz.ownership.held_at_end import held_at_end

            self._held_at_end = held_at_end
            if self._is_asked:
                import numpy.ma  # noqa: F401
            self._begin()
            log(logging.INFO, f"Recording started: {self._path or 'in memory'}")

    def _begin(self) -> None:
        self._statistics.restart()
        manifest = self._manifest(complete=False)
        store = Store(self._path, manifest, self._max_events, overwrite=self._overwrite)
        pump = Pump(
            self._session,
            self._source,
            store,
            self._feed,
            self._statistics,
            before_drain=self._before_drain,
            before_publish=self._before_publish,
            unrecorded_spans=self._unrecorded_spans,
        )
        try:
            pump.append_known(self._source.tables())
            self._session.start(starts_clock=self._source.now_ns() is not None)
            self._ranges.begin()
            try:
                self._source.describe(self._session)
                self._initial_events = pump.drain_initial_events()
                self._source.begin(self._session)
                self._tracer.begin(self._session)
                self._ranges.begin_cells()
                self._check_follows_launches()
                self._store, self._pump = store, pump
                self._feed.restart()
                set_failure_listener(self._post_mortem.explain)
                atexit.register(self._end_at_exit)
                pump.start()
                self._learn_gil(pump)
                Recorder._latest = weakref.ref(self)
                Recorder._active = self
                self._ranges.begin_collections()
                self._start_clock(store, pump)
            except BaseException:
                Recorder._active = self._store = self._pump = None
                pump.discard()
                atexit.unregister(self._end_at_exit)
                set_failure_listener(None)
                self._tracer.end()
                self._source.end()
                raise
        except BaseException:
            self._ranges.end()
            self._session.stop()
            store.discard()
            self._session = self._new_session()
            self._ranges = HostRanges(self._session, self._tracer)
            self._feed.restart()
            raise

    def _start_clock(self, store: Store, pump: Pump) -> None:
        """Let time begin, except on a simulated clock: the start is no time of the program."""
        if not self._session.start_ns:
            self._session.start_clock()
        store.describe(self._manifest(complete=False))
        pump.append_clocks()

    def _learn_gil(self, pump: Pump) -> None:
        """Let host samples name the thread that has the GIL from the beginning."""
        if self._session.samples_host:
            for _ in range(_GIL_TURNS):
                pump.submit(self._session.learn_gil)()
                self._session.learn_gil()

    def _before_drain(self) -> None:
        if self._windows is not None:
            self._windows.tend(self._clock_ns())
        self._ranges.poll()

    def _unrecorded_spans(self) -> "tuple[tuple[int, int], ...]":
        return () if self._windows is None else self._windows.unrecorded_spans

    def _check_follows_launches(self) -> None:
        if self._prevention.needs_launches and not self._tracer.is_active:
            raise RecorderError(
                f"{self._prevention.described} cannot work, because launches are not visible. "
                f"{' '.join(self._tracer.notes)}"
            )

    def stop(self) -> Recording:
        """Stop recording, restore the previous allocator, and return the recording.

        If it is interrupted, the recording still ends, and another call returns it; so does every
        later call. Issues one ``RuntimeWarning`` if events could not be written to disk.

        Raises:
            RecorderError: The recorder has not been started.
        """
        with Recorder._lifecycle:
            if self._is_abandoned:
                raise RecorderError(_ABANDONED)
            if self._store is None:
                raise RecorderError("This recorder is not active; call start() first")
            self._end()
            recording, failure = self._store.finished(), self._store.failure
        assert recording is not None  # noqa: S101
        if failure is not None:
            memory_only = f"{failure}; the recording is in memory only, save() it to another path"
            warnings.warn(memory_only, RuntimeWarning, stacklevel=2)
        log(logging.INFO, f"Recording stopped: {recording!r}")
        if self._verdict is not None and self.announces:
            # Of the verdict, so that the exit keeps no recorder and no GPU memory.
            atexit.unregister(self._verdict.announce)
            atexit.register(self._verdict.announce)
        return recording

    def _end(self) -> None:
        if self._is_ended or self._store is None or self._pump is None:
            return
        Recorder._ending, Recorder._active = self, None
        set_failure_listener(None)
        try:
            self._steps.run()
        finally:
            if self._steps.are_done:
                # The thread completes it, even if this call is interrupted.
                self._pump.submit(partial(self._finish, self._store, self._pump))()
        self._pump.join()
        atexit.unregister(self._end_at_exit)

    def _find_holders(self) -> None:
        # Last, because searching the allocators would itself be recorded. An interrupted search is
        # given up, and one that fails must not fail the program.
        search, self._held_at_end = self._held_at_end, list
        with suppress(Exception):
            self._held = search()

    def _end_source(self) -> None:
        self._notes = self._source.end()

    def _end_session(self) -> None:
        self._session.stop()

    def _end_ranges(self) -> None:
        self._ranges.end()
        # What the rest takes, such as the search for holders, is no time of the program.
        self._worked_ns = self._clock_ns()

    def _finish(self, store: Store, pump: Pump) -> None:
        """Store everything, on the pump's thread; may be called again."""
        if self._is_ended:
            return
        pump.drain_the_rest()
        held, self._held = self._held, []
        pump.append_held(held)
        self._device_links = pump.device_links()
        recording = store.finish(self._manifest(complete=True))
        self._duration_ns = recording.duration_ns
        self._verdict = self._judged(recording)
        self._statistics.read(self._duration_ns, self.status())
        self._feed.close(partial(of_training, recording))
        pump.close()
        self._is_ended = True
        Recorder._ending = None

    @property
    def _is_asked(self) -> bool:
        return self._hazards or self._forbid_default_stream

    @property
    def verdict(self) -> "Verdict | None":
        """What the recording shows about what it was asked for; None before its end or if not."""
        return self._verdict

    def _judged(self, recording: Recording) -> "Verdict | None":
        if not self._is_asked:
            return None
        try:
            return verdict(recording)
        except Exception as error:  # noqa: BLE001 - the recorded program must continue
            return without_verdict(f"{type(error).__name__}: {error}")

    def __repr__(self) -> str:
        begun = "recording" if self.is_recording else "stopped"
        return f"<Recorder: {'not started' if self._store is None else begun}>"

    def __enter__(self) -> Self:
        """Start recording."""
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Stop recording, even if the block raised an exception, which is noted."""
        self._note_exception(error)
        if Recorder._active is self:
            self.stop()

    def _note_exception(self, error: BaseException | None) -> None:
        """Note that an exception has ended what is recorded; not of exits and interruptions."""
        if isinstance(error, Exception):
            name = type(error).__name__
            self._raised = (f"The recording ended with {name}, and has what was done up to then.",)

    @classmethod
    def active(cls) -> "Recorder | None":
        """Return the active recorder of this process, or None."""
        return cls._active

    @classmethod
    def latest(cls) -> "Recorder | None":
        """Return the recorder that started last, if anything still refers to it, or None."""
        return None if cls._latest is None else cls._latest()

    @property
    def elapsed_ns(self) -> int:
        """Time since the start of the recording; its duration once stopped, 0 before."""
        if self._store is None:
            return 0
        return self._duration_ns or self._clock_ns()

    @property
    def path(self) -> Path | None:
        """The file that is recorded to; None in memory."""
        return self._path

    @property
    def is_recording(self) -> bool:
        """Whether the recorder is active."""
        return Recorder._active is self

    @property
    def recording(self) -> Recording:
        """The recording; while recording, everything up to now.

        Raises:
            RecorderError: The recorder has not been started.
        """
        if self._is_abandoned:
            raise RecorderError(_ABANDONED)
        if self._store is None or self._pump is None:
            raise RecorderError("Nothing has been recorded yet; call start() first")
        self._tracer.flush()
        return self._drained()

    def _drained(self, most_bytes: int | None = None) -> Recording:
        assert self._pump is not None  # noqa: S101
        self._pump.drain()
        return self._so_far(most_bytes)

    def _so_far(self, most_bytes: int | None = MOST_BYTES) -> Recording:
        assert self._store is not None  # noqa: S101
        return self._store.so_far(self._manifest(complete=False), most_bytes)

    @property
    def out_of_memory_pages(self) -> tuple[Path, ...]:
        """Paths of the pages about failed requests for memory, in the order of the failures."""
        return tuple(self._post_mortem.pages)

    def subscribe(self, listener: Listener, since: int = -1) -> "Callable[[], None]":
        """Send a listener everything recorded up to now, and everything from now on.

        Args:
            listener: Called with each message, from any thread; it must not block.
            since: The number of the last message that it has; -1 if none.

        Returns:
            A function that ends the subscription; it may be called repeatedly.

        Raises:
            RecorderError: This process is a fork of the recording one.
        """
        if self._is_abandoned:
            raise RecorderError(_ABANDONED)
        if self._pump is None:
            return self._feed.subscribe(listener, since)
        self._pump.drain()
        try:
            return self._feed.subscribe(listener, since)
        finally:
            self._pump.wake()

    @property
    def statistics(self) -> RecorderStatistics:
        """The numbers that all views show; at most a second old while a listener follows them."""
        return self._statistics.latest or self.read_statistics()

    def read_statistics(self) -> RecorderStatistics:
        """Return the current numbers, and pass them to all listeners.

        Raises:
            RecorderError: This process is a fork of the recording one.
        """
        if self._is_abandoned:
            raise RecorderError(_ABANDONED)
        latest = self._statistics.latest
        if latest is not None and self._duration_ns:
            return latest
        if self._pump is not None:
            self._tracer.flush()
            self._pump.drain()
        return self._new_statistics(self.elapsed_ns)

    def follow_statistics(self, listener: "Callable[[], None]") -> "Callable[[], None]":
        """Call a listener whenever `statistics` changes, about once a second while recording.

        Args:
            listener: Called from any thread; it must neither block nor raise.

        Returns:
            A function that ends this; it may be called repeatedly.
        """
        return self._statistics.follow(listener)

    def _before_publish(self) -> None:
        self._read_statistics_if_due()
        # Categories are known only of PyTorch's work; to read all rows and find none is slow.
        if self._feed.listeners and self.is_recording and "torch" in sys.modules:
            self._feed.take_concluded("categories", self._categories.changed())

    def _read_statistics_if_due(self) -> None:
        time_ns = self.elapsed_ns
        if self._statistics.is_due(time_ns):
            self._new_statistics(time_ns)

    def _new_statistics(self, time_ns: int) -> RecorderStatistics:
        if self.is_recording:
            self._statistics.take_used(dict(self._source.sample()))
        return self._statistics.read(time_ns, self.status())

    def _contents(self) -> "tuple[Mapping[str, pa.Table], int]":
        if self._store is None:
            return {}, 0
        if self._duration_ns:
            # The recording has ended, so derived tables of all rows are stored with it.
            recording = self._store.so_far(self._manifest(complete=True))
            rows = {**recording.tables, **recording.derived, **for_views(recording)}
            return rows, recording.manifest.initial_events
        tables, initial_events = self._store.contents()
        tables = {**tables, "categories": self._categories.known}
        return tables, self._initial_events if initial_events is None else initial_events

    def _has_all_rows(self) -> bool:
        return self._store is None or self._store.dropped_oldest_activities == 0

    def status(self) -> RecorderStatus:
        """Return the current counts, sizes and costs."""
        store = self._store
        return RecorderStatus(
            recording=self.is_recording,
            streams=self._tracer.is_active,
            events=self._session.events,
            activities=self._session.activities,
            dropped=self._dropped,
            dropped_activities=self._dropped_activities,
            dropped_oldest=0 if store is None else store.dropped_oldest,
            bytes_in_memory=self._session.bytes + (0 if store is None else store.bytes_in_memory),
            bytes_on_disk=0 if store is None else store.bytes_on_disk,
            own_cost_ns=self._own_cost_ns(),
            notes=(*self._urgent_notes(), *self._post_mortem.notes),
        )

    @property
    def _dropped(self) -> int:
        return self._session.dropped + (0 if self._pump is None else self._pump.lost)

    @property
    def _dropped_activities(self) -> int:
        lost = 0 if self._pump is None else self._pump.lost_activities
        return self._session.dropped_activities + lost

    def _own_cost_ns(self) -> int:
        pump_ns = 0 if self._pump is None else self._pump.cpu_ns
        in_program_ns = self._session.memory_events_ns + self._session.comparison_ns
        own_threads_ns = self._session.collector_cpu_ns + self._session.sampler_cpu_ns
        return in_program_ns + own_threads_ns + pump_ns

    def _costs(self) -> dict[str, list[int]]:
        costs = {kind: list(interval) for kind, interval in self._tracer.costs.items()}
        if costs:
            events = self._session.events + self._session.host_memory_events
            costs["memory_event"] = [round(self._session.memory_events_ns / max(events, 1))] * 2
        return costs

    def _urgent_notes(self) -> tuple[str, ...]:
        """Return what is missing; not of stacks, each of which says what it leaves out."""
        failure = None if self._store is None else self._store.failure
        lost = () if self._pump is None else self._pump.notes
        failed = () if failure is None else (failure,)
        windows = () if self._windows is None else self._windows.span_notes(self.elapsed_ns)
        notes = (
            *self._raised,
            *self._notes,
            *self._tracer.notes,
            *self._ranges.notes,
            *lost,
            *failed,
        )
        return (*notes, *windows, *_not_looked_after(self._session))

    def _clock_ns(self) -> int:
        return self._session.since_start(self._source.now_ns() or time.monotonic_ns())

    def _manifest(self, *, complete: bool) -> Manifest:
        start_unix_ns = self._session.wall_start_ns or time.time_ns()
        fields = environment_fields() | dict(self._source.manifest_fields())
        stacks = () if self._pump is None else self._pump.stack_notes
        return Manifest(
            created=iso_time(start_unix_ns),
            start_unix_ns=start_unix_ns,
            start_monotonic_ns=self._session.start_ns,
            duration_ns=fields.pop("duration_ns", self._worked_ns or self._clock_ns()),
            complete=complete,
            events=self._session.events - (0 if self._pump is None else self._pump.lost),
            dropped=self._dropped,
            dropped_activities=self._dropped_activities,
            initial_events=self._initial_events,
            own_cost_ns=self._own_cost_ns(),
            costs=self._costs(),
            allocator=self._source.allocator,
            allocator_name=self._source.allocator_name,
            failures=dict(self._post_mortem.details),
            device_links=self._device_links,
            notes=(*self._urgent_notes(), *stacks),
            record_stream=self._prevention.record_stream,
            hazards=self._hazards,
            forbid_default_stream=self._forbid_default_stream,
            **fields,
        )

    def end(self) -> None:
        """Stop recording if active, and print what was found, without reading the recording."""
        with Recorder._lifecycle:
            if self is Recorder._active or self is Recorder._ending:
                self._end()
                if not self.announces:
                    return
                if self._store is not None and self._store.failure is not None:
                    log(logging.ERROR, self._store.failure)
                if self._verdict is not None:
                    self._verdict.announce()

    def _end_at_exit(self) -> None:
        self._note_exception(_exception_of_program())
        self.end()

    def _abandon(self) -> None:
        """Deactivate the recorder in the child of a fork, which lacks its threads."""
        self._is_abandoned = True
        self._tracer.abandon()
        self._ranges.abandon_after_fork()
        self._session.abandon_after_fork()
        self._feed.abandon_after_fork()
        self._statistics.abandon_after_fork()
        if self._pump is not None:
            self._pump.abandon_after_fork()


def _exception_of_program() -> BaseException | None:
    """Return the exception that the program ended with; a shell goes on after one."""
    ipython = sys.modules.get("IPython")
    is_shell = hasattr(sys, "ps1") or (ipython is not None and ipython.get_ipython() is not None)
    return None if is_shell else getattr(sys, "last_value", None)


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


def _abandon_active() -> None:
    # A thread that does not exist in the child may hold the old lock.
    Recorder._lifecycle = threading.RLock()  # noqa: SLF001
    for recorder in (Recorder._active, Recorder._ending):  # noqa: SLF001
        if recorder is not None:
            recorder._abandon()  # noqa: SLF001
            set_failure_listener(None)
    Recorder._active = Recorder._ending = None  # noqa: SLF001


os.register_at_fork(after_in_child=_abandon_active)


def check_max_events(max_events: int) -> None:
    """Raise a ValueError unless at least one event may be kept."""
    if max_events < 1:
        raise ValueError(f"max_events must be at least 1, got {max_events}")
