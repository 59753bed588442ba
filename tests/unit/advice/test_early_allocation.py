"""R02: arrays that are allocated before the peak and used after it."""

from functools import partial

import pyarrow as pa

from gpuviz.data.tables import schemas
from gpuviz.recording import Recording
from tests.unit.advice.programs import MIB, found, recorded, saved


def early(gpu):
    result = gpu.empty(32 * MIB)
    large = gpu.empty(64 * MIB)
    gpu.launch("work", duration=1e-4, writes=[large])
    del large
    gpu.launch("finish", duration=1e-4, writes=[result])


def late(gpu):
    large = gpu.empty(64 * MIB)
    gpu.launch("work", duration=1e-4, writes=[large])
    del large
    result = gpu.empty(32 * MIB)
    gpu.launch("finish", duration=1e-4, writes=[result])


def test_an_early_allocation_is_found_and_allocating_it_later_saves_what_was_predicted():
    (finding,) = found(early, "R02")

    assert finding.saved_bytes == saved(early, late) == 32 * MIB
    assert finding.title == (
        "32.0 MiB from `result = gpu.empty(32 * MIB)` is allocated at the peak, before anything "
        "uses it."
    )
    assert finding.reason == (
        'The first use of the array is `gpu.launch("finish", duration=1e-4, writes=[result])`. '
        "The peak is reached by `large = gpu.empty(64 * MIB)`."
    )
    assert finding.change == (
        'Allocate it right before `gpu.launch("finish", duration=1e-4, writes=[result])`.'
    )
    assert found(late, "R02") == []


def test_an_array_that_is_filled_first_is_needed():
    def program(gpu):
        result = gpu.empty(32 * MIB)
        gpu.fill(result)
        large = gpu.empty(64 * MIB)
        gpu.launch("work", duration=1e-4, writes=[large])
        del large
        gpu.launch("finish", duration=1e-4, writes=[result])

    assert found(program, "R02") == []


def test_an_array_that_an_unknown_kernel_may_use_is_needed():
    def program(gpu):
        result = gpu.empty(32 * MIB)
        gpu.launch("by_pointers", duration=1e-4)
        large = gpu.empty(64 * MIB)
        gpu.launch("work", duration=1e-4, writes=[large])
        del large
        gpu.launch("finish", duration=1e-4, writes=[result])

    assert found(program, "R02") == []


def test_what_is_still_needed_together_saves_nothing():
    def program(gpu):
        result = gpu.empty(32 * MIB)
        large = gpu.empty(64 * MIB)
        gpu.launch("work", duration=1e-4, writes=[large])
        gpu.launch("finish", duration=1e-4, reads=[large], writes=[result])

    assert found(program, "R02") == []


def test_a_recording_without_memory_has_no_finding_about_it():
    assert found(lambda gpu: gpu.launch("alone", duration=1e-4), "R02") == []


def test_a_block_from_before_a_window_may_have_been_used_there():
    def program(gpu):
        result = gpu.empty(32 * MIB)
        gpu.launch("start", duration=1e-4, writes=[result])
        gpu.synchronize()
        large = gpu.empty(64 * MIB)
        gpu.launch("work", duration=1e-4, writes=[large])
        del large
        gpu.launch("finish", duration=1e-4, reads=[result])

    recording = recorded(program)
    times = recording.table("memory_events")["time"].to_pylist()
    begin = max(time for time in times if time < recording.peak().time_ns)
    cut = recording.window(begin + 1, recording.duration_ns)

    assert cut.manifest.initial_events > 0
    assert [each.rule for each in cut.findings(small=True) if each.rule == "R02"] == []


def test_arrays_with_different_first_uses_name_each_of_them():
    def all_early(gpu):
        first, second = [gpu.empty(32 * MIB) for _ in range(2)]
        large = gpu.empty(64 * MIB)
        gpu.launch("work", duration=1e-4, writes=[large])
        del large
        gpu.launch("begin", duration=1e-4, writes=[first])
        del first
        gpu.launch("finish", duration=1e-4, writes=[second])

    def each_late(gpu):
        large = gpu.empty(64 * MIB)
        gpu.launch("work", duration=1e-4, writes=[large])
        del large
        first = gpu.empty(32 * MIB)
        gpu.launch("begin", duration=1e-4, writes=[first])
        del first
        second = gpu.empty(32 * MIB)
        gpu.launch("finish", duration=1e-4, writes=[second])

    (finding,) = found(all_early, "R02")

    assert finding.saved_bytes == saved(all_early, each_late)
    assert finding.change == (
        "Allocate each array right before its own first use: 32.0 MiB before "
        '`gpu.launch("begin", duration=1e-4, writes=[first])`, 32.0 MiB before '
        '`gpu.launch("finish", duration=1e-4, writes=[second])`.'
    )


def test_a_line_that_replaces_an_array_would_free_the_old_one_later_too():
    def replaces(gpu):
        result = gpu.empty(32 * MIB)
        gpu.launch("start", duration=1e-4, writes=[result])
        result = gpu.empty(32 * MIB)
        large = gpu.empty(64 * MIB)
        gpu.launch("work", duration=1e-4, writes=[large])
        del large
        gpu.launch("finish", duration=1e-4, writes=[result])

    def replaces_later(gpu, *, deletes):
        result = gpu.empty(32 * MIB)
        gpu.launch("start", duration=1e-4, writes=[result])
        if deletes:
            del result
        large = gpu.empty(64 * MIB)
        gpu.launch("work", duration=1e-4, writes=[large])
        del large
        result = gpu.empty(32 * MIB)
        gpu.launch("finish", duration=1e-4, writes=[result])

    (together,) = found(replaces, "R03")

    assert saved(replaces, partial(replaces_later, deletes=False)) == 0
    assert found(replaces, "R02") == []
    assert together.saved_bytes == saved(replaces, partial(replaces_later, deletes=True))
    assert "delete it (`del`) after" in together.change


def test_what_the_peak_s_call_uses_at_first_is_allocated_within_it():
    def finish(gpu, result):
        large = gpu.empty(64 * MIB)
        gpu.launch("work", duration=1e-4, writes=[large])
        del large
        result = result if result is not None else gpu.empty(32 * MIB)
        gpu.launch("finish", duration=1e-4, writes=[result])

    def before_the_call(gpu):
        result = gpu.empty(32 * MIB)
        finish(gpu, result)

    (finding,) = found(before_the_call, "R02")

    assert finding.saved_bytes == saved(before_the_call, partial(finish, result=None))
    assert finding.change == (
        'Allocate it right before `gpu.launch("finish", duration=1e-4, writes=[result])`, within '
        "`finish(gpu, result)`."
    )


def test_an_array_of_a_graphs_pool_may_be_used_whenever_the_graph_is_launched():
    def program(gpu):
        early(gpu)

    (finding,) = found(program, "R02")
    recording = recorded(program)
    pools = recording.tables["pools"].to_pylist()
    private = [row | {"owner": 7} for row in pools]
    tables = {**recording.tables, "pools": pa.Table.from_pylist(private, schemas()["pools"])}

    assert finding.saved_bytes
    assert not [
        each
        for each in Recording(tables, recording.manifest).findings(small=True)
        if each.rule == "R02"
    ]
