"""The page about a failure as a file: its content and its escaping."""

import re
from html import unescape

import pyarrow as pa
import pytest

from gpuviz.data.arrays import batch_of
from gpuviz.out_of_memory.last_moments import last_moments
from gpuviz.out_of_memory.remedies import remedies
from gpuviz.out_of_memory.verdict_text import TITLES
from gpuviz.recording import Recording, load
from gpuviz.report.out_of_memory import build_page
from tests.unit.out_of_memory.moments import moment_of, page_of
from tests.unit.recording.from_activities import Timeline
from tests.unit.report.recordings import MIB, SEGMENT, Events, make_recording
from tests.unit.report.test_page import HOSTILE, Elements, visible_text


def test_the_page_gives_the_recording_until_the_failure_back(tmp_path):
    recording = make_recording()
    path = tmp_path / "run.oom-1.html"
    path.write_text(page_of(recording), encoding="utf-8")

    back = load(path)

    events = recording.table("memory_events")
    assert back.table("memory_events").equals(events.slice(0, events.num_rows - 1))
    assert back.out_of_memory() == recording.out_of_memory()


def test_the_page_says_the_numbers_of_the_failure():
    text = " ".join(visible_text(page_of(make_recording())).split())

    (failed,) = make_recording().out_of_memory()
    assert "Out of memory: 99.0 MiB on device 0 (GPU of train.py)" in text
    assert failed.summary in text
    for name, value in {
        "Requested": "99.0 MiB",
        "Allocated": "6.00 MiB",
        "Free in segments": "8.00 MiB",
        "Waiting for other streams": "6.00 MiB",
        "Reserved": "20.0 MiB",
        "Free on the device": "123 MiB",
        "Requested from the device": "100 MiB",
    }.items():
        assert f"{name} {value} " in text
    assert re.search(r"default pool \(large blocks\), train.py \(of the request\) 20.0 MiB", text)


def test_hostile_text_stays_text():
    found = Elements(page_of(make_recording(text=HOSTILE)))

    tags = [tag for tag, _ in found.elements]
    plain = [tag for tag, _ in Elements(page_of(make_recording())).elements]
    assert tags == plain
    assert [attributes for tag, attributes in found.elements if tag == "img"] == []


def test_hostile_names_of_arrays_stay_text():
    moment = moment_of(make_recording())
    failed = moment.out_of_memory()[-1]

    page = build_page(moment, failed, {2: (HOSTILE,)})

    assert HOSTILE not in page
    assert " ".join(HOSTILE.split()) in " ".join(unescape(page).split())


def test_an_allocator_without_segments_has_a_page_too():
    events = Events()
    events.add("alloc", SEGMENT, 2 * MIB)
    events.add("oom", 0, 99 * MIB)
    recording = make_recording(events.rows, initial_events=0, allocator="observe")

    text = visible_text(page_of(recording))

    assert "This allocator does not expose its segments." in text
    assert "unknown" in text


@pytest.mark.parametrize("row", range(1, 6))
@pytest.mark.parametrize("most_rows", [1, 2, 100])
def test_a_cut_recording_has_the_state_of_the_whole_at_its_last_event(row, most_rows):
    recording = make_recording()

    cut = last_moments(recording, row, most_rows)

    until = recording.table("memory_events")["time"][row].as_py()
    assert cut.memory_snapshot() == recording.memory_snapshot(at=until)
    assert cut.table("memory_events").num_rows - cut.manifest.initial_events == min(
        most_rows, max(row - 1, 0)
    )
    assert cut.duration_ns == until


def test_every_verdict_has_a_title_and_a_remedy():
    (failed,) = make_recording().out_of_memory()

    assert failed.verdict in TITLES
    assert all(text.endswith(".") for text in remedies(failed))


def test_nothing_is_said_about_memory_that_was_not_recorded():
    events = Events()
    events.add("alloc", SEGMENT, 512, time=10)
    events.add("oom", 0, 1024, time=20)
    recording = make_recording(events.rows, initial_events=0, allocator="observe")

    (failed,) = recording.out_of_memory()

    assert (failed.verdict, failed.device_free) == ("unknown", None)
    assert failed.explanation[:2] == (
        (
            "Unknown: 512 B were in use, 1.00 KiB more were requested, and the recording does not "
            "contain the free memory of the device."
        ),
        "The program had allocated 512 B in 1 block.",
    )


def test_the_calls_of_kept_activities_are_kept_however_old_they_are():
    timeline = Timeline()
    timeline.call(1, 2, line=7, correlation=1)
    for time in range(10, 20):
        timeline.call(time, time, correlation=time)
        timeline.kernel(time, time, correlation=1 if time == 19 else time)
    timeline.call(99, 99, correlation=99)
    timeline.add("memory_events", {"action": "oom", "time": 50, "size": 512, "stream": 0})

    cut = last_moments(timeline.recording(), 0, 3)

    assert cut.table("api_calls")["time"].to_pylist() == [1, 17, 18, 19]
    assert cut.kernels("line")["source"].to_pylist() == ["", "line 7"]


@pytest.mark.parametrize(
    ("table", "values"),
    [
        ("api_calls", {}),
        ("host_accesses", {"mode": "write"}),
        ("host_memory_events", {"action": "alloc"}),
        ("host_samples", {"state": "running"}),
    ],
)
def test_the_call_stacks_of_all_that_is_kept_are_kept(table, values):
    recording = make_recording()
    tables = dict(recording.tables)
    stack = {"frames": [1], "module": "", "phase": ""}
    for name, row in (("stacks", {"id": 99} | stack), (table, {"stack": 99} | values)):
        schema = tables[name].schema
        added = batch_of([dict.fromkeys(schema.names, 0) | row], schema)
        tables[name] = pa.concat_tables([tables[name], pa.table(added)]).unify_dictionaries()

    moment = moment_of(Recording(tables, recording.manifest))

    assert 99 in moment.table("stacks")["id"].to_pylist()
    assert moment.table(table)["stack"].to_pylist()[-1] == 99
