"""Forward and backward passes and steps of optimizers, as ranges of the thread that trains."""

import json
from dataclasses import replace
from functools import partial

import pytest

import gpuviz
from gpuviz.data.manifest import Manifest
from gpuviz.recording import Recording
from tests.unit.recorder.torch_files import ADAM, STEPS, called_through, know_files
from tests.unit.recording.from_activities import rows_of
from tests.unit.recording.from_events import rows_table
from tests.unit.recording.test_training import FRAMES, RECORDED, STACKS

OTHER, FORWARD, HEAD, BACKWARD, STEP, *_ = (row["id"] for row in STACKS)
UNKNOWN = 0
TRAINER, AUTOGRAD, LOADER = 1, 2, 3


def recording_of(*calls, allocations=(), ranges=(), unrecorded=()):
    """Return a recording of CUDA calls: begin, end, call stack, and thread."""
    rows = [
        {"time": begin, "end": end, "stack": stack, "thread": thread, "name": 1, "correlation": n}
        for n, (begin, end, stack, thread) in enumerate(calls, 1)
    ]
    events = [
        {"time": time, "action": "alloc", "stack": stack, "thread": TRAINER}
        | {"address": 0x1000 * n, "size": 512, "requested_size": 500, "framework": "torch"}
        for n, (time, stack) in enumerate(allocations, 1)
    ]
    tables = {
        "api_calls": rows_of("api_calls", rows),
        "memory_events": rows_table(events),
        "ranges": rows_of("ranges", ranges),
        "stacks": rows_of("stacks", STACKS),
        "frames": rows_of("frames", FRAMES),
        "strings": rows_of("strings", [{"id": 1, "text": "cuLaunchKernel"}]),
        "threads": rows_of("threads", [{"id": n} for n in (TRAINER, AUTOGRAD, LOADER)]),
        "devices": rows_of("devices", [{"id": 0, "name": "GPU", "total_memory": 1 << 30}]),
        "unrecorded_spans": rows_of(
            "unrecorded_spans",
            [{"id": n, "time": time, "end": end} for n, (time, end) in enumerate(unrecorded, 1)],
        ),
    }
    return Recording(tables, Manifest(duration_ns=10_000))


def phases(recording):
    rows = recording.table("phases").to_pylist()
    return [(row["kind"], row["time"], row["end"], row["thread"]) for row in rows]


def test_a_phase_lasts_from_its_first_call_or_allocation_to_the_end_of_the_last_one():
    recording = recording_of(
        (100, 110, FORWARD, TRAINER),
        (200, 250, HEAD, TRAINER),
        (300, 310, BACKWARD, TRAINER),
        (400, 405, BACKWARD, TRAINER),
        (500, 520, STEP, TRAINER),
        (600, 610, FORWARD, TRAINER),
        allocations=[(90, FORWARD), (480, STEP)],
    )

    assert phases(recording) == [
        ("forward", 90, 250, TRAINER),
        ("backward", 300, 405, TRAINER),
        ("optimizer", 480, 520, TRAINER),
        ("forward", 600, 610, TRAINER),
    ]


def test_a_backward_pass_belongs_to_the_thread_that_waits_for_autograd():
    recording = recording_of(
        (100, 110, FORWARD, TRAINER),
        (300, 310, BACKWARD, AUTOGRAD),
        (320, 330, BACKWARD, AUTOGRAD),
        (500, 520, STEP, TRAINER),
    )

    assert phases(recording)[1] == ("backward", 300, 330, TRAINER)


@pytest.mark.parametrize(
    ("between", "thread", "found"),
    [
        (OTHER, TRAINER, [(100, 110), (300, 310)]),
        (BACKWARD, AUTOGRAD, [(100, 110), (300, 310)]),
        (OTHER, LOADER, [(100, 310)]),
        (UNKNOWN, TRAINER, [(100, 310)]),
        (HEAD, TRAINER, [(100, 310)]),
    ],
)
def test_other_work_of_the_thread_ends_a_phase(between, thread, found):
    recording = recording_of(
        (100, 110, FORWARD, TRAINER), (200, 210, between, thread), (300, 310, FORWARD, TRAINER)
    )

    rows = phases(recording)

    assert [(begin, end) for kind, begin, end, _ in rows if kind == "forward"] == found


def test_nothing_is_known_if_two_threads_train():
    calls = [(100, 110, FORWARD, TRAINER), (200, 210, BACKWARD, AUTOGRAD)]

    assert len(phases(recording_of(*calls))) == 2
    assert phases(recording_of(*calls, (300, 310, FORWARD, LOADER))) == []


def test_a_program_that_trains_nothing_has_no_phases():
    assert phases(recording_of((100, 110, OTHER, TRAINER), (200, 210, UNKNOWN, TRAINER))) == []


def test_without_calls_nothing_is_known():
    assert phases(recording_of(allocations=[(100, FORWARD), (200, FORWARD)])) == []


def test_a_phase_ends_where_calls_were_not_recorded():
    recording = recording_of(
        (100, 110, FORWARD, TRAINER),
        (400, 410, FORWARD, TRAINER),
        allocations=[(200, FORWARD)],
        unrecorded=[(150, 300), (900, -1)],
    )

    assert phases(recording) == [
        ("forward", 100, 110, TRAINER),
        ("forward", 400, 410, TRAINER),
    ]


def test_a_phase_is_in_the_ranges_around_it():
    spans = [
        {"id": 7, "time": 50, "end": 900, "thread": TRAINER},
        {"id": 8, "time": 60, "end": 70, "thread": TRAINER, "parent": 7},
        {"id": 9, "time": 80, "end": 105, "thread": TRAINER, "parent": 7},
        {"id": 10, "time": 200, "end": -1, "thread": LOADER},
        {"id": 11, "time": 950, "end": -1, "thread": TRAINER},
    ]
    ranges = [{"kind": "range", "name": 1} | span for span in spans]
    recording = recording_of(
        (100, 110, FORWARD, TRAINER),
        (300, 310, BACKWARD, TRAINER),
        (890, 910, STEP, TRAINER),
        (960, 970, FORWARD, TRAINER),
        ranges=ranges,
    )

    rows = recording.table("phases").to_pylist()

    assert [(row["id"], row["parent"]) for row in rows] == [(12, 7), (13, 7), (14, 0), (15, 11)]


def test_a_window_has_the_part_of_a_phase_in_it():
    recording = recording_of(
        (100, 110, FORWARD, TRAINER), (200, 210, FORWARD, TRAINER), (300, 310, STEP, TRAINER)
    )

    assert phases(recording.window(105, 205)) == [("forward", 105, 205, TRAINER)]


def test_phases_are_tracks_of_a_trace(tmp_path):
    recording = recording_of((100, 110, FORWARD, TRAINER), (300, 310, STEP, TRAINER))

    events = json.loads(recording.export(tmp_path / "trace.json").read_text())["traceEvents"]

    found = [(each["name"], each["ts"]) for each in events if each.get("cat") == "forward"]
    assert found == [("forward", 0.1)]


def test_a_file_has_the_phases_and_categories_of_a_training_program(tmp_path):
    recording = recording_of((100, 110, FORWARD, TRAINER), allocations=[(90, FORWARD)])

    saved = gpuviz.load(recording.save(tmp_path / "a.gpuviz"))

    assert saved.stored.get("phases").num_rows == saved.stored.get("categories").num_rows == 1


@pytest.mark.parametrize("is_late", [False, True])
def test_a_view_gets_phases_and_categories_when_the_recording_ends(monkeypatch, is_late):
    know_files(monkeypatch)
    gpu = gpuviz.SimulatedGPU(real_time=False)
    messages = []
    recorder = gpuviz.record(device=gpu)
    with recorder:
        if not is_late:
            recorder.subscribe(messages.append)
        kept = called_through(partial(gpu.empty, 512), (STEPS, ADAM))
        called_through(partial(gpu.launch, "step", duration=1e-4), (STEPS, ADAM))
        assert "phases" not in [name for each in messages for name, _ in each.tables]
    if is_late:
        recorder.subscribe(messages.append)

    names = [name for name, _ in messages[-1].tables]
    assert {"phases", "categories"} <= {*names}
    assert kept.nbytes == 512


def test_a_recorded_training_program_repeats_its_phases():
    kinds = [kind for kind, *_ in phases(gpuviz.load(RECORDED))]

    steps = "".join(kind[0] for kind in kinds).count("fbo")
    assert steps == len(gpuviz.load(RECORDED).iterations())


def test_the_processes_of_a_merged_recording_have_their_own_phases():
    one = gpuviz.load(RECORDED)
    other = Recording(one.tables, replace(one.manifest, process_id=one.manifest.process_id + 1))

    merged = gpuviz.merge([one, other])

    rows = merged.table("phases").to_pylist()
    assert len(rows) == 2 * len(phases(one))
    assert len({row["thread"] for row in rows}) == 2
    assert len({row["id"] for row in rows}) == len(rows)
