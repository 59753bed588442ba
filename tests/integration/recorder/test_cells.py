"""Cells of a real IPython shell as ranges; each test runs in a separate process."""

import json
import subprocess
import sys
import textwrap
from pathlib import Path

ROOT = Path(__file__).parents[3]
PRELUDE = """\
import asyncio, contextlib, io, json, sys
from IPython.core.interactiveshell import InteractiveShell
import gpuviz
from gpuviz.recorder.recorder import Recorder
from tests.unit.recorder.simulated_source import SimulatedSource

shell = InteractiveShell.instance()
shell.history_manager.enabled = False
source = SimulatedSource()

def new_recorder():
    return Recorder(source.again(), None, stacks=False, max_events=1000)

shell.user_ns.update(globals())

def run(cell):
    with contextlib.redirect_stdout(io.StringIO()):
        return shell.run_cell(cell, store_history=True)

def ranges(recording):
    texts = {row["id"]: row["text"] for row in recording.table("strings").to_pylist()}
    rows = recording.table("ranges").to_pylist()
    names = {row["id"]: texts[row["name"]] for row in rows} | {0: None}
    assert all(row["time"] <= row["end"] for row in rows)
    return [[names[row["id"]], row["kind"], names[row["parent"]]] for row in rows]

def callbacks():
    events = shell.events.callbacks
    return [getattr(one, "__qualname__", "") for name in events for one in events[name]]

def tell(*values):
    print(json.dumps(values))

"""


def told(program, cwd):
    """Return the output lines of a program."""
    ran = subprocess.run(
        [sys.executable, "-c", PRELUDE + textwrap.dedent(program)],
        cwd=ROOT,
        env={"PATH": "/usr/bin:/bin", "IPYTHONDIR": str(cwd), "HOME": str(cwd)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    return [json.loads(line) for line in ran.stdout.splitlines()]


def test_cells_are_ranges_from_the_one_that_starts_to_the_one_that_stops(tmp_path):
    program = """
    before = callbacks()
    run("x = 1")
    run("recorder = new_recorder(); recorder.start()")
    run("with gpuviz.range('ours'):\\n    source.allocate(1234)")
    run("recording = recorder.stop()")
    run("after = 1")
    tell(ranges(shell.user_ns["recording"]), callbacks() == before)
    """

    expected = [
        ["In [2]", "cell", None],
        ["In [3]", "cell", None],
        ["ours", "range", "In [3]"],
        ["In [4]", "cell", None],
    ]
    assert told(program, tmp_path) == [[expected, True]]


def test_a_cell_that_raises_or_does_not_parse_ends_too(tmp_path):
    program = """
    run("recorder = new_recorder(); recorder.start()")
    run("1 / 0")
    run("with gpuviz.range('ours'):\\n    raise KeyboardInterrupt")
    run("for")
    run("last = recorder.recording")
    open_rows = [
        row["id"] for row in shell.user_ns["last"].table("ranges").to_pylist() if row["end"] == -1
    ]
    tell(ranges(shell.user_ns["recorder"].stop()), open_rows)
    """

    cells = [[f"In [{number}]", "cell", None] for number in (1, 2, 3)]
    expected = [*cells, ["ours", "range", "In [3]"], ["In [4]", "cell", None]]
    expected.append(["In [5]", "cell", None])
    assert told(program, tmp_path) == [[expected, [6]]]


def test_a_recorder_that_is_started_outside_cells_sees_the_next_one(tmp_path):
    program = """
    with new_recorder() as recorder:
        run("x = 1")
    tell(ranges(recorder.recording))
    """

    assert told(program, tmp_path) == [[[["In [1]", "cell", None]]]]


def test_two_recordings_leave_nothing_behind_and_do_not_mix(tmp_path):
    program = """
    before = callbacks()
    run("with new_recorder() as first:\\n    pass")
    run("with new_recorder() as second:\\n    pass")
    tell(*(ranges(shell.user_ns[name].recording) for name in ("first", "second")))
    tell(callbacks() == before)
    """

    expected = [[["In [1]", "cell", None]], [["In [2]", "cell", None]]]
    assert told(program, tmp_path) == [expected, [True]]


def test_a_cell_that_awaits_is_one_range_and_so_is_a_cell_within_a_cell(tmp_path):
    program = """
    run("recorder = new_recorder(); recorder.start()")
    run("await asyncio.sleep(0.01)")
    run("get_ipython().run_cell('x = 1')\\nwith gpuviz.range('after'):\\n    pass")
    tell(ranges(shell.user_ns["recorder"].stop()))
    """

    [[[first, second, third, (*_, kind, parent), after]]] = told(program, tmp_path)
    assert [first, second, third] == [[f"In [{number}]", "cell", None] for number in (1, 2, 3)]
    assert (kind, parent) == ("cell", "In [3]")
    assert after == ["after", "range", "In [3]"]


def test_a_recorder_stops_also_when_somebody_took_its_callbacks_away(tmp_path):
    program = """
    run("recorder = new_recorder(); recorder.start()")
    shell.events.callbacks = {name: [] for name in shell.events.callbacks}
    run("recording = recorder.stop()")
    tell(ranges(shell.user_ns["recording"]))
    """

    assert told(program, tmp_path) == [[[["In [1]", "cell", None]]]]


def test_ipython_is_not_imported_by_recording():
    program = "with new_recorder() as recorder: pass\nprint('IPython' in sys.modules)"
    without_shell = PRELUDE.replace(
        "from IPython.core.interactiveshell import InteractiveShell", ""
    )
    head = without_shell[: without_shell.index("shell =")] + "source = SimulatedSource()\n"
    head += "def new_recorder():\n    return Recorder(source, None, stacks=True, max_events=10)\n"
    ran = subprocess.run(
        [sys.executable, "-c", head + program],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert (ran.stdout, ran.stderr) == ("False\n", "")
