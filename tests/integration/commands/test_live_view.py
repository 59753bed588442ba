"""The headline numbers in a terminal while a program runs."""

import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import termios

import pytest

from gpuviz.commands.live_view import LINES, rendered
from gpuviz.conclusions.headline_number import Number
from tests.integration.commands.programs import GPUVIZ, SIMULATED, run

STEPS = f"""{SIMULATED}
kept = []
for number in range(30):
    kept.append(step(1 << 20))
    print("step", number, sys.stdout.isatty(), flush=True)
    time.sleep(0.05)
"""
PRINTED = "".join(f"step {number} False\n" for number in range(30))


def on_terminal(folder, rows):
    """Return stdout, a pipe, and the output of stderr, a terminal with this number of rows."""
    terminal, side = pty.openpty()
    fcntl.ioctl(side, termios.TIOCSWINSZ, struct.pack("HHHH", rows, 120, 0, 0))
    with subprocess.Popen(
        [GPUVIZ, "run", "--live", "steps.py"], cwd=folder, stdout=subprocess.PIPE, stderr=side
    ) as process:
        os.close(side)
        shown = b""
        while True:
            try:
                shown += os.read(terminal, 1 << 16)
            except OSError:
                break
        out = process.stdout.read()
    os.close(terminal)
    return out.decode(), shown.decode()


def until(terminal, pattern):
    """Return the output of a terminal up to a pattern, or until no process has it open."""
    shown = b""
    while not re.search(pattern, shown):
        try:
            shown += os.read(terminal, 1 << 16)
        except OSError:
            break
    return shown


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "steps.py").write_text(STEPS)
    return tmp_path


def test_the_numbers_stand_below_what_the_program_prints(folder):
    out, shown = on_terminal(folder, 24)
    peaks = [float(size) for size in re.findall(r"peak ([\d.]+) MiB", shown)]

    assert out == PRINTED
    assert f"\x1b[1;{24 - LINES}r" in shown
    assert peaks != []
    assert peaks == sorted(peaks)
    assert 1 <= peaks[-1] <= 30


def test_at_the_end_the_terminal_is_the_programs_again(folder):
    _, shown = on_terminal(folder, 24)
    after = shown.rpartition("\x1b[r")[2]

    assert "gpuviz: wrote steps.gpuviz (" in after
    assert re.findall(r"\x1b\[\d+;\d+r", after) == []


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_program_that_is_killed_leaves_a_terminal_that_scrolls_as_a_whole(folder, number):
    waits = "import os\nos.fork()\ntime.sleep(60)\n"
    (folder / "steps.py").write_text(f"{SIMULATED}step(1 << 20)\n{waits}")
    terminal, side = pty.openpty()
    fcntl.ioctl(side, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 120, 0, 0))
    attributes = termios.tcgetattr(side)
    with subprocess.Popen(
        [GPUVIZ, "run", "--live", "steps.py"], cwd=folder, stderr=side, start_new_session=True
    ) as process:
        os.close(side)
        before = until(terminal, rb"peak")
        os.kill(process.pid, number)
    after = until(terminal, rb"\x1b\[r.*\x1b8")
    os.killpg(process.pid, signal.SIGKILL)  # a fork of the program is still running

    assert b"\x1b[1;20r" in before
    assert b"\x1b[r" not in before
    assert re.findall(rb"\x1b\[\d*;?\d*r", after)[-1] == b"\x1b[r"
    # The cursor moves to the last line at most, then three lines up, and all below is empty.
    assert after.endswith(b"\x1b7\x1b[r\x1b[999;1H\x1b[3A\x1b[J\x1b8")
    assert re.findall(rb"\x1b\[\?", before + after) == []  # no cursor hidden, no other screen
    assert termios.tcgetattr(terminal) == attributes
    os.close(terminal)


def test_the_program_has_no_child_to_wait_for(folder):
    (folder / "steps.py").write_text(
        f"{SIMULATED}step(1 << 20)\ntime.sleep(1)\n"
        "import os\ntry:\n    os.wait()\nexcept ChildProcessError:\n    print('none')\n"
    )

    out, shown = on_terminal(folder, 24)

    assert out == "none\n"
    assert "\x1b[1;20r" in shown


def test_a_terminal_that_is_too_low_shows_what_it_would_without(folder):
    out, shown = on_terminal(folder, 8)

    assert out == PRINTED
    assert "\x1b" not in shown
    assert shown.startswith("gpuviz: wrote steps.gpuviz (")


def test_where_stderr_is_no_terminal_nothing_is_shown(folder):
    done = run([GPUVIZ, "run", "--live", "steps.py"], folder)

    assert done.stdout == PRINTED
    assert len(done.stderr.splitlines()) == 1
    assert "\x1b" not in done.stderr


@pytest.mark.parametrize("width", [20, 40, 80, 200])
def test_lines_are_never_wider_than_the_terminal(width):
    numbers = [Number(f"Name {n}", "1.00 MiB", "of [bold]much[/] more") for n in range(9)]
    lines = [re.sub(r"\x1b\[[\d;]*m", "", line) for line in rendered(numbers, width)]

    assert len(lines) == LINES
    assert max(map(len, lines)) <= width
    assert "Name 0" in lines[1]
