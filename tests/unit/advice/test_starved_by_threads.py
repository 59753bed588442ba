"""R43: work of the host beside threads that wait, launch or hand work over."""

import itertools
from functools import partial

import pytest

from tests.unit.advice.host_work import (
    STEPS,
    Sampled,
    chunks,
    computes_between_chunks,
    computes_nothing,
)
from tests.unit.advice.timed_programs import saved_ns, timed

MAIN, HELPER, OTHER = 11, 77, 78


def trains(gpu):
    """Launch a forward pass, and a backward pass that another thread launches."""
    x = gpu.empty(1 << 20)
    for _ in range(STEPS):
        gpu.launch("forward", duration=100e-6, writes=[x])
        gpu.work_on_host(20e-6)
        gpu.launch("backward", duration=100e-6, writes=[x])
        gpu.synchronize()
        gpu.work_on_host(1e-3)


@pytest.mark.parametrize(
    ("begins_with", "own_synchronization", "count"),
    [
        pytest.param("forward", False, 0, id="for what the other thread launches"),
        pytest.param("synchronize", False, 0, id="just after the other thread has launched"),
        pytest.param("synchronize", True, 1, id="after an own call, for something else"),
    ],
)
def test_waiting_for_a_thread_that_launches_work_is_no_starvation(
    begins_with, own_synchronization, count
):
    sampled = Sampled(timed(trains))
    launches = {call["correlation"] for call in sampled.launches()[1::2]}
    syncs = {before["correlation"] for before, _ in sampled.gaps}
    others = launches if own_synchronization else launches | syncs
    stack = sampled.stack(("learn", 3, "loss.backward()"))
    for number, (before, after) in enumerate(sampled.gaps):
        forward = sampled.launches()[2 * number]
        begin = forward["end"] if begins_with == "forward" else before["end"]
        sampled.sample(MAIN, begin, after["time"], stack=stack, state="waiting")
    sampled.on_threads(lambda call: HELPER if call["correlation"] in others else MAIN)

    found_here = sampled.idle()

    assert len(found_here) == count
    assert all("is waiting in `loss.backward()`" in each.title for each in found_here)


def hands_over(*, waits=True, early_ns=0, callers=1, works_in_helper=False):
    """Return findings on gaps that end with work that a thread without Python code launches."""
    sampled = Sampled(timed(computes_between_chunks))
    launches = {call["correlation"] for call in sampled.launches()}
    stack = sampled.stack(("measure", 5, "values.sort()"))
    for before, after in sampled.gaps:
        begin, woken = before["end"], after["time"]
        for caller in range(callers):
            sampled.sample(MAIN + caller, begin, woken - early_ns - 5_000, stack=stack)
            state = "waiting" if waits else "working"
            until = after["end"] + 50_000
            sampled.sample(MAIN + caller, woken - early_ns, until, stack=stack, state=state)
        helper = "working" if works_in_helper else "waiting"
        sampled.sample(HELPER, begin, woken, state=helper)
    sampled.on_threads(
        lambda call: HELPER if call["correlation"] in launches else MAIN, without_stack=(HELPER,)
    )
    return sampled.idle()


def test_work_of_the_thread_that_hands_over_what_another_launches_is_blamed():
    (finding,) = hands_over()

    assert finding.title.endswith("while the host runs `values.sort()`.")
    assert finding.saved_ns == pytest.approx(
        saved_ns(computes_between_chunks, computes_nothing), rel=0.1
    )
    assert [line.source for line in finding.lines] == ["values.sort()"]


@pytest.mark.parametrize(
    "look_alike",
    [
        pytest.param({"waits": False}, id="a thread that goes on working"),
        pytest.param({"callers": 2}, id="two threads that might"),
        pytest.param({"works_in_helper": True}, id="a thread that had work"),
    ],
)
def test_work_beside_a_thread_that_waits_for_something_else_is_not_blamed(look_alike):
    assert hands_over(**look_alike) == []


def hands_over_and_launches(*, other="waiting"):
    """Return findings on work before launches of three threads at once, and what it takes."""

    def steps(gpu, *, host):
        arrays = [gpu.empty(1 << 20) for _ in range(3)]
        for _ in range(STEPS):
            gpu.work_on_host(host)
            for array in arrays:
                gpu.launch("filter", duration=100e-6, writes=[array])
            gpu.synchronize()

    sampled = Sampled(timed(partial(steps, host=5e-3)))
    stack = sampled.stack(("measure", 5, "values.sort()"))
    for before, after in sampled.gaps:
        begin, woken = before["end"], after["time"]
        sampled.sample(MAIN, begin, woken, stack=stack)
        sampled.sample(MAIN, woken, woken + 50_000, stack=stack, state="waiting")
        sampled.sample(HELPER, begin, woken, state="waiting")
        sampled.sample(OTHER, begin, woken, state=other)
    threads = itertools.cycle((HELPER, OTHER, MAIN))
    launches = [call["correlation"] for call in sampled.launches()]
    thread_of = dict(zip(launches, threads))  # noqa: B905 - threads do not end
    sampled.on_threads(
        lambda call: thread_of.get(call["correlation"], MAIN),
        without_stack=(HELPER, OTHER),
        longer_ns=5_000,
    )
    return sampled.idle(), saved_ns(partial(steps, host=5e-3), partial(steps, host=1e-9))


def test_the_thread_that_works_and_those_that_wait_for_it_begin_sooner_without_its_work():
    (finding,), true_ns = hands_over_and_launches()

    assert finding.saved_ns == pytest.approx(true_ns, rel=0.1)


def test_a_thread_with_work_of_its_own_begins_no_sooner():
    (finding,), true_ns = hands_over_and_launches(other="working")

    assert finding.saved_ns < 0.2 * true_ns


def test_a_thread_that_waits_long_before_the_other_launches_has_handed_nothing_over():
    def loads(gpu):
        chunks(gpu, host=8e-3)

    sampled = Sampled(timed(loads))
    launches = {call["correlation"] for call in sampled.launches()}
    stack = sampled.stack(("measure", 5, "values.sort()"))
    for before, after in sampled.gaps:
        begin, woken = before["end"], after["time"]
        sampled.sample(MAIN, begin, woken - 4_000_000, stack=stack)
        sampled.sample(MAIN, woken - 4_000_000, woken, stack=stack, state="waiting")
        sampled.sample(HELPER, begin, woken, state="waiting")
    sampled.on_threads(
        lambda call: HELPER if call["correlation"] in launches else MAIN, without_stack=(HELPER,)
    )

    assert sampled.idle() == []


def in_parts(sampled, stacks):
    """Sample some stacks in each gap, in equal parts."""
    for before, after in sampled.gaps:
        length = (after["time"] - before["end"]) // len(stacks)
        for place, stack in enumerate(stacks):
            begin = before["end"] + place * length
            sampled.sample(before["thread"], begin, begin + length, stack=stack)


def test_lines_of_one_function_in_the_same_gaps_are_one_finding_about_its_call():
    sampled = Sampled(timed(computes_between_chunks))
    call = ("train", 9, "for batch in batches():")
    stacks = [
        sampled.stack(("batches", 3 + place, source), call)
        for place, source in enumerate(("crop(image)", "flip(image)"))
    ]
    in_parts(sampled, [*stacks, stacks[1]])

    (finding,) = sampled.idle()

    assert finding.title == (
        "The GPU is idle for 19.0 ms, 79 % of the time, while the host runs "
        "`for batch in batches():`."
    )
    assert finding.saved_ns == pytest.approx(19e6, rel=0.02)
    assert [(line.source, line.amount) for line in finding.lines] == [
        ("for batch in batches():", "19.0 ms"),
        ("flip(image)", "12.7 ms"),
        ("crop(image)", "6.33 ms"),
    ]


def test_lines_of_the_function_that_launches_are_named_themselves():
    sampled = Sampled(timed(computes_between_chunks))
    callers = sampled.callers_of(sampled.gaps[0][1]["stack"])
    stacks = [
        sampled.stack(("chunks", 100 + place, source), callers=callers)
        for place, source in enumerate(("values.sort()", "values.sum()"))
    ]
    in_parts(sampled, [stacks[0], *stacks])

    (finding,) = sampled.idle()

    assert finding.title.endswith("while the host runs `values.sort()` and 1 more line.")
    assert [line.source for line in finding.lines] == ["values.sort()", "values.sum()"]


def test_lines_in_different_gaps_of_different_calls_are_two_findings():
    sampled = Sampled(timed(computes_between_chunks))
    callers = sampled.callers_of(sampled.gaps[0][1]["stack"])
    stacks = [
        sampled.stack((name, 3, source), ("train", line, call), callers=callers)
        for name, source, line, call in (
            ("load", "crop(image)", 9, "load()"),
            ("log", "write(line)", 12, "log()"),
        )
    ]
    for number, (before, after) in enumerate(sampled.gaps):
        sampled.sample(before["thread"], before["end"], after["time"], stack=stacks[number % 2])

    titles = [each.title.rpartition(" host ")[2] for each in sampled.idle()]

    assert sorted(titles) == ["runs `crop(image)`.", "runs `write(line)`."]
