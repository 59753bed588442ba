"""What IPython keeps alive is named, and letting go of it frees exactly what was promised."""

import asyncio
import functools
import gc
import sys

import pytest

from gpuviz.ownership.holders import holders, release
from tests.unit.ipython_shells import new_shell

# A size that no other test uses.
SIZE = (4 << 20) + 1024
FAIL = """
def fail():
    lost = gpu.empty(SIZE)
    raise KeyError(1)
"""
# The cells of each, what `gpuviz.holders` calls the holder, and what frees it.
ROOTS = {
    "a variable": (["x = gpu.empty(SIZE)"], "x", "x"),
    "a loop's variable": (["for x in [gpu.empty(SIZE)]: pass"], "x", "x"),
    "an output": (["gpu.empty(SIZE)"], "Out[2]", "Out[2]"),
    "an output of earlier": (["gpu.empty(SIZE)", "1", "2", "3", "4"], "Out[2]", "Out[2]"),
    "an output in a list": (["[gpu.empty(SIZE)]"], "Out[2][0]", "Out[2]"),
    "a result without a cache": (
        ["get_ipython().displayhook.cache_size = 0", "gpu.empty(SIZE)"],
        "the last result",
        "the last result",
    ),
    "an exception": ([FAIL, "fail()"], "local `lost` of fail() line 3", "last exception"),
    "the context of an exception": (
        [FAIL, "try:\n    fail()\nexcept KeyError:\n    1/0"],
        "local `lost` of fail() line 3",
        "last exception",
    ),
    "the cause of an exception": (
        [FAIL, "try:\n    fail()\nexcept KeyError as e:\n    raise ValueError from e"],
        "local `lost` of fail() line 3",
        "last exception",
    ),
    "an argument of an exception": (
        ["raise KeyError(gpu.empty(SIZE))"],
        "KeyError",
        "last exception",
    ),
    "an exception of an earlier cell": (
        [FAIL, "fail()", "1", "2"],
        "local `lost`",
        "last exception",
    ),
    "an exception of a magic": ([FAIL, "%time fail()"], "local `lost` of fail()", "last exception"),
    "a closure": (
        ["def make():\n    y = gpu.empty(SIZE)\n    return lambda: y\nf = make()"],
        "variable `y` in the closure of make.<locals>.<lambda>()",
        "f",
    ),
    "a deleted name in a list": (["x = gpu.empty(SIZE); z = [x]; del x"], "z[0]", "z"),
}


@pytest.fixture
def shell():
    last = {name: value for name, value in vars(sys).items() if name.startswith("last_")}
    with new_shell() as made:
        made.run_cell(
            f"import gpuviz\nSIZE = {SIZE}\ngpu = gpuviz.SimulatedGPU(real_time=False)",
            store_history=True,
        )
        yield made
        made.run_cell("%reset -f")
        release_exception(made)
    for name in [name for name in vars(sys) if name.startswith("last_")]:
        delattr(sys, name)
    vars(sys).update(last)
    gc.collect()


def release_exception(shell):
    shell.InteractiveTB.tb = shell.last_execution_result = None


def block():
    (found,) = (each for each in holders().blocks if each.size == SIZE)
    return found


def used(shell):
    return shell.user_ns["gpu"].memory_stats()["allocated_bytes.all.current"]


@pytest.mark.parametrize("name", ROOTS)
@pytest.mark.usefixtures("capsys")
def test_what_a_notebook_keeps_is_named_and_freed(name, shell):
    cells, path, releases = ROOTS[name]
    for cell in cells:
        shell.run_cell(cell, store_history=True)

    found = block()

    assert found.only is not None, found
    assert path in found.only.path
    promised = {each.name: each.nbytes for each in holders(0).releases}
    assert promised[releases] == SIZE
    assert used(shell) == SIZE
    assert release(releases) == SIZE
    assert used(shell) == 0


@pytest.mark.usefixtures("capsys")
def test_each_place_of_the_last_exception_alone_is_named(shell):
    places = {
        "sys.last_value": lambda error: setattr(sys, "last_value", error),
        "sys.last_traceback": lambda error: setattr(sys, "last_traceback", error.__traceback__),
        "sys.last_exc": lambda error: setattr(sys, "last_exc", error),
        "IPython's traceback": lambda error: setattr(
            shell.InteractiveTB, "tb", error.__traceback__
        ),
        "IPython's syntax traceback": lambda error: setattr(
            shell.SyntaxTB, "tb", error.__traceback__
        ),
        "the debugger": lambda error: setattr(
            shell.InteractiveTB, "pdb", [error.__traceback__.tb_next.tb_frame]
        ),
        "the last execution's error": lambda error: setattr(
            shell.last_execution_result, "error_in_exec", error
        ),
    }
    shell.run_cell(FAIL)
    for place, keep in places.items():
        keep_exception(shell.user_ns["fail"], keep)
        found = block()
        assert found.only is not None, found
        assert found.only.path.startswith(place.replace(" syntax", "")), found
        assert release("last exception") == SIZE, place
        assert used(shell) == 0


def keep_exception(fail, keep):
    try:
        fail()
    except KeyError as error:
        keep(error)


@pytest.mark.usefixtures("capsys")
def test_memory_of_a_script_is_named(shell, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(f"import gpuviz\ngpu = gpuviz.SimulatedGPU()\nx = gpu.empty({SIZE})\n")
    shell.run_cell(f"%run {script}")
    shell.run_cell("del x")
    found = block()
    assert found.only is not None, found
    assert found.only.kind == "script"
    assert found.only.name == f"x of {script}"


@pytest.mark.usefixtures("capsys")
def test_memory_of_a_suspended_task_is_the_tasks(shell):
    async def serve(gpu):
        batch = gpu.empty(SIZE)
        await asyncio.Event().wait()
        del batch

    async def main():
        task = asyncio.create_task(serve(shell.user_ns["gpu"]), name="server")
        await asyncio.sleep(0)
        shell.user_ns["task"] = task
        found = block()
        task.cancel()
        return found

    found = asyncio.run(main())
    del shell.user_ns["task"]
    assert found.only is not None, found
    assert found.only.name == "asyncio task server"
    assert any("local `batch` of coroutine" in each.path for each in found.holders)


@pytest.mark.usefixtures("capsys")
def test_a_cell_prints_what_keeps_memory_alive(shell, capsys):
    shell.run_cell("%load_ext gpuviz")
    shell.run_cell("x = gpu.empty(78 << 20)")
    capsys.readouterr()
    shell.run_cell("%gpuviz leaks")
    printed = capsys.readouterr().out
    assert "78.0 MiB  x  (only holder)" in printed
    assert 'Delete x: gpuviz.release("x")' in printed
    shell.run_cell("%unload_ext gpuviz")


@pytest.mark.usefixtures("capsys")
def test_a_name_beside_a_cycle_is_freed_with_it(shell):
    shell.run_cell("x = [gpu.empty(SIZE)]; x.append(x)")
    gc.disable()
    try:
        assert release("x") == SIZE
    finally:
        gc.enable()


def test_the_result_is_about_no_object(shell):
    shell.run_cell("x = gpu.empty(SIZE)")
    held = holders()
    seen, waiting = set(), [held]
    while waiting:
        each = waiting.pop()
        if id(each) not in seen and not isinstance(each, type | functools.partial):
            seen.add(id(each))
            waiting += gc.get_referents(each)
    assert id(shell.user_ns["x"]) not in seen
