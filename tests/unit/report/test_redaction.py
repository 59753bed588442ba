"""Texts that a redacted report must not contain, and numbers that it must keep."""

import base64
import json
import re
import zipfile
from dataclasses import replace
from io import BytesIO
from pathlib import Path

import pyarrow as pa
import pytest

import gpuviz
from gpuviz.data.manifest import Manifest
from gpuviz.data.tables import schemas
from gpuviz.recording import Recording, load
from gpuviz.report.redaction import redact
from tests.unit.report.recordings import make_recording

SHIPPED = sorted((Path(__file__).parents[3] / "gpuviz" / "commands" / "recordings").iterdir())
NUMBERS = ("int64", "uint64", "int32", "uint32", "int16")
MARK = "Zyx-"


def members(page: Path) -> dict[str, bytes]:
    """Return the inflated members of the recording in a page."""
    text = page.read_text()
    start, end = (
        re.search(rf'id="gpuviz-recording{which}"[^>]*>([^<]*)<', text)[1] for which in ("", "-end")
    )
    with zipfile.ZipFile(BytesIO(base64.b64decode(start + end))) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def marked(recording: Recording) -> Recording:
    """Return the recording with a marker in every text of the program and its host."""
    tables = dict(recording.tables)
    calls = set(tables["api_calls"]["name"].to_pylist())
    for name, columns in (
        ("frames", ("filename", "name", "source", "assigned", "context")),
        ("streams", ("name",)),
        ("threads", ("name",)),
        ("strings", ("text",)),
    ):
        rows = tables[name].to_pylist()
        for row in rows:
            if name != "strings" or row["id"] not in calls:
                row |= {column: MARK + row[column] for column in columns}
        tables[name] = pa.Table.from_pylist(rows, schema=schemas()[name])
    manifest = replace(recording.manifest, program=(MARK, MARK), platform=MARK, notes=(MARK,))
    return Recording(tables, manifest)


def test_captured_kernels_have_the_pseudonyms_of_their_launches():
    gpu = gpuviz.SimulatedGPU(real_time=False)
    with gpuviz.record(device=gpu) as recorder, gpu.Stream() as stream:
        gpu.launch(f"{MARK} first", duration=1e-6)
        stream.begin_capture()
        gpu.launch(MARK, duration=1e-6)
        graph = stream.end_capture()
        graph.launch()
        stream.synchronize()

    redacted = redact(recorder.recording)

    texts = redacted.tables["strings"].to_pylist()
    names = {row["id"]: row["text"] for row in texts} | {0: ""}
    launched = [names[row] for row in redacted.tables["activities"]["name"].to_pylist()]
    captured = [names[row] for row in redacted.tables["graph_calls"]["name"].to_pylist()]
    assert launched == ["kernel 1", "kernel 2"]
    assert captured == ["kernel 2", ""]


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_no_text_of_the_program_is_left_in_a_redacted_report(path, tmp_path):
    recording = marked(load(path))
    whole = recording.report(tmp_path / "whole.html")

    page = recording.report(tmp_path / "run.html", redact=True)

    assert [name for name, content in members(whole).items() if MARK.encode() in content] == [
        "manifest.json",
        "streams.arrow",
        "frames.arrow",
        "threads.arrow",
        "strings.arrow",
        "derived/names.arrow",
        "derived/conclusions.arrow",
        "derived/shown.arrow",
        "derived/sections.arrow",
    ]
    assert [name for name, content in members(page).items() if MARK.encode() in content] == []
    assert MARK not in page.read_text()


def test_nothing_that_a_hostile_or_talkative_recording_says_stays(tmp_path):
    recording = make_recording(
        text=MARK,
        label=MARK,
        notes=(MARK,),
        platform=MARK,
        settings=MARK,
        allocator_name=MARK,
        python=MARK,
        libraries={"torch": MARK, MARK: "2.11.0"},
        extra={MARK: MARK},
        memory_stats={0: {MARK: 1}},
    )
    noisy = dict(recording.tables)
    noisy["later_table"] = pa.table({"text": [MARK]})
    noisy["pools"] = noisy["pools"].set_column(2, "segment_type", pa.array([MARK]))
    noisy["devices"] = noisy["devices"].append_column(MARK, pa.array([MARK]))

    words = pa.DictionaryArray.from_arrays(pa.array([0], pa.int8()), pa.array([MARK]))
    overhead = {"time": [1], "end": [2], "kind": words, "thread": [1], "correlation": [0]}
    noisy["overheads"] = pa.table(overhead).cast(schemas()["overheads"])

    page = Recording(noisy, recording.manifest).report(tmp_path / "run.html", redact=True)

    found = [name for name, content in members(page).items() if MARK.encode() in content]
    assert found == []
    assert MARK not in page.read_text()
    assert "later_table.arrow" not in members(page)


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_every_number_of_a_redacted_recording_is_as_recorded(path):
    recording = load(path)

    without_names = redact(recording)

    references = {
        *((name, "name") for name in ("activities", "api_calls", "graph_calls", "ranges")),
        ("memory_operations", "source"),
        ("frames", "context_line"),  # of the source text
    }
    for name, table in recording.tables.items():
        # The clocks tell when the host was started.
        if name in {"strings", "clock_snapshots"}:
            continue
        for field in table.schema:
            if str(field.type) in NUMBERS and (name, field.name) not in references:
                assert without_names.table(name)[field.name].equals(table[field.name])
    assert without_names.memory_stats() == recording.memory_stats()
    for question in ("kernels", "copies", "synchronizations"):
        ours, theirs = getattr(without_names, question)(), getattr(recording, question)()
        assert sorted(ours["total_ns"].to_pylist()) == sorted(theirs["total_ns"].to_pylist())
    ours, theirs = without_names.sites("line"), recording.sites("line")
    assert ours["live_bytes"].to_pylist() == theirs["live_bytes"].to_pylist()


def test_nothing_tells_host_process_and_gpu_apart_from_others():
    identity = {
        "start_monotonic_ns": 1234,
        "host": "secret-host",
        "host_hash": "12ab",
        "boot_id": "34cd",
        "process_id": 56,
        "process_start_ns": 78,
    }
    made = make_recording(**identity)
    devices = made.tables["devices"].drop_columns(["uuid"]).append_column("uuid", pa.array([MARK]))
    clocks = pa.table({"time": [1], "wall": [2], "boot": [3], "uncertainty": [4]})
    tables = dict(made.tables) | {"devices": devices, "clock_snapshots": clocks}

    without_names = redact(Recording(tables, made.manifest))

    assert without_names.table("devices")["uuid"].to_pylist() == [""]
    assert without_names.table("clock_snapshots").num_rows == 0
    left = {name: getattr(without_names.manifest, name) for name in identity}
    assert left == {name: getattr(Manifest(), name) for name in identity}


def test_what_had_the_same_name_still_has():
    recording = load(next(path for path in SHIPPED if path.stem == "kmeans"))

    without_names = redact(recording)

    def grouped(of: Recording) -> list[int]:
        return sorted(of.kernels()["count"].to_pylist())

    assert grouped(without_names) == grouped(recording)
    names = without_names.kernels()["name"].to_pylist()
    assert all(re.fullmatch(r"kernel \d+", name) for name in names)


def test_a_redacted_report_says_so_and_loads(recording, tmp_path):
    path = recording.report(tmp_path / "run.html", redact=True)

    back = load(path)

    assert back.notes[0].startswith("Redacted: the command line, paths, source lines")
    assert "Redacted: the command line" in path.read_text()
    assert json.loads(members(path)["manifest.json"])["program"] == []
    assert "<title>GPU memory</title>" in path.read_text()
