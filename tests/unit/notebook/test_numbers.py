"""The numbers of a recorder in its views."""

from dataclasses import replace

import gpuviz
from gpuviz.conclusions.headline_number import Number
from gpuviz.conclusions.live_numbers import live_headline
from gpuviz.notebook.numbers import numbers_html, numbers_message, status_text


def by_name(numbers):
    return {number.name: number for number in numbers}


def statistics_of(**status):
    gpu = gpuviz.SimulatedGPU(real_time=False)
    with gpuviz.record(device=gpu) as recorder:
        gpu.work_on_host(1e-3)
    statistics = recorder.statistics
    return replace(statistics, status=replace(statistics.status, **status))


def test_dropped_events_and_the_own_cost_are_shown():
    statistics = statistics_of(dropped=3, dropped_activities=4, own_cost_ns=100_000, streams=False)
    numbers = by_name(live_headline(statistics))

    assert numbers["Dropped events"] == Number("Dropped events", "7", "")
    assert numbers["Overhead"] == Number("Overhead", "100 µs", "10 % of time")
    assert numbers["GPU busy"].value == "unknown"
    assert ["Dropped events", "7", ""] in [
        list(each) for each in numbers_message(statistics)["numbers"]
    ]


def test_the_oldest_events_that_were_dropped_are_counted_apart():
    numbers = by_name(live_headline(statistics_of(dropped_oldest=1234)))

    assert numbers["Dropped events"].value == "0"
    assert numbers["Dropped events"].detail == "and the 1,234 oldest, to bound memory"


def test_panel_dashboard_widget_and_status_have_the_same_numbers():
    gpu = gpuviz.SimulatedGPU(memory=1 << 30)
    with gpuviz.record(device=gpu) as recorder:
        arrays = [gpu.empty(3 << 20), gpu.empty(5 << 20)]
        arrays.pop()
        gpu.launch("k", writes=arrays, duration=1e-3)
        gpu.synchronize()
        statistics = recorder.read_statistics()
    message = numbers_message(statistics)
    numbers = by_name(live_headline(statistics))

    assert [tuple(each) for each in message["numbers"]] == [
        (number.name, number.value, number.detail)
        for number in (numbers["Allocated"], numbers["Reserved"], numbers["GPU busy"])
    ]
    assert message["elapsedNs"] == statistics.time_ns
    assert message["counts"] == numbers["Recorded"].detail
    assert message["devices"][0]["allocated"] == 3 << 20
    assert numbers["Allocated"].value == "3.00 MiB"
    text = status_text(statistics)
    for number in numbers.values():
        assert number.value in text
        assert f"{number.name} " in text or number.name == "Recorded"
        assert number.detail in text or number.name == "Recorded"


def test_numbers_are_escaped():
    assert "<script" not in numbers_html([Number("<script>", "<script>", "<script>")])
