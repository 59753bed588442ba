"""``gpuviz run --hazards``, ``--forbid-default-stream`` and ``--fail``."""

import os
import signal
import subprocess

import pytest

import gpuviz
from gpuviz.commands.startup.sitecustomize import NOTHING_IMPORTED
from tests.integration.commands.programs import GPUVIZ, PYTHON, run, said

PROGRAM = """\
import os, signal, sys, time
import gpuviz
gpu = gpuviz.SimulatedGPU(memory=1 << 30, real_time=False)
s, t = gpu.Stream(non_blocking=True), gpu.Stream(non_blocking=True)

def main():
    with s:
        a = gpu.empty(1 << 20)
        gpu.launch("fill", writes=[a], duration=1e-3, share=0.1)
    if "ordered" in sys.argv:
        t.wait_event(s.record())
    with t:
        gpu.launch("use", reads=[a], duration=1e-3, share=0.1)
    if "default" in sys.argv:
        gpu.launch("last", duration=1e-3)
    gpu.synchronize()

main()
print("done")
"""
REUSE = """\
import gpuviz
gpu = gpuviz.SimulatedGPU(memory=1 << 30, real_time=False)
s, t = gpu.Stream(non_blocking=True), gpu.Stream(non_blocking=True)
with s:
    a = gpu.empty(1 << 20)
    gpu.launch("fill", writes=[a], duration=1e-3)
t.wait_event(s.record())
with t:
    gpu.launch("use", reads=[a], duration=1e-3)
freed = a.ptr
del a
with s:
    b = gpu.empty(1 << 20)
    gpu.launch("overwrite", writes=[b], duration=1e-3)
gpu.synchronize()
print("reused" if b.ptr == freed else "another block")
"""
HAZARD = (
    "1 hazard between streams: 1 probable. The first: read without waiting for the write, by fill "
    "in main ({0}:9) and use in main ({0}:13)."
)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "race.py").write_text(PROGRAM)
    return tmp_path


def judged(folder, *words, options=("--hazards", "--fail")):
    done = run([GPUVIZ, "run", *options, *words], folder)
    return done.returncode, [line for line in said(done) if not line.startswith("wrote ")]


SUGGESTION = [
    "  @@ main ({0}:9)",
    "    {1}",
    "  + event = s.record()",
    "  @@ main ({0}:13)",
    "  + t.wait_event(event)",
    "    {2}",
]


@pytest.mark.parametrize(
    ("options", "code", "suggestion"),
    [(["--hazards"], 0, []), (["--hazards", "--fail"], 3, SUGGESTION)],
)
def test_hazards_are_told_when_the_program_exits(folder, options, code, suggestion):
    source = [line.strip() for line in PROGRAM.splitlines()]
    lines = [line.format(folder / "race.py", source[8], source[12]) for line in suggestion]

    assert judged(folder, "race.py", options=options) == (
        code,
        [
            HAZARD.format(folder / "race.py"),
            "to print them: gpuviz hazards race.gpuviz",
            *lines,
        ],
    )
    assert len(gpuviz.load(folder / "race.gpuviz").hazards()) == 1


def test_a_program_without_hazards_succeeds(folder):
    assert judged(folder, "race.py", "ordered") == (0, ["no hazards between streams"])


def test_quiet_prints_only_what_was_found(folder):
    quiet = ("--quiet", "--hazards", "--fail")

    assert judged(folder, "race.py", "ordered", options=quiet) == (0, [])
    assert judged(folder, "race.py", options=quiet) == (3, [HAZARD.format(folder / "race.py")])


def test_work_on_the_default_stream_fails_if_it_is_forbidden(folder):
    options = ("--forbid-default-stream", "--fail")
    code, lines = judged(folder, "race.py", "default", options=options)

    assert code == 3
    site = f"main ({folder / 'race.py'}:15)"
    assert lines == [f"1 operation on the default stream, from 1 line. The first: {site}."]
    assert judged(folder, "race.py", options=options) == (0, ["nothing on the default stream"])


def test_nothing_is_imported_for_the_verdict_while_python_exits(folder):
    """Such as pandas, which pyarrow's conversions import and which then fails to import."""
    (folder / "pandas.py").write_text("raise RuntimeError('imported while Python exits')")
    options = ("--hazards", "--forbid-default-stream", "--fail")
    code, lines = judged(folder, "race.py", "ordered", "default", options=options)

    assert code == 3
    assert [line.split(",")[0] for line in lines] == [
        "no hazards between streams",
        "1 operation on the default stream",
    ]
    code, lines = judged(folder, "race.py", options=options)
    assert code == 3
    assert HAZARD.format(folder / "race.py") in lines


@pytest.mark.parametrize(
    ("end", "code"),
    [
        ("sys.exit(7)", 7),
        ("raise ValueError('own')", 1),
        ("os.kill(os.getpid(), signal.SIGKILL)", -signal.SIGKILL),
        ("os.abort()", -signal.SIGABRT),
        ("os._exit(9)", 9),
    ],
)
def test_the_program_s_own_failure_comes_first(folder, end, code):
    (folder / "race.py").write_text(f"{PROGRAM}{end}\n")
    plain = run([PYTHON, "race.py"], folder)
    done = run([GPUVIZ, "run", "--hazards", "--fail", "race.py"], folder)

    assert done.returncode == plain.returncode == code
    assert done.stdout == plain.stdout


@pytest.mark.parametrize(
    ("program", "said_of_it"),
    [
        ("print('nothing')", f"nothing was recorded: {NOTHING_IMPORTED}"),
        ("import gpuviz.simulation.gpu", "nothing was recorded: the program created no"),
        (f"{PROGRAM}os._exit(0)", ""),
        (
            PROGRAM.replace("gpu.launch", "(lambda *_, **__: None)"),
            "no verdict: hazards are unknown.",
        ),
        (
            PROGRAM.replace("\nmain()", "\nwith gpuviz.record(device=gpu): pass"),
            "nothing was recorded: the program records itself",
        ),
    ],
)
def test_a_program_that_cannot_be_judged_does_not_pass(folder, program, said_of_it):
    (folder / "other.py").write_text(program)
    code, lines = judged(folder, "other.py")

    assert code == 4
    assert any(line.startswith(said_of_it) for line in lines) or not said_of_it


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_a_judged_program_like_any_other(folder, sent):
    (folder / "race.py").write_text(f"{PROGRAM}sys.stdout.flush()\ntime.sleep(60)\n")
    running = subprocess.Popen(
        [GPUVIZ, "run", "--hazards", "--fail", "race.py"],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    assert running.stdout.readline() == b"done\n"
    os.killpg(running.pid, sent) if sent == signal.SIGINT else running.send_signal(sent)
    running.communicate(timeout=60)

    assert running.returncode == -sent


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--fail"], "--fail needs --hazards or --forbid-default-stream."),
        (["--hazards", "--no-launch-blocks"], "--hazards contradicts --no-launch-blocks."),
        (["--hazards", "--no-stacks", "--no-streams"], "contradicts --no-streams and --no-stacks."),
        (["--forbid-default-stream", "--no-launch-sites"], "contradicts --no-launch-sites."),
        (["--record-stream", "auto", "--observe"], "--record-stream contradicts --observe."),
        (["--poison", "--no-streams"], "--poison contradicts --no-streams."),
        (["--quarantine", "1MiB", "--observe"], "--quarantine contradicts --observe."),
        (["--shared-pool", "--observe"], "--shared-pool contradicts --observe."),
        (["--budget", "2%", "--hazards"], "--budget contradicts --hazards."),
        (["--budget", "2"], "--budget must be a percentage"),
    ],
)
def test_options_that_contradict_each_other_are_refused(folder, options, sentence):
    done = run([GPUVIZ, "run", *options, "race.py"], folder)

    assert done.returncode == 2
    assert sentence in " ".join(done.stderr.split())
    assert done.stdout == ""


@pytest.mark.parametrize(
    ("options", "said_by_it", "code"),
    [
        ([], "reused", 3),
        (["--record-stream", "report"], "reused", 3),
        (["--record-stream", "auto"], "another block", 0),
        (["--quarantine", "64MiB"], "another block", 0),
    ],
)
def test_freed_memory_is_reused_when_the_options_let_it(folder, options, said_by_it, code):
    (folder / "reuse.py").write_text(REUSE)

    done = run([GPUVIZ, "run", "--hazards", "--fail", *options, "reuse.py"], folder)

    assert (done.stdout, done.returncode) == (f"{said_by_it}\n", code)
    delayed = gpuviz.load(folder / "reuse.gpuviz").delayed_frees().num_rows
    assert delayed == ("--record-stream" in options)


def test_poison_fills_what_is_freed(folder):
    (folder / "reuse.py").write_text(REUSE)

    done = run([GPUVIZ, "run", "--poison", "reuse.py"], folder)

    assert done.stdout == "reused\n"
    kinds = gpuviz.load(folder / "reuse.gpuviz").table("activities")["kind"].to_pylist()
    assert kinds.count("memset") == 1


def test_a_program_that_records_itself_tells_of_hazards_when_it_exits(folder):
    changed = PROGRAM.replace("s, t =", "gpuviz.record(device=gpu, hazards=True).start()\ns, t =")
    (folder / "own.py").write_text(changed)
    done = run([PYTHON, "own.py"], folder)
    stopped = f"{changed}gpuviz.Recorder.active().stop()\n"
    (folder / "own.py").write_text(stopped)
    expected = [HAZARD.format(folder / "own.py").replace(":9", ":10").replace(":13", ":14")]

    assert said(done) == said(run([PYTHON, "own.py"], folder)) == expected
