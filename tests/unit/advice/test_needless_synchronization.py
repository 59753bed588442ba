"""R22: synchronizations that nothing needs."""

import pytest

from gpuviz.advice.findings import findings
from tests.unit.advice.programs import within
from tests.unit.advice.timed_programs import found, saved_ns, small, timed

STEPS = 20


def steps(gpu, *, wait, host=400e-6):
    x, y = gpu.empty(1 << 20), gpu.empty(1 << 20)
    for _ in range(STEPS):
        gpu.launch("first", duration=500e-6, writes=[x])
        wait()
        gpu.launch("second", duration=500e-6, reads=[x], writes=[y])
        wait()
        gpu.work_on_host(host)
    gpu.copy_to_host(y)


def synchronizes_after_each_kernel(gpu):
    steps(gpu, wait=gpu.synchronize)


def synchronizes_the_stream(gpu):
    steps(gpu, wait=gpu.null_stream.synchronize)


def never_synchronizes(gpu):
    steps(gpu, wait=lambda: None)


def on_two_streams(gpu, *, shared, waits=True):
    first, second = gpu.Stream(non_blocking=True), gpu.Stream(non_blocking=True)
    x, y = gpu.empty(1 << 20), gpu.empty(1 << 20)
    for _ in range(STEPS):
        with first:
            gpu.launch("write", duration=500e-6, writes=[x], share=0.4, grid=(52,))
        if waits:
            first.synchronize()
        with second:
            gpu.launch("use", duration=500e-6, reads=[x if shared else y], share=0.4, grid=(52,))


def hands_an_array_to_another_stream(gpu):
    on_two_streams(gpu, shared=True)


def works_on_two_arrays(gpu):
    on_two_streams(gpu, shared=False)


def works_on_two_arrays_without_waits(gpu):
    on_two_streams(gpu, shared=False, waits=False)


def reads_pinned_memory(gpu):
    x = gpu.empty(1 << 20)
    for _ in range(STEPS):
        gpu.launch("step", duration=1e-3, writes=[x])
        gpu.copy_to_host(x, pinned=True)
        gpu.synchronize()
        gpu.work_on_host(400e-6)


def waits_for_an_event(gpu):
    x = gpu.empty(1 << 20)
    for _ in range(STEPS):
        gpu.launch("step", duration=1e-3, writes=[x])
        gpu.current_stream.record().synchronize()
        gpu.work_on_host(400e-6)


def copies_on_the_same_line(gpu):
    x = gpu.empty(8)
    for _ in range(STEPS):
        gpu.launch("step", duration=1e-3, writes=[x])
        _ = gpu.synchronize(), gpu.copy_to_host(x)
        gpu.work_on_host(400e-6)


def uses_unknown_arrays_on_two_streams(gpu):
    first, second = gpu.Stream(non_blocking=True), gpu.Stream(non_blocking=True)
    for _ in range(STEPS):
        with first:
            gpu.launch("by_pointers", duration=500e-6)
        first.synchronize()
        with second:
            gpu.launch("by_pointers", duration=500e-6)


@pytest.mark.parametrize(
    ("program", "after"),
    [
        (synchronizes_after_each_kernel, never_synchronizes),
        (synchronizes_the_stream, never_synchronizes),
        (works_on_two_arrays, works_on_two_arrays_without_waits),
    ],
)
def test_a_needless_synchronization_saves_what_was_predicted(program, after):
    needless = found(program, "R22")

    assert sum(each.further_ns for each in needless) == pytest.approx(
        saved_ns(program, after), rel=0.2
    )
    assert small(program, "R41") == []


def test_the_finding_explains_why_nothing_needs_it():
    (finding,) = found(works_on_two_arrays, "R22")

    assert finding.title == "`first.synchronize()` waits 10.0 ms for the GPU, and nothing needs it."
    assert finding.reason.startswith(
        "The host waits in 20 calls for work that was launched before, 10.0 ms of it for "
        '`gpu.launch("write", duration=500e-6, writes=[x], share=0.4, grid=(52,))`. After the waits'
    )
    assert finding.reason.endswith(
        "All copies from and to the host wait for their work themselves, and no stream uses an "
        "array that another one writes."
    )
    assert finding.change == (
        "Remove it, unless the host measures time there. Work on one stream runs in order without "
        "synchronization, and a copy to the host waits for its result."
    )
    assert finding.certainty == "possible"


@pytest.mark.parametrize(
    "program",
    [
        never_synchronizes,
        hands_an_array_to_another_stream,
        reads_pinned_memory,
        waits_for_an_event,
        copies_on_the_same_line,
        uses_unknown_arrays_on_two_streams,
    ],
)
def test_a_synchronization_that_may_be_needed_is_no_finding(program):
    assert small(program, "R22") == []


def test_what_a_library_waits_for_is_not_the_program_s_to_change():
    recording = within(timed(synchronizes_after_each_kernel), "/x/site-packages/library.py")

    found = {each.rule: each for each in findings(recording, small=True)}

    assert found.keys() & {"R22", "R41"} == {"R41"}
    assert found["R41"].change == (
        "A function of a library waits there. Call it after the launch of other work that does not "
        "need its result, or shorten the work that it waits for."
    )
