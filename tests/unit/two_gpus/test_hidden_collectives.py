"""Collectives beside the backward pass, after it, and with a late rank, on two H100."""

import itertools
from pathlib import Path

import pytest

import gpuviz

DATA = Path(__file__).parent / "data"
MIB = 1 << 20


def load(training):
    return gpuviz.load(DATA / f"training_{training}.gpuviz")


def plain_hidden(recording, device):
    """Return total and hidden time of NCCL's kernels on a device, ns by ns of their edges."""
    texts = {row["id"]: row["text"] for row in recording.table("strings").to_pylist()}
    rows = [row for row in recording.table("activities").to_pylist() if row["device"] == device]
    own = [row for row in rows if texts[row["name"]].startswith("nccl")]
    others = [row for row in rows if row not in own]
    edges = sorted({row[side] for row in rows for side in ("time", "end")})
    total = hidden = 0
    for begin, end in itertools.pairwise(edges):
        if any(row["time"] <= begin and end <= row["end"] for row in own):
            total += end - begin
            if any(row["time"] <= begin and end <= row["end"] for row in others):
                hidden += end - begin
    return total, hidden


@pytest.mark.parametrize("training", ["hidden", "exposed", "late_rank"])
def test_hidden_time_is_that_of_a_plain_account(training):
    recording = load(training)
    rows = recording.hidden_collectives().to_pylist()

    for device in (0, 1):
        own = [row for row in rows if row["device"] == device]
        found = tuple(sum(row[name] for row in own) for name in ("total_ns", "hidden_ns"))
        assert found == plain_hidden(recording, device)


@pytest.mark.parametrize(("training", "buckets", "size"), [("hidden", 6, 64), ("exposed", 1, 384)])
def test_each_bucket_is_a_row_of_its_rank(training, buckets, size):
    rows = load(training).hidden_collectives().to_pylist()

    expected = [
        (f"rank {rank}", number, size * MIB, 4)
        for rank in (0, 1)
        for number in range(1, buckets + 1)
    ]
    assert [(r["process"], r["bucket"], r["bytes"], r["count"]) for r in rows] == expected


def test_buckets_as_large_as_the_model_are_hidden_by_nothing():
    shares = {}
    for training in ("hidden", "exposed"):
        rows = load(training).hidden_collectives().to_pylist()
        hidden, total = (sum(row[name] for row in rows) for name in ("hidden_ns", "total_ns"))
        shares[training] = hidden / total

    assert shares["exposed"] < 0.1
    assert shares["hidden"] > 0.5


def test_the_report_begins_with_the_share_of_each_rank(tmp_path):
    load("hidden").report(tmp_path / "report.html")

    text = (tmp_path / "report.html").read_text()
    assert "Beside other kernels and copies: rank 0 " in text
    assert "hidden and rank 1 " in text


@pytest.mark.parametrize("training", ["hidden", "exposed", "late_rank"])
def test_the_buckets_have_the_line_that_runs_the_backward_pass(training):
    rows = load(training).hidden_collectives().to_pylist()

    assert {row["source"] for row in rows} == {"loss.backward()"}


def test_memory_of_before_the_recording_without_a_line_is_not_to_be_deleted():
    found = load("late_rank").findings()

    assert [finding.rule for finding in found if finding.rule == "R45"] == []
