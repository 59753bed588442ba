"""Modules in call stacks, as torch calls them."""

import gc
import threading
import weakref
from types import SimpleNamespace

import pytest

from gpuviz.frameworks.torch_modules import ModuleNames
from tests.unit.recorder.torch_modules import Layers, Module, Operation

pytestmark = pytest.mark.usefixtures("names")


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
