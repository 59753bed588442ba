"""The magics in a real kernel: outputs in the front end, and their cells."""

import pytest

from tests.integration.notebook.kernel import SAY_BEGUN, running_kernel

SETUP = "import gpuviz, asyncio, time\n%load_ext gpuviz\ngpu = gpuviz.SimulatedGPU()"


@pytest.fixture(scope="module")
def kernel():
    with running_kernel() as kernel:
        assert kernel.run(SETUP).status == "ok"
        yield kernel


def test_the_result_stands_under_the_cell_after_its_last_expression(kernel):
    outputs = kernel.run("%%gpuviz --simulated gpu\nx = gpu.empty(1 << 20)\n'last'")

    last, result = outputs.bundles
    assert last == {"text/plain": "'last'"}
    assert set(result) == {"text/plain", "text/html"}
    assert result["text/plain"].startswith("gpuviz: peak 1.00 MiB; 1.00 MiB still allocated")
    assert (outputs.status, outputs.streams, outputs.errors) == ("ok", "", [])


def test_a_cell_awaits_on_the_kernels_own_loop(kernel):
    outputs = kernel.run(
        "%%gpuviz --simulated gpu\nloop = asyncio.get_running_loop()\ny = gpu.empty(2 << 20)\n"
        "await asyncio.sleep(0.01, result='slept')",
    )

    awaited, result = outputs.bundles
    assert awaited == {"text/plain": "'slept'"}
    assert "2.00 MiB held by y" in result["text/plain"]


def test_an_exception_is_the_cells_and_the_result_is_shown_all_the_same(kernel):
    outputs = kernel.run("%%gpuviz --simulated gpu\nz = gpu.empty(3 << 20)\n1 / 0")

    [result] = outputs.bundles
    assert (outputs.status, outputs.errors) == ("error", ["ZeroDivisionError"])
    assert "3.00 MiB held by z" in result["text/plain"]
    assert kernel.run("%gpuviz status").streams.startswith("Recording stopped after ")


# ipykernel delivers an interrupt to an awaiting cell only after the await has finished.
@pytest.mark.parametrize("waiting", ["time.sleep(30)", "await asyncio.sleep(3)"])
def test_an_interrupt_ends_the_cell_and_its_recording(kernel, waiting):
    message = kernel.begin(
        f"%%gpuviz --simulated gpu\nq = gpu.empty(4 << 20)\n{SAY_BEGUN}\n{waiting}\nnever = 1",
    )
    kernel.manager.interrupt_kernel()
    outputs = kernel.wait(message)

    [result] = outputs.bundles
    assert outputs.status == "error"
    assert "4.00 MiB held by q" in result["text/plain"]
    assert kernel.run("%gpuviz status").streams.startswith("Recording stopped after ")


def test_a_wrong_argument_is_a_sentence_and_the_next_cell_runs(kernel):
    wrong = kernel.run("%%gpuviz --nope\n1")
    right = kernel.run("1")

    assert wrong.streams == ("UsageError: Unrecognized arguments: --nope. See `%%gpuviz --help`.\n")
    assert (wrong.bundles, right.bundles) == ([], [{"text/plain": "1"}])


def test_the_numbers_of_a_dashboard_move_while_a_cell_runs_and_somebody_looks(kernel):
    shown = kernel.run("%gpuviz dashboard")
    kernel.run("%gpuviz start --simulated gpu")
    kernel.run("kept = []\ntime.sleep(1)")
    program = "for _ in range(20):\n    kept.append(gpu.empty(1 << 20))\n    time.sleep(0.1)"
    hidden = kernel.run(program)
    kernel.run("[timeline] = gpuviz.notebook.timeline._open\ntimeline._viewers.add('page')")
    busy = kernel.run(program)
    kernel.run("del timeline\n%gpuviz stop")
    unloaded = kernel.run(
        "%reload_ext gpuviz\nimport threading\n[t.name for t in threading.enumerate()]"
    )

    numbers = {value for value in busy.widget_values if "Allocated" in value}
    live, static_output = shown.bundles[:2]
    assert "application/vnd.jupyter.widget-view+json" in live
    assert set(static_output) == {"text/plain", "text/html"}
    assert [value for value in hidden.widget_values if "Allocated" in value] == []
    assert 2 <= len(numbers) <= 8
    assert "gpuviz-dashboard" not in unloaded.bundles[-1]["text/plain"]
    assert (busy.status, busy.streams) == ("ok", "")
