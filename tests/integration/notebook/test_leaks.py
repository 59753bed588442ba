"""`gpuviz.holders` in a real kernel."""

import pytest

from tests.integration.notebook.kernel import SAY_BEGUN, running_kernel

DEAD_CELLS = 100


@pytest.fixture
def kernel():
    with running_kernel() as kernel:
        kernel.run("import gc, gpuviz\ngpu = gpuviz.SimulatedGPU()\n%load_ext gpuviz")
        yield kernel


def leaks(kernel):
    """Return the text of the magic."""
    (bundle,) = kernel.run("%gpuviz leaks").bundles
    return bundle["text/plain"]


def test_an_interrupted_search_leaves_no_holder_behind(kernel):
    kernel.run("x = gpu.empty(9 << 20)\nheap = [[] for _ in range(300_000)]")
    message = kernel.begin(f"{SAY_BEGUN}\nwhile True:\n    gpuviz.holders()")
    kernel.manager.interrupt_kernel()

    assert kernel.wait(message).errors == ["KeyboardInterrupt"]
    assert kernel.run("print(gc.isenabled())").streams == "True\n"
    assert "9.00 MiB  x  (only holder)" in leaks(kernel)


def test_what_a_hundred_dead_cells_left_is_listed_and_dropped(kernel):
    fail = "def fail{0}():\n    lost = gpu.empty(2 << 20)\n    1 / 0\n"
    for number in range(DEAD_CELLS):
        kernel.run(f"{fail.format(number)}gpu.empty(1 << 20)")
        kernel.run(f"fail{number}()")
    # Earlier exceptions are in reference cycles.
    kernel.run("gc.collect();")

    text = leaks(kernel)

    assert "102 MiB of GPU memory in use" in text
    assert "2.00 MiB  Forget the last exception" in text
    outputs = "[each.name for each in gpuviz.holders().releases if each.name.startswith('Out[')]"
    freed = kernel.run(f"print([gpuviz.release(name) >> 20 for name in {outputs}])").streams
    assert freed == f"{[1] * DEAD_CELLS}\n"
