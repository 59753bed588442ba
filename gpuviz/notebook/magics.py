"""The magics ``%gpuviz`` and ``%%gpuviz``."""

import sys
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from IPython.core.error import UsageError
from IPython.core.magic import Magics, line_cell_magic, magics_class
from IPython.display import display

from gpuviz.conclusions.growth import growth_of
from gpuviz.conclusions.item import AT_ONCE
from gpuviz.conclusions.ranking import all_conclusions, conclusions
from gpuviz.errors import DeviceUnavailableError, GpuvizError
from gpuviz.formats.output_path import check_output
from gpuviz.notebook import completion, values
from gpuviz.notebook.arguments import HelpShown, help_text, parse_cell, parse_line
from gpuviz.notebook.cells import running_cell
from gpuviz.notebook.compared_cells import ComparedCells
from gpuviz.notebook.control import shared_control
from gpuviz.notebook.history import History
from gpuviz.notebook.measured_cells import MeasuredCells
from gpuviz.notebook.measurement import Measurement
from gpuviz.notebook.numbers import status_text, stopped_text
from gpuviz.ownership.held_memory import held_memory_html
from gpuviz.ownership.holders import holders
from gpuviz.present.conclusions_html import notebook_list
from gpuviz.present.text import conclusions_text, findings_text
from gpuviz.recorder.latest import leaks_of
from gpuviz.recording import Recording
from gpuviz.terminal import printable, write_line

if TYPE_CHECKING:
    from gpuviz.simulation.gpu import SimulatedGPU

_ATTRIBUTE = "_gpuviz_magics"


@magics_class
class GpuvizMagics(Magics):
    """``%gpuviz`` controls the recording; ``%%gpuviz`` measures one cell."""

    def __init__(self, shell: Any) -> None:
        super().__init__(shell)
        self._shell = shell
        self.control = shared_control()
        self.cells = MeasuredCells(shell)
        self.history = History(shell)
        self._compared = ComparedCells()

    @line_cell_magic
    def gpuviz(self, line: str, cell: str | None = None) -> Any:
        """Record GPU memory and streams; see ``%gpuviz --help`` and ``%%gpuviz --help``."""
        with _errors_as_sentences():
            if cell is not None:
                # Called by run_cell_magic(); cells that begin with %%gpuviz take another path.
                parse_cell(line)
                return self._run_cell(line, cell)
            arguments = parse_line(line)
            return getattr(self, f"_{arguments.command}")(arguments)
        return None

    def _run_cell(self, line: str, cell: str) -> None:
        self._shell.run_cell(f"%%gpuviz {line}\n{cell}")

    def _cell(self, arguments: Namespace) -> None:
        for path in filter(None, (arguments.report, arguments.save)):
            check_output(Path(path), force=arguments.force)
        measurement = Measurement(self.control, self._shell.user_ns, **self._options(arguments))

        def end() -> None:
            with _errors_on_stderr():
                self._show(measurement, arguments)

        self.cells.call_at_end(end)

    def _show(self, measurement: Measurement, arguments: Namespace) -> None:
        recording, end = measurement.end()
        if not measurement.is_recording:
            self._keep_history()
        written = []
        if arguments.save:
            written.append(recording.save(arguments.save, overwrite=arguments.force))
        if arguments.report:
            written.append(recording.report(arguments.report, overwrite=arguments.force))
        if not arguments.quiet:
            display(measurement.shown(recording, end, written))  # type: ignore[no-untyped-call] # IPython's
        if arguments.compare:
            _show(*self._compared.compared(running_cell()[0], recording))

    def _start(self, arguments: Namespace) -> None:
        if arguments.path:
            check_output(Path(arguments.path), force=arguments.force)
        options = self._options(arguments) | {"overwrite": arguments.force}
        recorder = self.control.start(arguments.path, **options)
        _say(f"Recording started{f': {arguments.path}' if arguments.path else '.'}")
        for note in recorder.status().notes:
            _say(note)

    def _stop(self, _: Namespace) -> Recording:
        recording = self.control.stop()
        self._keep_history()
        _say(stopped_text(recording))
        recorder = self.control.recorder
        if recorder is not None and recorder.verdict is not None:
            for sentence in recorder.verdict.sentences:
                _say(sentence)
        return recording

    def _status(self, _: Namespace) -> None:
        recorder = self.control.recorder
        statistics = None if recorder is None else recorder.read_statistics()
        _say(status_text(statistics))

    def _dashboard(self, _: Namespace) -> None:
        from gpuviz.notebook.dashboard import dashboard

        display(dashboard())  # type: ignore[no-untyped-call] # IPython's

    def _findings(self, arguments: Namespace) -> None:
        recording = self.control.recording
        found = all_conclusions(recording) if arguments.all else conclusions(recording)
        _say(conclusions_text(recording, found, None if arguments.all else AT_ONCE))

    def _leaks(self, arguments: Namespace) -> None:
        held = holders(0) if arguments.all else holders()
        _show(str(held), held_memory_html(held))
        recorder = self.control.recorder
        found = () if recorder is None else growth_of(leaks_of(recorder))
        if found:
            heading = "Lines whose memory grows:"
            _show(f"{heading}\n{findings_text(found)}", notebook_list(found, heading))

    def _history(self, _: Namespace) -> None:
        self._keep_history()
        display(self.history)  # type: ignore[no-untyped-call] # IPython's

    def _keep_history(self) -> None:
        if self.control.recorder is not None:
            self.history.add(self.control.recorder)

    def _clear(self, _: Namespace) -> None:
        self._keep_history()
        self.control.clear()

    def _report(self, arguments: Namespace) -> None:
        check_output(Path(arguments.file), force=arguments.force)
        path = self.control.report(arguments.file, force=arguments.force, redact=arguments.redact)
        _say(f"Wrote {path}")

    def _save(self, arguments: Namespace) -> None:
        check_output(Path(arguments.file), force=arguments.force)
        path = self.control.save(arguments.file, force=arguments.force)
        _say(f"Wrote {path}")

    def _options(self, arguments: Namespace) -> dict[str, Any]:
        return {
            "device": self._simulated(arguments.simulated),
            "allocator": "observe" if arguments.observe else "caching",
            "streams": not arguments.no_streams,
            "stacks": not arguments.no_stacks,
            "hazards": arguments.hazards,
            "forbid_default_stream": arguments.forbid_default_stream,
            "record_stream": arguments.record_stream,
            "poison": arguments.poison,
            "budget": arguments.budget,
        }

    def _simulated(self, name: str | None) -> "SimulatedGPU | None":
        from gpuviz.simulation.gpu import SimulatedGPU

        if name is None:
            return None
        value = self._shell.user_ns.get(name)
        if not isinstance(value, SimulatedGPU):
            found = (
                f"has the type {type(value).__name__}."
                if name in self._shell.user_ns
                else f"is not defined. Run `{name} = gpuviz.SimulatedGPU()` first."
            )
            raise UsageError(f"--simulated takes the name of a gpuviz.SimulatedGPU; {name} {found}")
        return value


def _say(text: object) -> None:
    write_line(sys.stdout, str(text))


def _show(text: str, html: str) -> None:
    shown = {"text/plain": printable(text), "text/html": html}
    display(shown, raw=True)  # type: ignore[no-untyped-call] # IPython's


# What `%gpuviz?` shows.
GpuvizMagics.gpuviz.__doc__ = help_text()


def load_ipython_extension(shell: Any) -> None:
    """Add the magics to a shell, replacing those of an earlier call."""
    unload_ipython_extension(shell)
    magics = GpuvizMagics(shell)
    shell.register_magics(magics)
    magics.cells.register()
    completion.register(shell)
    values.register(shell)
    setattr(shell, _ATTRIBUTE, magics)


def unload_ipython_extension(shell: Any) -> None:
    """Remove the magics, and stop a recorder that they started."""
    magics = getattr(shell, _ATTRIBUTE, None)
    if magics is None:
        return
    delattr(shell, _ATTRIBUTE)
    magics.cells.unregister()
    completion.unregister(shell)
    values.unregister(shell)
    magics.control.end()
    for kind in ("line", "cell"):
        shell.magics_manager.magics[kind].pop("gpuviz", None)
    shell.magics_manager.registry.pop("GpuvizMagics", None)


def _sentence(error: Exception) -> str:
    text = str(error).rstrip(".")
    if isinstance(error, DeviceUnavailableError):
        text += ". To simulate one, run `gpu = gpuviz.SimulatedGPU()` and add `--simulated gpu`"
    return f"{text}."


@contextmanager
def _errors_as_sentences() -> Iterator[None]:
    try:
        yield
    except HelpShown as shown:
        _say(shown)
    except (GpuvizError, OSError, ValueError) as error:
        raise UsageError(printable(_sentence(error))) from None


@contextmanager
def _errors_on_stderr() -> Iterator[None]:
    try:
        yield
    except (GpuvizError, OSError, ValueError) as error:
        write_line(sys.stderr, f"gpuviz: {_sentence(error)}")
