"""Forward work that the work of backward passes and of optimizers' closures belongs to."""

import ctypes
from functools import partial

import pytest

from gpuviz import _core
from gpuviz.recorder.call_stacks import FrameResolver
from tests.unit.recorder.torch_files import (
    ADAM,
    COMPILED,
    COMPILER,
    CONTEXTS,
    OPERATION,
    PROGRAM,
    SCHEDULERS,
    STEPS,
    called_through,
    know_files,
)
from tests.unit.recorder.torch_modules import Layers, Module, Operation

pytestmark = pytest.mark.usefixtures("names")


class Autograd:
    """The functions of an autograd engine, for one thread."""

    def __init__(self):
        self.graph, self.next_node, self.node = -1, 0, None
        self._functions = {
            "graph": ctypes.CFUNCTYPE(ctypes.c_int32)(lambda: self.graph),
            "next_node": ctypes.CFUNCTYPE(ctypes.c_uint64)(lambda: self.next_node),
            "thread": ctypes.CFUNCTYPE(ctypes.c_uint64)(lambda: 7),
            "current_node": ctypes.CFUNCTYPE(None, ctypes.c_void_p)(self._write_node),
        }

    def address(self, name):
        return ctypes.cast(self._functions[name], ctypes.c_void_p).value

    def _write_node(self, place):
        words = (ctypes.c_uint64 * 2).from_address(place)
        words[0] = 0 if self.node is None else ctypes.addressof(self.node)
        words[1] = 0

    def new_node(self):
        self.next_node += 1
        return (ctypes.c_uint64 * 3)(0, self.next_node - 1, 7)

    def accumulation(self):
        return (ctypes.c_uint64 * 3)(0, 2**64 - 1, 7)


@pytest.fixture
def autograd(session):
    autograd = Autograd()
    lender = _core.StackLender(autograd.address("graph"))
    lender.set_autograd(
        **{name: autograd.address(name) for name in ("next_node", "thread", "current_node")},
        number_offset=8,
        thread_offset=16,
    )
    lender.set_session(session)
    yield autograd
    lender.set_session(None)


def rows_of(session, numbers):
    """Return the rows of ``stacks`` of some stacks, and the lines of their forward frames."""
    count = len(session.new_stacks(1))
    marks = [session.marks_of(number) for number in range(1, count + 1)]
    stacks, frames = FrameResolver().resolve(session.new_stacks(1), marks)
    names = {frame["id"]: frame["name"] for frame in frames} | {0: ""}
    chosen = [stacks[number - 1] for number in numbers]
    return [
        (row["phase"], row["module"], names[row["forward_frame"]].rpartition(".")[2])
        for row in chosen
    ]


def test_the_work_of_a_backward_pass_belongs_to_the_forward_work(session, autograd, capture):
    nodes = []

    class Differentiable(Module):
        def forward(self, capture):
            nodes.append(autograd.new_node())
            return [capture()]

    model = Layers(first=Differentiable(), second=Differentiable())

    def backward(*nodes):
        autograd.graph = 0
        for node in nodes:
            autograd.node = node
            yield capture()
        autograd.graph, autograd.node = -1, None

    forward = model(capture)
    found = list(backward(*reversed(nodes), autograd.accumulation()))
    unknown = list(backward(None, (ctypes.c_uint64 * 3)(0, 99, 7), (ctypes.c_uint64 * 3)(0, 0, 8)))
    after = capture()

    assert rows_of(session, forward) == [("forward", name, "") for name in ("first", "second")]
    assert rows_of(session, found) == [
        ("backward", "second", "forward"),
        ("backward", "first", "forward"),
        ("backward", "first", "forward"),  # it accumulates what was computed last
    ]
    assert rows_of(session, unknown) == [("backward", "", "")] * 3
    assert rows_of(session, [after]) == [("", "", "")]


def test_a_node_without_work_of_its_own_belongs_to_what_the_work_around_it_has_in_common(
    session, autograd, capture
):
    class Viewing(Module):
        def forward(self, capture):
            autograd.new_node()
            first = capture()
            self.view = autograd.new_node()
            autograd.new_node()
            return [first, capture()]

    model = Layers(viewing=Viewing())
    model(capture)

    autograd.graph, autograd.node = 0, model.children["viewing"].view
    found = capture()

    # Its line is not known, only the call around both.
    assert rows_of(session, [found]) == [("backward", "viewing", "_wrapped_call_impl")]


def test_a_checkpoint_that_runs_the_forward_work_again_is_in_the_backward_pass(
    session, autograd, capture
):
    class Differentiable(Module):
        def forward(self, capture):
            self.node = autograd.new_node()
            return [capture()]

    model = Layers(only=Differentiable())
    (forward,) = model(capture)
    # The reentrant one runs a graph of its own within the first; both make new nodes.
    autograd.graph, autograd.node = 0, model.children["only"].node
    (again,) = model(capture)
    autograd.graph, autograd.node = 1, model.children["only"].node
    inner = capture()

    assert [row[:2] for row in rows_of(session, [forward, again, inner])] == [
        ("forward", "only"),
        ("backward", "only"),
        ("backward", "only"),
    ]


def test_a_second_backward_pass_undoes_the_same_forward_work(session, autograd, capture):
    class Differentiable(Module):
        def forward(self, capture):
            self.node = autograd.new_node()
            return [capture()]

    model = Layers(only=Differentiable())
    model(capture)
    autograd.graph, autograd.node = 0, model.children["only"].node
    second = autograd.new_node()
    first_pass = capture()
    autograd.graph, autograd.node = 1, second
    second_pass = capture()

    assert rows_of(session, [first_pass, second_pass]) == [("backward", "only", "forward")] * 2


@pytest.fixture
def torch_files(monkeypatch):
    """Let Python know some files as those of torch."""
    know_files(monkeypatch)


@pytest.mark.usefixtures("torch_files")
@pytest.mark.parametrize(
    ("files", "phase"),
    [
        ((STEPS, ADAM), "optimizer"),
        ((STEPS, ADAM, COMPILER, COMPILED), "optimizer"),
        ((STEPS, ADAM, OPERATION, PROGRAM), "optimizer"),
        ((STEPS, PROGRAM), "optimizer"),
        ((STEPS, CONTEXTS, PROGRAM), "optimizer"),
        ((STEPS, ADAM, PROGRAM), ""),
        ((STEPS, ADAM, CONTEXTS, PROGRAM), ""),
        ((SCHEDULERS, PROGRAM), ""),
        ((PROGRAM,), ""),
    ],
)
def test_a_closure_that_a_step_calls_is_no_part_of_it(session, capture, files, phase):
    captured = called_through(capture, files)

    assert rows_of(session, [captured]) == [(phase, "", "")]


@pytest.mark.usefixtures("torch_files")
def test_a_closure_has_the_phases_of_what_it_computes(session, autograd, capture):
    model = Layers(up=Operation())

    def loss():
        autograd.new_node()
        return capture()

    within = partial(called_through, files=(STEPS, ADAM, PROGRAM))
    (forward,) = within(partial(model, capture))
    (own,) = called_through(partial(model, capture), (STEPS, PROGRAM))
    found = [forward, own, within(loss)]
    autograd.graph = 0
    found.append(within(capture))
    autograd.graph = -1

    assert [row[:2] for row in rows_of(session, found)] == [
        ("forward", "up"),
        ("forward", "up"),
        ("forward", ""),
        ("backward", ""),
    ]
