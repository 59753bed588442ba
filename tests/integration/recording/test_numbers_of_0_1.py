"""Every number of a recording equals that of version 0.1.

``numbers_0_1/recordings.tar.xz`` contains 200 random recordings written by that version, and
``numbers.json.xz`` its numbers of them and of the recordings of the demo.
"""

import json
import lzma
import tarfile
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import gpuviz
from gpuviz.commands.workloads import WORKLOADS
from gpuviz.recording import Recording
from tests.integration.recording.numbers_of import numbers_of

FOLDER = Path(__file__).parent / "numbers_0_1"
OF_DEMO = Path(gpuviz.__file__).parent / "commands" / "recordings"
# Version 0.1 did not separate waiting for earlier work from the transfer, and had one launch site
# and no modules of neural networks.
NEW_COLUMNS = {"waiting_ns", "transfer_ns", "sites", "frameworks", "module", "phase"}
# It called these causes of idle time unknown.
NEW_CAUSES = ("idle_gpu_busy_ns", "idle_unrecorded_event_ns")
IN_REPORT = "007"
NAMES = [f"{number:03}" for number in range(200)]
NAMES += sorted(path.stem for path in OF_DEMO.glob("*.gpuviz"))


@cache
def old_numbers() -> dict[str, Any]:
    with lzma.open(FOLDER / "numbers.json.xz", "rt") as file:
        return json.load(file)


@cache
def random_recordings() -> dict[str, bytes]:
    with tarfile.open(FOLDER / "recordings.tar.xz") as archive:
        return {
            Path(member.name).stem: archive.extractfile(member).read()
            for member in archive.getmembers()
        }


def as_of_0_1(numbers: dict[str, Any], old: dict[str, Any]) -> dict[str, Any]:
    """Return numbers without columns that are new, and with the old meaning of the others."""
    plain = json.loads(json.dumps(numbers))
    for name, table in plain.items():
        if name.split()[0] in {"synchronizations", "kernels", "copies", "sites"}:
            plain[name] = {key: table[key] for key in table if key not in NEW_COLUMNS}
    for overlap, of_old in zip(plain["overlap"], old["overlap"], strict=True):
        for lanes in ("devices", "streams"):
            for lane, old_lane in zip(overlap[lanes], of_old[lanes], strict=True):
                assert lane.pop("unseen_ns") == 0  # it recorded all the time
                lane["idle_unknown_ns"] += sum(lane.pop(cause) for cause in NEW_CAUSES)
                count_device_copies(lane, old_lane)
    return plain


def count_device_copies(lane: dict[str, int], old: dict[str, int]) -> None:
    """Let the time of copies include those within the device, as in version 0.1."""
    added = lane.pop("device_copy_ns")
    if added:
        assert max(lane["copy_ns"], added) <= old["copy_ns"] <= lane["copy_ns"] + added
        assert lane["kernel_copy_ns"] <= old["kernel_copy_ns"] <= lane["kernel_copy_ns"] + added
        lane |= {name: old[name] for name in ("copy_ns", "kernel_copy_ns")}


def load(name: str, folder: Path) -> Recording:
    if name not in random_recordings():
        return gpuviz.load(OF_DEMO / f"{name}.gpuviz")
    path = folder / f"{name}.gpuviz"
    path.write_bytes(random_recordings()[name])
    return gpuviz.load(path)


@pytest.mark.parametrize("name", [f"{n:03}" for n in range(200)] + sorted(WORKLOADS))
def test_a_recording_of_0_1_has_the_numbers_it_had(name, tmp_path):
    recording = load(name, tmp_path)

    old = old_numbers()[name]
    assert as_of_0_1(numbers_of(recording), old) == old


def test_a_report_of_0_1_still_loads_with_its_numbers(tmp_path):
    path = tmp_path / "report.html"
    path.write_bytes(lzma.decompress((FOLDER / "report.html.xz").read_bytes()))

    recording = gpuviz.load(path)

    old = old_numbers()[IN_REPORT]
    assert as_of_0_1(numbers_of(recording), old) == old
