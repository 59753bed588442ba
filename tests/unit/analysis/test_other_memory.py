"""Memory of devices outside the recorded allocators."""

import json

import pyarrow as pa
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from gpuviz.analysis.pools import RMM_OWNER, TORCH_OWNER
from gpuviz.commands.cli import commands
from gpuviz.data.manifest import Manifest
from gpuviz.data.tables import schemas
from gpuviz.recording import Recording
from tests.unit.recording.from_events import rows_table

MIB = 1 << 20
BLAS, FFT, NOBODY = 1, 2, 0
STRINGS = ("/opt/lib/libblas.so.13", "libfft.so", "libc.so", "libd.so", "libe.so")


def table(name, rows, **defaults):
    nothing = {field.name: "" if field.type == pa.utf8() else 0 for field in schemas()[name]}
    return pa.Table.from_pylist([{**nothing, **defaults, **row} for row in rows], schemas()[name])


def recording(operations=(), samples=(), events=(), devices=(0,), **facts):
    return Recording(
        {
            "memory_events": rows_table(events),
            "memory_operations": table("memory_operations", operations, memory="device"),
            "device_memory": table("device_memory", samples),
            "devices": table("devices", [{"id": each} for each in devices]),
            "pools": table("pools", pools_of(events)),
            "strings": table("strings", [{"id": i, "text": t} for i, t in enumerate(STRINGS, 1)]),
        },
        Manifest(events=len(events), duration_ns=1000, **facts),
    )


def pools_of(events):
    numbers = sorted({event.get("pool", 0) for event in events})
    return [
        {"id": number, "owner": number // 2, "segment_type": "small"}
        | {"framework": "", "memory": "device"}
        for number in numbers
    ]


def operation(time, kind, address, size=0, source=NOBODY, **others):
    return {"time": time, "operation": kind, "address": address, "bytes": size} | {
        "source": source,
        **others,
    }


SEGMENT = {"time": 5, "action": "segment_alloc", "address": 100, "size": 20 * MIB}
OPERATIONS = [
    operation(5, "allocation", 100, 20 * MIB, BLAS),  # the allocator's own segment
    operation(6, "allocation", 200, 8 * MIB, BLAS),
    operation(7, "allocation", 300, 4 * MIB, FFT),
    operation(8, "allocation", 400, 9 * MIB, FFT, memory="pinned"),
    operation(9, "release", 200, source=NOBODY),
    operation(10, "allocation", 200, 2 * MIB, BLAS),
    operation(11, "release", 999),  # from before the recording
]


def test_libraries_have_what_they_allocated_beside_the_segments():
    rows = recording(OPERATIONS, events=[SEGMENT]).other_memory().to_pylist()

    assert rows == [
        {
            "device": 0,
            "library": "libblas.so.13",
            "allocations": 2,
            "current": 2 * MIB,
            "peak": 8 * MIB,
        },
        {"device": 0, "library": "libfft.so", "allocations": 1}
        | {"current": 4 * MIB, "peak": 4 * MIB},
    ]


def test_what_the_device_reports_is_divided_without_a_rest():
    samples = [
        {"time": 2, "used": 300 * MIB},
        {"time": 6, "used": 330 * MIB},
        {"time": 10, "used": 325 * MIB},
    ]
    rows = recording(OPERATIONS, samples, [SEGMENT]).other_memory(by="time").to_pylist()

    assert [(row["recorded"], row["libraries"], row["rest"]) for row in rows] == [
        (0, 0, 300 * MIB),
        (20 * MIB, 8 * MIB, 302 * MIB),
        (20 * MIB, 6 * MIB, 299 * MIB),
    ]


def test_an_allocator_without_segments_has_what_it_gave_out():
    alloc = {"time": 5, "action": "alloc", "address": 100, "size": 3 * MIB}
    samples = [{"time": 9, "used": 10 * MIB}]
    found = recording([operation(5, "allocation", 100, 3 * MIB)], samples, [alloc])

    assert found.other_memory().num_rows == 0
    (row,) = found.other_memory(by="time").to_pylist()
    assert (row["recorded"], row["libraries"], row["rest"]) == (3 * MIB, 0, 7 * MIB)


@pytest.mark.parametrize("initial_events", [0, 1, 2, 3])
def test_an_allocator_without_segments_adds_to_what_torch_has_reserved(initial_events):
    torch = {"pool": 2 * TORCH_OWNER}
    events = [
        {"time": 4, "action": "segment_alloc", "address": 4096, "size": 700 * MIB, **torch},
        {"time": 5, "action": "alloc", "address": 4096, "size": 100 * MIB, **torch},
        {"time": 6, "action": "alloc", "address": 1 << 40, "size": 300 * MIB},
        {"time": 8, "action": "free_requested", "address": 1 << 40, "size": 300 * MIB},
        {"time": 8, "action": "free_completed", "address": 1 << 40, "size": 300 * MIB},
    ]
    samples = [{"time": time, "used": 1200 * MIB} for time in (5, 7, 9)]
    found = recording([], samples, events, initial_events=initial_events)

    rows = found.other_memory(by="time").to_pylist()

    # What was there at the start counts from then on.
    at_start = 1000 if initial_events == 3 else 700
    assert [row["recorded"] // MIB for row in rows] == [at_start, 1000, 700]
    assert [row["rest"] // MIB for row in rows] == [1200 - at_start, 200, 500]


@pytest.mark.parametrize(
    ("arena", "name"),
    [
        (700 * MIB, "JAX's arena"),
        (700 * MIB - 256, "JAX's arena"),  # the driver gives out whole pages
        (690 * MIB, "libblas.so.13"),
        (4 * MIB, "libblas.so.13"),  # two are as large
        (0, "libblas.so.13"),
    ],
)
def test_the_allocation_that_is_as_large_as_jax_s_arena_is_named_after_it(arena, name):
    operations = [
        operation(2, "allocation", 1 << 40, 700 * MIB, BLAS),
        operation(3, "allocation", 1 << 30, 4 * MIB, FFT),
        operation(4, "allocation", 1 << 31, 4 * MIB, FFT),
        operation(5, "allocation", 1 << 32, 700 * MIB, FFT, device=1),
        operation(6, "release", 1 << 40),
    ]
    stats = {0: {"jax_pool_bytes": arena}}

    rows = recording(operations, devices=(0, 1), memory_stats=stats).other_memory().to_pylist()

    assert [(row["device"], row["library"], row["current"] // MIB) for row in rows] == [
        (0, name, 0),
        (0, "libfft.so", 8),
        (1, "libfft.so", 700),
    ]


def test_what_rmm_reserves_counts_once_as_memory_of_its_library():
    events = [
        SEGMENT,
        {"time": 6, "action": "alloc", "address": 1 << 40, "size": 30 * MIB, "pool": 2 * RMM_OWNER},
    ]
    pool = operation(4, "allocation", 1 << 40, 100 * MIB, BLAS)
    samples = [{"time": 8, "used": 150 * MIB}]
    found = recording([pool, OPERATIONS[0]], samples, events)

    (row,) = found.other_memory(by="time").to_pylist()

    assert [row[name] // MIB for name in ("recorded", "libraries", "rest")] == [20, 100, 30]


def test_the_rest_is_never_negative():
    (row,) = (
        recording([], [{"time": 6, "used": MIB}], [SEGMENT]).other_memory(by="time").to_pylist()
    )

    assert row["rest"] == 0


def test_without_samples_and_operations_nothing_is_known():
    assert recording().other_memory().num_rows == 0
    assert recording().other_memory(by="time").num_rows == 0


@given(
    st.lists(
        st.tuples(
            st.booleans(), st.integers(1, 4), st.integers(1, 9), st.integers(0, 2), st.booleans()
        ),
        max_size=30,
    )
)
def test_each_library_has_the_sum_of_its_live_allocations(steps):
    live, levels, peaks, counts, operations = {}, {}, {}, {}, []
    for time, (is_new, address, size, source, on_second) in enumerate(steps):
        device = int(on_second)
        kind = "allocation" if is_new else "release"
        operations.append(operation(time, kind, address, size, source, device=device))
        name = ("", "libblas.so.13", "libfft.so")[source]
        if not is_new:
            freed, owner = live.pop((device, address), (0, None))
            if owner is not None:
                levels[device, owner] -= freed
            continue
        if (device, address) in live:  # its release was missed
            before, owner = live.pop((device, address))
            levels[device, owner] -= before
        live[device, address] = (size, name)
        key = (device, name)
        levels[key] = levels.get(key, 0) + size
        peaks[key] = max(peaks.get(key, 0), levels[key])
        counts[key] = counts.get(key, 0) + 1

    rows = recording(operations, devices=(0, 1)).other_memory().to_pylist()

    found = {(row["device"], row["library"]): row for row in rows}
    assert {key: row["current"] for key, row in found.items()} == levels
    assert {key: row["peak"] for key, row in found.items()} == peaks
    assert {key: row["allocations"] for key, row in found.items()} == counts


@pytest.mark.parametrize("is_known", [True, False])
def test_a_report_and_the_command_line_show_it(tmp_path, is_known):
    samples = [{"time": 10, "used": 325 * MIB}] if is_known else []
    made = recording(OPERATIONS if is_known else [], samples, [SEGMENT])
    page = made.report(tmp_path / "report.html").read_text()
    path = made.save(tmp_path / "run.gpuviz")
    done = CliRunner().invoke(commands, ["info", str(path)])
    facts = json.loads(CliRunner().invoke(commands, ["info", "--json", str(path)]).stdout)

    line = (
        "Device 0: 325 MiB in use at the end: 20.0 MiB by the recorded allocators, 4.00 MiB by "
        "libfft.so, 2.00 MiB by libblas.so.13, 299 MiB by CUDA contexts, other processes and what "
        "was before"
    )
    assert ("<h3>Other memory</h3>" in page) == is_known
    assert ("299 MiB by CUDA contexts, other processes" in page) == is_known
    assert (line in done.stdout) == is_known
    assert len(facts["other_memory"]["libraries"]) == (2 if is_known else 0)


@pytest.mark.parametrize(
    ("libraries", "ending"),
    [
        (3, ""),
        (4, ", 3.00 MiB by 1 other library"),
        (5, ", 5.00 MiB by 2 other libraries"),
    ],
)
def test_the_command_line_adds_up_the_libraries_that_it_does_not_name(tmp_path, libraries, ending):
    operations = [
        operation(number, "allocation", 100 * number, (7 - number) * MIB, source=number)
        for number in range(1, libraries + 1)
    ]
    sizes = sum(each["bytes"] for each in operations)
    made = recording(operations, [{"time": 10, "used": sizes}])
    path = made.save(tmp_path / "run.gpuviz")

    done = CliRunner().invoke(commands, ["info", str(path)])

    named = "6.00 MiB by libblas.so.13, 5.00 MiB by libfft.so, 4.00 MiB by libc.so"
    assert f"recorded allocators, {named}{ending}, 0 B by CUDA contexts" in done.stdout


@pytest.mark.parametrize(
    ("used", "time", "said"),
    [
        (325, 5, "325 MiB in use at the end: "),
        (325, 3, "325 MiB in use 2 ns before the last memory event: "),
        (15, 10, "15.0 MiB in use at the end, while some of it was being released or allocated: "),
    ],
)
def test_the_command_line_says_if_the_last_sample_is_of_another_time(tmp_path, used, time, said):
    made = recording([], [{"time": time, "used": used * MIB}], [SEGMENT])
    path = made.save(tmp_path / "run.gpuviz")

    done = CliRunner().invoke(commands, ["info", str(path)])

    assert f"Device 0: {said}" in done.stdout


def test_the_command_line_shows_the_last_sample_that_has_all_that_was_recorded(tmp_path):
    samples = [{"time": time, "used": used * MIB} for time, used in ((3, 40), (10, 45), (20, 15))]
    path = recording([], samples, [SEGMENT]).save(tmp_path / "run.gpuviz")

    done = CliRunner().invoke(commands, ["info", str(path)])

    assert "Device 0: 45.0 MiB in use at the end: " in done.stdout
