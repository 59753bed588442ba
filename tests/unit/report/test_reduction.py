"""Reports of a part of a recording: a window, or what fits into a maximum size."""

from functools import cache
from pathlib import Path

import pytest

from gpuviz.recording import load
from gpuviz.report import page
from tests.unit.recording.from_activities import Timeline
from tests.unit.report.recordings import MIB, SEGMENT, Events, make_recording

RECORDINGS = Path(__file__).parents[3] / "gpuviz" / "commands" / "recordings"


@pytest.fixture(scope="module")
def kmeans():
    return load(RECORDINGS / "kmeans.gpuviz")


@pytest.fixture(scope="module")
def size_of(tmp_path_factory):
    """Return the size of the whole report of a shipped recording."""
    folder = tmp_path_factory.mktemp("whole")
    return cache(
        lambda name: (
            load(RECORDINGS / f"{name}.gpuviz").report(folder / f"{name}.html").stat().st_size
        )
    )


def test_a_window_holds_what_the_recording_says_it_does(kmeans, tmp_path):
    path = kmeans.report(tmp_path / "run.html", window=(20_000_000, 60_000_000))

    back = load(path)

    assert back.memory_stats() == kmeans.window(20_000_000, 60_000_000).memory_stats()
    assert back.notes == (
        "Only 20.0 ms to 60.0 ms of the recording's 214 ms are here; every number is of this part.",
    )
    assert 'data-window="20000000-60000000"' in path.read_text()


def test_a_window_around_everything_is_the_whole_recording(kmeans, tmp_path):
    path = kmeans.report(tmp_path / "run.html", window=(0, 10**15))

    back = load(path)

    assert back.table("memory_events").equals(kmeans.table("memory_events"))
    assert back.notes == ()


@pytest.mark.parametrize("window", [(5, 5), (-1, 5), (9, 3)])
def test_a_window_that_is_none_is_refused(kmeans, tmp_path, window):
    with pytest.raises(ValueError, match=rf"0 <= start < end, got {window[0]}, {window[1]}"):
        kmeans.report(tmp_path / "run.html", window=window)

    assert list(tmp_path.iterdir()) == []


def test_a_window_after_the_end_is_refused(kmeans, tmp_path):
    with pytest.raises(ValueError, match=r"the recording ends at \d+ ns"):
        kmeans.report(tmp_path / "run.html", window=(10**12, 10**12 + 1))


def test_a_size_that_is_large_enough_leaves_all_in(kmeans, tmp_path):
    size = kmeans.report(tmp_path / "whole.html").stat().st_size

    path = kmeans.report(tmp_path / "run.html", max_size=size)

    assert path.read_bytes() == (tmp_path / "whole.html").read_bytes()


def test_what_goes_first_is_said(kmeans, tmp_path):
    size = kmeans.report(tmp_path / "whole.html").stat().st_size

    path = kmeans.report(tmp_path / "run.html", max_size=size - 1)
    back = load(path)

    assert path.stat().st_size < size
    assert back.table("launch_blocks").num_rows == 0
    assert back.table("api_calls").equals(kmeans.table("api_calls"))
    assert (
        "13,820 links between launches and the blocks they touched were left out" in (back.notes[0])
    )
    assert back.notes[0].replace("'", "&#39;") in path.read_text()


@pytest.mark.parametrize("share", [0.9, 0.8, 0.7, 0.6])
def test_a_report_is_never_larger_than_asked_and_keeps_the_peak(kmeans, size_of, tmp_path, share):
    size = size_of("kmeans")

    path = kmeans.report(tmp_path / "run.html", max_size=int(size * share))
    back = load(path)

    assert path.stat().st_size <= int(size * share)
    assert back.peak().bytes == kmeans.peak().bytes
    assert len(back.notes) >= 1


@pytest.mark.parametrize("name", ["kmeans", "conjugate_gradient", "image_pipeline"])
@pytest.mark.parametrize("share", [0.98, 0.9, 0.8, 0.75])
def test_a_report_that_must_be_small_is_written_a_few_times_and_keeps_what_it_can(
    size_of, tmp_path, monkeypatch, name, share
):
    recording = load(RECORDINGS / f"{name}.gpuviz")
    allowed = int(size_of(name) * share)
    write, written = page.write_archive, []
    monkeypatch.setattr(page, "write_archive", lambda *into: written.append(into) or write(*into))

    path = recording.report(tmp_path / "run.html", max_size=allowed)
    back = load(path)

    assert 1 < len(written) <= 8
    # Links and calls are removed completely, which frees more space than needed.
    parts = [note for note in back.notes if "around the peak" in note]
    assert (0.8 if parts else 0.75) * allowed <= path.stat().st_size <= allowed


def test_a_few_large_steps_are_cut_where_they_fit(tmp_path):
    events = Events()
    events.add("segment_alloc", SEGMENT, 2000 * MIB, time=0)
    events.add("alloc", SEGMENT, 20 * MIB, time=10)
    events.add("free_completed", SEGMENT, 20 * MIB, time=20)
    for row in range(3000):
        # 2000 simultaneous events, three times.
        at = {"address": SEGMENT + row * 7919 % 1999 * MIB, "time": 1000 * (1 + row // 1000)}
        events.add("alloc", size=row * 31 % 997 + 1, **at)
        events.add("free_completed", size=row * 31 % 997 + 1, **at)
    recording = make_recording(events.rows, initial_events=0, duration_ns=4000)
    one = recording.report(tmp_path / "one.html", window=(0, 1999)).stat().st_size
    two = recording.report(tmp_path / "two.html", window=(0, 2999)).stat().st_size

    path = recording.report(tmp_path / "run.html", max_size=(one + two) // 2)

    assert path.stat().st_size <= (one + two) // 2
    assert load(path).table("memory_events").num_rows == 2003
    assert load(path).peak().bytes == recording.peak().bytes


def test_a_size_that_nothing_fits_into_is_refused(kmeans, tmp_path):
    with pytest.raises(ValueError, match=r"max_size is 5000 bytes, too few .* has \d+"):
        kmeans.report(tmp_path / "run.html", max_size=5000)

    assert list(tmp_path.iterdir()) == []


def test_a_window_a_size_and_redaction_go_together(kmeans, tmp_path):
    path = kmeans.report(
        tmp_path / "run.html",
        window=(20_000_000, 120_000_000),
        redact=True,
        max_size=327_680,
    )
    back = load(path)

    assert path.stat().st_size <= 327_680
    assert back.notes[0].startswith("Redacted: ")
    assert back.notes[1].startswith("Only 20.0 ms to 120 ms of the recording's 214 ms are here")
    assert any(note.startswith("To fit into 320 KiB") for note in back.notes)


def test_a_recording_without_activities_can_be_cut_too(tmp_path):
    path = make_recording().report(tmp_path / "run.html", window=(150_000, 350_000))

    assert load(path).table("memory_events").num_rows == 5


@pytest.mark.parametrize("options", [{"window": (45, 90)}, {"max_size": 1}, {"redact": True}])
def test_causes_and_waits_in_a_part_are_those_of_the_whole(tmp_path, options):
    timeline = Timeline()
    timeline.kernel(0, 10)
    timeline.call(11, 70, "cuStreamSynchronize", correlation=8)
    timeline.synchronization("stream_synchronize", 11, 70, stream=1, correlation=8)
    timeline.call(70, 71, correlation=9)
    timeline.kernel(80, 90, correlation=9)
    whole = timeline.recording(duration_ns=90).window(40, 90)
    if "max_size" in options:
        size = whole.report(tmp_path / "whole.html").stat().st_size
        options = {"max_size": size - 1}

    back = load(whole.report(tmp_path / "run.html", **options))

    start, _ = options.get("window", (40, 90))
    (lane,) = back.overlap().devices
    assert (lane.idle_synchronization_ns, lane.idle_host_ns) == (70 - start, 1)
    assert back.synchronizations()["total_ns"].to_pylist() == [70 - start]
