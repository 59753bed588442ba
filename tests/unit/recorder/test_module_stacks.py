"""Modules and forward work in call stacks, as torch's calls and autograd give them."""

import ctypes
import gc
import threading
import weakref
from functools import partial
from types import SimpleNamespace

import pytest

from gpuviz import _core, _testing
from gpuviz.frameworks.torch_modules import ModuleNames
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


class Module:
    """A module like torch's."""

    def __init__(self, **children):
        self.children = children

    def _wrapped_call_impl(self, *args):
        return self.forward(*args)

    __call__ = _wrapped_call_impl

    def named_modules(self):
        yield "", self
        for name, child in self.children.items():
            for path, module in child.named_modules():
                yield f"{name}.{path}" if path else name, module


class Operation(Module):
    """Captures one stack."""

    def forward(self, capture):
        return [capture()]


class Layers(Module):
    """Calls others in one line."""

    def forward(self, capture):
        return [number for child in self.children.values() for number in child(capture)]


TORCH = SimpleNamespace(nn=SimpleNamespace(Module=Module))


@pytest.fixture
def session():
    session = _core.Session(stack_depth=256)
    session.start()
    yield session
    session.stop()


@pytest.fixture(autouse=True)
def names(session):
    names = ModuleNames(session)
    names.begin(TORCH)
    yield names
    names.end()


@pytest.fixture(params=[False, True])
def capture(session, request):
    """Capture a stack with or without the GIL."""
    return partial(_testing.capture_stack_without_waiting, session, request.param)


def modules(session, numbers):
    session.new_stacks(1)
    return [session.marks_of(number)[1] for number in numbers]


def test_layers_that_one_line_calls_are_told_apart_and_named_by_their_path(session, capture):
    model = Layers(up=Operation(), blocks=Layers(first=Operation(), second=Operation()))

    first, *others = [model(capture) for _ in range(5)]

    assert modules(session, first) == ["up", "blocks.first", "blocks.second"]
    assert others == [first] * 4
    outside = capture()
    assert session.marks_of(outside)[:2] == (False, "")


def test_another_model_has_its_type_before_its_paths(session, capture):
    models = [Layers(inner=Operation()) for _ in range(3)]

    captured = [model(capture)[0] for model in models]
    alone = Operation()(capture)[0]

    assert modules(session, captured) == ["inner", "Layers#2.inner", "Layers#3.inner"]
    assert modules(session, [alone]) == ["Operation"]


class Wrapper(Module):
    """A wrapper like torch's around a model."""

    def __init__(self, place, module):
        self._modules = {place: module}
        self.children = self._modules

    def forward(self, capture):
        (module,) = self._modules.values()
        return module(capture)


@pytest.mark.parametrize(
    ("kind", "place"),
    [
        ("OptimizedModule", "_orig_mod"),
        ("DistributedDataParallel", "module"),
        ("FullyShardedDataParallel", "_fsdp_wrapped_module"),
        ("DeepSpeedEngine", "module"),
        ("_FabricModule", "_forward_module"),
    ],
)
def test_a_wrapper_of_torch_is_in_no_name(session, capture, kind, place):
    inside = Wrapper("_checkpoint_wrapped_module", Operation())
    model = type(kind, (Wrapper,), {})(place, Layers(up=Operation(), blocks=Layers(last=inside)))

    captured = model(capture)

    assert modules(session, captured) == ["up", "blocks.last"]


def test_a_sharded_model_has_the_name_of_its_own_class(session, capture):
    shards = type("FSDPModule", (), {})
    sharded = type("FSDPOperation", (shards, Operation), {})

    Layers(up=Operation())(capture)
    captured = sharded()(capture)

    assert modules(session, captured) == ["Operation"]


def test_what_a_compiler_made_of_a_module_has_the_name_of_the_module(session, capture):
    compiled = type("GraphModule", (Operation,), {})()

    class Holder(Module):
        def forward(self, capture):
            return compiled(capture)

    captured = Layers(up=Holder())(capture)

    assert modules(session, captured) == ["up"]


def test_a_module_outside_its_model_has_the_name_of_its_type(session, capture):
    class Holder(Module):
        def forward(self, capture):
            return self.hidden[0](capture)

    model = Holder()
    model.hidden = [Operation()]

    assert modules(session, model(capture)) == ["Operation"]


class Trained(Layers):
    """A module with a step of its own, like those of Lightning."""

    def training_step(self, capture):
        (part, *_) = self.children.values()
        return part(capture)


def test_a_module_whose_method_calls_its_parts_is_the_model(session, capture):
    model = Trained(encoder=Layers(up=Operation()), decoder=Operation())

    captured = [*model.training_step(capture), *model.children["decoder"](capture)]

    assert modules(session, captured) == ["encoder.up", "decoder"]


def test_a_module_whose_method_calls_another_one_is_not_its_model(session, capture):
    class Critic(Module):
        def judge(self, other, capture):
            return other(capture)

    captured = Critic().judge(Layers(up=Operation()), capture)

    assert modules(session, captured) == ["up"]


def test_names_keep_nothing_of_the_program_alive(session, capture):
    class Input:
        """What the model is called with."""

    class Reading(Module):
        def forward(self, capture, value):
            return [capture()] if value else []

    def step(model):
        value = Input()
        step.seen = weakref.ref(value)
        model.training_step(capture)
        captured = Reading()(capture, value)
        assert modules(session, captured) == ["Reading"]
        del value
        return step.seen()

    gc.disable()
    try:
        assert step(Trained(up=Operation())) is None
    finally:
        gc.enable()


def test_a_module_that_died_does_not_give_its_name_to_another_one(session, capture):
    seen = []
    for turn in range(20):
        model = Layers(**{f"child_{turn}": Operation()})
        seen += model(capture)
        del model
        gc.collect()

    expected = [f"{'' if not turn else f'Layers#{turn + 1}.'}child_{turn}" for turn in range(20)]
    assert modules(session, seen) == expected


def test_an_exception_in_a_module_leaves_it(session, capture):
    class Failing(Module):
        def forward(self, capture):
            capture()
            raise ValueError("of the program")

    with pytest.raises(ValueError, match="of the program"):
        Failing()(capture)

    assert session.marks_of(capture())[:2] == (False, "")


def test_a_model_that_cannot_list_its_modules_has_its_type(session, capture):
    class Unlisted(Operation):
        def named_modules(self):
            raise RuntimeError("of the program")

    assert modules(session, Unlisted()(capture)) == ["Unlisted"]


def test_modules_of_several_threads_are_their_own(session, capture):
    model = Layers(**{f"layer{i}": Operation() for i in range(4)})
    model(capture)
    found = {}

    def work(name):
        found[name] = [model.children[name](capture)[0] for _ in range(50)]

    threads = [threading.Thread(target=work, args=(f"layer{i}",)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    for name, numbers in found.items():
        assert set(modules(session, numbers)) == {name}


def test_a_torch_that_calls_modules_in_another_way_has_no_names(session, capture):
    names = ModuleNames(session)
    names.begin(SimpleNamespace(nn=SimpleNamespace(Module=type("Module", (), {}))))
    session.watch_modules(None, None)

    assert [session.marks_of(number)[:2] for number in Operation()(capture)] == [(False, "")]


def test_without_names_nothing_is_in_a_module(session, names, capture):
    names.end()

    assert [session.marks_of(number)[:2] for number in Operation()(capture)] == [(False, "")]


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
