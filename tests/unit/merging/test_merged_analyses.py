"""Hazards, findings and lanes of several processes in a merged recording."""

from hypothesis import given
from hypothesis import strategies as st

import gpuviz
from gpuviz.hazards.known import known_hazards
from gpuviz.present.text import hazards_text
from tests.unit.merging.processes_of_a_run import process, program
from tests.unit.recording.any_timeline import any_timeline


@given(st.lists(any_timeline(), min_size=2, max_size=4))
def test_nothing_is_classified_across_processes(timelines):
    parts = [process(each, number) for number, each in enumerate(timelines)]

    merged = gpuviz.merge(parts)

    for name in ("host_waits", "idle_gaps", "stream_waits"):
        of_parts = [part.derived[name] for part in parts]
        assert merged.derived[name].num_rows == sum(each.num_rows for each in of_parts)
    expected = [cause for part in parts for cause in part.derived["idle_gaps"]["cause"].to_pylist()]
    assert merged.derived["idle_gaps"]["cause"].to_pylist() == expected


def test_hazards_are_those_of_each_process():
    def racing(number):
        gpu = gpuviz.SimulatedGPU(memory=1 << 30, real_time=False)
        with gpuviz.record(device=gpu) as recorder:
            one, two = gpu.Stream(non_blocking=True), gpu.Stream(non_blocking=True)
            array = gpu.empty(12345)
            with one:
                gpu.launch("write", writes=[array], duration=1e-3)
            with two:
                gpu.launch("read", reads=[array], duration=1e-3)
            gpu.synchronize()
        return process(recorder.recording, number)

    parts = [racing(0), process(program(5), 1), racing(2)]
    merged = gpuviz.merge(parts)

    assert [len(part.hazards()) for part in parts][::2] == [1, 1]
    found = known_hazards(merged).to_pylist()
    assert sum(len(part.hazards()) for part in parts) == len(found)
    assert "   on node0 1002 GPU 0" in hazards_text(merged, merged.hazards())
    texts = {row["id"]: row["text"] for row in merged.table("strings").to_pylist()}
    launched = merged.table("activities")["name"].to_pylist()
    for row in found:
        if row["device"] != 1:
            assert texts[launched[row["first_activity"]]] == "write"
            assert texts[launched[row["second_activity"]]] == "read"


def test_findings_of_several_processes_are_listed_once():
    from tests.unit.simulated_programs import pageable_pipeline

    def slow(number):
        gpu = gpuviz.SimulatedGPU(real_time=False)
        with gpuviz.record(device=gpu) as recorder:
            pageable_pipeline(gpu)
        return process(recorder.recording, number, ranks=3)

    parts = [slow(number) for number in range(3)]
    merged = gpuviz.merge(parts)

    alone = [each.rule for each in parts[0].findings()]
    assert sorted(each.rule for each in merged.findings()) == sorted(alone)
    for each in merged.findings():
        assert each.reason.startswith("In rank ")
        assert "and likewise in rank " in each.reason
        if each.evidence is not None and each.evidence.rows:
            assert each.evidence.rows[-1] < merged.table(each.evidence.table).num_rows


def test_rows_of_other_settings_are_those_of_the_merged_recording():
    def full(number):
        gpu = gpuviz.SimulatedGPU(memory=1 << 28, real_time=False)
        with gpuviz.record(device=gpu) as recorder:
            kept = [gpu.empty(20 << 20) for _ in range(4)]
            gpu.launch("use", reads=kept, duration=1e-6)
            gpu.synchronize()
        return process(recorder.recording, number, start=number)

    parts = [full(0), full(1)]
    merged = gpuviz.merge(parts)
    own = parts[1].what_if("", capacity=64 << 20)["first_failure"].to_pylist()[1]
    row = merged.what_if("", capacity=64 << 20, device=1)["first_failure"].to_pylist()[1]

    assert own is not None
    failed = merged.table("memory_events").slice(row, 1).to_pylist()[0]
    expected = parts[1].table("memory_events").slice(own, 1).to_pylist()[0]
    assert failed["device"] == 1
    assert failed["requested_size"] == expected["requested_size"]
