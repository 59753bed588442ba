"""The recording of a program under ``gpuviz run``."""

import os
import shlex
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from gpuviz.commands.run_options import RunOptions
from gpuviz.commands.run_outputs import say, shown, stderr, write_report
from gpuviz.commands.startup.sitecustomize import AT_FIRST_USE, NOTHING_IMPORTED, NUMBA
from gpuviz.errors import GpuvizError, RecordingExistsError
from gpuviz.frameworks.cupy_peers import enable_peer_access
from gpuviz.frameworks.pinned_arrays import PinnedArrays
from gpuviz.hazards.verdict import NO_VERDICT
from gpuviz.quantities import format_bytes, format_counted, format_duration
from gpuviz.recorder.record import record
from gpuviz.recorder.recorder import Recorder

if TYPE_CHECKING:
    from gpuviz.commands.live_view import LiveView
    from gpuviz.frameworks.cupy_start import FirstAllocation
    from gpuviz.recorder.record import AllocatorMode
    from gpuviz.simulation.gpu import SimulatedGPU

_runs: "list[RecordedRun]" = []


def after_import(name: str, options: str, folder: str) -> None:
    """Prepare recording after the import of a module.

    Args:
        name: The module.
        options: `RunOptions` as JSON.
        folder: Where to record each process; empty for one process.
    """
    if not _runs:
        _runs.append(RecordedRun(RunOptions.from_json(options, folder)))
    run = _runs[0]
    if name == "cupy":
        run.await_cupy()
    elif name == "torch":
        run.await_torch()
    elif name in NUMBA:
        run.await_numba()
    elif name in AT_FIRST_USE:
        run.record_from(name)
    else:
        run.await_simulated_gpu()


def finish() -> None:
    """Write the outputs at the end of the program, and print their paths."""
    try:
        while _runs:
            _runs.pop().finish()
    except KeyboardInterrupt:
        say("interrupted")
    except Exception as error:  # noqa: BLE001 - the program's exit code must stay
        say(f"{type(error).__name__}: {error}")


class RecordedRun:
    """Records from the program's first use of a GPU, or its first `SimulatedGPU`, to its end.

    Errors never reach the program; they are printed on stderr.
    """

    # They import cuda.core for themselves.
    _begins_later = frozenset(("cupy", "torch", "numba"))

    def __init__(self, options: RunOptions) -> None:
        self._options = options
        self._process = os.getpid()
        self._own: Recorder | None = None
        self._is_over = False
        self._path = Path(options.output)
        self._live: LiveView | None = None
        self._reason = NOTHING_IMPORTED
        self._awaited: FirstAllocation | None = None
        Recorder.before_start = self._yield_to
        if options.children:
            os.register_at_fork(after_in_child=self._continue_in_child)

    def await_cupy(self) -> None:
        """Record from CuPy's first allocation."""
        from gpuviz.frameworks.cupy_start import FirstAllocation

        if self._has_driver():
            if self._options.pin_arrays:
                from gpuviz.frameworks.cupy import malloc_pinned

                PinnedArrays(malloc_pinned)
            self._reason = "the program allocated nothing with CuPy"
            follow = self._options.children
            self._awaited = FirstAllocation(self._record_cupy, follow_forks=follow)

    def await_numba(self) -> None:
        """Record from Numba's first allocation, if the program leaves Numba's own allocator."""
        if self._options.allocator != "caching" or not self._has_driver():
            return
        from gpuviz.frameworks import numba

        if not numba.programs_choice():
            self._install(numba.install)

    def await_torch(self) -> None:
        """Record from torch's first use of the GPU; with gpuviz's allocator in it if asked to."""
        if not self._has_driver():
            return
        if self._options.shared_pool:
            from gpuviz.frameworks import torch

            self._install(torch.install)
        else:
            from gpuviz.frameworks.torch_trace import call_at_first_use

            self._reason = "the program did not use the GPU"
            call_at_first_use(self._record_library)

    def record_from(self, module: str) -> None:
        """Record from the import of a module on, unless another library begins it later."""
        # A program may have a module of this name, too.
        if module == "warp" and not hasattr(sys.modules[module], "kernel"):
            return
        if self._begins_later.isdisjoint(sys.modules) and self._has_driver():
            self._record_library()

    def _install(self, install: Callable[[], None]) -> None:
        from gpuviz.frameworks.shared_pool import call_before_first_allocation

        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                install()
            except GpuvizError as error:
                say(str(error))
        for warning in caught:
            say(str(warning.message))
        self._reason = "the program allocated nothing"
        call_before_first_allocation(self._record_library)

    def _has_driver(self) -> bool:
        from gpuviz.frameworks.shared_pool import has_driver

        if has_driver():
            return True
        if self._reason:
            self._reason = ""
            say("not recorded: no NVIDIA driver found (libcuda.so.1 is missing)")
        return False

    def await_simulated_gpu(self) -> None:
        """Record the first simulated GPU from its creation."""
        from gpuviz.simulation.known_gpus import add_new_gpu_hook

        # gpuviz itself imports it when a recording ends.
        if self._reason == NOTHING_IMPORTED:
            self._reason = "the program created no SimulatedGPU"
        add_new_gpu_hook(self._record_simulated)

    def _record_cupy(self, is_programs_choice: bool) -> None:
        if self._options.peer_access:
            enable_peer_access()
        observed = is_programs_choice or self._options.allocator == "observe"
        self._record(None, "observe" if observed else "caching")

    def _record_library(self) -> None:
        if self._awaited is not None:
            self._awaited.begin()
        else:
            self._record(None, self._options.allocator)

    def _record_simulated(self, gpu: "SimulatedGPU") -> None:
        self._record(gpu, "caching")

    def _record(self, gpu: "SimulatedGPU | None", allocator: "AllocatorMode") -> None:
        is_done = self._is_over or self._own is not None or Recorder.active() is not None
        if is_done or os.getpid() != self._process:
            return
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                self._start(gpu, allocator)
            except Exception as error:  # noqa: BLE001 - the program must continue
                self._own = None
                self._reason = ""
                say(f"not recorded: {error}")
        for warning in caught:
            say(str(warning.message))

    def _start(self, gpu: "SimulatedGPU | None", allocator: "AllocatorMode") -> None:
        while True:
            recorder = self._own = self._new_recorder(gpu, allocator)
            try:
                recorder.start()
                break
            except RecordingExistsError:
                # Another program has taken the name in the meantime.
                if not self._options.is_numbered:
                    raise
        self._end_with_process()
        terminal = stderr()
        if self._options.live and terminal is not None and os.isatty(terminal):
            from gpuviz.commands.live_view import LiveView

            # A duplicate, independent of what the program does with stderr.
            self._live = LiveView(recorder, os.dup(terminal))
            self._live.start()

    def _new_recorder(self, gpu: "SimulatedGPU | None", allocator: "AllocatorMode") -> Recorder:
        options = self._options
        self._path = options.free_path()
        recorder = record(
            self._path,
            device=gpu,
            allocator=allocator,
            streams=options.streams,
            stacks=options.stacks,
            launch_sites=options.launch_sites,
            launch_blocks=options.launch_blocks,
            host_samples=options.host_samples,
            budget=options.budget,
            api_calls=options.api_calls,
            graph_nodes=options.graph_nodes,
            hazards=options.hazards,
            forbid_default_stream=options.forbid_default_stream,
            record_stream=options.record_stream,
            poison=options.poison,
            quarantine=options.quarantine,
            max_events=options.max_events,
        )
        recorder.announces = False
        return recorder

    def _end_with_process(self) -> None:
        """End also in a process of `multiprocessing`, which calls no function of `atexit`."""
        processes = sys.modules.get("multiprocessing.process")
        if processes is not None and processes.parent_process() is not None:
            from multiprocessing.util import Finalize

            # After the program's own functions, whose priorities are not negative.
            Finalize(None, finish, exitpriority=-100)

    def _continue_in_child(self) -> None:
        """Record a forked process if this one did not record before; it cannot use CUDA if so."""
        if self._own is None:
            self._process = os.getpid()
        else:
            self._own = None
            self._is_over = True

    def _yield_to(self, starting: Recorder) -> None:
        """Stop permanently when the program starts its own recorder."""
        if starting is self._own or os.getpid() != self._process:
            return
        self._is_over = True
        if self._awaited is not None:
            self._awaited.cancel()
        if self._own is not None and self._own.is_recording:
            self._own.stop()
            status = self._own.status()
            if status.events or status.activities:
                say("the program started its own recording: gpuviz run recorded until then")
            else:
                self._discard()
        if self._own is None:
            self._reason = "the program records itself"
            if starting.path is not None:
                path = shown(starting.path)
                self._reason += f", to {path}; `gpuviz view {shlex.quote(str(path))}` shows it"

    def _discard(self) -> None:
        """Remove the recording of a program that did nothing before its own."""
        self._own = None
        self._path.unlink(missing_ok=True)
        if self._live is not None:
            self._live.stop()
            self._live = None

    def finish(self) -> None:
        """Print the path of the recording, and write its report."""
        if self._live is not None:
            self._live.stop()
        if self._own is None:
            if self._reason and not self._options.children:
                self._print(f"nothing was recorded: {self._reason}")
            return
        self._own.end()
        self._summarize(self._own)
        self._conclude(self._own)
        if self._options.report:
            write_report(self._path, self._options)

    def _summarize(self, recorder: Recorder) -> None:
        status = recorder.status()
        for note in status.notes:
            say(note)
        if not self._path.exists():
            self._path = Path(tempfile.mkdtemp(prefix="gpuviz-run-"), self._path.name)
            recorder.recording.save(self._path)
        counts = format_counted(status.events, "memory event")
        if status.activities:
            counts += f" and {format_counted(status.activities, 'GPU activity', 'GPU activities')}"
        size = format_bytes(self._path.stat().st_size)
        length = format_duration(recorder.elapsed_ns)
        wrote = f"wrote {shown(self._path)} ({size}): {counts} in {length}"
        if not self._options.report:
            wrote += f"; `gpuviz view {shlex.quote(str(shown(self._path)))}` shows them"
        self._print(wrote)

    def _conclude(self, recorder: Recorder) -> None:
        """Print what was found of what was asked for, and leave the exit code to `gpuviz run`."""
        found = recorder.verdict
        if found is None:
            return
        for sentence in found.absent:
            self._print(sentence)
        for sentence in (*found.found, *found.unknown):
            say(sentence)
        code = found.exit_code
        if self._is_over and not found.is_harmful:
            code = NO_VERDICT
            say("no verdict: the rest of the program was not recorded")
        if found.hazards:
            self._print(f"to print them: gpuviz hazards {shlex.quote(str(shown(self._path)))}")
        if self._options.verdict:
            for line in found.suggestion:
                self._print(f"  {line}")
            Path(self._options.verdict).write_text(str(code), encoding="ascii")

    def _print(self, sentence: str) -> None:
        if not self._options.quiet:
            say(sentence)
