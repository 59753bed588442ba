"""R43: the line that was sampled while the GPU waited."""

import pyarrow as pa
import pytest

from gpuviz.advice.findings import findings
from gpuviz.data.tables import schemas
from gpuviz.recording import Recording
from tests.unit.advice.host_work import (
    Sampled,
    chunks,
    computes_between_chunks,
    with_samples,
)
from tests.unit.advice.timed_programs import timed
from tests.unit.advice.training import installed


@pytest.mark.parametrize(
    ("state", "what", "advice"),
    [
        ("working", "runs `numpy.sort(values)`", "Do this work on the GPU"),
        ("waiting", "is waiting in `numpy.sort(values)`", "Let another thread wait"),
        ("gil", "is waiting for the GIL in `numpy.sort(values)`", "Only one thread of a process"),
        ("collection", "does garbage collection in `numpy.sort(values)`", "Call `gc.freeze()`"),
    ],
)
def test_the_line_that_was_sampled_is_blamed(state, what, advice):
    recording = with_samples(timed(computes_between_chunks), state=state)
    (finding,) = [each for each in findings(recording) if each.rule == "R43"]

    assert finding.title == f"The GPU is idle for 19.0 ms, 79 % of the time, while the host {what}."
    assert finding.change.startswith(advice)
    assert [line.source for line in finding.lines] == ["numpy.sort(values)"]


@pytest.mark.parametrize("states", [("working",), ("waiting",), ("working", "waiting")])
def test_a_data_loader_is_blamed_with_the_line_of_its_loop(states):
    unknown = {"cell": 0, "installed": 0, "assigned": "", "context": "", "context_line": 0}
    loader = {"id": 1001, "name": "_next_data", "line": 9, "source": "", **unknown}
    loader["filename"] = "/env/lib/python3.12/site-packages/torch/utils/data/dataloader.py"
    loop = {"id": 1002, "name": "train", "filename": "train.py", "line": 4, **unknown}
    loop["source"] = "for x, y in loader:"
    called_by = [loader | {"installed": 1}, loop]

    recording = with_samples(timed(computes_between_chunks), frames=((), called_by))
    parts = []
    for row in recording.tables["host_samples"].to_pylist():
        length = (row["end"] - row["time"]) // len(states)
        for number, state in enumerate(states):
            begin = row["time"] + number * length
            parts.append(row | {"time": begin, "end": begin + length, "state": state})
    samples = {"host_samples": pa.Table.from_pylist(parts, schemas()["host_samples"])}
    recording = Recording(recording.tables | samples, recording.manifest)
    (finding,) = [each for each in findings(recording) if each.rule == "R43"]

    assert finding.title.endswith(
        "while the host is getting a batch of the data loader in `for x, y in loader:`."
    )
    assert "num_workers" in finding.change
    assert [line.source for line in finding.lines] == ["for x, y in loader:"]


@pytest.mark.parametrize(
    ("file", "ms", "is_said"),
    [
        ("torch/optim/sgd.py", 1, False),
        ("torch/nn/functional.py", 4, True),
        ("numpy/lib/function_base.py", 1, True),
    ],
)
def test_what_a_library_needs_for_its_launches_is_no_work_to_move(file, ms, is_said):
    called = {"id": 1001, "name": "step", "line": 9, "cell": 0, "installed": 1, "source": ""}
    called |= {"assigned": "", "context": "", "context_line": 0}
    called["filename"] = f"/env/lib/python3.12/site-packages/{file}"
    recording = timed(lambda gpu: chunks(gpu, host=ms * 1e-3))

    found = findings(with_samples(recording, frames=([called], ())))
    assert [each.rule for each in found if each.rule == "R43"] == ["R43"] * is_said


def searches(gpu, *, rounds, of_every):
    """Launch by one line, which takes long in some rounds, as where cuDNN tries kernels."""
    for number in range(rounds):
        gpu.launch("prepare", duration=200e-6)
        library(gpu, number % of_every == 0)


def _library(gpu, is_new):
    gpu.launch("copy", duration=200e-6)
    if is_new:
        gpu.work_on_host(8e-3)
    gpu.launch("layer", duration=200e-6)


library = installed(_library, "torch/nn/modules/conv.py", "forward")


@pytest.mark.parametrize(("of_every", "is_said"), [(1, True), (5, True), (20, False)])
def test_what_a_library_does_in_few_runs_of_a_line_prepares_the_others(of_every, is_said):
    called = {"id": 1001, "name": "forward", "line": 9, "cell": 0, "installed": 1, "source": ""}
    called |= {"assigned": "", "context": "", "context_line": 0}
    called["filename"] = "/env/lib/python3.12/site-packages/torch/nn/functional.py"
    recording = timed(lambda gpu: searches(gpu, rounds=100, of_every=of_every))

    found = findings(with_samples(recording, frames=([called], ())), small=True)
    assert [each.rule for each in found if each.rule == "R43"] == ["R43"] * is_said


def steps(gpu, *, of_every):
    """Launch by two lines in turn, and stop before the second in some rounds."""
    for number in range(100):
        gpu.launch("first", duration=20e-6)
        if number % of_every == 0:
            gpu.work_on_host(4e-3)
        gpu.launch("second", duration=20e-6)


@pytest.mark.parametrize(
    ("of_every", "is_of_launch", "is_said"), [(1, True, True), (20, True, False), (20, False, True)]
)
def test_stalls_in_few_runs_of_a_line_that_launches_are_not_its_work(
    of_every, is_of_launch, is_said
):
    sampled = Sampled(timed(lambda gpu: steps(gpu, of_every=of_every)))
    other = sampled.stack(("save", 3, "write(values)"))
    for before, after in sampled.gaps:
        stack = after["stack"] if is_of_launch else other
        sampled.sample(before["thread"], before["end"], after["time"], stack=stack)

    assert len(sampled.idle()) == is_said


@pytest.mark.parametrize(
    ("file", "name", "is_made"),
    [
        ("torch/nn/init.py", "uniform_", True),
        ("torch/nn/modules/module.py", "Module.to", True),
        ("torch/nn/modules/module.py", "Module._call_impl", False),
        ("torch/nn/modules/module.py", "Module.__getattr__", False),
    ],
)
def test_modules_that_the_host_initializes_are_to_be_made_on_the_gpu(file, name, is_made):
    called = {"id": 1001, "name": name, "line": 9, "cell": 0, "installed": 1, "source": ""}
    called |= {"assigned": "", "context": "", "context_line": 0}
    called["filename"] = f"/env/lib/python3.12/site-packages/{file}"
    recording = timed(lambda gpu: chunks(gpu, host=4e-3))
    (finding,) = [
        each
        for each in findings(with_samples(recording, frames=([called], ())))
        if each.rule == "R43"
    ]

    assert finding.change.startswith("Create the modules on the GPU") == is_made


def test_each_line_that_takes_long_in_a_gap_has_its_own_time():
    recording = with_samples(timed(computes_between_chunks))
    rows = recording.tables["host_samples"].to_pylist()
    other = {"id": 2000, "frames": [1000], "user_frame": 1000, "module": "", "phase": ""}
    other |= {"forward_frame": 0, "differentiable": 0}
    split = [
        part
        for row in rows
        for part in (
            row | {"end": row["time"] + 600_000},
            row | {"time": row["time"] + 600_000, "state": "waiting", "stack": 2000},
        )
    ]
    tables = dict(recording.tables)
    stacks = pa.Table.from_pylist([other], schemas()["stacks"])
    tables["stacks"] = pa.concat_tables([tables["stacks"], stacks]).unify_dictionaries()
    tables["host_samples"] = pa.Table.from_pylist(split, schemas()["host_samples"])
    both = findings(Recording(tables, recording.manifest))
    titles = [each.title for each in both if each.rule == "R43"]
    saved = sum(each.further_ns for each in both if each.rule == "R43")

    assert [title.partition(" for ")[2].partition(",")[0] for title in titles] == [
        "11.4 ms",
        "7.60 ms",
    ]
    # Together they save no more than the gaps.
    assert saved <= 19e6


def test_gaps_that_were_not_sampled_blame_no_line():
    recording = with_samples(timed(computes_between_chunks), of_every=2)
    (finding,) = [each for each in findings(recording) if each.rule == "R43"]

    assert finding.title.startswith("The GPU is idle for 9.00 ms, 37 % of the time")


def test_waiting_for_a_thread_of_gpuviz_is_no_finding():
    program = timed(computes_between_chunks)

    for holder, count in (("loader", 1), ("gpuviz-pump", 0)):
        recording = with_samples(program, state="gil", holder=holder)
        assert [each.rule for each in findings(recording)].count("R43") == count
