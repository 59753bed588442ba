"""Progress of long commands, and files left after an interrupt."""

import os
import pty
import signal
import subprocess
import time

import pyarrow as pa
import pytest

from gpuviz.recording import Recording
from tests.integration.commands.programs import GPUVIZ, PYTHON, run
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


# A signal that arrives in a callback of Python's own is reported on stderr as well.
@pytest.mark.flaky(reruns=2)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize(("output", "at"), [("copy.gpuviz", "write"), ("copy.html", "read")])
def test_an_interrupted_conversion_leaves_nothing(long, tmp_path, number, output, at):
    with subprocess.Popen(
        [GPUVIZ, "convert", long, output], cwd=tmp_path, stderr=subprocess.PIPE, text=True
    ) as process:
        if at == "read":
            time.sleep(0.7)
        while at == "write" and not list(tmp_path.iterdir()) and process.poll() is None:
            time.sleep(0.002)
        process.send_signal(number)
        _, errors = process.communicate(timeout=60)

    assert process.returncode == 128 + number
    assert list(tmp_path.iterdir()) == []
    assert errors.strip() == ("gpuviz: interrupted" if number == signal.SIGINT else "")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_what_fails_while_it_cleans_up_does_not_hide_the_signal(tmp_path, number):
    make_recording().save(tmp_path / "short.gpuviz")
    program = f"""
import os, sys, time, zipfile
from gpuviz.commands.cli import main

def write(*_, **__):
    try:
        os.kill(os.getpid(), {int(number)})
        time.sleep(60)
    finally:
        raise ValueError("cannot close the archive")

zipfile.ZipFile.writestr = write
sys.argv = ["gpuviz", "convert", "short.gpuviz", "copy.gpuviz"]
main()
"""
    done = run([PYTHON, "-c", program], tmp_path)

    assert done.returncode == 128 + number
    assert done.stderr.strip() == ("gpuviz: interrupted" if number == signal.SIGINT else "")
    assert [path.name for path in tmp_path.iterdir()] == ["short.gpuviz"]


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
