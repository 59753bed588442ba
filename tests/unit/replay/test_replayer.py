import threading

import numpy as np
import pytest

from gpuviz import _core

MIB = 1 << 20
Operation = _core.Operation


def program(rows, **columns):
    """Return a program of (operation, id, argument, stream) rows."""
    operations, ids, arguments, streams = zip(*rows, strict=True)
    return _core.ReplayProgram(
        operation=np.array(operations, np.uint8),
        id=np.array(ids, np.uint32),
        argument=np.array(arguments, np.uint64),
        stream=np.array(streams, np.uint64),
        **columns,
    )


def replayer(made, device=None):
    device = device or _core.SimulatedDevice(100 * MIB)
    allocator = _core.CachingAllocator(device)
    return _core.Replayer(made, device, allocator), allocator


def test_a_program_gives_addresses_statistics_and_out_of_memory():
    made = program(
        [
            (Operation.malloc, 0, 60 * MIB, 0),
            (Operation.stats, 0, 0, 0),
            (Operation.malloc, 1, 60 * MIB, 0),
            (Operation.free, 1, 0, 0),
            (Operation.free, 0, 0, 0),
            (Operation.stats, 0, 0, 0),
        ],
    )

    result = replayer(made)[0].run()

    assert result["operations"] == len(made) == 6
    assert [address > 0 for address in result["addresses"].tolist()] == [True, False]
    assert [s["allocated_bytes.all.current"] for s in result["statistics"]] == [60 * MIB, 0]


def test_stacks_and_threads_reach_the_events():
    made = program(
        [(Operation.malloc, 0, 1234, 5), (Operation.free, 0, 0, 0)],
        stack=np.array([11, 12], np.uint32),
        thread=np.array([21, 22], np.uint32),
    )
    runner, allocator = replayer(made)
    log = _core.EventLog()
    allocator.attach(log)

    runner.run()

    assert log.events()["stack"].tolist() == [11, 11, 12, 12]
    assert log.events()["thread"].tolist() == [21, 21, 22, 22]


@pytest.mark.parametrize(("speed", "least_s"), [(1, 0.2), (4, 0.05)])
def test_a_timed_program_keeps_its_own_speed(speed, least_s):
    times = np.array([0, 100_000_000, 200_000_000], np.int64)
    made = program([(Operation.sync, 0, 0, 0)] * 3, time_ns=times)

    elapsed_ns = replayer(made)[0].run(speed)["elapsed_ns"]

    assert elapsed_ns >= least_s * 1e9


def test_a_timed_program_waits_for_nothing_without_a_speed():
    times = np.array([0, 3_600_000_000_000], np.int64)

    assert replayer(program([(Operation.sync, 0, 0, 0)] * 2, time_ns=times))[0].run(0.0)


def test_a_paused_program_can_be_stopped_from_another_thread():
    times = np.array([0, 3_600_000_000_000], np.int64)
    runner, _ = replayer(program([(Operation.sync, 0, 0, 0)] * 2, time_ns=times))
    timer = threading.Timer(0.05, runner.stop)

    timer.start()
    result = runner.run(1.0)

    assert result["operations"] == 1


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([(Operation.free, 0, 0, 0)], "Row 0 .* uses block 0, which is not allocated"),
        ([(Operation.malloc, 3, 8, 0)] * 2, "Row 1 .* allocates block 3 again before its free"),
        ([(Operation.settings, 0, 0, 0)], "Row 0 .* names settings 0 of 0"),
        ([(99, 0, 0, 0)], "Row 0 .* has the operation 99; the last one is 19"),
    ],
)
def test_a_program_that_makes_no_sense_is_refused_by_row(rows, message):
    with pytest.raises(ValueError, match=message):
        program(rows)


def test_columns_of_unequal_length_and_times_that_go_back_are_refused():
    rows = [(Operation.sync, 0, 0, 0)] * 2

    with pytest.raises(ValueError, match="The column 'stack' has 1 rows, but 'operation' has 2"):
        program(rows, stack=np.array([1], np.uint32))
    with pytest.raises(ValueError, match="'time_ns' must ascend"):
        program(rows, time_ns=np.array([5, 4], np.int64))
