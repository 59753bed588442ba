"""The data of charts, against the analyses."""

import pytest

import gpuviz
from gpuviz.figures.copies import copies_figure
from gpuviz.figures.fragmentation import fragmentation_figure
from gpuviz.figures.free_blocks import free_blocks_figure
from gpuviz.figures.kernels import kernels_figure
from gpuviz.figures.peak_chain import peak_chain_figure
from gpuviz.figures.sites import sites_figure
from tests.unit.recording.from_activities import Timeline
from tests.unit.simulated_programs import pageable_pipeline, pinned_pipeline

MIB = 1 << 20
FIGURES = (
    fragmentation_figure,
    free_blocks_figure,
    sites_figure,
    peak_chain_figure,
    kernels_figure,
    copies_figure,
)


@pytest.fixture(scope="module")
def recording():
    gpu = gpuviz.SimulatedGPU(real_time=False)
    with gpuviz.record(device=gpu) as recorder:
        pinned_pipeline(gpu)
        kept = [gpu.empty(3 * MIB) for _ in range(4)]
        kept[0] = kept[2] = None
        pageable_pipeline(gpu, 2)
    assert len(kept) == 4
    return recorder.recording


def test_fragmentation_ends_with_the_parts_at_the_end(recording):
    drawn = {line.name: line for line in fragmentation_figure(recording).data}
    parts = recording.fragmentation()

    assert drawn["reserved"].y[-1] * MIB == parts.reserved
    assert drawn["allocated"].y[-1] * MIB == parts.requested + parts.rounding
    assert drawn["largest free block"].y[-1] * MIB == parts.largest_free
    assert max(drawn["allocated"].y) * MIB == recording.peak().bytes


def test_free_blocks_sum_up_to_what_is_free(recording):
    figure = free_blocks_figure(recording)
    [drawn] = figure.data

    assert figure.layout.yaxis.title.text == "MiB in such blocks"
    assert sum(drawn.y) * MIB == recording.fragmentation().free
    assert "2.00 MiB to 4.00 MiB" in drawn.x


def test_the_levels_of_the_peak_add_up_to_what_was_reserved(recording):
    before, added = peak_chain_figure(recording).data
    sizes = dict(recording.peak_chain().select(["level", "bytes"]).to_pydict().items())

    assert added.x[0] * MIB == sizes["bytes"][0]
    assert (before.x[-1] + added.x[-1]) * MIB == recording.memory_stats()["reserved_bytes.all.peak"]
    assert sum(added.x) == before.x[-1] + added.x[-1]


@pytest.mark.parametrize(("by", "column"), [("peak", "live_bytes"), ("total", "total_bytes")])
def test_sites_are_the_lines_with_most_bytes(recording, by, column):
    [drawn] = sites_figure(recording, by).data
    expected = sorted((n for n in recording.sites("line")[column].to_pylist() if n), reverse=True)

    assert [value * MIB for value in drawn.x] == expected


def test_kernels_have_the_names_and_times_of_the_table(recording):
    figure = kernels_figure(recording)
    rows = recording.kernels().to_pylist()

    assert list(figure.layout.yaxis.ticktext) == [row["name"] for row in rows]
    assert [value * 1e6 for value in figure.data[0].x] == [row["total_ns"] for row in rows]


def test_copies_tell_pinned_from_pageable_with_their_bandwidth(recording):
    figure = copies_figure(recording)
    [drawn] = figure.data
    rows = recording.copies().to_pylist()

    assert sorted(figure.layout.yaxis.ticktext) == [
        "device to host, pageable",
        "device to host, pinned",
        "host to device, pageable",
        "host to device, pinned",
    ]
    assert [value * MIB for value in drawn.x] == [row["bytes"] for row in rows]
    assert all(text.endswith("GiB/s") for text in drawn.text)


@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: figure.__name__)
def test_an_empty_recording_gives_an_empty_chart(figure):
    made = figure(Timeline().recording())

    assert sum(len(trace.x if trace.x is not None else ()) for trace in made.data) == 0


def test_names_from_the_program_are_no_markup():
    timeline = Timeline()
    timeline.kernel(0, 10, '<a href="https://x">k</a>')

    figure = kernels_figure(timeline.recording())

    assert figure.layout.yaxis.ticktext == ('&lt;a href="https://x"&gt;k&lt;/a&gt;',)
    assert "<a" not in figure.to_json().replace("\\u003c", "<")


def test_of_many_moments_the_one_with_most_unused_is_drawn():
    gpu = gpuviz.SimulatedGPU(real_time=False)
    with gpuviz.record(device=gpu) as recorder:
        kept = [gpu.empty(512) for _ in range(3000)]
        large = gpu.empty(100 * MIB)
        del large
        gpu.empty_cache()
        kept += [gpu.empty(512) for _ in range(3000)]
    drawn = {line.name: line for line in fragmentation_figure(recorder.recording).data}

    unused = [
        reserved - allocated
        for reserved, allocated in zip(drawn["reserved"].y, drawn["allocated"].y, strict=True)
    ]
    assert len(unused) <= 2001
    assert max(unused) >= 100


def test_another_order_of_sites_is_refused(recording):
    with pytest.raises(ValueError, match='by must be "peak" or "total", got \'size\''):
        sites_figure(recording, "size")
