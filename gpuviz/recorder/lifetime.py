"""`Lifetime`: begins and ends the parts of a recording together."""

from collections.abc import Callable
from contextlib import ExitStack, suppress

from gpuviz.allocator.failure_report import set_failure_listener
from gpuviz.errors import RecorderError
from gpuviz.hazards.verdict import Verdict, verdict, without_verdict
from gpuviz.recorder.ending import Ending
from gpuviz.recorder.live_recording import LiveRecording
from gpuviz.recorder.live_views import LiveViews
from gpuviz.recorder.pump import Pump
from gpuviz.recorder.store import Store
from gpuviz.recording import Recording

# How often this thread and the pump's take turns with the GIL until the sampler knows its holder.
_GIL_TURNS = 2


class Lifetime:
    """Begins all parts of a recording or none, and ends them in order, even if interrupted.

    Args:
        live: The recording.
        views: What listens to it.

    Attributes:
        verdict: What the recording shows about what it was asked for; None before its end or if
            it was asked for nothing.
    """

    def __init__(self, live: LiveRecording, views: LiveViews) -> None:
        self._live = live
        self._views = views
        # What takes back each step of the start that has begun.
        self._undo = ExitStack()
        self._steps = Ending(
            self._end_ranges,
            live.tracer.end,
            self._end_source,
            self._end_session,
            self._find_holders,
        )
        self._held: list[dict[str, object]] = []
        self._held_at_end: Callable[[], list[dict[str, object]]] = list
        self.verdict: Verdict | None = None

    def begin(self) -> None:
        """Begin all parts; `discard` must follow if this raises an exception.

        Raises:
            RecorderError: Reuse cannot be prevented, because launches are not visible.
        """
        # Creating classes while Python exits would forget an interrupt.
        from gpuviz.ownership.held_at_end import held_at_end

        self._held_at_end = held_at_end
        if self._live.options.needs_verdict:
            import numpy.ma  # noqa: F401
        self._views.statistics.restart()
        store = self._new_store()
        pump = self._new_pump(store)
        self._begin_session(pump)
        self._begin_source(pump)
        self._live.pump, self._live.store = pump, store
        self._views.feed.restart()
        self._undo.callback(set_failure_listener, None)
        set_failure_listener(self._live.post_mortem.explain)
        pump.start()
        self._learn_gil(pump)
        self._live.ranges.begin_collections()
        self._start_clock(store, pump)

    def _new_store(self) -> Store:
        options = self._live.options
        store = Store(
            options.path,
            self._live.manifest(complete=False),
            options.max_events,
            overwrite=options.overwrite,
        )
        self._undo.callback(store.discard)
        return store

    def _new_pump(self, store: Store) -> Pump:
        return Pump(
            self._live.session,
            self._live.source,
            store,
            self._views.feed,
            self._views.statistics,
            before_drain=self._live.poll,
            before_publish=self._views.update,
            unrecorded_spans=self._live.unrecorded_spans,
        )

    def _begin_session(self, pump: Pump) -> None:
        live = self._live
        self._undo.callback(live.session.stop)
        self._undo.callback(live.ranges.end)
        pump.append_known(live.source.tables())
        live.session.start(starts_clock=live.source.now_ns() is not None)
        live.ranges.begin()

    def _begin_source(self, pump: Pump) -> None:
        live = self._live
        self._undo.callback(live.source.end)
        self._undo.callback(live.tracer.end)
        self._undo.callback(pump.discard)
        live.source.describe(live.session)
        live.initial_events = pump.drain_initial_events()
        live.source.begin(live.session)
        live.tracer.begin(live.session)
        live.ranges.begin_cells()
        self._check_follows_launches()

    def _check_follows_launches(self) -> None:
        prevention, tracer = self._live.options.prevention, self._live.tracer
        if prevention.needs_launches and not tracer.is_active:
            raise RecorderError(
                f"{prevention.described} cannot work, because launches are not visible. "
                f"{' '.join(tracer.notes)}"
            )

    def _learn_gil(self, pump: Pump) -> None:
        """Let host samples name the thread that has the GIL from the beginning."""
        session = self._live.session
        if session.samples_host:
            for _ in range(_GIL_TURNS):
                pump.submit(session.learn_gil)()
                session.learn_gil()

    def _start_clock(self, store: Store, pump: Pump) -> None:
        """Let time begin, except on a simulated clock: the start is no time of the program."""
        session = self._live.session
        if not session.start_ns:
            session.start_clock()
        store.describe(self._live.manifest(complete=False))
        pump.append_clocks()

    def discard(self) -> None:
        """Undo a start that failed, so that another one can follow."""
        try:
            self._undo.close()
        finally:
            self._live.renew()
            self._views.feed.restart()

    def end(self) -> None:
        """End all parts but the pump and its store; another call continues after an interruption.

        Raises:
            Exception: The first that a part raised, after all others have ended.
        """
        set_failure_listener(None)
        self._steps.run()

    @property
    def can_finish(self) -> bool:
        """Whether all parts have ended, so that nothing more is recorded."""
        return self._steps.are_done

    def _end_ranges(self) -> None:
        self._live.ranges.end()
        # What the rest takes, such as the search for holders, is no time of the program.
        self._live.worked_ns = self._live.clock_ns

    def _end_source(self) -> None:
        self._live.source_notes = self._live.source.end()

    def _end_session(self) -> None:
        self._live.session.stop()

    def _find_holders(self) -> None:
        # Last, because searching the allocators would itself be recorded. An interrupted search is
        # given up, and one that fails must not fail the program.
        search, self._held_at_end = self._held_at_end, list
        with suppress(Exception):
            self._held = search()

    def finish(self, store: Store, pump: Pump) -> None:
        """Store everything, on the pump's thread; may be called again."""
        pump.drain_the_rest()
        held, self._held = self._held, []
        pump.append_held(held)
        self._live.device_links = pump.device_links()
        recording = store.finish(self._live.manifest(complete=True))
        self._live.duration_ns = recording.duration_ns
        self.verdict = self._judged(recording)
        self._views.close(recording)
        pump.close()

    def abandon_after_fork(self) -> None:
        """Deactivate all parts in the child of a fork."""
        set_failure_listener(None)
        self._live.abandon_after_fork()
        self._views.abandon_after_fork()

    def _judged(self, recording: Recording) -> Verdict | None:
        if not self._live.options.needs_verdict:
            return None
        try:
            return verdict(recording)
        except Exception as error:  # noqa: BLE001 - the recorded program must continue
            return without_verdict(f"{type(error).__name__}: {error}")
