"""The numbers of a dashboard, of recordings that grow, against those of the whole."""

import random
from dataclasses import replace

import pytest

import gpuviz
from gpuviz.notebook.live_numbers import LiveNumbers, numbers_html
from gpuviz.quantities import format_bytes, format_share
from gpuviz.report.summary import Number
from tests.examples import share_of

SEEDS = range(share_of(1))


def by_name(numbers):
    return {number.name: number for number in numbers}


@pytest.mark.parametrize("max_events", [100, 10_000_000])
@pytest.mark.parametrize("seed", SEEDS)
def test_numbers_of_what_grows_are_those_of_the_whole(seed, max_events):
    chosen = random.Random(seed)
    gpu = gpuviz.SimulatedGPU(memory=1 << 30, real_time=False)
    before = gpu.empty(12345)
    live = [before]
    growing = LiveNumbers()
    with gpuviz.record(device=gpu, max_events=max_events) as recorder:
        for _ in range(8):
            for _ in range(40):
                live.append(gpu.empty(chosen.choice((1234, 3 << 20, 30 << 20))))
                if len(live) > 9:
                    live.pop(chosen.randrange(len(live)))
            gpu.launch("k", reads=[live[0]], writes=[live[-1]], duration=1e-5)
            gpu.synchronize()
            recording, status = recorder.recording, recorder.status()
            numbers = by_name(growing.of(recording, status))

            assert numbers == by_name(LiveNumbers().of(recording, status))
            stats, parts = recording.memory_stats(), recording.fragmentation()
            assert numbers["Allocated"] == Number(
                "Allocated",
                format_bytes(stats["allocated_bytes.all.current"]),
                f"peak {format_bytes(recording.peak().bytes)}",
            )
            assert numbers["Fragmentation"].value == format_share(parts.external)
            busy = recording.overlap().devices[0].busy
            assert numbers["GPU busy"].value == format_share(busy)


def test_what_was_lost_and_what_it_cost_is_told():
    gpu = gpuviz.SimulatedGPU(real_time=False)
    with gpuviz.record(device=gpu) as recorder:
        gpu.work_on_host(1e-3)
    status = replace(recorder.status(), dropped=3, dropped_activities=4, own_cost_ns=100_000)

    numbers = by_name(LiveNumbers().of(recorder.recording, replace(status, streams=False)))

    assert numbers["Lost"].value == "7"
    assert numbers["Own cost"] == Number("Own cost", "100 µs", "10 % of time")
    assert numbers["GPU busy"].value == "unknown"


def test_numbers_are_escaped():
    assert "<script" not in numbers_html([Number("<script>", "<script>", "<script>")])
