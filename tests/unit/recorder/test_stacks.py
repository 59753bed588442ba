import asyncio
import importlib.util
import json
import os
import runpy
import subprocess
import sys
import threading
import traceback
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from textwrap import dedent

import pytest
from IPython.core.interactiveshell import InteractiveShell
from jupyter_client.manager import start_new_kernel

import gpuviz
from gpuviz import _core, _testing
from gpuviz.commands import recorded_run
from gpuviz.data.notes import deep_stacks
from gpuviz.recorder.call_stacks import FrameResolver
from gpuviz.report.facts import environment, notes
from gpuviz.report.redaction import redact
from tests.unit.ipython_shells import new_shell

PROBE = """
from gpuviz import _core, _testing
from gpuviz.recorder.call_stacks import FrameResolver
session, resolver = _core.Session(stack_depth=256), FrameResolver()
frames = {}
def capture():
    _testing.capture_stack(session)
    stacks, new = resolver.resolve(session.new_stacks(resolver.next_stack))
    frames.update((row["id"], row) for row in new)
    return [
        [frames[i][key] for key in ("name", "filename", "line", "cell", "source")]
        for stack in stacks for i in stack["frames"]
    ][1:]
"""


def resolved(session, resolver, rows):
    """Return the newest stack as rows of frames without ids."""
    stacks, new = resolver.resolve(session.new_stacks(resolver.next_stack))
    rows.update((row["id"], row) for row in new)
    return [
        tuple(rows[frame][key] for key in ("name", "filename", "line", "cell", "source"))
        for frame in stacks[-1]["frames"]
    ]


@pytest.fixture
def probe():
    session, resolver, rows = _core.Session(stack_depth=256), FrameResolver(), {}

    def capture():
        _testing.capture_stack(session)
        return resolved(session, resolver, rows)[1:]

    return capture


@pytest.fixture
def shell(monkeypatch) -> Iterator[InteractiveShell]:
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)  # IPython warns if it is another Python's
    with new_shell() as shell:
        yield shell


def run_cell(shell, text):
    result = shell.run_cell(dedent(text), store_history=True)
    result.raise_error()
    return shell.user_ns["found"]


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


def code_of(name, filename):
    module = compile(f"def {name}(): pass", filename, "exec")
    return module if name == "module" else module.co_consts[0]


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


def test_a_cell_is_named_as_its_user_knows_it(shell, probe):
    shell.user_ns["probe"] = probe
    run_cell(shell, "found = None\n\ndef helper():\n    return probe()\n")

    found = run_cell(shell, "# second\nfound = helper()")

    assert found == [
        ("helper", "In [1]", 4, 1, "return probe()"),
        ("<module>", "In [2]", 2, 2, "found = helper()"),
    ]


def test_the_same_cell_run_again_is_another_cell(shell, probe):
    shell.user_ns["probe"] = probe

    first = run_cell(shell, "found = probe()")
    second = run_cell(shell, "found = probe()")

    assert first == [("<module>", "In [1]", 1, 1, "found = probe()")]
    assert second == [("<module>", "In [2]", 1, 2, "found = probe()")]


def test_the_body_of_a_cell_magic_is_the_cell(shell, probe):
    shell.user_ns["probe"] = probe
    shell.register_magic_function(
        lambda _, body: shell.run_cell(body) and None, magic_kind="cell", magic_name="inner"
    )

    found = run_cell(shell, "%%inner\ndef work():\n    return probe()\nfound = work()\n")

    assert found == [
        ("work", "In [1]", 2, 1, "return probe()"),
        ("<module>", "In [1]", 3, 1, "found = work()"),
    ]


def test_a_kernel_shows_cells_and_nothing_of_jupyter():
    manager, client = start_new_kernel()
    try:
        shown = []
        for cell in (
            PROBE,
            "def work():\n    return capture()",
            "import json\nprint(json.dumps(work()))",
        ):
            client.execute_interactive(
                cell,
                timeout=60,
                output_hook=lambda message: shown.append(message["content"].get("text")),
            )
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)

    text = next(text for text in shown if text)
    assert json.loads(text) == [
        ["work", "In [2]", 2, 2, "return capture()"],
        ["<module>", "In [3]", 2, 3, "print(json.dumps(work()))"],
    ]


LIBRARY = """
def call(depth, then):
    return call(depth - 1, then) if depth else then()
"""


@pytest.mark.parametrize("depth", [71, 300])
def test_lines_below_a_deep_library_are_two_and_what_was_left_out_is_said(depth):
    library = {}
    exec(compile(LIBRARY, "/x/lib/python3.11/site-packages/deep.py", "exec"), library)  # noqa: S102
    gpu = gpuviz.SimulatedGPU(real_time=False)

    with gpuviz.record(device=gpu) as recorder:
        first = library["call"](depth, lambda: gpu.empty(1 << 20))
        second = library["call"](depth, lambda: gpu.empty(1 << 20))
    del first, second

    recording = recorder.recording
    sites = recording.sites("line")
    stack = recording.sites()["stack"][0].as_py()
    frames = recording.call_stacks.frames(stack)
    left_out = [frame.site for frame in frames if not frame.filename]
    assert sites.num_rows == 2
    assert all("first = " in text or "second = " in text for text in sites["source"].to_pylist())
    if depth == 71:
        assert (left_out, recording.notes[1:]) == ([], ())
        assert deep_stacks(recording.tables) == ""
    else:
        assert len(frames) <= 128
        (text,) = left_out
        assert text.endswith(" frames left out)")
        assert recording.notes[1:] == ()
        deep = deep_stacks(recording.tables)
        assert deep == (
            "2 call stacks were very deep: the innermost and outermost frames were kept, and those "
            "between them only counted."
        )
        later = recording.with_note("One was lost.")
        assert notes(later) == ["One was lost."]
        assert environment(later)["Call stacks"] == deep
        redacted = redact(recording)
        assert text in [frame.name for frame in redacted.call_stacks.frames(stack)]


def test_imports_are_deep_without_a_note():
    library, imports = {}, {}
    exec(compile(LIBRARY, "/x/lib/python3.11/site-packages/deep.py", "exec"), library)  # noqa: S102
    exec(compile(LIBRARY, "<frozen importlib._bootstrap>", "exec"), imports)  # noqa: S102
    gpu = gpuviz.SimulatedGPU(real_time=False)

    with gpuviz.record(device=gpu) as recorder:
        array = imports["call"](2, lambda: library["call"](300, lambda: gpu.empty(1 << 20)))
    del array

    assert recorder.recording.notes[1:] == ()


def own_line(probe_of):
    """Return the name of the function whose line is shown for a stack, outermost frames cut."""
    session, resolver = _core.Session(stack_depth=256), FrameResolver()
    probe_of(partial(_testing.capture_stack, session))
    [stack], frames = resolver.resolve(session.new_stacks(1))
    return {row["id"]: row["name"] for row in frames}[stack["user_frame"]]


def test_the_line_of_generated_code_is_that_of_its_caller():
    def by_exec(probe):
        exec("def update(): probe()\nupdate()", {"probe": probe})  # noqa: S102

    def by_a_dataclass(probe):
        @dataclass
        class State:
            x: object = field(default_factory=probe)

        State()

    def by_a_compiler(probe):
        code = compile("probe()", "/home/ada/.cache/pyg/message_passing/conv.py", "exec")
        eval(code, {"probe": probe})  # noqa: S307

    assert own_line(by_exec).endswith("by_exec")
    assert own_line(by_a_dataclass).endswith("by_a_dataclass")
    assert own_line(by_a_compiler).endswith("by_a_compiler")


@pytest.mark.parametrize("is_older", [False, True])
def test_a_temporary_file_is_a_library_s_if_it_is_a_new_module_that_nothing_can_import(
    tmp_path, monkeypatch, is_older
):
    file = tmp_path / "layer_3f2a.py"
    file.write_text("def propagate(probe):\n    probe()\n")
    if is_older:  # than this process: a program that is loaded by its path
        os.utime(file, (0, 0))

    def program(probe):
        spec = importlib.util.spec_from_file_location("layer_3f2a", file)
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, "layer_3f2a", module)
        spec.loader.exec_module(module)
        module.propagate(probe)

    name = own_line(program)
    assert name == "propagate" if is_older else name.endswith("program")
    monkeypatch.syspath_prepend(tmp_path)
    assert own_line(program) == "propagate"


@pytest.mark.parametrize(
    ("name", "installed"),
    [
        ("<stdin>", 0),
        ("<timed exec>", 0),
        ("<ipython-input-3-ab>", 0),
        ("<command-1234>", 0),
        ("<string>", 2),
    ],
)
def test_code_that_was_typed_is_the_user_s(name, installed):
    stack = [
        (code_of("empty", "/site-packages/cupy/basic.py"), 0),
        (code_of("work", name), 0),
        (code_of("module", name), 0),
    ]

    [row], frames = FrameResolver().resolve([stack])

    assert (row["user_frame"], frames[1]["name"]) == (2, "work")
    assert frames[1]["installed"] == installed
