"""R10: the cache of the allocator is released in a loop."""

from dataclasses import replace
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import gpuviz
from gpuviz.data.tables import schemas
from gpuviz.recording import Recording
from tests.torch_alone import of_torch
from tests.unit.advice.programs import MIB
from tests.unit.advice.timed_programs import small, timed
from tests.unit.recorder.torch_files import called_through


def empties(gpu, *, every=1, on_host=3e-4, sizes=(100, 300), empty=None):
    for number in range(12):
        arrays = [gpu.empty(size * MIB) for size in sizes]
        gpu.launch("work", duration=2e-4, writes=arrays)
        gpu.work_on_host(on_host)
        del arrays
        if every and number % every == 0:
            if empty:
                empty()
            else:
                gpu.empty_cache()


def keeps(gpu):
    empties(gpu, every=0)


def waits(gpu):
    empties(gpu, on_host=1e-9)


def keeps_without_waiting(gpu):
    empties(gpu, every=0, on_host=1e-9)


def grows(gpu):
    """Each round needs a larger segment than any before."""
    for number in range(12):
        array = gpu.empty((100 + 20 * number) * MIB)
        gpu.launch("work", duration=2e-4, writes=[array])
        del array
        gpu.empty_cache()


def length(program):
    """Return the ns of a program."""
    calls = timed(program).table("api_calls")
    return max(calls["end"].to_pylist()) - min(calls["time"].to_pylist())


@pytest.mark.parametrize(
    ("before", "after"), [(empties, keeps), (waits, keeps_without_waiting)], ids=["host", "gpu"]
)
def test_a_loop_that_releases_the_cache_is_found_and_saves_what_was_predicted(before, after):
    (finding,) = small(before, "R10")

    assert finding.saved_ns == pytest.approx(length(before) - length(after), rel=0.2)
    assert finding.saved_ns > 1_000_000
    assert small(after, "R10") == []


def test_the_finding_says_what_is_allocated_again():
    (finding,) = small(empties, "R10")

    assert finding.title == (
        "The cache of the allocator is released 12 times, and 22 segments are allocated again."
    )
    assert finding.reason == (
        "`cudaMalloc` and `cudaFree` take 1.15 ms for it; `cudaFree` also waits for the GPU. The "
        "recorded allocations and frees were repeated without the calls of `empty_cache`, which "
        "reserves 400 MiB at the peak; 400 MiB were recorded."
    )
    assert finding.change == (
        "Remove the call, or make it after the loop, unless another library or process needs the "
        "memory meanwhile: the allocator uses what it has cached again."
    )
    assert [each.source for each in finding.lines] == ["gpu.empty_cache()"]
    assert finding.certainty == "possible"


TORCH = "/usr/lib/python3/dist-packages/torch"
EMPTY_CACHE = f"{TORCH}/cuda/memory.py:empty_cache"
CONVOLUTION = f"{TORCH}/nn/functional.py:conv2d"


def empties_in(function, **settings):
    """Return a program that releases the cache in a function of PyTorch."""

    def program(gpu):
        empties(gpu, **settings, empty=lambda: called_through(gpu.empty_cache, [function]))

    return program


def by_torch(program):
    """Return the recording of a program as if its allocator were torch's."""
    recording = timed(program)
    actions = recording.tables["memory_events"]["action"].to_pylist()
    return of_torch(recording, pa.array([each != "empty_cache" for each in actions]))


@pytest.mark.parametrize(
    "program", [empties_in(EMPTY_CACHE), empties_in(EMPTY_CACHE, on_host=1e-9)]
)
def test_calls_that_torch_does_not_record_are_found(program):
    def found(recording):
        return [each for each in recording.findings(small=True) if each.rule == "R10"]

    (finding,), (expected,) = found(by_torch(program)), small(program, "R10")

    assert finding.title == expected.title
    assert finding.saved_ns == pytest.approx(expected.saved_ns, rel=0.05)
    assert finding.lines == expected.lines
    assert found(by_torch(keeps)) == found(by_torch(grows)) == []


def test_releases_by_a_library_are_no_finding():
    """So does cuDNN's benchmark of convolutions, after each."""
    recording = by_torch(empties_in(CONVOLUTION))

    assert len(recording.table("memory_events").filter(pc.field("action") == "segment_free"))
    assert [each for each in recording.findings(small=True) if each.rule == "R10"] == []


def test_a_cache_that_is_released_a_few_times_is_no_finding():
    assert small(lambda gpu: empties(gpu, every=4), "R10") == []


def test_a_cache_that_would_not_be_used_again_is_no_finding():
    assert small(grows, "R10") == []


def test_a_cache_without_which_requests_would_fail_is_no_finding():
    def program(gpu):
        parts = []
        for number in range(12):
            array = gpu.empty((700 if number % 2 else 600) * MIB)
            gpu.launch("work", duration=2e-4, writes=[array])
            del array, parts[:]
            gpu.empty_cache()
            # From the cached segment, which can then not be released.
            parts.append(gpu.empty(20 * MIB))

    gpu = gpuviz.SimulatedGPU(memory=1000 * MIB, real_time=False)
    with gpuviz.record(device=gpu) as recorder:
        program(gpu)
        gpu.synchronize()

    found = recorder.recording.findings(small=True)
    assert [each for each in found if each.rule == "R10"] == []


def test_calls_of_the_driver_that_were_not_recorded_are_not_guessed():
    recording = timed(empties)
    calls = recording.tables["api_calls"]
    tables = {**recording.tables, "api_calls": calls.slice(0, calls.num_rows // 2)}
    found = Recording(tables, replace(recording.manifest)).findings(small=True)

    assert [each for each in found if each.rule == "R10"] == []


def with_own_pool(program, release="free_all_blocks"):
    """Return the recording of a program as if its arrays were of a pool that it has made.

    Args:
        program: Calls a function where it releases the cache.
        release: The name by which it calls that.
    """
    pool = SimpleNamespace()
    if release == "free_all_blocks":
        recording = timed(lambda gpu: program(gpu, lambda: pool_of(pool, gpu).free_all_blocks()))
    else:
        recording = timed(lambda gpu: program(gpu, lambda: pool_of(pool, gpu).trim()))
    tables = recording.tables
    events, calls, strings = (tables[each] for each in ("memory_events", "api_calls", "strings"))
    stack = next(row["stack"] for row in events.to_pylist() if row["action"] == "segment_free")
    names = dict(zip(strings["id"].to_pylist(), strings["text"].to_pylist(), strict=True))
    is_free = [names[each] == "cuMemFree_v2" for each in calls["name"].to_pylist()]
    stacks = [
        stack if free else each
        for each, free in zip(calls["stack"].to_pylist(), is_free, strict=True)
    ]
    place = calls.schema.get_field_index("stack")
    changed = calls.set_column(place, calls.schema.field(place), pa.array(stacks, pa.uint32()))
    others = {"api_calls": changed, "memory_events": events.slice(0, 0)}
    return Recording({**tables, **others}, recording.manifest)


def pool_of(pool, gpu):
    pool.free_all_blocks = pool.trim = gpu.empty_cache
    return pool


def empties_own(gpu, release):
    empties(gpu, on_host=1e-9, empty=release)


def grows_own(gpu, release):
    for number in range(12):
        array = gpu.empty((100 + 20 * number) * MIB)
        gpu.launch("work", duration=2e-4, writes=[array])
        del array
        release()


def works_on_new_streams(gpu, release):
    """A pool of CuPy gives no block to another stream than that which had it before."""
    for _ in range(12):
        with gpu.Stream():
            arrays = [gpu.empty(size * MIB) for size in (100, 300)]
            gpu.launch("work", duration=2e-4, writes=arrays)
            del arrays
        gpu.synchronize()
        release()


def of_caches(recording):
    return [each for each in recording.findings(small=True) if each.rule == "R10"]


def test_a_pool_of_the_program_that_is_released_in_a_loop_is_found():
    (finding,) = of_caches(with_own_pool(empties_own))

    assert finding.title == (
        "The blocks of a pool are released 11 times, and 22 blocks are allocated again."
    )
    assert "it has 400 MiB at most" in finding.reason
    assert finding.saved_ns == pytest.approx(length(waits) - length(keeps_without_waiting), rel=0.2)
    assert ["free_all_blocks" in each.source for each in finding.lines] == [True]


@pytest.mark.parametrize(
    ("program", "release"),
    [
        pytest.param(grows_own, "free_all_blocks", id="other sizes each time"),
        pytest.param(works_on_new_streams, "free_all_blocks", id="another stream each time"),
        pytest.param(empties_own, "trim", id="what may not be a pool"),
        pytest.param(
            lambda gpu, release: empties(gpu, every=4, empty=release), "free_all_blocks", id="rare"
        ),
    ],
)
def test_pools_that_would_not_use_their_blocks_again_are_no_finding(program, release):
    assert of_caches(with_own_pool(program, release)) == []


def beside(recording, rest):
    """Return a recording of a GPU of 1000 MiB, of which other processes use some bytes at times."""
    tables = recording.tables
    devices = [row | {"total_memory": 1000 * MIB} for row in tables["devices"].to_pylist()]
    sample = {"device": 0, "time": 1, "used": rest}
    changed = {
        "devices": pa.Table.from_pylist(devices, schemas()["devices"]),
        "device_memory": pa.Table.from_pylist([sample], schemas()["device_memory"]),
    }
    return Recording({**tables, **changed}, recording.manifest)


@pytest.mark.parametrize("program", [lambda: timed(empties), lambda: with_own_pool(empties_own)])
def test_memory_that_another_process_needs_meanwhile_is_not_to_be_kept(program):
    recording = program()

    assert len(of_caches(beside(recording, 500 * MIB))) == 1
    assert of_caches(beside(recording, 700 * MIB)) == []
