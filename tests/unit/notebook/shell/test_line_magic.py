import re

import pytest

import gpuviz
from gpuviz.recorder.recorder import Recorder


def callbacks(shell):
    events = shell.shell.events.callbacks
    return {name: list(events[name]) for name in events}


def test_a_recording_starts_and_stops_by_magic(shell):
    started = shell.run("%gpuviz start --simulated gpu")
    shell.run("x = gpu.empty(1234)")
    stopped = shell.run("%gpuviz stop")

    assert started.stdout == "Recording started.\n"
    assert "2 memory events, 0 GPU activities" in stopped.stdout
    assert Recorder.active() is None


def test_what_was_there_before_is_not_counted_as_recorded(shell):
    shell.run("x = gpu.empty(1234)")
    shell.run("%gpuviz start --simulated gpu")
    stopped = shell.run("%gpuviz stop")

    assert ": 0 memory events, 0 GPU activities." in stopped.stdout
    assert ", 0 memory events, simulated>" in repr(stopped.result.result)


def test_the_status_tells_what_was_recorded_and_that_it_records(shell):
    before = shell.run("%gpuviz status").stdout
    shell.run("%gpuviz start --simulated gpu")
    shell.run("x = gpu.empty(1234)")
    during = shell.run("%gpuviz status").stdout
    shell.run("%gpuviz stop")

    assert before == "Nothing has been recorded yet.\n"
    assert during.startswith("Recording for ")
    after = shell.run("%gpuviz status").stdout
    assert after.startswith("Recording stopped after ")
    assert re.search(r"Memory events +2\n", after)


def test_a_path_gets_the_recording(shell, tmp_path):
    path = tmp_path / "run.gpuviz"
    shell.run(f"%gpuviz start {path} --simulated gpu --no-stacks")
    shell.run("x = gpu.empty(1234)")
    shell.run("%gpuviz stop")

    recording = gpuviz.load(path)
    assert recording.peak().bytes == 1536
    assert recording.table("stacks").num_rows == 0


def test_a_saved_file_is_only_replaced_by_force(shell, tmp_path):
    path = tmp_path / "saved.gpuviz"
    shell.run("%gpuviz start --simulated gpu")
    first = shell.run(f"%gpuviz save {path}")
    shell.run("x = gpu.empty(1234)")
    refused = shell.run(f"%gpuviz save {path}")
    size = path.stat().st_size
    shell.run(f"%gpuviz save {path} --force")

    assert first.stdout == f"Wrote {path}\n"
    assert refused.stderr.startswith(
        f"UsageError: {path} exists; choose another name, or use --force to replace it."
    )
    assert gpuviz.load(path).peak().bytes == 1536
    assert path.stat().st_size != size


def test_a_recording_replaces_a_file_only_by_force(shell, tmp_path):
    path = tmp_path / "run.gpuviz"
    path.write_text("precious")
    refused = shell.run(f"%gpuviz start {path} --simulated gpu")
    shell.run(f"%gpuviz start {path} --simulated gpu --force\nx = gpu.empty(1234)\n%gpuviz stop")

    assert refused.stderr.startswith(
        f"UsageError: {path} exists; choose another name, or use --force to replace it."
    )
    assert gpuviz.load(path).peak().bytes == 1536


def test_clearing_goes_on_with_an_empty_recording(shell):
    shell.run("%gpuviz start --simulated gpu")
    shell.run("x = gpu.empty(1234); del x")
    shell.run("%gpuviz clear")
    shell.run("y = gpu.empty(512)")
    shell.run("%gpuviz stop")

    magics = shell.shell._gpuviz_magics
    assert magics.control.recording.peak().bytes == 512


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("stop", "No recording is in progress; run `%gpuviz start` first."),
        ("clear up", "Unrecognized arguments: up. See `%gpuviz --help`."),
        ("report", "The following arguments are required: FILE. See `%gpuviz report --help`"),
        ("report a.html", "Nothing has been recorded yet; run `%gpuviz start` first."),
        ("start --simulated nope", "--simulated takes the name of a gpuviz.SimulatedGPU; nope is"),
        ("start --simulated gpuviz", "gpuviz has the type module."),
        ("start 'run.gpuviz", "Cannot parse the arguments (No closing quotation)"),
        (
            "start --observe --simulated gpu",
            "A simulated GPU always uses gpuviz's caching allocator",
        ),
        ("fly", "'fly' (choose from "),
        ("strat", "Did you mean `start`? See `%gpuviz --help`."),
        ("start --no-stakcs", "Unrecognized arguments: --no-stakcs. Did you mean `--no-stacks`?"),
        ("--report x.html", "Unrecognized arguments: --report x.html. Did you mean `report`?"),
    ],
)
def test_a_wrong_argument_is_told_in_a_sentence(shell, line, sentence):
    ran = shell.run(f"%gpuviz {line}")

    assert ran.stderr.startswith("UsageError: ")
    assert sentence in ran.stderr
    assert "Traceback" not in ran.stderr + ran.stdout


def test_a_second_start_is_refused(shell):
    shell.run("%gpuviz start --simulated gpu")
    ran = shell.run("%gpuviz start --simulated gpu")

    assert (
        ran.stderr == "UsageError: A recording is already in progress; run `%gpuviz stop` first.\n"
    )


@pytest.mark.parametrize("line", ["", "--help", "start --help", "cell --help"])
def test_help_lists_the_arguments(shell, line):
    ran = shell.run(f"%gpuviz {line}")

    assert ran.stdout.startswith("usage: %")
    assert "2%%" not in ran.stdout
    assert ran.stderr == ""


def test_asking_for_the_magic_itself_tells_of_both(shell):
    told = shell.shell.object_inspect("%gpuviz")["docstring"]

    assert "usage: %gpuviz [-h] COMMAND ..." in told
    assert "usage: %%gpuviz [-h] [--report FILE]" in told


def test_a_report_can_be_redacted(shell, tmp_path):
    shell.run("%gpuviz start --simulated gpu")
    shell.run("held = gpu.empty(1234)")
    written = shell.run(f"%gpuviz report {tmp_path / 'run.html'} --redact")
    shell.run("%gpuviz stop")

    assert written.stdout == f"Wrote {tmp_path / 'run.html'}\n"
    assert "Redacted: the command line" in (tmp_path / "run.html").read_text()
    assert "held = gpu.empty(1234)" not in (tmp_path / "run.html").read_text()


def test_a_recorder_of_the_program_itself_is_found(shell):
    shell.run("recorder = gpuviz.record(device=gpu); recorder.start()")
    cleared = shell.run("%gpuviz clear")
    shell.run("%gpuviz stop")

    assert "The program itself started this recording" in cleared.stderr
    assert not shell.names["recorder"].is_recording


def test_unloading_and_reloading_leave_nothing_behind(plain_shell):
    shell = plain_shell
    magics = shell.shell.magics_manager.magics
    transformers = shell.shell.input_transformers_cleanup
    before = callbacks(shell), {kind: set(magics[kind]) for kind in magics}, list(transformers)
    shell.run("%load_ext gpuviz")
    loaded = {name: len(each) for name, each in callbacks(shell).items()}
    shell.run("%reload_ext gpuviz")
    reloaded = {name: len(each) for name, each in callbacks(shell).items()}
    shell.run("import gpuviz; gpu = gpuviz.SimulatedGPU()")
    shell.run("%gpuviz start --simulated gpu")
    shell.run("%unload_ext gpuviz")

    after = callbacks(shell), {kind: set(magics[kind]) for kind in magics}, list(transformers)
    assert reloaded == loaded
    assert after == before
    assert Recorder.active() is None


def test_findings_are_printed_while_it_records(shell):
    shell.run("%gpuviz start --simulated gpu")
    shell.run('image = gpu.empty(32 << 20)\ngpu.launch("make", duration=1e-4, writes=[image])')
    shell.run('large = gpu.empty(64 << 20)\ngpu.launch("use", duration=1e-4, writes=[large])')
    before = shell.run("%gpuviz findings")
    shell.run("gpu.synchronize()\ndel image, large")
    after = shell.run("%gpuviz findings --all")

    # What is not freed may be used by a later cell.
    assert before.stdout.startswith("Nothing was found that would save 1 % of the peak")
    assert "1. `large = gpu.empty(64 << 20)` holds 64.0 MiB of the peak of" in before.stdout
    assert after.stdout.startswith(
        "1. 32.0 MiB from `image = gpu.empty(32 << 20)` is still allocated"
    )
