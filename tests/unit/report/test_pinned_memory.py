import re

import gpuviz
from gpuviz.analysis.device_summary import summarize
from gpuviz.commands.info import facts_of
from gpuviz.conclusions.recording_numbers import headline

MIB = 1 << 20


def recorded(*, pinned):
    gpu = gpuviz.SimulatedGPU(1 << 30, real_time=False)
    with gpuviz.record(device=gpu) as recorder:
        array = gpu.empty(2 * MIB)
        kept = [gpu.empty_pinned(3 * MIB)] if pinned else []
        if pinned:
            gpu.empty_pinned(2 * MIB)
        del array
    kept.clear()
    return recorder.recording


def test_the_summary_has_the_peak_of_pinned_memory():
    recording = recorded(pinned=True)

    numbers = {number.name: number for number in headline(recording, summarize(recording, 0))}

    assert numbers["Peak of pinned memory"].value == "6.00 MiB"
    assert re.fullmatch(
        r"of 6\.00 MiB reserved, first at \d+ µs", numbers["Peak of pinned memory"].detail
    )
    assert numbers["Peak allocated"].value == "2.00 MiB"


def test_gpuviz_info_has_its_levels():
    facts = facts_of(recorded(pinned=True))

    assert facts["host_memory"] == {
        "requested_bytes": {"peak": 5 * MIB, "end": 3 * MIB},
        "allocated_bytes": {"peak": 6 * MIB, "end": 4 * MIB},
        "active_bytes": {"peak": 6 * MIB, "end": 4 * MIB},
        "reserved_bytes": {"peak": 6 * MIB, "end": 6 * MIB},
        "num_ooms": 0,
    }


def test_neither_mentions_it_without_any():
    recording = recorded(pinned=False)

    assert facts_of(recording)["host_memory"] == {}
    labels = [number.name for number in headline(recording, summarize(recording, 0))]
    assert not [label for label in labels if "pinned" in label]
