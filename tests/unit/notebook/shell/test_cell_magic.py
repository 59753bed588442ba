import re

import pytest

import gpuviz
from gpuviz.notebook.compared_cells import FIRST_RUN, MOST_CELLS, ComparedCells
from gpuviz.recorder.recorder import Recorder


def test_the_last_expression_is_shown_and_stored_and_the_result_follows(shell):
    ran = shell.run("%%gpuviz --simulated gpu\nx = gpu.empty(1 << 20)\n41 + 1")

    assert ran.result.result == 42
    assert shell.names["_"] == 42
    assert ran.text.startswith("gpuviz: peak 1.00 MiB; 1.00 MiB still allocated")
    assert Recorder.active() is None


def test_the_result_names_the_line_of_the_peak_and_the_names_that_hold_memory(shell):
    ran = shell.run(
        "%%gpuviz --simulated gpu\n"
        "kept = {'w': gpu.empty(3 << 20)}\n"
        "parts = [gpu.empty(2 << 20)]\n"
        "gpu.empty(4 << 20)\n"
        "temporary = gpu.empty(8 << 20)\n"
        "del temporary, _",
    )

    assert re.search(
        r"reached at  temporary = gpu.empty\(8 << 20\)  <module> \(In \[3\]:5\)", ran.text
    )
    assert "3.00 MiB held by kept['w']  kept = {'w': gpu.empty(3 << 20)}" in ran.text
    assert "2.00 MiB held by parts[0]  parts = [gpu.empty(2 << 20)]" in ran.text


def test_an_exception_passes_through_with_the_line_of_the_cell(shell):
    ran = shell.run("%%gpuviz --simulated gpu\nx = gpu.empty(1 << 20)\n\n1 / 0")

    assert isinstance(ran.result.error_in_exec, ZeroDivisionError)
    assert ran.result.error_in_exec.__traceback__.tb_next.tb_lineno == 4
    assert "1.00 MiB held by x" in ran.text
    assert Recorder.active() is None


def test_memory_that_a_traceback_keeps_is_told(shell):
    ran = shell.run(
        "%%gpuviz --simulated gpu\n"
        "def fail(outer):\n"
        "    inner = [gpu.empty(2 << 20)]\n"
        "    raise ValueError(inner)\n"
        "fail(gpu.empty(1 << 20))",
    )

    assert "2.00 MiB held by inner[0] of fail() in the last traceback" in ran.text
    assert "1.00 MiB held by outer of fail() in the last traceback" in ran.text


def test_an_interrupt_passes_through_and_the_recording_ends(shell):
    ran = shell.run("%%gpuviz --simulated gpu\nx = gpu.empty(1 << 20)\nraise KeyboardInterrupt")

    assert isinstance(ran.result.error_in_exec, KeyboardInterrupt)
    assert "1.00 MiB held by x" in ran.text
    assert Recorder.active() is None


def test_a_cell_may_await(shell):
    ran = shell.run(
        "%%gpuviz --simulated gpu\nimport asyncio\nx = gpu.empty(1 << 20)\n"
        "await asyncio.sleep(0.01, result='slept')",
    )

    assert ran.result.result == "slept"
    assert "1.00 MiB held by x" in ran.text


def test_a_cell_that_does_not_parse_is_not_recorded(shell):
    ran = shell.run("%%gpuviz --simulated gpu\nfor")

    assert isinstance(ran.result.error_before_exec, SyntaxError)
    assert ran.result.error_before_exec.lineno == 2
    assert ran.shown == []


def test_wrong_arguments_are_told_and_the_cell_does_not_run(shell):
    ran = shell.run("%%gpuviz --sumilated gpu\nx = 1")

    sentence = "Unrecognized arguments: --sumilated gpu. Did you mean `--simulated`? "
    assert ran.stderr == f"UsageError: {sentence}See `%%gpuviz --help`.\n"
    assert "x" not in shell.names


def test_a_command_of_the_line_magic_is_told_to_be_one(shell):
    ran = shell.run("%%gpuviz start\nx = 1")

    assert "Did you mean the line magic `%gpuviz start`, with a single %?" in ran.stderr
    assert "x" not in shell.names


@pytest.mark.parametrize("cell", ["%%gpuviz --help", "%%gpuviz -h\n", "%%gpuviz --help\nx = 1"])
def test_help_needs_no_cell_and_runs_none(shell, cell):
    ran = shell.run(cell)

    assert ran.stdout.startswith("usage: %%gpuviz ")
    assert ran.stderr == ""
    assert "x" not in shell.names


def test_a_file_that_exists_is_told_before_the_cell_runs(shell, tmp_path):
    path = tmp_path / "there.gpuviz"
    path.write_text("")
    ran = shell.run(f"%%gpuviz --simulated gpu --save {path}\nx = 1")

    assert ran.stderr.startswith(f"UsageError: {path} exists")
    assert "x" not in shell.names


def test_a_cell_may_be_saved_without_showing_anything(shell, tmp_path):
    path = tmp_path / "cell.gpuviz"
    ran = shell.run(f"%%gpuviz --simulated gpu --quiet --save {path}\nx = gpu.empty(1 << 20)")

    assert ran.shown == []
    assert gpuviz.load(path).peak().bytes == 1 << 20


@pytest.mark.parametrize("option", ["", "--no-streams"])
def test_the_range_of_a_cell_is_on_the_clock_of_the_simulation(shell, tmp_path, option):
    path = tmp_path / "cell.gpuviz"
    shell.run(
        f"%%gpuviz --simulated gpu --quiet --save {path} {option}\n"
        "gpu.launch('work', duration=1e-3)\n"
        "gpu.synchronize()"
    )

    recording = gpuviz.load(path)
    (cell,) = recording.table("ranges").to_pylist()
    assert cell["kind"] == "cell"
    assert 0 == cell["time"] < cell["end"] == recording.duration_ns < 2_000_000


def test_while_a_recorder_is_active_the_window_of_the_cell_is_measured_in_it(shell):
    shell.run("%gpuviz start --simulated gpu")
    shell.run("before = gpu.empty(5 << 20)\ngone = gpu.empty(7 << 20)\ndel gone")
    shell.run("gpu.work_on_host(1e-3)")
    ran = shell.run("%%gpuviz\ngpu.work_on_host(1e-3)\nx = gpu.empty(1 << 20)")

    assert "peak 6.00 MiB; 1.00 MiB still allocated; took 1.05 ms" in ran.text
    assert "5.00 MiB before the cell" in ran.text
    assert "held by x" in ran.text
    assert "before = " not in ran.text
    assert Recorder.active() is not None


def test_a_gpu_that_the_active_recorder_does_not_see_is_refused(shell):
    shell.run("%gpuviz start --simulated gpu\nother = gpuviz.SimulatedGPU(real_time=False)")
    refused = shell.run("%%gpuviz --simulated other\nx = other.empty(1 << 20)")
    seen = shell.run("%%gpuviz --simulated gpu\ny = gpu.empty(1 << 20)")

    assert refused.stderr == (
        "UsageError: A recording of another GPU is in progress; run `%gpuviz stop` first.\n"
    )
    assert "x" not in shell.names
    assert "1.00 MiB held by y" in seen.text


def test_a_recorder_that_the_cell_stops_is_read_all_the_same(shell):
    ran = shell.run("%%gpuviz --simulated gpu\nx = gpu.empty(1 << 20)\n%gpuviz stop")

    assert "1.00 MiB held by x" in ran.text


def test_other_cell_magics_may_stand_before_and_after(shell):
    after = shell.run("%%gpuviz --simulated gpu\n%%time\nx = gpu.empty(1 << 20)")
    before = shell.run("%%time\n%%gpuviz --simulated gpu\ny = gpu.empty(2 << 20)")

    assert "1.00 MiB held by x" in after.text
    assert "2.00 MiB held by y" in before.text


def test_a_cell_within_the_cell_does_not_end_it(shell):
    ran = shell.run(
        "%%gpuviz --simulated gpu\nget_ipython().run_cell('1')\nget_ipython().run_cell(' ')\n"
        "x = gpu.empty(1 << 20)",
    )

    assert len(ran.shown) == 1
    assert "1.00 MiB held by x" in ran.text


def test_the_magic_may_be_called_as_a_function(shell):
    ran = shell.run(
        "get_ipython().run_cell_magic('gpuviz', '--simulated gpu', 'x = gpu.empty(1 << 20)')",
    )

    assert "1.00 MiB held by x" in ran.text


def test_a_cell_magic_without_a_body_stays_an_error(shell):
    assert "the cell body is empty" in shell.run("%%gpuviz").stderr


def test_a_terminal_still_waits_for_the_rest_of_the_cell(shell):
    complete = shell.shell.input_transformer_manager.check_complete

    assert complete("%%gpuviz\nx = 1\n")[0] == "incomplete"
    assert complete("%%gpuviz\nx = 1\n\n")[0] == "complete"


def test_a_cell_may_be_reported_and_saved_at_once_and_says_where(shell, tmp_path):
    saved, report = tmp_path / "cell.gpuviz", tmp_path / "cell.html"
    ran = shell.run(
        f"%%gpuviz --simulated gpu --save {saved} --report {report}\nx = gpu.empty(1 << 20)",
    )

    assert gpuviz.load(saved).peak().bytes == gpuviz.load(report).peak().bytes == 1 << 20
    assert ran.text.endswith(f"  wrote {saved}\n  wrote {report}")
    assert f"Wrote <code>{report}</code>" in ran.shown[-1]["text/html"]


def test_a_quiet_cell_shows_what_it_would_without_the_magic(shell):
    ran = shell.run("%%gpuviz --simulated gpu --quiet\nx = gpu.empty(1 << 20)\n41 + 1")

    assert (ran.result.result, ran.shown, ran.stderr) == (42, [], "")


def test_a_report_is_only_replaced_by_force(shell, tmp_path):
    path = tmp_path / "cell.html"
    first = shell.run(f"%%gpuviz --simulated gpu --report {path}\nx = gpu.empty(1 << 20)")
    refused = shell.run(f"%%gpuviz --simulated gpu --report {path}\ny = 1")
    forced = shell.run(f"%%gpuviz --simulated gpu --report {path} --force\ny = gpu.empty(512)")

    assert first.stderr == forced.stderr == ""
    assert f"{path} exists; choose another name, or use --force to replace it." in refused.stderr
    assert gpuviz.load(path).peak().bytes == (1 << 20) + 512


RACE = """\
s, t = gpu.Stream(non_blocking=True), gpu.Stream(non_blocking=True)
with s:
    a = gpu.empty(1 << 20)
    gpu.launch("fill", writes=[a], duration=1e-3, share=0.1)
with t:
    gpu.launch("use", reads=[a], duration=1e-3, share=0.1)
gpu.launch("last", duration=1e-3)
gpu.synchronize()
"""


def test_a_cell_shows_its_hazards_with_lines_and_fix(shell):
    ran = shell.run(f"%%gpuviz --simulated gpu --hazards\n{RACE}")

    assert re.search(r"Hazards +1  unordered operations on the same memory", ran.text)
    assert "RAW, probable: read without waiting for the write (1.00 MiB, 1 pair" in ran.text
    assert 'gpu.launch("use", reads=[a], duration=1e-3, share=0.1)  <module> (In [' in ran.text
    assert "second_stream.wait_event(first_stream.record())." in ran.text
    assert "Default stream" not in ran.text
    assert "second_stream.wait_event(first_stream.record())." in ran.shown[0]["text/html"]


def test_a_cell_lists_work_on_the_default_stream(shell):
    ran = shell.run(f"%%gpuviz --simulated gpu --forbid-default-stream\n{RACE}")

    assert re.search(r"Default stream +1  launches, copies and memsets", ran.text)
    assert 'kernel, 1 time  gpu.launch("last", duration=1e-3)' in ran.text
    assert "Hazards" not in ran.text


def test_a_cell_can_prevent_the_reuse_of_memory(shell):
    ran = shell.run(
        f"%%gpuviz --simulated gpu --record-stream auto --poison\n{RACE}first = a.ptr\n"
        "with t:\n    gpu.launch('late', reads=[a], duration=1)\ndel a\n"
        "with s:\n    print(gpu.empty(1 << 20).ptr == first)"
    )

    assert ran.stdout.splitlines()[0] == "False"


def test_the_hazards_of_a_cell_within_a_recording_are_known_when_it_stops(shell):
    shell.run("%gpuviz start --simulated gpu --hazards")
    ran = shell.run(f"%%gpuviz --hazards\n{RACE}")
    stopped = shell.run("%gpuviz stop")

    assert re.search(r"Hazards +unknown  ", ran.text)
    assert "1 hazard between streams: 1 probable." in stopped.stdout


def test_a_cell_whose_hazards_are_unknown_says_why(shell):
    ran = shell.run("%%gpuviz --simulated gpu --hazards\nb = gpu.empty(512)")

    assert re.search(r"Hazards +unknown  No launch is recorded with the blocks", ran.text)
    refused = shell.run("%%gpuviz --simulated gpu --hazards --no-stacks\nb = gpu.empty(512)")
    assert "hazards=True needs stacks=True" in refused.stderr + refused.stdout + str(
        refused.result.error_in_exec
    )


def test_a_cell_is_compared_with_its_previous_run(shell):
    cell = "%%gpuviz --simulated gpu --quiet --compare\nx = gpu.empty({} << 20)\ndel x"

    first, second, same = (shell.run(cell.format(size)).text for size in (4, 6, 6))

    assert first.startswith("This is the first compared run of this cell.")
    assert re.search(r"Peak of allocated bytes +4\.00 MiB +6\.00 MiB +\+50 %", second)
    assert re.search(r"\+2\.00 MiB +edited .*x = gpu\.empty\(6 << 20\) \(was `x = gpu", second)
    assert "Peak of" not in same


def test_only_the_last_cells_are_kept_to_be_compared():
    gpu = gpuviz.SimulatedGPU(real_time=False)
    with gpuviz.record(device=gpu) as recorder:
        gpu.empty(1 << 20)
    cells = ComparedCells()

    for number in range(MOST_CELLS + 1):
        assert cells.compared(str(number), recorder.recording)[0] == FIRST_RUN

    assert cells.compared("0", recorder.recording)[0] == FIRST_RUN
    assert cells.compared(str(MOST_CELLS), recorder.recording)[0] == "No difference."
