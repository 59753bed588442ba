"""`Recorder`: starts and stops a recording, one at a time in a process."""

import atexit
import logging
import os
import sys
import threading
import warnings
import weakref
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import ClassVar, Self

from gpuviz.errors import RecorderError
from gpuviz.hazards.verdict import Verdict
from gpuviz.messages import log
from gpuviz.recorder.feed import Listener
from gpuviz.recorder.lifetime import Lifetime
from gpuviz.recorder.live_recording import LiveRecording
from gpuviz.recorder.live_views import LiveViews
from gpuviz.recorder.options import RecorderOptions
from gpuviz.recorder.prevention import NO_PREVENTION, Prevention
from gpuviz.recorder.pump import Pump
from gpuviz.recorder.source import Source
from gpuviz.recorder.status import RecorderStatistics, RecorderStatus
from gpuviz.recorder.store import Store
from gpuviz.recorder.tracer import PausingTracer
from gpuviz.recording import Recording

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
        source: Source,
        path: Path | None,
        *,
        stacks: bool,
        max_events: int,
        overwrite: bool = False,
        tracer: PausingTracer | None = None,
        budget: float | None = None,
        launch_blocks: bool = False,
        host_samples: bool = False,
        prevention: Prevention = NO_PREVENTION,
        hazards: bool = False,
        forbid_default_stream: bool = False,
    ) -> None:
        options = RecorderOptions(
            path=path,
            overwrite=overwrite,
            stacks=stacks,
            max_events=max_events,
            launch_blocks=launch_blocks,
            host_samples=host_samples,
            prevention=prevention,
            hazards=hazards,
            forbid_default_stream=forbid_default_stream,
        )
        self._live = LiveRecording(
            options, source, tracer, budget, is_active=lambda: self.is_recording
        )
        self._views = LiveViews(self._live)
        self._lifetime = Lifetime(self._live, self._views)
        self.announces = True
        self._is_ended = False
        self._is_abandoned = False

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
            if self._live.store is not None:
                raise RecorderError(
                    "This recorder has been started before; create a new one with record()",
                )
            if Recorder.before_start is not None:
                Recorder.before_start(self)
            if Recorder._ending is not None:
                Recorder._ending._end()  # noqa: SLF001
            if Recorder._active is not None:
                raise RecorderError("Another recorder is active in this process; stop it first")
            self._begin()
            log(logging.INFO, f"Recording started: {self.path or 'in memory'}")

    def _begin(self) -> None:
        try:
            atexit.register(self._end_at_exit)
            self._lifetime.begin()
            Recorder._latest = weakref.ref(self)
            Recorder._active = self
        except BaseException:
            Recorder._active = None
            atexit.unregister(self._end_at_exit)
            self._lifetime.discard()
            raise

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
            store = self._live.store
            if store is None:
                raise RecorderError("This recorder is not active; call start() first")
            self._end()
            recording, failure = store.finished(), store.failure
        assert recording is not None  # noqa: S101
        if failure is not None:
            memory_only = f"{failure}; the recording is in memory only, save() it to another path"
            warnings.warn(memory_only, RuntimeWarning, stacklevel=2)
        log(logging.INFO, f"Recording stopped: {recording!r}")
        if self.verdict is not None and self.announces:
            # Of the verdict, so that the exit keeps no recorder and no GPU memory.
            atexit.unregister(self.verdict.announce)
            atexit.register(self.verdict.announce)
        return recording

    def _end(self) -> None:
        store, pump = self._live.store, self._live.pump
        if self._is_ended or store is None or pump is None:
            return
        Recorder._ending, Recorder._active = self, None
        try:
            self._lifetime.end()
        finally:
            if self._lifetime.can_finish:
                # The thread completes it, even if this call is interrupted.
                pump.submit(partial(self._finish, store, pump))()
        pump.join()
        atexit.unregister(self._end_at_exit)

    def _finish(self, store: Store, pump: Pump) -> None:
        """Store everything, on the pump's thread; may be called again."""
        if self._is_ended:
            return
        self._lifetime.finish(store, pump)
        self._is_ended = True
        Recorder._ending = None

    @property
    def verdict(self) -> Verdict | None:
        """What the recording shows about what it was asked for; None before its end or if not."""
        return self._lifetime.verdict

    def __repr__(self) -> str:
        begun = "recording" if self.is_recording else "stopped"
        return f"<Recorder: {'not started' if self._live.store is None else begun}>"

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
            note = f"The recording ended with {name}, and has what was done up to then."
            self._live.raised = (note,)

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
        return self._live.elapsed_ns

    @property
    def path(self) -> Path | None:
        """The file that is recorded to; None in memory."""
        return self._live.options.path

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
        if self._live.store is None:
            raise RecorderError("Nothing has been recorded yet; call start() first")
        self._live.tracer.flush()
        return self._live.drained()

    @property
    def out_of_memory_pages(self) -> tuple[Path, ...]:
        """Paths of the pages about failed requests for memory, in the order of the failures."""
        return tuple(self._live.post_mortem.pages)

    def subscribe(self, listener: Listener, since: int = -1) -> Callable[[], None]:
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
        return self._views.subscribe(listener, since)

    @property
    def statistics(self) -> RecorderStatistics:
        """The numbers that all views show; at most a second old while a listener follows them."""
        return self._views.statistics.latest or self.read_statistics()

    def read_statistics(self) -> RecorderStatistics:
        """Return the current numbers, and pass them to all listeners.

        Raises:
            RecorderError: This process is a fork of the recording one.
        """
        if self._is_abandoned:
            raise RecorderError(_ABANDONED)
        return self._views.read_statistics()

    def follow_statistics(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call a listener whenever `statistics` changes, about once a second while recording.

        Args:
            listener: Called from any thread; it must neither block nor raise.

        Returns:
            A function that ends this; it may be called repeatedly.
        """
        return self._views.statistics.follow(listener)

    def status(self) -> RecorderStatus:
        """Return the current counts, sizes and costs."""
        return self._live.status()

    def end(self) -> None:
        """Stop recording if active, and print what was found, without reading the recording."""
        with Recorder._lifecycle:
            if self is Recorder._active or self is Recorder._ending:
                self._end()
                if not self.announces:
                    return
                store = self._live.store
                if store is not None and store.failure is not None:
                    log(logging.ERROR, store.failure)
                if self.verdict is not None:
                    self.verdict.announce()

    def _end_at_exit(self) -> None:
        self._note_exception(_exception_of_program())
        self.end()

    def _abandon(self) -> None:
        """Deactivate the recorder in the child of a fork, which lacks its threads."""
        self._is_abandoned = True
        self._lifetime.abandon_after_fork()


def _exception_of_program() -> BaseException | None:
    """Return the exception that the program ended with; a shell goes on after one."""
    ipython = sys.modules.get("IPython")
    is_shell = hasattr(sys, "ps1") or (ipython is not None and ipython.get_ipython() is not None)
    return None if is_shell else getattr(sys, "last_value", None)


def _abandon_active() -> None:
    # A thread that does not exist in the child may hold the old lock.
    Recorder._lifecycle = threading.RLock()  # noqa: SLF001
    for recorder in (Recorder._active, Recorder._ending):  # noqa: SLF001
        if recorder is not None:
            recorder._abandon()  # noqa: SLF001
    Recorder._active = Recorder._ending = None  # noqa: SLF001


os.register_at_fork(after_in_child=_abandon_active)
