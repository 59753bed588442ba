"""Progress of long commands, and files left after an interrupt."""

import os
import pty
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from textwrap import indent

import pyarrow as pa
import pytest

from gpuviz.recording import Recording
from tests.integration.commands.programs import GPUVIZ, PYTHON, run
from tests.patience import PATIENCE_S, wait_until
from tests.unit.report.recordings import make_recording

EVENTS = 3_000_000


@pytest.fixture(scope="module")
def long(tmp_path_factory):
    """A recording that takes a while to write."""
    made = make_recording()
    events = made.table("memory_events").slice(0, 1)
    for _ in range(22):
        events = pa.concat_tables([events, events]).slice(0, EVENTS).combine_chunks()
    path = tmp_path_factory.mktemp("long") / "long.gpuviz"
    Recording(dict(made.tables) | {"memory_events": events}, made.manifest).save(path)
    with pytest.MonkeyPatch.context() as patch:
        # Equal rows expand like a bomb.
        patch.setenv("GPUVIZ_LOAD_MAX_BYTES", str(1 << 32))
        yield path


def is_reading(process, path, _folder):
    for file in Path(f"/proc/{process}/fd").glob("*"):
        with suppress(FileNotFoundError):  # closed meanwhile
            if file.readlink() == path:
                return True
    return False


def is_writing(_process, _path, folder):
    return any(folder.iterdir())


AT = {"read": is_reading, "write": is_writing}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize(("output", "at"), [("copy.gpuviz", "write"), ("copy.html", "read")])
def test_an_interrupted_conversion_leaves_nothing(long, tmp_path, number, output, at):
    with subprocess.Popen(
        [GPUVIZ, "convert", long, output], cwd=tmp_path, stderr=subprocess.PIPE, text=True
    ) as process:
        wait_until(lambda: AT[at](process.pid, long, tmp_path), pause=lambda _: time.sleep(0.002))
        process.send_signal(number)
        _, errors = process.communicate(timeout=PATIENCE_S)

    assert process.returncode == 128 + number
    assert list(tmp_path.iterdir()) == []
    assert errors.strip() == ("gpuviz: interrupted" if number == signal.SIGINT else "")


FAILING = """
try:
    send()
    time.sleep(60)
finally:
    raise ValueError("cannot close the archive")
"""
SLOW = """
try:
    send()
    time.sleep(60)
finally:
    time.sleep(2 * signals.RAISE_AGAIN_S)
    os.remove("uncleaned")
"""
SWALLOWING = """
class Collected:
    pass

collected = Collected()
callback = weakref.ref(collected, lambda _: send())
del collected
time.sleep(60)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("writing", [FAILING, SLOW, SWALLOWING])
def test_a_signal_ends_a_command_once_and_lets_it_clean_up(tmp_path, number, writing):
    make_recording().save(tmp_path / "short.gpuviz")
    (tmp_path / "uncleaned").touch()
    program = f"""
import os, sys, time, weakref, zipfile
from gpuviz.commands import signals
from gpuviz.commands.main import main

def send():
    os.kill(os.getpid(), {int(number)})
    time.sleep(60)

def write(*_, **__):
{indent(writing, "    ")}

zipfile.ZipFile.writestr = write
sys.argv = ["gpuviz", "convert", "short.gpuviz", "copy.gpuviz"]
main()
"""
    done = run([PYTHON, "-c", program], tmp_path)

    assert done.returncode == 128 + number
    assert done.stderr.strip() == ("gpuviz: interrupted" if number == signal.SIGINT else "")
    assert {"short.gpuviz"} <= names(tmp_path) <= {"short.gpuviz", "uncleaned"}
    assert ("uncleaned" in names(tmp_path)) == (writing != SLOW)


def names(folder):
    return {path.name for path in folder.iterdir()}


def on_terminal(command, folder):
    """Return exit code, stdout, and the output of stderr, which is a terminal."""
    terminal, side = pty.openpty()
    with subprocess.Popen(
        [str(word) for word in command],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=side,
        env={**os.environ, "TERM": "xterm-256color"},
    ) as process:
        os.close(side)
        shown = b""
        while True:
            try:
                read = os.read(terminal, 1 << 16)
            except OSError:
                break
            shown += read
        out = process.stdout.read()
    os.close(terminal)
    return process.returncode, out.decode(), shown.decode()


def test_a_terminal_sees_what_is_read_and_written(long, tmp_path):
    code, out, shown = on_terminal([GPUVIZ, "convert", long, "copy.gpuviz"], tmp_path)

    assert (code, out) == (0, "Wrote copy.gpuviz\n")
    assert "Reading long.gpuviz (" in shown
    assert "Writing copy.gpuviz" in shown


def test_what_is_no_terminal_sees_nothing_of_it(long, tmp_path):
    done = subprocess.run(
        [GPUVIZ, "convert", long, "copy.gpuviz"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )

    assert (done.stdout, done.stderr) == ("Wrote copy.gpuviz\n", "")
