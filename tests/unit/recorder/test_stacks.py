"""Call stacks: the lines of their frames, and which frames are shown."""

import asyncio
import json
import runpy
import subprocess
import sys
import threading
import traceback
from textwrap import dedent

import pytest

import gpuviz
from gpuviz import _core, _testing
from gpuviz.commands import recorded_run
from gpuviz.recorder.call_stacks import FrameResolver
from tests.unit.recorder.captured_stacks import PROBE, code_of


def test_a_frame_has_its_function_file_line_and_source(probe):
    class Simulation:
        def step(self):
            return probe()  # the line

    found = Simulation().step()

    name = "test_a_frame_has_its_function_file_line_and_source.<locals>.Simulation.step"
    line = Simulation.step.__code__.co_firstlineno + 1
    assert found[0] == (name, __file__, line, 0, "return probe()  # the line")
    assert found[1][4] == "found = Simulation().step()"


def test_lines_equal_those_of_tracebacks(probe):
    def work(values):
        return [(probe(), traceback.extract_stack()) for _ in values]

    [(found, expected)] = work([1])

    lines = [(frame.filename, frame.lineno) for frame in reversed(expected)]
    assert len(found) > 10
    assert [(row[1], row[2]) for row in found] == lines[: len(found)]


@pytest.mark.parametrize("function", [json.loads, dedent, subprocess.run, traceback.walk_tb])
def test_every_instruction_is_on_the_line_that_python_gives_it(function):
    code = function.__code__
    positions = [line for line, *_ in code.co_positions()]

    stacks, rows = FrameResolver().resolve([[(code, 2 * i)] for i in range(len(positions))])

    lines = {row["id"]: row["line"] for row in rows}
    found = [lines[row["frames"][0]] for row in stacks]
    assert found == [line or code.co_firstlineno for line in positions]


def test_each_frame_is_one_row_however_often_it_is_met():
    session, resolver = _core.Session(), FrameResolver()

    def one():
        _testing.capture_stack(session)
        _testing.capture_stack(session)

    one()
    stacks, first = resolver.resolve(session.new_stacks(1))
    one()
    later, second = resolver.resolve(session.new_stacks(resolver.next_stack))

    assert [row["id"] for row in stacks + later] == [1, 2, 3, 4]
    assert [row["id"] for row in first + second] == list(range(1, len(first + second) + 1))
    assert stacks[0]["frames"][1:] == stacks[1]["frames"][1:]
    assert later[0]["frames"][0] == stacks[0]["frames"][0]
    assert len(second) == 1


def test_a_script_run_by_runpy_begins_at_its_module(tmp_path, probe):
    script = tmp_path / "script.py"
    script.write_text("def work():\n    return probe()\n\nfound = work()\n")

    found = runpy.run_path(str(script), init_globals={"probe": probe})["found"]

    assert found[0] == ("work", str(script), 2, 0, "return probe()")
    assert found[1] == ("<module>", str(script), 4, 0, "found = work()")


@pytest.mark.parametrize("arguments", [["script.py"], ["-m", "script"]])
def test_a_script_shows_neither_runpy_nor_gpuviz(tmp_path, arguments):
    (tmp_path / "script.py").write_text(f"{PROBE}\nimport json\nprint(json.dumps(capture()))\n")

    ran = subprocess.run(
        [sys.executable, *arguments], cwd=tmp_path, check=True, capture_output=True, text=True
    )

    [[name, filename, line, cell, source]] = json.loads(ran.stdout)
    assert (name, line, cell) == ("<module>", len(PROBE.splitlines()) + 3, 0)
    assert filename.endswith("script.py")
    assert source == "print(json.dumps(capture()))"


def test_what_gpuviz_calls_of_packages_is_not_shown_and_what_the_user_decorated_is():
    def user():
        return gpuviz.range("step")(json.loads)

    own = gpuviz.load.__code__
    of_range = user().__code__
    package = json.loads.__code__

    def shown(*codes):
        stacks, rows = FrameResolver().resolve([[(code, 0) for code in codes]])
        names = {row["id"]: row["name"] for row in rows}
        return [names[frame] for frame in stacks[0]["frames"]]

    caller = user.__qualname__
    assert shown(package, own, user.__code__) == [caller]
    assert shown(package, own, package, own, user.__code__) == [caller]
    assert shown(package, user.__code__, own) == ["loads", caller]
    assert shown(package, user.__code__, own, user.__code__) == ["loads", caller, "load", caller]
    assert shown(package, of_range, user.__code__) == ["loads", of_range.co_qualname, caller]
    assert shown(of_range, user.__code__) == [caller]

    # gpuviz's own thread, or its function at the end of a program.
    assert shown(package, own) == []
    assert shown(package, user.__code__, own) == ["loads", caller]
    assert shown(package, of_range) == ["loads"]

    command = recorded_run.finish.__code__
    assert shown(package, command) == []
    assert shown(package, own, command) == []
    assert shown(package, user.__code__, command) == ["loads", caller]


def test_a_frame_of_the_user_has_its_whole_function_and_one_of_a_package_has_none(tmp_path):
    program = tmp_path / "run.py"
    lines = [f"    step({number})" for number in range(30)]
    text = ["def work():", *lines, f"    last = '{'x' * 300}'", *("pass" for _ in range(20))]
    program.write_text("\n".join(text))
    package = tmp_path / "site-packages" / "package.py"
    package.parent.mkdir()
    package.write_text("def work(): pass")
    code = compile(program.read_text(), str(program), "exec").co_consts[0]
    offsets = {line: start for start, _, line in code.co_lines()}

    _, frames = FrameResolver().resolve(
        [[(code, offsets[3]), (code, offsets[31])], [(code_of("work", str(package)), 0)]]
    )

    first, last, installed = frames
    *shown, longest = first["context"].split("\n")[:32]
    assert shown == ["def work():", *lines]
    assert longest.endswith("x…")
    assert first["context"].split("\n")[32:] == ["pass"] * 8
    assert last["context"] == first["context"]
    assert [(each["line"], each["context_line"]) for each in (first, last)] == [(3, 1), (31, 1)]
    assert (installed["installed"], installed["context"], installed["context_line"]) == (1, "", 0)


def test_lines_of_a_very_long_function_share_the_text_of_a_part_of_it(tmp_path):
    program = tmp_path / "run.py"
    lines = ["x = 1", "def work():", *(f"    step({number})" for number in range(600))]
    program.write_text("\n".join(lines))
    code = compile(program.read_text(), str(program), "exec").co_consts[1]
    offsets = {line: start for start, _, line in code.co_lines()}
    numbers = (3, 201, 202, 401, 602)

    _, frames = FrameResolver().resolve([[(code, offsets[line]) for line in numbers]])

    parts = [(each["context_line"], each["context"].split("\n")) for each in frames]
    assert [(first, len(part)) for first, part in parts] == [
        (1, 209), (1, 209), (194, 216), (194, 216), (594, 9)
    ]  # fmt: skip
    assert all(part == lines[first - 1 : first - 1 + len(part)] for first, part in parts)


def test_a_line_that_its_file_does_not_have_has_no_lines_around_it(tmp_path):
    missing = str(tmp_path / "missing.py")

    _, [frame] = FrameResolver().resolve([[(code_of("work", missing), 0)]])

    assert (frame["source"], frame["context"], frame["context_line"]) == ("", "", 0)


@pytest.mark.parametrize("program", ["/home/ada/run.py", "{gpuviz}/commands/workloads/fft.py"])
def test_a_command_shows_its_program_and_nothing_of_gpuviz(program):
    package = gpuviz.__path__[0]
    program = program.format(gpuviz=package)
    stack = [
        (code_of("hook", f"{package}/frameworks/cupy.py"), 0),
        (code_of("empty", "/site-packages/cupy/basic.py"), 0),
        (code_of("work", program), 0),
        (code_of("module", program), 0),
        (code_of("run_code", "<frozen runpy>"), 0),
        (code_of("run", f"{package}/commands/run.py"), 0),
        (code_of("invoke", "/site-packages/click/core.py"), 0),
        (code_of("module", "/bin/gpuviz"), 0),
    ]

    [row], frames = FrameResolver().resolve([stack])

    assert (row["id"], row["frames"], row["user_frame"]) == (1, [1, 2, 3], 2)
    assert [frame["name"] for frame in frames] == ["empty", "work", "<module>"]


def test_a_stack_without_the_user_has_no_frames():
    stack = [
        (code_of("hook", f"{gpuviz.__path__[0]}/frameworks/cupy.py"), 0),
        (code_of("run", threading.__file__), 0),
    ]

    rows, frames = FrameResolver().resolve([stack, []])

    assert [(row["id"], row["frames"], row["user_frame"]) for row in rows] == [
        (1, [], 0),
        (2, [], 0),
    ]
    assert frames == []


def test_a_thread_begins_at_its_function(probe):
    found = []

    def work():
        found.extend(probe())

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()

    assert [row[4] for row in found] == ["found.extend(probe())"]


def test_a_task_of_a_loop_in_a_thread_begins_at_its_coroutine(probe):
    found = []

    async def work():
        found.extend(probe())

    thread = threading.Thread(target=lambda: asyncio.run(work()))
    thread.start()
    thread.join()

    assert found[0][4] == "found.extend(probe())"
    assert found[-1][0].endswith("<lambda>")
