"""Peak, leaks and comparison of a test, compared with a count by hand."""

import random

import pytest

import gpuviz
from gpuviz.testing.comparison import grown, parse_comparisons
from gpuviz.testing.leaks import leaks, owners
from gpuviz.testing.measures import own_peak, reserved_peak, synchronizations
from gpuviz.testing.run import file_name

KIB = 1 << 10


def recorded(gpu, program):
    with gpuviz.record(device=gpu) as recorder:
        program()
        end_ns = recorder.elapsed_ns
    return recorder.recording, end_ns


@pytest.mark.parametrize("seed", range(10))
def test_the_peak_of_a_test_counts_only_its_own_blocks(seed):
    numbers = random.Random(seed)
    gpu = gpuviz.SimulatedGPU(real_time=False)
    older = [gpu.empty(512 * numbers.randint(1, 99)) for _ in range(5)]
    live = dict[int, gpuviz.SimulatedGPU]()
    expected = {"level": 0, "peak": 0, "allocations": 0}

    def program():
        for step in range(60):
            if older and numbers.random() < 0.1:
                older.pop()
            if live and numbers.random() < 0.45:
                expected["level"] -= live.pop(numbers.choice([*live])).nbytes
            else:
                live[step] = gpu.empty(512 * numbers.randint(1, 99))
                expected["level"] += live[step].nbytes
                expected["allocations"] += 1
            expected["peak"] = max(expected["peak"], expected["level"])

    recording, _ = recorded(gpu, program)
    found = own_peak(recording)

    assert found.bytes == expected["peak"] == sum(found.by_stack.values())
    assert found.allocations == expected["allocations"]
    assert own_peak(recording, device=0) == found
    assert own_peak(recording, device=1).bytes == 0
    assert [*found.by_stack.values()] == sorted(found.by_stack.values(), reverse=True)
    assert reserved_peak(recording) == gpu.memory_stats()["reserved_bytes.all.peak"]


def test_waits_after_the_end_of_the_test_do_not_count():
    gpu = gpuviz.SimulatedGPU(real_time=False)
    ends = []

    def program():
        for _ in range(3):
            gpu.launch("kernel", duration=1e-3)
            gpu.synchronize()
            ends.append(gpuviz.Recorder.active().elapsed_ns)

    recording, end_ns = recorded(gpu, program)

    assert synchronizations(recording, end_ns) == 3
    assert synchronizations(recording, ends[0]) == 1
    assert synchronizations(recording, 0) == 0


def test_a_block_that_replaces_an_earlier_one_of_the_same_stack_is_no_leak():
    gpu = gpuviz.SimulatedGPU(real_time=False)
    kept = {}

    def program(size):
        kept["replaced"] = gpu.empty(size)
        kept.setdefault("once", gpu.empty(4 * KIB))

    known = {}
    found = []
    for size in (KIB, KIB, 3 * KIB):
        recording, _ = recorded(gpu, lambda size=size: program(size))
        found.append([leak.bytes for leak in leaks(recording, known)])
        known = owners(recording, known)

    assert found == [[4 * KIB, KIB], [], [2 * KIB]]


@pytest.mark.parametrize(
    ("rule", "value", "previous", "fails"),
    [
        ("peak:5%", 105, 100, False),
        ("peak:5%", 106, 100, True),
        ("peak:0%", 99, 100, False),
        ("peak:1KiB", 2048, 1024, False),
        ("peak:1KiB", 2049, 1024, True),
        ("peak:50%", 1, 0, True),
    ],
)
def test_a_value_may_grow_by_a_share_or_by_a_number(rule, value, previous, fails):
    rules = parse_comparisons(rule)
    name = "gpu_peak_bytes"

    assert bool(grown(rules, {name: value}, {name: previous})) == fails
    assert grown(rules, {name: value}, {}) == []
    assert grown(rules, {}, {name: previous}) == []


def test_file_names_are_short_and_unique():
    ids = ["t.py::test_a[x/y]", "t.py::test_a[x-y]", "a/t.py::test_b", "a-t.py::test_b", "é" * 300]
    ids += ["t.py::test[" + "x" * 300 + f"{number}]" for number in range(2)]
    names = [file_name(each) for each in ids]

    assert max(len(f"{name}.gpuviz".encode()) for name in names) <= 255
    assert not any("/" in name for name in names)
    assert file_name("a/t.py::test_b[1]") == "a-t.py-test_b[1]"
    assert len(set(names)) == len(names)
