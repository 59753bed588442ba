"""The page about a failure as a file: its content and its escaping."""

import re
from html import unescape

import pyarrow as pa
import pytest

import gpuviz
from gpuviz import _core
from gpuviz.data.arrays import batch_of
from gpuviz.out_of_memory.failures import failed_rows
from gpuviz.out_of_memory.last_moments import last_moments
from gpuviz.out_of_memory.remedies import remedies
from gpuviz.out_of_memory.verdict_text import TITLES
from gpuviz.recording import Recording, load
from gpuviz.report.out_of_memory import build_page
from tests.unit.recording.from_activities import Timeline
from tests.unit.report.recordings import MIB, SEGMENT, Events, make_recording
from tests.unit.report.test_page import HOSTILE, Elements, visible_text


def moment_of(recording):
    return last_moments(recording, failed_rows(recording)[-1])


def page_of(recording):
    moment = moment_of(recording)
    return build_page(moment, moment.out_of_memory()[-1])


def test_the_page_gives_the_recording_until_the_failure_back(tmp_path):
    recording = make_recording()
    path = tmp_path / "run.oom-1.html"
    path.write_text(page_of(recording), encoding="utf-8")

    back = load(path)

    events = recording.table("memory_events")
    assert back.table("memory_events").equals(events.slice(0, events.num_rows - 1))
    assert back.out_of_memory() == recording.out_of_memory()


def test_the_page_says_the_numbers_of_the_failure():
    text = " ".join(visible_text(page_of(make_recording())).split())

    (failed,) = make_recording().out_of_memory()
    assert "Out of memory: 99.0 MiB on device 0 (GPU of train.py)" in text
    assert failed.summary in text
    for name, value in {
        "Requested": "99.0 MiB",
        "Allocated": "6.00 MiB",
        "Free in segments": "8.00 MiB",
        "Waiting for other streams": "6.00 MiB",
        "Reserved": "20.0 MiB",
        "Free on the device": "123 MiB",
        "Requested from the device": "100 MiB",
    }.items():
        assert f"{name} {value} " in text
    assert re.search(r"default pool \(large blocks\), train.py \(of the request\) 20.0 MiB", text)


def test_hostile_text_stays_text():
    found = Elements(page_of(make_recording(text=HOSTILE)))

    tags = [tag for tag, _ in found.elements]
    plain = [tag for tag, _ in Elements(page_of(make_recording())).elements]
    assert tags == plain
    assert [attributes for tag, attributes in found.elements if tag == "img"] == []


def test_hostile_names_of_arrays_stay_text():
    moment = moment_of(make_recording())
    failed = moment.out_of_memory()[-1]

    page = build_page(moment, failed, {2: (HOSTILE,)})

    assert HOSTILE not in page
    assert " ".join(HOSTILE.split()) in " ".join(unescape(page).split())


def test_an_allocator_without_segments_has_a_page_too():
    events = Events()
    events.add("alloc", SEGMENT, 2 * MIB)
    events.add("oom", 0, 99 * MIB)
    recording = make_recording(events.rows, initial_events=0, allocator="observe")

    text = visible_text(page_of(recording))

    assert "This allocator does not expose its segments." in text
    assert "unknown" in text


@pytest.mark.parametrize("row", range(1, 6))
@pytest.mark.parametrize("most_rows", [1, 2, 100])
def test_a_cut_recording_has_the_state_of_the_whole_at_its_last_event(row, most_rows):
    recording = make_recording()

    cut = last_moments(recording, row, most_rows)

    until = recording.table("memory_events")["time"][row].as_py()
    assert cut.memory_snapshot() == recording.memory_snapshot(at=until)
    assert cut.table("memory_events").num_rows - cut.manifest.initial_events == min(
        most_rows, max(row - 1, 0)
    )
    assert cut.duration_ns == until


def test_every_verdict_has_a_title_and_a_remedy():
    (failed,) = make_recording().out_of_memory()

    assert failed.verdict in TITLES
    assert all(text.endswith(".") for text in remedies(failed))


CHECKED = " the request would have succeeded"


def split_by_a_live_block(gpu):
    whole = gpu.empty(900 * MIB)
    del whole
    live = [gpu.empty(size * MIB) for size in (400, 20, 400, 20)]
    del live[2], live[0]
    gpu.empty(500 * MIB)


def limited(gpu):
    gpu._allocator.set_memory_fraction(0.5)
    live = gpu.empty(400 * MIB)
    gpu.empty(200 * MIB)
    return live


def cache_in(gpu, stream):
    with stream:
        whole = gpu.empty(900 * MIB)
        del whole
        return gpu.empty(20 * MIB)


def in_another_stream(gpu):
    stream = gpu.Stream()
    pin = cache_in(gpu, stream)
    gpu.empty(500 * MIB)
    return pin, stream


def in_a_destroyed_stream(gpu):
    pin = cache_in(gpu, gpu.Stream())
    gpu.empty(500 * MIB)
    return pin


def in_a_stream_whose_handle_another_one_got(gpu):
    pin = cache_in(gpu, gpu.Stream())
    successor = gpu.Stream()
    gpu.empty(500 * MIB)
    return pin, successor


def split_in_a_stream_whose_handle_this_one_got(gpu):
    with gpu.Stream():
        whole = gpu.empty(900 * MIB)
        del whole
        live = [gpu.empty(size * MIB) for size in (400, 20, 400, 20)]
    with gpu.Stream():
        del live[2], live[0]
        gpu.empty(500 * MIB)


def full_of_live_blocks(gpu):
    live = [gpu.empty(300 * MIB) for _ in range(3)]
    gpu.empty(200 * MIB)
    return live


def pinned_by_two_small_blocks(gpu, *, frees=False):
    first, second, rest = (gpu.empty(size * MIB) for size in (100, 100, 800))
    del first, second
    pins = [gpu.empty(2 * MIB)]
    filling = gpu.empty(97 * MIB)
    pins.append(gpu.empty(2 * MIB))
    del filling
    if frees:
        pins.clear()
    gpu.empty(200 * MIB)
    return rest, pins


def between_large_segments(gpu, *, size=5 * MIB):
    live = [gpu.empty(985 * MIB)]
    live.append(gpu.empty(size))
    return live


def rounded_up(gpu):
    live = gpu.empty(512 * MIB), gpu.empty(320 * MIB)
    gpu.empty(100 * MIB)
    return live


def failure_of(program, settings=""):
    gpu = gpuviz.SimulatedGPU(memory=1000 * MIB, settings=settings, real_time=False)
    with gpuviz.record(device=gpu) as recorder, pytest.raises(MemoryError):
        program(gpu)
    (failed,) = recorder.recording.out_of_memory()
    return failed


@pytest.mark.parametrize(
    ("program", "settings", "expected"),
    [
        (split_by_a_live_block, "", ["expandable_segments:True", "Freeing 1 live block (20.0 MiB"]),
        (limited, "", ["set_per_process_memory_fraction(1.0)"]),
        (
            in_another_stream,
            "",
            [
                "expandable_segments:True",
                "In default pool (large blocks), ",
                "Freeing 1 live block (20.0 MiB) empties segments",
            ],
        ),
        (
            in_a_destroyed_stream,
            "",
            ["expandable_segments:True", "Freeing 1 live block (20.0 MiB) empties segments"],
        ),
        (
            in_a_stream_whose_handle_another_one_got,
            "",
            [
                "expandable_segments:True",
                "In default pool (large blocks), successor ",
                "Freeing 1 live block (20.0 MiB) empties segments",
            ],
        ),
        (
            split_in_a_stream_whose_handle_this_one_got,
            "",
            ["expandable_segments:True", "Freeing 1 live block (20.0 MiB) between"],
        ),
        (pinned_by_two_small_blocks, "", ["Freeing 2 live blocks (4.00 MiB) empties segments"]),
        (
            between_large_segments,
            "",
            ["With 10.0 MiB or more, in a segment of its own", "expandable_segments:True"],
        ),
        (
            rounded_up,
            "roundup_power2_divisions:2",
            ["Without the setting roundup_power2_divisions"],
        ),
        (full_of_live_blocks, "", []),
    ],
)
def test_only_remedies_that_let_the_request_succeed_are_shown(program, settings, expected):
    failed = failure_of(program, settings)

    checked = [text for text in remedies(failed) if CHECKED in text or "Freeing" in text]

    assert len(checked) == len(expected)
    assert all(part in text for part, text in zip(expected, checked, strict=True))


def test_the_page_lists_the_blocks_that_keep_segments_in_use():
    gpu = gpuviz.SimulatedGPU(memory=1000 * MIB, real_time=False)
    with gpuviz.record(device=gpu) as recorder, pytest.raises(MemoryError):
        pinned_by_two_small_blocks(gpu)
    page = page_of(recorder.recording)

    listed = page[page.index("Live blocks that keep segments in use") :]
    assert "Without these 4.00 MiB the request would fit:" in listed
    assert "pins.append(gpu.empty(2 * MIB))" in listed


@pytest.mark.parametrize(
    ("program", "is_destroyed"),
    [
        (in_another_stream, False),
        (in_a_destroyed_stream, True),
        (in_a_stream_whose_handle_another_one_got, False),
    ],
)
def test_memory_of_a_destroyed_stream_is_marked_as_long_as_no_other_has_its_handle(
    program, is_destroyed
):
    failed = failure_of(program)

    (cached,) = failed.free
    assert cached.is_destroyed == is_destroyed
    assert failed.verdict == "cached_elsewhere"
    assert (f"{cached.name} (destroyed) has 880 MiB free" in failed.summary) == is_destroyed
    page = build_page(failed.moment.recording, failed)
    assert ("(destroyed)</td>" in page) == is_destroyed


def test_memory_of_the_stream_that_had_the_handle_before_is_the_requests_own():
    failed = failure_of(split_in_a_stream_whose_handle_this_one_got)

    (cached,) = failed.free
    assert (cached.stream, cached.name) == (failed.stream, failed.pool_and_stream)
    assert failed.request.own_block == 400 * MIB
    assert (failed.obstacle.blocks, failed.obstacle.bytes) == (1, 20 * MIB)


def test_what_the_remedies_say_lets_the_request_succeed():
    gpu = gpuviz.SimulatedGPU(memory=1000 * MIB, real_time=False)
    assert pinned_by_two_small_blocks(gpu, frees=True)
    gpu = gpuviz.SimulatedGPU(memory=1000 * MIB, real_time=False)
    assert between_large_segments(gpu, size=10 * MIB)
    gpu = gpuviz.SimulatedGPU(memory=1000 * MIB, real_time=False)
    assert rounded_up(gpu)


def freed_while_a_pool_is_active(gpu, *, of_the_pool, leaves=False, allocates=False):
    """Free an array that another stream uses, and request memory again."""
    pool, everything = gpu._allocator.create_pool(), _core.CachingAllocator.PoolFilter.everything
    if of_the_pool:
        gpu._allocator.begin_pool(pool, everything)
    array, stream = gpu.empty(900 * MIB), gpu.Stream(non_blocking=True)
    with stream:
        gpu.launch("long", duration=10, reads=[array])
    gpu.record_stream(array, stream)
    if not of_the_pool:
        gpu._allocator.begin_pool(pool, everything)
    del array
    gpu.synchronize()
    if leaves or allocates:
        gpu._allocator.end_pool(pool)
    if allocates:
        gpu.empty(1)
        gpu._allocator.begin_pool(pool, everything)
    try:
        gpu.empty(500 * MIB)
    finally:
        if not leaves:
            gpu._allocator.end_pool(pool)


@pytest.mark.parametrize(
    ("of_the_pool", "remedy", "said"),
    [
        (False, {"leaves": True}, "leave the private pool before this line"),
        (True, {"allocates": True}, "Leave the private pool before this line, synchronize"),
    ],
)
def test_pending_frees_complete_outside_of_the_pool(of_the_pool, remedy, said):
    failed = failure_of(lambda gpu: freed_while_a_pool_is_active(gpu, of_the_pool=of_the_pool))
    gpu = gpuviz.SimulatedGPU(memory=1000 * MIB, real_time=False)

    freed_while_a_pool_is_active(gpu, of_the_pool=of_the_pool, **remedy)

    assert failed.verdict == "pending_frees"
    assert said in remedies(failed)[0]


def test_a_failure_that_no_replay_reproduces_has_no_checked_remedy():
    (failed,) = make_recording().out_of_memory()

    texts = remedies(failed)

    assert texts[0].startswith("Which settings would have helped is unknown: a replay of the")
    assert not any(CHECKED in text for text in texts)


def test_nothing_is_said_about_memory_that_was_not_recorded():
    events = Events()
    events.add("alloc", SEGMENT, 512, time=10)
    events.add("oom", 0, 1024, time=20)
    recording = make_recording(events.rows, initial_events=0, allocator="observe")

    (failed,) = recording.out_of_memory()

    assert (failed.verdict, failed.device_free) == ("unknown", None)
    assert failed.explanation[:2] == (
        (
            "Unknown: 512 B were in use, 1.00 KiB more were requested, and the recording does not "
            "contain the free memory of the device."
        ),
        "The program had allocated 512 B in 1 block.",
    )


def small_in_large_blocks(gpu):
    large = [gpu.empty(220 * MIB) for _ in range(4)]
    large.clear()
    return [gpu.empty(60 * MIB) for _ in range(8)]


def test_a_limit_of_splits_is_lifted_if_that_helps():
    failed = failure_of(small_in_large_blocks, "max_split_size_mb:21,max_non_split_rounding_mb:200")

    assert "Without the setting max_split_size_mb the request would have succeeded." in remedies(
        failed
    )


def test_the_calls_of_kept_activities_are_kept_however_old_they_are():
    timeline = Timeline()
    timeline.call(1, 2, line=7, correlation=1)
    for time in range(10, 20):
        timeline.call(time, time, correlation=time)
        timeline.kernel(time, time, correlation=1 if time == 19 else time)
    timeline.call(99, 99, correlation=99)
    timeline.add("memory_events", {"action": "oom", "time": 50, "size": 512, "stream": 0})

    cut = last_moments(timeline.recording(), 0, 3)

    assert cut.table("api_calls")["time"].to_pylist() == [1, 17, 18, 19]
    assert cut.kernels("line")["source"].to_pylist() == ["", "line 7"]


@pytest.mark.parametrize(
    ("table", "values"),
    [
        ("api_calls", {}),
        ("host_accesses", {"mode": "write"}),
        ("host_memory_events", {"action": "alloc"}),
        ("host_samples", {"state": "running"}),
    ],
)
def test_the_call_stacks_of_all_that_is_kept_are_kept(table, values):
    recording = make_recording()
    tables = dict(recording.tables)
    stack = {"frames": [1], "module": "", "phase": ""}
    for name, row in (("stacks", {"id": 99} | stack), (table, {"stack": 99} | values)):
        schema = tables[name].schema
        added = batch_of([dict.fromkeys(schema.names, 0) | row], schema)
        tables[name] = pa.concat_tables([tables[name], pa.table(added)]).unify_dictionaries()

    moment = moment_of(Recording(tables, recording.manifest))

    assert 99 in moment.table("stacks")["id"].to_pylist()
    assert moment.table(table)["stack"].to_pylist()[-1] == 99
