"""A program under ``gpuviz run --fail``, whose exit code says what its recording shows."""

import os
import resource
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

from gpuviz.commands.run_options import RunOptions
from gpuviz.commands.startup import sitecustomize as startup
from gpuviz.hazards.verdict import NO_VERDICT

_FORWARDED = (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)


def judged_run(
    program: tuple[str, ...], options: RunOptions, environment: Mapping[str, str]
) -> NoReturn:
    """Run ``python PROGRAM``, and exit with its own code if it fails, else with the verdict's."""
    with tempfile.TemporaryDirectory(prefix="gpuviz-run-") as folder:
        path = Path(folder, "verdict")
        judged = replace(options, verdict=str(path))
        code = _run(program, {**environment, startup.OPTIONS: judged.to_json()})
        verdict = int(path.read_text(encoding="ascii")) if path.exists() else NO_VERDICT
    if code < 0:
        _end_by(signal.Signals(-code))
    sys.exit(code or verdict)


def _run(program: tuple[str, ...], environment: Mapping[str, str]) -> int:
    """Return the exit code of the program, negative for a signal; signals are passed on to it."""
    child = subprocess.Popen(  # noqa: S603 - the program
        [sys.executable, *program], env=environment, close_fds=False
    )
    for number in _FORWARDED:
        signal.signal(number, lambda sent, _: child.send_signal(sent))
    # The terminal sends it to both.
    signal.signal(signal.SIGINT, lambda *_: None)
    return child.wait()


def _end_by(number: signal.Signals) -> NoReturn:
    """End this process by the signal that ended the program, without a second core dump."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with suppress(OSError):
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    sys.exit(128 + number)
