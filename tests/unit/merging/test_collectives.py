"""Collectives of all ranks: who came last, by how much, and where that is unknown."""

from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import gpuviz
from gpuviz.analysis.collectives import late_ranks
from gpuviz.commands.info import facts_of
from gpuviz.data.tables import schemas
from gpuviz.recording import Recording
from tests.unit.merging.ranks_of_a_run import BYTES, KERNEL, MS, ranks, with_collectives

S = 1000 * MS


def always_late(collectives=5):
    """Return arrivals where rank 2 is 3 ms late each time."""
    return [[at, at + MS // 10, at + 3 * MS] for at in range(S, S + collectives * 10 * MS, 10 * MS)]


def taking_turns(collectives=6):
    """Return arrivals where another rank is late each time."""
    return [
        [S + number * 10 * MS + (3 * MS if rank == number % 3 else rank * MS // 10)
         for rank in range(3)]
        for number in range(collectives)
    ]  # fmt: skip


def rows(recording):
    return recording.collectives().to_pylist()


def test_the_last_rank_its_lateness_and_the_time_of_the_others_are_known():
    merged = gpuviz.merge(ranks(always_late()))

    found = rows(merged)

    assert len(found) == 5
    for sequence, row in enumerate(found):
        assert (row["function"], row["bytes"], row["ranks"]) == ("all_reduce", BYTES, 3)
        assert (row["sequence"], row["missing"], row["clock"]) == (sequence, 0, "gpu")
        assert (row["last_rank"], row["last_process"]) == (2, merged.processes[2].name)
        assert row["late_ns"] == pytest.approx(2.9 * MS, abs=50_000)
        assert row["waited_ns"] == pytest.approx(3 * MS + 2.9 * MS, abs=100_000)
        assert row["time"] == min(row["starts"])
        assert row["error_ns"] == 0
    assert found == sorted(found, key=lambda row: row["time"])


def test_the_starts_are_those_of_the_kernels():
    merged = gpuviz.merge(ranks(always_late(1)))

    [row] = rows(merged)

    assert row["starts"] == merged.table("activities")["time"].to_pylist()


def test_a_rank_that_is_always_late_is_told_from_ranks_that_take_turns():
    late = late_ranks(rows(gpuviz.merge(ranks(always_late()))))
    turns = late_ranks(rows(gpuviz.merge(ranks(taking_turns()))))

    assert [(each.count, each.waited_ns > 20 * MS) for each in late] == [(5, True)]
    assert [each.count for each in turns] == [2, 2, 2]


def late_findings(recording, *, small=False):
    return [each for each in recording.findings(small=small) if each.rule == "R48"]


def steps(late_ns, count=9, first_ns=0):
    """Return arrivals at collectives after steps of 10 ms, to which a rank comes late each time."""
    arrivals, now = [], S
    for number in range(count):
        now += 10 * MS
        late = first_ns if first_ns and number == 0 else late_ns
        arrivals.append([now, now + MS // 10, now + late])
        now = max(arrivals[-1]) + MS
    return arrivals


def test_a_rank_that_is_late_to_most_collectives_is_a_finding_with_what_it_saves():
    late, even = gpuviz.merge(ranks(steps(3 * MS))), gpuviz.merge(ranks(steps(MS // 5)))

    [finding] = late_findings(late)

    assert "Rank 2 " in finding.title
    assert "comes last to 8 of 8 collectives" in finding.title
    assert "The other 2 ranks waited" in finding.reason
    assert "Its GPU is idle for 100 % of this time" in finding.reason
    assert finding.device in late.processes[2].devices
    assert "launch(KERNEL" in finding.lines[0].source
    # With the advice followed, it is gone, and the run is shorter by what was predicted.
    assert late_findings(even) == []
    assert late.duration_ns - even.duration_ns == pytest.approx(finding.saved_ns, rel=0.15)


def test_what_the_gpu_of_the_late_rank_does_meanwhile_is_told():
    def busy(number, recording):
        """Let the GPU of rank 2 work on a kernel of its own until it arrives."""
        if number != 2:
            return recording
        activities = recording.table("activities").to_pylist()
        own = [
            {**row, "time": row["time"] - 4 * MS, "end": row["time"], "name": 0, "correlation": 0}
            for row in activities
        ]
        rows = sorted([*activities, *own], key=lambda row: row["time"])
        table = pa.Table.from_pylist(rows, schema=schemas()["activities"])
        return Recording(dict(recording.tables) | {"activities": table}, recording.manifest)

    parts = [busy(number, part) for number, part in enumerate(ranks(steps(3 * MS)))]

    [finding] = late_findings(gpuviz.merge(parts))

    assert "Its GPU works on its own kernels and copies for 100 % of this time" in finding.reason
    assert finding.change.startswith("Give this rank less work")


def test_nobody_is_blamed_who_is_late_in_turn_once_or_hardly():
    turns = taking_turns(9)
    once = steps(MS // 5, first_ns=50 * MS)
    few = steps(3 * MS, count=5)  # four after the first

    for arrivals in (turns, once, few):
        assert late_findings(gpuviz.merge(ranks(arrivals))) == []
    assert late_findings(gpuviz.merge(ranks(steps(3 * MS))[:2])) == []


def test_a_missing_rank_is_named_and_nobody_is_last():
    parts = ranks(always_late(1))

    [row] = rows(gpuviz.merge(parts[:2]))

    assert (row["recorded"], len(row["starts"]), row["missing"]) == ([0, 1], 2, 1)
    assert (row["last_rank"], row["waited_ns"]) == (-1, -1)


def test_between_hosts_nobody_is_last_by_less_than_the_error():
    def merged(uncertainty):
        parts = ranks(always_late(1), lasting=50 * MS)
        clocks = [
            {"time": time, "wall": 1_700_000_000 * S + time, "boot": 0, "uncertainty": uncertainty}
            for time in (0, 2 * S)
        ]
        table = pa.Table.from_pylist(clocks, schema=schemas()["clock_snapshots"])
        return gpuviz.merge(
            [
                Recording(
                    dict(part.tables) | {"clock_snapshots": table},
                    replace(part.manifest, boot_id=str(number), host=f"node{number}"),
                )
                for number, part in enumerate(parts)
            ]
        )

    exact, vague = rows(merged(1000)), rows(merged(4 * MS))

    assert [row["last_rank"] for row in exact] == [2]
    assert [row["last_rank"] for row in vague] == [-1]
    for row in (*exact, *vague):
        assert row["error_ns"] > 0
        assert (row["late_ns"] > row["error_ns"]) == (row["last_rank"] == 2)


def test_without_kernels_the_starts_are_those_on_the_host():
    parts = [
        Recording(
            dict(part.tables) | {"activities": schemas()["activities"].empty_table()}, part.manifest
        )
        for part in ranks(always_late(1))
    ]

    [row] = rows(gpuviz.merge(parts))

    assert (row["clock"], row["last_rank"], row["waited_ns"]) == ("host", 2, -1)


def test_a_row_after_another_launch_belongs_to_no_kernel():
    gpu = gpuviz.SimulatedGPU(memory=1 << 30, real_time=False)
    with gpuviz.record(device=gpu) as recorder:
        gpu.launch(KERNEL, duration=1.0)
        gpu.work_on_host(1e-3)
        gpu.launch("add", duration=1.0)
    known = with_collectives(recorder.recording, 0, 2)
    last = pc.max(known.table("api_calls")["end"]).as_py()
    late = with_collectives(recorder.recording, 0, 2, time=last + 1)

    assert [row["clock"] for row in rows(known) + rows(late)] == ["gpu", "host"]


def test_rows_of_another_thread_belong_to_no_kernel():
    gpu = gpuviz.SimulatedGPU(memory=1 << 30, real_time=False)
    with gpuviz.record(device=gpu) as recorder:
        gpu.launch(KERNEL, duration=1.0)

    [row] = rows(with_collectives(recorder.recording, 0, 2, thread=1))

    assert row["clock"] == "host"


def test_repeated_rows_of_a_graph_have_no_last_rank():
    parts = ranks([[S, S + MS], [S + 20 * MS, S + 23 * MS]])
    repeated = [with_collectives(part, number, 2, sequence=7) for number, part in enumerate(parts)]

    [row] = rows(gpuviz.merge(repeated))

    assert (row["last_rank"], row["late_ns"], row["missing"]) == (-1, -1, 0)


def test_transfers_between_two_ranks_are_left_out():
    parts = ranks(always_late(1))

    sends = [
        with_collectives(part, number, 3, function="send") for number, part in enumerate(parts)
    ]

    assert rows(gpuviz.merge(sends)) == []


def test_info_and_the_report_name_the_late_rank(tmp_path):
    merged = gpuviz.merge(ranks(always_late()))

    facts = facts_of(merged)["collectives"]
    page = merged.report(tmp_path / "report.html").read_text(encoding="utf-8")

    assert (facts["count"], facts["incomplete"], facts["uncertain"]) == (5, 0, 0)
    assert [each["count"] for each in facts["last"]] == [5]
    section = page.split('id="collectives-0"')[1].split("</section>")[0]
    assert section.count("<td>all_reduce</td>") == 5
    assert facts["last"][0]["name"] in section


def test_a_recording_without_collectives_has_no_section(tmp_path):
    gpu = gpuviz.SimulatedGPU(memory=1 << 30, real_time=False)
    with gpuviz.record(device=gpu) as recorder:
        gpu.launch(KERNEL, duration=1.0)

    assert facts_of(recorder.recording)["collectives"] == {}
    page = recorder.recording.report(tmp_path / "report.html").read_text(encoding="utf-8")
    assert 'id="collectives-' not in page


def test_a_redacted_report_has_the_same_collectives(tmp_path):
    merged = gpuviz.merge(ranks(always_late()))

    page = merged.report(tmp_path / "report.html", redact=True)

    redacted = gpuviz.load(page)
    assert not any("AllReduce" in text for text in redacted.table("strings")["text"].to_pylist())
    assert [row["last_process"] for row in rows(redacted)] == ["process 3"] * 5
    kept = merged.collectives().drop_columns("last_process")
    assert redacted.collectives().drop_columns("last_process").equals(kept)
