"""What joins the devices of a recording, in the recording, its report and its summary."""

import json
from dataclasses import replace

import pyarrow as pa
import pytest

import gpuviz
from gpuviz.analysis.device_links import device_link_lines
from gpuviz.commands.info import facts_of
from gpuviz.data.manifest import Manifest
from gpuviz.data.tables import schemas
from gpuviz.recording import Recording
from tests.unit.report.recordings import make_recording, small_program

SWITCHED = {"access": 1, "native_atomics": 1, "performance_rank": 0} | (
    {"nvlinks": 18, "nvlink_version": 6, "pcie": 50}
)
ACROSS_SOCKETS = {"access": 0, "native_atomics": 0, "performance_rank": 1} | (
    {"nvlinks": 0, "nvlink_version": -1, "pcie": 50}
)
FAST = "NVLink 4.0, 18 links; peer access with native atomics"
UNKNOWN = dict.fromkeys(SWITCHED, -1)


def recording_of(*uuids, links, **manifest):
    rows = [row for device in range(len(uuids)) for row in small_program(device)]
    made = make_recording(
        rows, devices=len(uuids), initial_events=0, device_links=links, **manifest
    )
    devices = made.tables["devices"].to_pylist()
    named = [row | {"uuid": uuid} for row, uuid in zip(devices, uuids, strict=True)]
    table = pa.Table.from_pylist(named, schema=schemas()["devices"])
    return Recording({**made.tables, "devices": table}, made.manifest)


@pytest.fixture
def three_gpus():
    return recording_of(
        *("a", "b", "c"),
        links={
            "0": [{"other": 1} | SWITCHED, {"other": 2} | ACROSS_SOCKETS],
            "1": [{"other": 2} | UNKNOWN],
        },
    )


def test_each_pair_says_what_joins_it(three_gpus):
    fast, slow, unknown = three_gpus.device_links

    assert (fast.first, fast.second, fast.nvlinks, fast.nvlink_version) == (0, 1, 18, "4.0")
    assert (fast.access, fast.native_atomics, fast.performance_rank) == (True, True, 0)
    assert (slow.second, slow.access, slow.nvlinks, slow.pcie) == (2, False, 0, "SYS")
    assert (unknown.first, unknown.second) == (1, 2)
    assert (unknown.access, unknown.nvlinks, unknown.pcie) == (None, None, None)


def test_pairs_that_are_joined_alike_share_a_line():
    recording = recording_of(
        *("a", "b", "c"),
        links={
            "0": [{"other": 1} | SWITCHED, {"other": 2} | SWITCHED],
            "1": [{"other": 2} | ACROSS_SOCKETS],
        },
    )

    assert list(device_link_lines(recording.device_links, {})) == [
        f"Device 0 to Device 1, Device 0 to Device 2: {FAST}",
        "Device 1 to Device 2: PCIe between NUMA nodes (SYS), no NVLink; no peer access",
    ]


def test_unknown_links_are_called_unknown():
    recording = recording_of("a", "b", links={"0": [{"other": 1} | UNKNOWN]})

    assert list(device_link_lines(recording.device_links, {})) == [
        "Device 0 to Device 1: NVLink unknown; peer access unknown"
    ]


def test_a_report_and_a_summary_show_the_links(three_gpus, tmp_path):
    page = three_gpus.report(tmp_path / "report.html").read_text()
    facts = facts_of(three_gpus)

    assert f"Device 0 to Device 1: {FAST}" in page
    assert [link["pcie"] for link in json.loads(json.dumps(facts["device_links"]))] == (
        ["SYS", "SYS", None]
    )


def test_links_survive_a_file_and_redaction(three_gpus, tmp_path):
    saved = gpuviz.load(three_gpus.save(tmp_path / "run.gpuviz"))
    three_gpus.report(tmp_path / "redacted.html", redact=True)
    redacted = gpuviz.load(tmp_path / "redacted.html")

    assert saved.device_links == redacted.device_links == three_gpus.device_links


def test_a_recording_without_links_has_none():
    assert make_recording(devices=2).device_links == ()


@pytest.mark.parametrize(
    "links",
    [
        {"first": []},
        {"0": {}},
        {"0": [{"other": 1}]},
        {"0": [{"other": 1} | SWITCHED | {"pcie": 0.5}]},
        {"0": [{"other": 2**31} | SWITCHED]},
    ],
)
def test_links_that_are_none_are_refused(links):
    text = replace(Manifest(), device_links=links).to_json()

    with pytest.raises(ValueError, match="device_links"):
        Manifest.from_json(text)


def test_a_merged_recording_has_each_pair_of_gpus_once():
    links = {"0": [{"other": 1} | SWITCHED]}
    parts = [
        recording_of(*uuids, links=links, process_id=number, boot_id="boot", host="host")
        for number, uuids in enumerate((("a", "b"), ("b", "a"), ("c", "d")), 1)
    ]

    merged = gpuviz.merge(parts)

    assert [(link.first, link.second) for link in merged.device_links] == [(0, 1), (4, 5)]
    own = [process.recording.device_links for process in merged.processes]
    assert [[(link.first, link.second) for link in links] for links in own] == [
        [(0, 1)],
        [(2, 3)],
        [(4, 5)],
    ]
