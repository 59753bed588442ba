"""What calls, graphs, copies and allocations cost while they are recorded."""

import numpy as np
import pytest

import gpuviz
from tests.unit.advice.costly_programs import (
    ALL_KNOWN,
    FIRST,
    KINDS,
    LAUNCH_BOUND,
    STEP,
    TRACING_NS,
    as_costly,
    costly,
    differences,
    recorded,
    times,
    with_columns,
)


def test_an_uncertain_cost_is_an_interval():
    interval = dict.fromkeys(KINDS, (1_000, TRACING_NS))

    cost = costly(LAUNCH_BOUND, interval).recording_cost()

    known = costly(LAUNCH_BOUND, ALL_KNOWN).recording_cost()
    assert cost.least_ns == known.compensated_ns
    assert cost.least_ns < cost.compensated_ns < cost.most_ns < cost.recorded_ns


def test_a_program_whose_launches_take_twice_as_long_as_measured_has_twice_the_cost():
    call_ns = 1_000
    halves = {kind: (low / 2, high / 2) for kind, (low, high) in ALL_KNOWN.items()}
    halves["launch_duration"] = ((TRACING_NS + call_ns) // 2,) * 2

    compensated = costly(LAUNCH_BOUND, halves).compensated()

    expected = recorded(LAUNCH_BOUND)
    assert differences(compensated, expected) == dict.fromkeys(times(expected), 0)


def test_launches_that_waited_for_a_full_queue_say_little_of_the_cost():
    """They take a thousand times as long as when the costs were measured; twice is believed."""
    costs = ALL_KNOWN | {"launch": (100, 100), "launch_duration": (1, 1)}

    cost = costly(LAUNCH_BOUND, costs).recording_cost()

    launches = sum(kind == "launch" for kind, *_ in [*FIRST, *LAUNCH_BOUND])
    assert cost.tracing_ns == launches * 200


def test_events_of_allocators_and_calls_without_a_row_cost_what_was_measured():
    recording = costly(STEP, ALL_KNOWN | {"memory_event": (100, 100), "other_calls": (10, 30)})

    cost, known = recording.recording_cost(), costly(STEP, ALL_KNOWN).recording_cost()

    calls, events = (recording.tables[each].num_rows for each in ("api_calls", "memory_events"))
    assert events > 0
    assert cost.own_ns == known.own_ns + events * 100
    assert cost.tracing_ns == known.tracing_ns + calls * 20


def test_a_launch_of_a_graph_costs_what_each_of_its_kernels_does():
    steps = (("graph", 0), ("wait",), ("graph", 1), ("work", 20_000), ("graph", 0))
    of_nodes = ALL_KNOWN | {"graph_node": (TRACING_NS // 2, TRACING_NS // 2)}  # of two

    compensated = costly(steps, of_nodes).compensated()

    assert differences(compensated, costly(steps, ALL_KNOWN).compensated()) == dict.fromkeys(
        times(compensated), 0
    )


@pytest.mark.parametrize("gap_ns", [300, 5_000])
def test_kernels_of_a_graph_follow_each_other_as_soon_as_without_recording(gap_ns):
    steps = (("graph", 0),)
    plain = recorded(steps)
    work, calls = plain.tables["activities"], plain.tables["api_calls"]
    is_last = np.arange(work.num_rows) == work.num_rows - 1
    # The last node begins later, and so does the end of the wait for it.
    later = {name: work[name].to_numpy() + gap_ns * is_last for name in ("time", "end")}
    returned = calls["end"].to_numpy().copy()
    returned[-1] += gap_ns
    costs = dict.fromkeys(ALL_KNOWN, (0, 0))
    late = with_columns(plain, "activities", later, costs)
    late = with_columns(late, "api_calls", {"end": returned}, costs)

    def with_gap(ns):
        return with_columns(late, "api_calls", {}, costs | {"graph_gap": (ns, ns)}).compensated()

    assert differences(with_gap(gap_ns), plain) == dict.fromkeys(times(plain), 0)
    # A kernel never begins before the end of the one before.
    assert differences(with_gap(9 * gap_ns), with_gap(10**6)) == dict.fromkeys(times(plain), 0)
    assert differences(with_gap(0), plain)["ended"] == gap_ns


def test_a_copy_to_the_host_costs_what_was_measured_of_it():
    gpu = gpuviz.SimulatedGPU(real_time=False)
    with gpuviz.record(device=gpu) as recorder:
        gpu.launch("kernel", duration=1e-6)
        gpu.copy_to_host(gpu.empty(4096))
        gpu.synchronize()

    costs = dict.fromkeys(("launch", "synchronize"), (0, 0)) | {"copy": (300, 300)}
    older = as_costly(recorder.recording, costs).recording_cost()
    newer = as_costly(recorder.recording, costs | {"read_back": (900, 900)}).recording_cost()

    assert (older.tracing_ns, newer.tracing_ns) == (300, 900)


@pytest.mark.parametrize(
    ("call", "launches"),
    [
        ("cuModuleLoadData", 6),
        ("cuModuleUnload", 2),
        ("cuMemAlloc_v2", 4),
        ("cuMemFree_v2", 2),
        ("cuMemHostAlloc", 0),
    ],
)
def test_code_and_memory_of_the_driver_cost_as_much_as_several_launches(call, launches):
    gpu = gpuviz.SimulatedGPU(real_time=False)
    with gpuviz.record(device=gpu) as recorder:
        gpu.launch("kernel", duration=1e-6)
        gpu.copy_to_host(gpu.empty(4096))
        gpu.synchronize()
    recording = recorder.recording
    strings = recording.tables["strings"]
    texts = [call if "DtoH" in each else each for each in strings["text"].to_pylist()]
    named = with_columns(recording, "strings", {"text": texts}, {})

    costs = {"launch": (300, 500), "synchronize": (0, 0)}

    # One launch, and what the pool gets from the driver.
    known = 1 + 4
    assert as_costly(named, costs).recording_cost().tracing_ns == 400 * (known + launches)
