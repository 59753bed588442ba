"""What recordings of two H100 show.

The programs that made them are ``two_gpus`` (``peer_copies`` and ``hazard``), ``copy_order``
(``copies``) and ``parallel_programs`` (all others) of ``tests.gpu``, each by ``python -m`` with the
folder as its argument.
"""

from dataclasses import replace
from pathlib import Path

import pytest

import gpuviz
from gpuviz.advice.host.dominant import dominant
from gpuviz.conclusions.ranking import conclusions
from gpuviz.data.stream_handle import NO_HANDLE
from gpuviz.present.text import conclusions_text
from gpuviz.recording import Recording
from tests.gpu.copies_between_gpus import peer_copies

DATA = Path(__file__).parent / "data"


def load(name):
    return gpuviz.load(DATA / f"{name}.gpuviz")


def streams_of_a_program(recording):
    """Return the handles of the streams that the program made, by device."""
    return [
        row["handle"]
        for row in recording.table("streams").to_pylist()
        if row["kind"] == "non_blocking"
    ]


def rows_that_fail(rows):
    return [(what, expected, found) for what, expected, found, is_met in rows if not is_met]


WAYS = ("staged", "direct")


@pytest.mark.parametrize("way", WAYS)
def test_ordered_copies_are_copies_between_gpus_without_a_hazard(way):
    recording = load(f"peer_copies_{way}")

    compute, copies = streams_of_a_program(recording)
    rows = list(peer_copies(recording, compute, copies))

    assert rows_that_fail(rows) == []
    assert len(rows) == 6


def test_each_of_them_is_counted_once_with_the_time_of_the_whole_copy():
    recording = load("peer_copies_staged")

    (row,) = recording.copies().to_pylist()

    assert (row["copy_kind"], row["host_memory"], row["count"]) == ("peer_to_peer", "staged", 20)
    assert row["bytes"] == sum(range(1, 21)) << 20
    # CUPTI's times of the last pieces would be 900 GB/s, which no link to a host has.
    assert 20e9 < row["bytes_per_second"] < 40e9


def test_their_halves_stay_rows_with_the_gpus_of_both_ends():
    recording = load("peer_copies_staged")

    halves = [
        (row["copy_kind"], row["device"], row["source_device"], row["destination_device"])
        for row in recording.table("activities").to_pylist()
        if row["kind"] == "memcpy"
    ]

    assert sorted(set(halves)) == [("host_to_peer", 1, 0, 1), ("peer_to_host", 0, 0, 1)]
    assert len(halves) == 40


def test_gpus_are_busy_for_the_whole_time_of_a_large_copy_through_the_host():
    recording = load("peer_copies_staged")
    copies = recording.derived["peer_copies"].to_pylist()

    whole_ns = sum(row["end"] - row["time"] for row in copies)

    for device in recording.overlap().devices:
        assert device.copy_ns == 0
        assert 0.85 * whole_ns < device.device_copy_ns <= whole_ns


@pytest.mark.parametrize("way", WAYS)
def test_times_of_events_can_be_derived_where_they_were_not_recorded(way):
    recording = load(f"peer_copies_{way}")
    table = recording.table("synchronizations")
    rows = table.to_pylist()
    unknown = [{**row, "time": 0} if row["kind"] == "event_record" else row for row in rows]
    tables = {**recording.tables, "synchronizations": table.from_pylist(unknown, table.schema)}

    waits = Recording(tables, recording.manifest).derived["stream_waits"].to_pylist()

    late = [rows[wait["record"]]["time"] - wait["recorded_time"] for wait in waits]
    assert len(late) == 40
    assert all(0 < each < 20_000 for each in late)


@pytest.mark.parametrize("way", WAYS)
def test_a_copy_that_waits_for_nothing_is_one_hazard(way):
    (hazard,) = load(f"hazard_{way}").hazards()

    assert (hazard.kind, hazard.tier) == ("RAW", "certain")
    assert (hazard.first.name, hazard.first.gpu) == ("cupy_fill", "GPU 0")
    assert (hazard.second.name, hazard.second.gpu) == ("memcpy PtoP", "GPU 1")
    assert "internal stream" not in hazard.fix


@pytest.mark.parametrize("way", WAYS)
def test_a_copy_is_in_the_stream_that_it_was_issued_on(way):
    """The name of the range around each copy has the GPU and the kind of its stream."""
    recording = load(f"copies_{way}")
    texts = {row["id"]: row["text"] for row in recording.table("strings").to_pylist()}
    ranges = {row["id"]: texts[row["name"]] for row in recording.table("ranges").to_pylist()}
    calls = {row["correlation"]: row for row in recording.table("api_calls").to_pylist()}
    activities = recording.table("activities").to_pylist()
    streams = {row["id"]: row for row in recording.table("streams").to_pylist()}

    found, expected = [], []
    for row in recording.derived["peer_copies"].to_pylist():
        name = ranges[calls[activities[row["activity"]]["correlation"]]["range"]]
        if " on GPU " not in name:
            continue
        stream = streams[row["stream"]]
        expected.append(name.partition(" on GPU ")[2].rpartition(",")[0])
        found.append(f"{stream['device']}, {stream['kind']}")

    assert len(found) == 48
    assert found == expected


@pytest.mark.parametrize("way", WAYS)
def test_a_wait_that_is_asked_for_while_another_gpu_is_current_orders_its_stream(way):
    recording = load(f"copies_{way}")
    streams = {row["id"]: row for row in recording.table("streams").to_pylist()}

    waiting = [streams[r["waiting_stream"]] for r in recording.derived["stream_waits"].to_pylist()]

    assert [(row["device"], row["kind"]) for row in waiting] == [(1, "non_blocking")]
    handles = [row["handle"] for row in streams.values() if row["kind"] == "non_blocking"]
    assert len(handles) == len(set(handles))
    assert recording.hazards() == ()


@pytest.mark.parametrize("name", ["peer_copies_staged", "hazard_staged"])
def test_what_is_marked_stays_as_it_is_when_it_is_saved_and_loaded_again(name, tmp_path):
    recording = load(name)
    recording.save(tmp_path / "again.gpuviz")

    again = gpuviz.load(tmp_path / "again.gpuviz")

    for table in ("activities", "api_calls"):
        assert again.table(table).equals(recording.table(table))
    assert again.derived["peer_copies"].equals(recording.derived["peer_copies"])


def test_the_stream_of_such_a_copy_is_never_one_of_the_drivers_own():
    recording = load("peer_copies_staged")
    own = {r["id"] for r in recording.table("streams").to_pylist() if r["handle"] == NO_HANDLE}

    issued_on = {row["stream"] for row in recording.derived["peer_copies"].to_pylist()}

    assert own
    assert not issued_on & own


def staged_copies(recording):
    return [each for each in recording.findings(small=True) if each.rule == "R56"]


@pytest.mark.parametrize(
    ("program", "measured_ms"),
    # The time of the recorded program less that of the same one by peer access.
    [("relay", 58.65 - 6.09), ("pipeline", 28.54 - 24.59)],
)
def test_copies_through_the_host_are_a_finding_that_saves_what_was_measured(program, measured_ms):
    (finding,) = staged_copies(load(f"{program}_staged"))

    assert finding.saved_ns / 1e6 == pytest.approx(measured_ms, rel=0.05)
    assert "cupy.cuda.Device(0): cupy.cuda.runtime.deviceEnablePeerAccess(1)" in finding.change
    assert finding.lines[0].source.startswith("cupy.cuda.runtime.memcpyPeerAsync(")


@pytest.mark.parametrize("name", ["relay_direct", "pipeline_direct", "training_hidden"])
def test_copies_by_peer_access_are_none(name):
    assert staged_copies(load(name)) == []


def test_copies_between_gpus_that_cannot_access_each_other_are_none():
    recording = load("relay_staged")
    (row,) = recording.manifest.device_links["0"]
    links = {"0": [{**row, "access": 0}]}

    tables = dict(recording.tables)
    apart = Recording(tables, replace(recording.manifest, device_links=links))

    assert staged_copies(apart) == []


def test_the_part_of_each_rank_of_sharded_parameters_is_parameters():
    recording = load("training_sharded")

    peaks = [each.title for each in conclusions(recording) if " at the peak in the " in each.title]

    # Six layers of 4096 x 4096 numbers of 4 bytes, on two ranks.
    assert len(peaks) == len(recording.devices) == 2
    assert all("parameters and buffers 192 MiB" in each for each in peaks)


def test_text_says_which_gpu_each_conclusion_is_about():
    recording = load("relay_staged")
    lines = conclusions_text(recording, conclusions(recording), None).splitlines()
    of_gpus = [
        (lines[at - 1].split(" takes ")[0], line.strip())
        for at, line in enumerate(lines)
        if line.startswith("   on ") and " takes " in lines[at - 1]
    ]
    call = "`cupy.cuda.runtime.memcpyPeerAsync(…)`"
    assert of_gpus == [(f"2. {call}", "on GPU 0"), (f"3. {call}", "on GPU 1")]


def test_a_gpu_that_only_copies_is_limited_by_copies():
    facts = dominant(load("relay_staged"))
    assert [fact.device for fact in facts] == [0, 1]
    assert all(fact.text.endswith("copies limit the program.") for fact in facts)
