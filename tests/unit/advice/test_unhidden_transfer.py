"""R25: copies that could run while kernels do."""

import pytest

from tests.unit.advice.timed_programs import found, saved_ns, small

CHUNKS = 12
CHUNK = 32 << 20


def steps(  # noqa: PLR0913 - what the programs differ in
    gpu, *, streams=1, kernel=900e-6, to_device=True, to_host=True, pinned=True, wait=False
):
    """Copy chunks in, compute, and copy them out, on one or several streams in turn."""
    lanes = [(gpu.Stream(non_blocking=True), gpu.empty(CHUNK)) for _ in range(streams)]
    for chunk in range(CHUNKS):
        stream, x = lanes[chunk % streams]
        with stream:
            if to_device:
                gpu.copy_to_device(x, pinned=pinned)
            gpu.launch("filter", duration=kernel, writes=[x], grid=(10_000,))
            if to_host:
                gpu.copy_to_host(x, pinned=pinned)
        if wait:
            stream.synchronize()


def on_one_stream(gpu):
    steps(gpu)


def in_turn(gpu):
    steps(gpu, streams=3)


def only_to_device(gpu):
    steps(gpu, to_host=False)


def only_to_host(gpu):
    steps(gpu, to_device=False)


def only_to_device_in_turn(gpu):
    steps(gpu, streams=2, to_host=False)


def mostly_copies(gpu):
    steps(gpu, kernel=100e-6)


def mostly_copies_in_turn(gpu):
    steps(gpu, kernel=100e-6, streams=3)


def waiting_for_each(gpu):
    steps(gpu, wait=True)


def pageable(gpu):
    steps(gpu, pinned=False)


def short(gpu):
    x = gpu.empty(1 << 20)
    for _ in range(CHUNKS):
        gpu.copy_to_device(x, pinned=True)
        gpu.launch("filter", duration=100e-6, writes=[x])


def blocking(gpu):
    x, y = gpu.empty(CHUNK), gpu.empty(CHUNK)
    for _ in range(CHUNKS):
        gpu.copy_to_host(y, pinned=True)
        gpu.copy_to_device(x, pinned=True, blocking=True)
        gpu.launch("filter", duration=900e-6, writes=[x])


def only_copies(gpu):
    x = gpu.empty(CHUNK)
    for _ in range(CHUNKS):
        gpu.copy_to_device(x, pinned=True)


def in_parts(gpu, *, streams=1):
    """Three copies for each kernel, which hides less than all of them."""
    lanes = [(gpu.Stream(non_blocking=True), gpu.empty(CHUNK)) for _ in range(streams)]
    for chunk in range(CHUNKS):
        stream, x = lanes[chunk % streams]
        with stream:
            for _ in range(3):
                gpu.copy_to_device(x, pinned=True)
            gpu.launch("filter", duration=900e-6, writes=[x], grid=(10_000,))


def in_parts_in_turn(gpu):
    in_parts(gpu, streams=2)


def before_all_kernels(gpu):
    """Weights, which the first kernels need."""
    weights = [gpu.empty(CHUNK) for _ in range(CHUNKS)]
    for each in weights:
        gpu.copy_to_device(each, pinned=True)
    for _ in range(2):
        for each in weights:
            gpu.launch("layer", duration=900e-6, reads=[each], grid=(10_000,))


@pytest.mark.parametrize(
    ("program", "after", "copied"),
    [
        (on_one_stream, in_turn, "24 copies of pinned memory take 14.7 ms"),
        (only_to_device, only_to_device_in_turn, "12 copies of pinned memory take 7.33 ms"),
        (mostly_copies, mostly_copies_in_turn, "24 copies of pinned memory take 14.7 ms"),
        (in_parts, in_parts_in_turn, "36 copies of pinned memory take 22.0 ms"),
    ],
)
def test_copies_in_line_with_kernels_are_found_and_overlap_saves_what_was_predicted(
    program, after, copied
):
    (finding,) = found(program, "R25")

    assert finding.saved_ns == pytest.approx(saved_ns(program, after), rel=0.2)
    assert finding.title == (f"{copied} in line with kernels instead of beside them.")
    assert finding.reason.startswith(
        "They were launched early enough, or enough kernels after them, to run beside other "
    )
    assert finding.certainty == "possible"


def on_a_stream_for_each(gpu, *, directions=2):
    """Copy in, compute, and copy out on different streams, with three buffers."""
    streams = [gpu.Stream(non_blocking=True) for _ in range(1 + directions)]
    computing, filling, reading = streams[0], streams[1], streams[-1]
    buffers = [gpu.empty(CHUNK) for _ in range(3)]
    filled, read = [], []
    for chunk in range(CHUNKS + 1):
        if chunk < CHUNKS:
            if chunk >= len(buffers):
                filling.wait_event(read[chunk - len(buffers)])
            with filling:
                gpu.copy_to_device(buffers[chunk % 3], pinned=True)
            filled.append(filling.record())
        if chunk:
            last = buffers[(chunk - 1) % 3]
            computing.wait_event(filled[chunk - 1])
            with computing:
                gpu.launch("filter", duration=900e-6, writes=[last], grid=(10_000,))
            reading.wait_event(computing.record())
            with reading:
                gpu.copy_to_host(last, pinned=True)
            read.append(reading.record())


def on_one_for_both(gpu):
    on_a_stream_for_each(gpu, directions=1)


def test_the_advice_names_a_stream_for_each_direction():
    (both,), (one,) = found(on_one_stream, "R25"), found(only_to_device, "R25")

    assert both.saved_ns == pytest.approx(saved_ns(on_one_stream, on_a_stream_for_each), rel=0.05)
    assert both.saved_ns > 1.2 * saved_ns(on_one_stream, on_one_for_both)
    assert both.change.startswith("Copy on two more streams, one for each direction, with three ")
    assert one.change.startswith("Copy on a second stream, with two buffers in turn: ")


@pytest.mark.parametrize(
    "program",
    [
        in_turn,
        only_to_device_in_turn,
        waiting_for_each,
        blocking,
        pageable,
        short,
        only_copies,
        before_all_kernels,
    ],
)
def test_hidden_awaited_pageable_short_and_lonely_copies_are_no_finding(program):
    assert small(program, "R25") == []
