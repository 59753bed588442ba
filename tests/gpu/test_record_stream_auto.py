"""Programs that free an array too early compute right numbers with ``record_stream="auto"``."""

import cupy
import pytest

import gpuviz
from tests.gpu import freed_array_programs as programs

pytestmark = pytest.mark.gpu


def part_of_an_array():
    return programs.cross_stream_free(view=slice(1 << 20, 2 << 20))


UNSAFE = [programs.cross_stream_free, part_of_an_array, programs.freed_after_copy]


@pytest.fixture(autouse=True)
def gpuviz_allocator():
    before = cupy.cuda.get_allocator()
    cupy.cuda.set_allocator(gpuviz.malloc)
    yield
    cupy.cuda.set_allocator(before)


@pytest.mark.parametrize("program", UNSAFE, ids=lambda each: each.__name__)
def test_numbers_are_right_in_each_run(program):
    program()  # compiles its kernels
    with gpuviz.record(record_stream="auto") as recorder:
        right = [program() for _ in range(50)]

    assert right == [True] * 50
    assert sum(recorder.recording.delayed_frees()["frees"].to_pylist()) >= 50


@pytest.mark.parametrize("program", UNSAFE, ids=lambda each: each.__name__)
@pytest.mark.parametrize("record_stream", ["off", "report"])
def test_numbers_are_wrong_without_it(program, record_stream):
    program()
    with gpuviz.record(record_stream=record_stream):
        right = [program() for _ in range(5)]

    assert not all(right)


def test_a_report_names_the_lines():
    programs.cross_stream_free()
    with gpuviz.record(record_stream="report") as recorder:
        programs.cross_stream_free()

    (row,) = recorder.recording.delayed_frees().to_pylist()
    assert row["frees"] == 1
    assert row["bytes"] == programs.COUNT
    assert row["byte_seconds"] > 0
    assert all("cross_stream_free" in row[each] for each in ("allocated_at", "used_at", "freed_at"))


def test_a_free_after_the_wait_is_not_delayed():
    programs.cross_stream_free(waited=True)
    with gpuviz.record(record_stream="auto") as recorder:
        assert programs.cross_stream_free(waited=True)

    assert recorder.recording.delayed_frees().num_rows == 0


def test_unrelated_later_work_does_not_delay_the_reuse():
    programs.address_after_unrelated_work()
    with gpuviz.record(record_stream="auto"):
        assert programs.address_after_unrelated_work()


def test_the_delayed_program_has_no_hazard():
    programs.cross_stream_free()
    with gpuviz.record(record_stream="auto") as recorder:
        programs.cross_stream_free()

    assert [each for each in recorder.recording.hazards() if each.kind != "use_after_free"] == []


def test_a_capture_is_left_alone():
    stream = cupy.cuda.Stream(non_blocking=True)
    with gpuviz.record(record_stream="auto"):
        x = cupy.arange(1000, dtype=cupy.float32)  # on the default stream
        cupy.cuda.Device().synchronize()
        with stream:
            stream.begin_capture()
            y = x * 2
            graph = stream.end_capture()
            graph.launch(stream)
        stream.synchronize()
        assert bool((y == x * 2).all())
        del x, y


def test_poison_shows_a_hazard_that_reuse_did_not():
    programs.cross_stream_free(reused=False)
    with gpuviz.record():
        is_latent = programs.cross_stream_free(reused=False)
    with gpuviz.record(poison=True):
        is_right = [programs.cross_stream_free(reused=False) for _ in range(5)]
    with gpuviz.record(poison=True, record_stream="auto"):
        is_prevented = [programs.cross_stream_free(reused=False) for _ in range(5)]

    assert is_latent
    assert not any(is_right)
    assert all(is_prevented)


def test_a_write_after_the_free_is_found():
    programs.written_after_free()
    with gpuviz.record(poison=True) as recorder:
        programs.written_after_free()

    (row,) = recorder.recording.writes_after_free().to_pylist()
    assert row["bytes"] == programs.COUNT
    assert row["offset"] == 0
    assert all("written_after_free" in row[each] for each in ("allocated_at", "freed_at"))


@pytest.mark.parametrize("options", [{"record_stream": "auto"}, {"quarantine": 1 << 28}])
def test_correct_programs_write_to_no_freed_memory(options):
    with gpuviz.record(poison=True, **options) as recorder:
        for _ in range(20):
            x = cupy.arange(100_000, dtype=cupy.float32)
            with programs.S:
                y = cupy.arange(1000, dtype=cupy.float32)
                y += 1
            total = float((x * 2 + 1).sum()) + float(y.sum())
            del x, y

    assert total > 0
    assert recorder.recording.writes_after_free().num_rows == 0


def test_quarantine_keeps_memory_from_being_reused():
    programs.cross_stream_free()
    with gpuviz.record(quarantine=1 << 30):
        assert all(programs.cross_stream_free() for _ in range(5))
