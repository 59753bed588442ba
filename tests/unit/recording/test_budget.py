"""Recordings whose streams were recorded in windows, against recordings of all of the program."""

import random
from dataclasses import fields

import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpuviz
from gpuviz.conclusions.live_numbers import live_headline
from gpuviz.recorder.budget import WINDOW_NS, Windows
from tests.examples import examples

STREAMS = 3
STEP_S = 10e-3
# On a simulated GPU a recorded call costs 1 µs: these programs cost about 0.012 %.
BUDGET = "0.008%"
# Times of a lane that do not depend on what comes after the end of a window.
KNOWN = ("count", "sum_ns", "busy_ns", "kernel_ns", "copy_ns", "kernel_copy_ns", "kernel_kernel_ns")


def random_program(gpu, seed, after_step=lambda _: None, steps=300):
    choose = random.Random(seed)
    streams = [gpu.Stream(non_blocking=True) for _ in range(STREAMS)]
    event = gpu.Event()
    for step in range(steps):
        stream = choose.choice(streams)
        with stream:
            array = gpu.empty(1 << 20)
            gpu.launch(
                f"kernel {choose.randrange(3)}",
                duration=choose.choice([50e-6, 2e-3, 2e-3, 30e-3]),
                share=choose.choice([0.3, 1.0]),
                writes=[array],
            )
            action = choose.randrange(8)
            if action == 0:
                gpu.copy_to_device(array, pinned=True)
            elif action == 1:
                event.record(stream)
            elif action == 2:
                choose.choice(streams).wait_event(event)
            elif action == 3:
                stream.synchronize()
        gpu.work_on_host(choose.choice([1e-6, STEP_S, 2 * STEP_S]))
        after_step(step)
    gpu.synchronize()


def recorded(program, *arguments, budget=None, every=20):
    """Record a program; windows end and begin only between its steps."""
    gpu = gpuviz.SimulatedGPU(memory=1 << 30, real_time=False)
    with gpuviz.record(device=gpu, budget=budget) as recorder:
        program(gpu, *arguments, lambda step: step % every or recorder.read_statistics())
    return recorder.recording


def seen(recording):
    """Return the parts of a recording in which the work of the GPU is known."""
    lane = recording.overlap().devices[0]
    edges = [lane.start]
    for span in recording.table("unseen_spans").to_pylist():
        edges += [min(span["time"], lane.end), min(span["end"], lane.end)]
    edges.append(lane.end)
    return [(b, e) for b, e in zip(edges[::2], edges[1::2], strict=True) if b < e]


def without_cause(lane):
    return lane.idle_unknown_ns + lane.idle_unrecorded_event_ns


def values(lane, names):
    return {name: getattr(lane, name) for name in names}


@given(st.integers(0, 1_000_000))
@examples(50)
def test_what_is_said_of_windows_is_what_the_whole_recording_has_there(seed):
    whole, part = recorded(random_program, seed), recorded(random_program, seed, budget=BUDGET)
    windows = seen(part)
    total = part.overlap().devices[0]

    assert whole.table("unseen_spans").num_rows == 0
    assert part.table("unseen_spans").num_rows > 0
    assert (
        part.table("memory_events")
        .drop_columns(["stack"])
        .equals(whole.table("memory_events").drop_columns(["stack"]))
    )
    sums = dict.fromkeys(KNOWN, 0)
    for begin, end in windows:
        ours, theirs = (each.overlap(start=begin, end=end) for each in (part, whole))
        for lane, of_whole in zip(
            (*ours.devices, *ours.streams), (*theirs.devices, *theirs.streams), strict=True
        ):
            assert values(lane, KNOWN) == values(of_whole, KNOWN)
            assert lane.idle_ns == of_whole.idle_ns
            # Not known is what ended the last gap, and events that were recorded in between.
            assert without_cause(lane) >= without_cause(of_whole)
        sums = {name: sums[name] + getattr(ours.devices[0], name) for name in KNOWN}
    assert values(total, KNOWN[1:]) == {name: sums[name] for name in KNOWN[1:]}
    assert total.unseen_ns == total.end - total.start - sum(e - b for b, e in windows)
    idle = sum(getattr(total, each.name) for each in fields(total) if "idle" in each.name)
    assert idle == total.idle_ns == total.window_ns - total.busy_ns


def loop(gpu, steps, after_step):
    state = gpu.empty(1 << 20)
    for step in range(steps):
        temporary = gpu.empty(1 << 20)
        gpu.launch("first", duration=2e-3, reads=[state], writes=[temporary])
        gpu.launch("second", duration=3e-3, reads=[temporary], writes=[state])
        del temporary
        gpu.work_on_host(STEP_S)
        after_step(step)
    gpu.synchronize()


@pytest.fixture(scope="module")
def of_loop():
    """Return the recordings of a loop of 400 steps, whole and in windows."""
    return recorded(loop, 400), recorded(loop, 400, budget="0.01%")


def test_nothing_is_concluded_about_the_time_between_windows(of_loop):
    whole, part = of_loop
    windows = seen(part)
    iterations = part.iterations().to_pylist()

    assert len(whole.iterations()) == 400
    assert 50 < len(iterations) < 300
    assert any(
        begin <= iterations[0]["start"] and iterations[-1]["end"] <= end for begin, end in windows
    )
    assert {each["busy_ns"] for each in iterations[1:-1]} == {5_000_000}
    for gap in part.table("idle_gaps").to_pylist():
        assert any(begin <= gap["time"] and gap["end"] <= end for begin, end in windows)
    (finding,) = (each for each in part.findings() if each.rule == "R43")
    begin, end = finding.evidence.window
    # The host is late from its call on, before the first activity.
    assert any(first - 10_000 <= begin and end <= last for first, last in windows)
    assert "when streams were recorded" in finding.reason
    assert {each.rule for each in part.findings(small=True)} <= {"R43", "R27"}
    assert part.hazards() == ()
    assert part.peak_chain().to_pylist()[0]["bytes"] is None
    assert part.compensated().table("activities").equals(part.table("activities"))


def test_memory_is_complete_and_the_time_that_was_not_seen_is_told(of_loop):
    whole, part = of_loop
    steady = part.steady_state()

    assert part.peak() == whole.peak()
    assert part.memory_stats() == whole.memory_stats()
    assert abs(steady.busy - whole.steady_state().busy) < 0.02
    assert steady.window_ns == sum(end - begin for begin, end in seen(part))
    (note,) = (each for each in part.notes if "streams were recorded in" in each)
    assert "memory is complete" in note


def test_files_and_windows_keep_what_was_not_seen(of_loop, tmp_path):
    _, part = of_loop
    loaded = gpuviz.load(part.save(tmp_path / "part.gpuviz"))
    (first, *_), *_ = seen(part)[1:]
    before = first - 50_000_000
    window = part.window(before, first + 100_000_000)
    again = gpuviz.load(window.save(tmp_path / "window.gpuviz"))

    for each in ("unseen_spans", "unrecorded_spans", "idle_gaps"):
        assert loaded.table(each).equals(part.table(each))
        assert again.table(each).equals(window.table(each))
    assert window.table("unseen_spans").to_pylist() == [{"time": before, "end": first}]
    for each in (window, again):
        assert each.overlap().devices[0].unseen_ns == 50_000_000
        assert each.overlap().devices[0].window_ns == 100_000_000


def test_work_of_before_a_window_is_not_taken_for_idle_time():
    def program(gpu, after_step):
        slow, fast = gpu.Stream(non_blocking=True), gpu.Stream(non_blocking=True)
        for step in range(60):
            # Runs for longer than a pause between windows.
            with slow:
                gpu.launch("slow", duration=90e-3, share=0.5)
            with fast:
                gpu.launch("fast", duration=1e-3, share=0.5)
            gpu.work_on_host(60e-3)
            after_step(step)

    whole, part = (recorded(program, budget=each, every=1) for each in (None, "0.003%"))

    assert part.table("unseen_spans").num_rows > 0
    for begin, end in seen(part):
        busy = whole.overlap(start=begin, end=end).devices[0].busy_ns
        assert part.overlap(start=begin, end=end).devices[0].busy_ns == busy
    assert whole.overlap().devices[0].busy > 0.99
    assert part.overlap().devices[0].busy > 0.99


def test_a_live_view_says_that_streams_are_not_recorded():
    gpu = gpuviz.SimulatedGPU(memory=1 << 30, real_time=False)
    texts = set()
    with gpuviz.record(device=gpu, budget="0.001%") as recorder:
        loop(gpu, 300, lambda step: step % 50 or recorder.read_statistics())
        for _ in range(2):
            texts |= {str(each) for each in live_headline(recorder.read_statistics())}

    assert any("not recorded in all of the last second" in each for each in texts)


@pytest.mark.parametrize("budget", ["2", "0%", "100%", "a lot", "-1%", "", 0.02])
def test_a_budget_is_a_percentage(budget):
    gpu = gpuviz.SimulatedGPU(real_time=False)

    with pytest.raises(ValueError, match="budget must be a percentage"):
        gpuviz.record(device=gpu, budget=budget)


@pytest.mark.parametrize(
    "options",
    [
        {"hazards": True},
        {"forbid_default_stream": True},
        {"record_stream": "auto"},
        {"streams": False},
        {"launch_sites": False},
    ],
)
def test_what_needs_all_launches_contradicts_a_budget(options):
    gpu = gpuviz.SimulatedGPU(real_time=False)

    with pytest.raises(ValueError, match="budget"):
        gpuviz.record(device=gpu, budget="2%", **options)


@given(
    st.floats(0.001, 0.3),
    st.lists(st.tuples(st.integers(1, 10**9), st.floats(0, 0.9)), min_size=20, max_size=200),
)
@examples(500)
def test_windows_cost_no_more_than_their_share(share, drains):
    windows, is_on, now, cost, attach = Windows(share), True, 0, 0.0, 60_000_000.0
    windows.begin(0, 0)
    most_window = 0.0
    began_cost = 0.0
    for passed_ns, rate in drains:
        now += passed_ns
        cost += is_on * rate * share * passed_ns
        if windows.is_due(now, int(cost)):
            if is_on:
                windows.end(now, int(cost))
                most_window = max(most_window, cost - began_cost)
            else:
                windows.begin(now, int(cost))
                began_cost = cost
                cost += attach
            is_on = not is_on
        # The first window, and one that costs more than the one before, are paid afterwards.
        assert cost <= share * (now + WINDOW_NS) + most_window + attach + share * passed_ns
