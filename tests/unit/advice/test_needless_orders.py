"""R23 and R24: streams that wait for each other though they share no memory."""

import pytest

from gpuviz.advice.findings import findings
from gpuviz.quantities import format_duration
from tests.unit.advice.ordered_streams import (
    COPIED,
    KERNEL_S,
    STEPS,
    copies_beside_kernels,
    copies_on_the_default_stream,
    two,
)
from tests.unit.advice.timed_programs import found, saved_ns, small, timed, with_pinned_memory

CHANGE_STREAMS = (
    "Create the streams with non_blocking=True, and order them after the default stream only where "
    "they begin to use its arrays."
)


def copies_results_on_the_default_stream(gpu):
    computing, _, x, _ = two(gpu, non_blocking=False)
    for _ in range(STEPS):
        with computing:
            gpu.launch("compute", duration=KERNEL_S, writes=[x])
        gpu.copy_to_host(x, pinned=True)


def default_stream_between_two_that_share(gpu):
    first, second, x, y = two(gpu, non_blocking=False)
    for _ in range(STEPS):
        with first:
            gpu.launch("compute", duration=KERNEL_S, writes=[x])
        gpu.copy_to_host(y, pinned=True)
        with second:
            gpu.launch("use", duration=KERNEL_S, reads=[x])


def exchanges_by_the_host(gpu):
    computing, _, x, y = two(gpu, non_blocking=False)
    for _ in range(STEPS):
        with computing:
            gpu.launch("compute", duration=KERNEL_S, writes=[x])
            gpu.copy_to_host(x, pinned=True)
        gpu.copy_to_device(y, pinned=True)


def unknown_arrays(gpu):
    computing, _, x, y = two(gpu, non_blocking=False)
    for _ in range(STEPS):
        with computing:
            gpu.launch("compute", duration=KERNEL_S, writes=[x])
            gpu.launch("by_pointers", duration=1e-6)
        gpu.copy_to_host(y, pinned=True)


def scenarios(gpu, *, measure):
    """Advance eight arrays, each in a stream of its own, and measure after each."""
    streams = [gpu.Stream(non_blocking=False) for _ in range(8)]
    states, sums = [gpu.empty(1 << 20) for _ in streams], gpu.empty(1 << 10)
    for state in states:
        gpu.fill(state)
    gpu.synchronize()
    for _ in range(STEPS):
        for stream, state in zip(streams, states, strict=True):
            with stream:
                gpu.launch("advance", duration=KERNEL_S, writes=[state], grid=(16,), share=0.12)
            measure(gpu, stream, state, states, sums)


def mean(gpu, state, sums):
    gpu.launch("mean", duration=2e-6, reads=[state], writes=[sums], grid=(1,), share=0.01)


def measures_on_the_default_stream(gpu):
    scenarios(gpu, measure=lambda gpu, _stream, state, _states, sums: mean(gpu, state, sums))


def measures_in_the_stream(gpu):
    def measure(gpu, stream, state, _states, sums):
        with stream:
            mean(gpu, state, sums)

    scenarios(gpu, measure=measure)


def combines_on_the_default_stream(gpu):
    def measure(gpu, _stream, _state, states, sums):
        gpu.launch("combine", duration=2e-6, reads=states, writes=[sums], grid=(1,), share=0.01)

    scenarios(gpu, measure=measure)


def measures_what_two_streams_share(gpu):
    """Advance one array in two streams, which only the default stream orders."""
    streams = [gpu.Stream(non_blocking=False) for _ in range(2)]
    state, sums = gpu.empty(1 << 20), gpu.empty(1 << 10)
    for _ in range(STEPS):
        for stream in streams:
            with stream:
                gpu.launch("advance", duration=KERNEL_S, writes=[state], grid=(16,), share=0.12)
            mean(gpu, state, sums)


def measures_with_unknown_arrays(gpu):
    def measure(gpu, _stream, state, _states, sums):
        mean(gpu, state, sums)
        gpu.launch("by_pointers", duration=1e-6, grid=(1,), share=0.01)

    scenarios(gpu, measure=measure)


def frames(gpu, *, clear, non_blocking=False):
    """Upload frames to four streams in turn, compute with a sum that is cleared, and read them."""
    streams = [gpu.Stream(non_blocking=non_blocking) for _ in range(4)]
    raw, total, result = ([gpu.empty(COPIED) for _ in streams] for _ in range(3))
    for _ in range(STEPS):
        for slot, stream in enumerate(streams):
            clear(gpu, stream, total[slot], total)
            with stream:
                gpu.copy_to_device(raw[slot], pinned=True)
                gpu.launch("sum", duration=50e-6, reads=[raw[slot], total[slot]])
                gpu.launch(
                    "filter", duration=250e-6, reads=[raw[slot], total[slot]], writes=[result[slot]]
                )
                gpu.copy_to_host(result[slot], pinned=True)


def clear_on_the_default_stream(gpu, _stream, total, _totals):
    gpu.launch("fill", duration=2e-6, writes=[total])


def clear_in_the_stream(gpu, stream, total, _totals):
    with stream:
        gpu.launch("fill", duration=2e-6, writes=[total])


def clear_all(gpu, _stream, _total, totals):
    gpu.launch("fill", duration=2e-6, writes=totals)


def frames_in_memory(clear, *, place, non_blocking=False):
    """Return the recording of frames with the place of the uploads and reads of each slot."""
    recording = timed(lambda gpu: frames(gpu, clear=clear, non_blocking=non_blocking))
    places = [place(slot) for _ in range(STEPS) for slot in range(4)]
    return with_pinned_memory(recording, [each for both in places for each in both])


def of_slots(slot):
    """Return a place for the uploads of a slot, and another one of the same block for its reads."""
    return (0, 2 * slot * COPIED), (0, (2 * slot + 1) * COPIED)


def older_uploads(slot):
    """Return the places if only the reads are to memory allocated during the recording."""
    return None, (0, slot * COPIED)


def of_the_next_stream(slot):
    """Return the places if each stream uploads what the one before has read."""
    return (0, slot * COPIED), (0, (slot + 1) % 4 * COPIED)


def test_a_default_stream_between_others_is_found_and_saves_what_was_predicted():
    (finding,) = found(copies_on_the_default_stream, "R23")

    measured = saved_ns(copies_on_the_default_stream, copies_beside_kernels)
    assert finding.saved_ns == pytest.approx(measured, rel=0.2)
    assert finding.title == (
        "The default stream and other streams wait for each other 19 times, though they use "
        "different arrays."
    )
    assert finding.reason == (
        "CUDA runs work of the legacy default stream only after earlier work of all blocking "
        "streams, and their later work only after it. Without this order the work would end "
        "6.00 ms earlier."
    )
    assert (finding.change, finding.certainty) == (CHANGE_STREAMS, "likely")
    assert {line.source for line in finding.lines} == {
        'gpu.launch("compute", duration=KERNEL_S, writes=[x])',
        "gpu.copy_to_host(y, pinned=True)",
    }


def test_operations_that_share_arrays_with_one_stream_each_need_not_order_the_others():
    (finding,) = found(measures_on_the_default_stream, "R23")

    measured = saved_ns(measures_on_the_default_stream, measures_in_the_stream)
    assert finding.saved_ns == pytest.approx(measured, rel=0.05)
    assert finding.title == (
        '`gpu.launch("mean", duration=2e-6, reads=[state], writes=[sums], grid=(1,), share=0.01)` '
        "on the default stream makes other streams wait for each other 79 times, though they use "
        "different arrays."
    )
    assert finding.reason.endswith(
        "If only operations that use the same arrays waited for each other, the work would end "
        f"{format_duration(finding.saved_ns)} earlier."
    )
    assert finding.change.startswith("Run `gpu.launch(")
    assert "in the stream whose arrays it uses, with `with stream:`." in finding.change
    assert [line.amount for line in finding.lines][:1] == ["79 operations"]


@pytest.mark.parametrize("place", [of_slots, older_uploads])
def test_an_operation_on_the_default_stream_between_pipelines_is_the_cause(place):
    recording = frames_in_memory(clear_on_the_default_stream, place=place)
    in_streams = frames_in_memory(clear_in_the_stream, place=place)
    found_here = findings(recording)

    assert found_here[0].rule == "R23"
    saved = recording.duration_ns - in_streams.duration_ns
    assert found_here[0].saved_ns == pytest.approx(saved, rel=0.1)
    assert found_here[0].title == (
        '`gpu.launch("fill", duration=2e-6, writes=[total])` on the default stream makes other '
        "streams wait for each other 79 times, though they use different arrays."
    )
    # Another stream for the copies would change nothing.
    assert "R25" not in {each.rule for each in found_here}


@pytest.mark.parametrize(
    ("clear", "place", "non_blocking"),
    [
        pytest.param(clear_in_the_stream, of_slots, False, id="in the streams"),
        pytest.param(clear_on_the_default_stream, of_slots, True, id="streams that do not wait"),
        pytest.param(clear_all, of_slots, False, id="an operation on the arrays of all"),
        pytest.param(
            clear_on_the_default_stream, of_the_next_stream, False, id="memory of the host"
        ),
        pytest.param(
            clear_on_the_default_stream, lambda _: (None, None), False, id="unknown memory"
        ),
    ],
)
def test_pipelines_that_need_the_order_or_have_none_are_no_finding(clear, place, non_blocking):
    recording = frames_in_memory(clear, place=place, non_blocking=non_blocking)

    assert "R23" not in {each.rule for each in findings(recording, small=True)}


def test_kernels_that_a_needless_order_keeps_apart_are_not_called_narrow():
    assert small(measures_on_the_default_stream, "R42") == []
    assert len(small(combines_on_the_default_stream, "R42")) == 1


@pytest.mark.parametrize(
    "program",
    [
        copies_beside_kernels,
        copies_results_on_the_default_stream,
        default_stream_between_two_that_share,
        exchanges_by_the_host,
        unknown_arrays,
        measures_in_the_stream,
        combines_on_the_default_stream,
        measures_what_two_streams_share,
        measures_with_unknown_arrays,
    ],
)
def test_a_default_stream_that_is_needed_is_no_finding(program):
    assert small(program, "R23") == []
