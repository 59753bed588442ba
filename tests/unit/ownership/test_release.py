"""What is let go is what was listed, and nothing of the same name."""

import gc
import pickle
import sys
from types import ModuleType

import pytest
from hypothesis import HealthCheck, example, given
from hypothesis import strategies as st

import gpuviz
from gpuviz.ownership.names import LAST_RESULTS
from tests.examples import examples
from tests.unit.ipython_shells import new_shell

# A size that no other test uses.
SIZE = (4 << 20) + 1536
ACTIONS = ("last exception", "reference cycles", "FFT plans", "cached memory")
FORMER_ACTIONS = ("exception", "cycles", "plans", "pools")
EXAMPLES = examples(40, suppress_health_check=[HealthCheck.function_scoped_fixture])


class Box:
    """An object with one attribute."""

    def __init__(self, value):
        self.value = value


@pytest.fixture
def main(monkeypatch):
    """The namespace of a program without IPython."""
    module = ModuleType("__main__")
    monkeypatch.setitem(sys.modules, "__main__", module)
    return vars(module)


@pytest.fixture
def gpu():
    gc.collect()
    return gpuviz.SimulatedGPU(real_time=False)


@pytest.fixture
def raised():
    """Make an exception the last one."""
    yield lambda error: setattr(sys, "last_value", error)
    vars(sys).pop("last_value", None)


@pytest.fixture
def shell():
    with new_shell() as made:
        made.run_cell(
            f"import gpuviz\nSIZE = {SIZE}\ngpu = gpuviz.SimulatedGPU(real_time=False)",
            store_history=True,
        )
        yield made
        made.run_cell("%reset -f")
        made.InteractiveTB.tb = made.last_execution_result = None
    gc.collect()


def used(gpu):
    return gpu.memory_stats()["allocated_bytes.all.current"]


def listed(name):
    return next(each for each in gpuviz.holders(0).releases if each.name == name)


@pytest.mark.parametrize("name", FORMER_ACTIONS)
def test_a_variable_named_like_an_action_is_the_variable(name, main, gpu, raised):
    raised(KeyError(gpu.empty(SIZE * 2)))
    main[name] = gpu.empty(SIZE)

    assert gpuviz.release(name) == SIZE

    assert name not in main
    assert used(gpu) == SIZE * 2
    assert listed("last exception").nbytes == SIZE * 2
    assert gpuviz.release("last exception") == SIZE * 2


# The names of IPython's last results are set to None, as IPython does.
@given(name=st.text(st.characters(), max_size=12).filter(lambda name: name not in LAST_RESULTS))
@example(name="it's")
@example(name='"')
@example(name="\"'\\\n")
@example(name="\ud800")
@example(name="\x1b[2J")
@example(name="Out[2]")
@example(name="last exception")
@example(name="cached memory")
@EXAMPLES
def test_the_code_of_a_variable_with_any_name_deletes_it_and_no_other(name, main, gpu):
    main.clear()
    main[name] = gpu.empty(SIZE)
    others = [f"{name}_", *ACTIONS, *FORMER_ACTIONS, "Out[1]"]
    main.update({other: gpu.empty(512) for other in others if other != name})
    count = len(main)
    code = next(each.code for each in gpuviz.holders().releases if each.nbytes == SIZE)

    assert eval(code, {"gpuviz": gpuviz}) == SIZE  # noqa: S307 - it is what users are shown

    assert name not in main
    assert len(main) == count - 1


def rebound(main, gpu):
    main["x"] = gpu.empty(SIZE)


def rebound_to_more(main, gpu):
    main["x"] = gpu.empty(64 * SIZE)


def changed_box(main, gpu):
    main["x"] = Box(gpu.empty(SIZE))


def other_list(main, _gpu):
    main["x"] = [*main["x"]]


def grown(main, gpu):
    main["x"].append(gpu.empty(64 * SIZE))


@pytest.mark.parametrize(
    ("first", "change"),
    [
        (lambda array: array, rebound),
        (lambda array: array, rebound_to_more),
        (Box, changed_box),
        (lambda array: [array], other_list),
        (lambda array: [array], grown),
    ],
)
def test_a_variable_that_changed_since_it_was_listed_is_left_alone(first, change, main, gpu):
    main["x"] = first(gpu.empty(SIZE))
    offered = listed("x")
    if change is not other_list and change is not grown:
        del main["x"]
    change(main, gpu)
    now = used(gpu)

    with pytest.raises(
        ValueError, match=r"^x is no longer what was listed: .*Nothing was released$"
    ):
        gpuviz.release(offered)

    assert "x" in main
    assert used(gpu) == now


def test_a_variable_that_is_what_was_listed_is_deleted(main, gpu):
    main["x"] = [gpu.empty(SIZE)]
    main["y"] = gpu.empty(2 * SIZE)
    offered = listed("x")
    main["y"] = gpu.empty(SIZE)
    main["x"].append("no memory")
    gc.collect()

    assert gpuviz.release(offered) == SIZE
    assert "x" not in main


def test_a_list_of_the_largest_blocks_names_all_that_is_deleted_later(main, gpu):
    main["x"] = [gpu.empty(each * SIZE) for each in (1, 3, 2)]
    (offered,) = (each for each in gpuviz.holders(most=1).releases if each.name == "x")

    assert offered.nbytes == 3 * SIZE
    assert gpuviz.release(offered) == 6 * SIZE


def test_what_another_process_listed_is_not_let_go(main, gpu):
    main["x"] = gpu.empty(SIZE)
    sent = pickle.loads(pickle.dumps(listed("x")))  # noqa: S301 - our own

    with pytest.raises(ValueError, match="Nothing was released"):
        gpuviz.release(sent)

    assert sent == listed("x")
    assert "x" in main


@pytest.mark.usefixtures("main")
def test_another_exception_than_the_listed_one_is_kept(gpu, raised):
    raised(KeyError(gpu.empty(SIZE)))
    offered = listed("last exception")
    raised(KeyError(gpu.empty(64 * SIZE)))

    with pytest.raises(ValueError, match="last exception is no longer what was listed"):
        gpuviz.release(offered)

    assert listed("last exception").nbytes == 64 * SIZE


@pytest.mark.parametrize("what", [None, 3, b"x"])
def test_only_names_and_listed_things_can_be_let_go(what):
    with pytest.raises(TypeError, match="must be a name or a Release"):
        gpuviz.release(what)


@pytest.mark.usefixtures("capsys")
def test_a_users_own_variable_named_like_an_output_is_kept(shell):
    shell.run_cell("gpu.empty(SIZE)", store_history=True)
    shell.run_cell("_2 = 'my own'", store_history=True)

    assert gpuviz.release("Out[2]") == SIZE

    assert shell.user_ns["_2"] == "my own"
    assert 2 not in shell.user_ns["Out"]


@pytest.mark.usefixtures("capsys")
def test_a_users_own_name_of_an_output_keeps_it_and_is_deleted_by_its_name(shell):
    shell.run_cell("gpu.empty(SIZE)", store_history=True)
    shell.run_cell("_77 = Out[2]", store_history=True)
    with pytest.raises(ValueError, match="would free no memory"):
        gpuviz.release("Out[2]")
    shell.run_cell("del _77; _78 = gpu.empty(2 * SIZE)", store_history=True)

    assert gpuviz.release("_78") == 2 * SIZE
    assert gpuviz.release("Out[2]") == SIZE
    assert "_2" not in shell.user_ns


@pytest.mark.usefixtures("capsys")
def test_an_entry_of_out_under_another_key_is_dropped_and_the_last_result_kept(shell):
    shell.run_cell("Out['a'] = gpu.empty(SIZE)", store_history=True)
    shell.run_cell("gpu.empty(2 * SIZE)", store_history=True)

    assert gpuviz.release("Out['a']") == SIZE

    assert shell.user_ns["Out"].keys() == {3}
    assert gpuviz.release("Out[3]") == 2 * SIZE


@pytest.mark.usefixtures("capsys")
def test_a_loop_variable_named_underscore_is_told_from_the_last_result(shell):
    shell.run_cell("gpu.empty(SIZE)", store_history=True)
    shell.run_cell("for _ in [gpu.empty(2 * SIZE)]: pass", store_history=True)

    assert gpuviz.release("_") == 2 * SIZE
    assert gpuviz.release("Out[2]") == SIZE
