"""Call stacks that begin in deep libraries, imports and generated code."""

import importlib.util
import os
import sys
from dataclasses import dataclass, field
from functools import partial

import pytest

import gpuviz
from gpuviz import _core, _testing
from gpuviz.data.notes import deep_stacks
from gpuviz.recorder.call_stacks import FrameResolver
from gpuviz.report.facts import environment, notes
from gpuviz.report.redaction import redact
from tests.unit.recorder.captured_stacks import code_of

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
