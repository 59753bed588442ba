"""Values that no recording has are refused by name, and large ones cost no memory."""

import tracemalloc

import pyarrow as pa
import pytest

import gpuviz
from gpuviz.data.manifest import Manifest
from gpuviz.data.tables import REFERENCES, schemas
from gpuviz.data.validation import NonconformingTableError
from gpuviz.errors import FormatError
from gpuviz.recording import Recording, load
from tests.unit.data.test_derived import edited
from tests.unit.formats.false_values import RECORDINGS, merged, single, stream_of
from tests.unit.merging.ranks_of_a_run import MS, rank

MOST_BYTES = 32 << 20


def with_value(recording, table, column, value, row=0):
    """Return the tables of a recording with another value in a row."""
    old = recording.tables[table]
    values = old[column].to_pylist()
    values[row] = value
    field = old.schema.field(column)
    place = old.schema.get_field_index(column)
    return {
        **recording.tables,
        table: old.set_column(place, field, pa.array(values, field.type)),
    }


@pytest.mark.parametrize(
    ("table", "column", "value", "problem"),
    [
        ("memory_events", "time", 2**62, "column time has 4611686018427387904, expected less"),
        ("activities", "end", -(2**62), "column end has -4611686018427387904, expected at least"),
        ("streams", "created", 2**63 - 1, "column created has"),
        ("devices", "total_memory", 2**63 - 1, "column total_memory has"),
        ("devices", "total_memory", -1, "column total_memory has -1, expected at least 0"),
        ("device_memory", "used", -1, "column used has -1, expected at least 0"),
        ("launch_blocks", "bytes", 2**64 - 1, "column bytes has 18446744073709551615"),
        ("activities", "bytes", -1, "column bytes has -1, expected at least 0"),
        ("memory_events", "device", -1, "column device has -1, expected at least 0"),
    ],
)
def test_an_impossible_value_in_a_file_is_named(tmp_path, table, column, value, problem):
    false = with_value(single(), table, column, value)
    path = edited(
        single().save(tmp_path / "run.gpuviz"),
        lambda members: members.update({f"{table}.arrow": stream_of(false[table])}),
    )

    with pytest.raises(FormatError, match=problem) as caught:
        load(path)
    assert (caught.value.path, caught.value.member) == (str(path), f"{table}.arrow")


def test_of_an_object_that_is_described_twice_the_last_row_is_taken():
    pools = single().tables["pools"]
    again = pa.Table.from_pylist([pools.to_pylist()[1] | {"owner": 77}], pools.schema)
    recording = Recording(
        {**single().tables, "pools": pa.concat_tables([pools, again])}, single().manifest
    )

    assert recording.tables["pools"]["id"].to_pylist() == pools["id"].to_pylist()
    assert recording.tables["pools"]["owner"].to_pylist()[1] == 77


def test_a_request_may_be_of_any_size():
    tables = with_value(single(), "memory_events", "action", "oom", row=9)
    for column in ("size", "requested_size"):
        tables = with_value(Recording(tables, Manifest()), "memory_events", column, 2**63 - 1, 9)

    failed = Recording(tables, single().manifest).out_of_memory()
    assert [each.requested for each in failed] == [2**63 - 1]


def test_sizes_that_are_too_much_together_are_refused_but_not_requests():
    sizes = [2**61, 2**61]
    false = [with_value(single(), "memory_events", "size", size, row=5) for size in sizes]
    tables = with_value(Recording(false[0], Manifest()), "memory_events", "size", sizes[1], row=6)
    requests = pa.array(["oom"] * 7 + single().tables["memory_events"]["action"].to_pylist()[7:])
    field = schemas()["memory_events"].field("action")
    events = tables["memory_events"].set_column(
        1, field, requests.dictionary_encode().cast(field.type)
    )

    with pytest.raises(NonconformingTableError, match=r"column size has 4\.61e\+18 bytes in all"):
        Recording(tables, Manifest())
    assert Recording({**tables, "memory_events": events}, Manifest()).tables["memory_events"]


@pytest.mark.parametrize(
    ("column", "value", "problem"),
    [
        ("devices", [], "process 1 has another number of devices than of ordinals"),
        ("devices", [1], "device 1 belongs to processes 1 and 2"),
        ("last_correlation", 2**32 - 1, "processes 1 and 2 share the correlation id"),
    ],
)
def test_processes_that_are_not_apart_are_refused(column, value, problem):
    tables = with_value(merged(), "processes", column, value)

    with pytest.raises(NonconformingTableError, match=problem):
        Recording(tables, merged().manifest)


def test_a_device_of_no_process_is_refused():
    tables = {**merged().tables, "processes": merged().tables["processes"].slice(0, 1)}

    with pytest.raises(NonconformingTableError, match="device 1 of devices belongs to no process"):
        Recording(tables, merged().manifest)


@pytest.mark.parametrize("analyse", [Recording.what_if, gpuviz.replay])
def test_an_analysis_that_lacks_a_stream_names_file_and_table(tmp_path, analyse):
    events = single().tables["memory_events"]
    tables = {**single().tables, "streams": single().tables["streams"].slice(0, 1)}
    path = Recording(tables, single().manifest).save(tmp_path / "run.gpuviz")

    with pytest.raises(FormatError, match=f"^{path}: table streams: no row for stream") as caught:
        analyse(load(path))
    assert len(events["stream"].unique()) > 1
    assert caught.value.path == str(path)


def test_an_unknown_library_is_unknown():
    words = pa.array(["tensorflow"] * single().tables["memory_events"].num_rows)
    field = schemas()["memory_events"].field("framework")
    events = (
        single()
        .tables["memory_events"]
        .set_column(
            single().tables["memory_events"].schema.get_field_index("framework"),
            field,
            words.dictionary_encode().cast(field.type),
        )
    )
    recording = Recording({**single().tables, "memory_events": events}, single().manifest)

    assert set(recording.tables["memory_events"]["framework"].to_pylist()) == {""}
    assert recording.window(0, recording.duration_ns // 2).tables["memory_events"].num_rows


def peak_of(work):
    """Return the most bytes that work took of Python's and NumPy's memory, and its result."""
    tracemalloc.start()
    try:
        found = work()
        return tracemalloc.get_traced_memory()[1], found
    finally:
        tracemalloc.stop()


def test_a_communicator_of_two_billion_ranks_costs_no_memory():
    recording = rank(0, 2**31 - 1, [MS], [2 * MS])

    used, rows = peak_of(lambda: recording.collectives().to_pylist())

    assert used < MOST_BYTES
    assert [(row["recorded"], row["missing"]) for row in rows] == [([0], 2**31 - 2)]


def test_the_highest_id_costs_no_memory():
    recording = load(RECORDINGS / "image_pipeline.gpuviz")
    columns = [
        ("stacks", "id"),
        *((name, column) for name, column, of in REFERENCES if of == "stacks"),
    ]
    highest = max(recording.tables["stacks"]["id"].to_pylist())
    tables = dict(recording.tables)
    for name, column in columns:
        ids = tables[name][column].to_pylist()
        numbers = pa.array([2**32 - 1 if each == highest else each for each in ids], pa.uint32())
        place = tables[name].schema.get_field_index(column)
        tables[name] = tables[name].set_column(place, tables[name].schema.field(column), numbers)

    used, found = peak_of(lambda: Recording(tables, recording.manifest).iterations())

    assert used < MOST_BYTES
    assert found.num_rows == recording.iterations().num_rows > 1


def test_the_library_of_a_pool_with_the_highest_id_is_found_without_memory():
    events = single().tables["memory_events"]
    pools = pa.array([2**32 - 1] * events.num_rows, pa.uint32())
    events = events.set_column(
        events.schema.get_field_index("pool"), events.schema.field("pool"), pools
    ).drop_columns(["framework"])
    row = single().tables["pools"].to_pylist()[0] | {"id": 2**32 - 1, "framework": "torch"}
    pool = pa.Table.from_pylist([row], schemas()["pools"])
    tables = {**single().tables, "memory_events": events, "pools": pool}

    used, recording = peak_of(lambda: Recording(tables, Manifest()))

    assert used < MOST_BYTES
    assert set(recording.tables["memory_events"]["framework"].to_pylist()) == {"torch"}


def test_the_time_of_a_request_is_bounded_too():
    tables = with_value(single(), "memory_events", "action", "oom", row=9)
    tables = with_value(Recording(tables, Manifest()), "memory_events", "time", 2**62, row=9)

    with pytest.raises(NonconformingTableError, match="column time has 4611686018427387904"):
        Recording(tables, Manifest())


@pytest.mark.parametrize("table", ["activities", "api_calls", "synchronizations"])
def test_a_row_with_the_call_of_another_process_belongs_to_one(table, tmp_path):
    calls = merged().tables[table]["correlation"].to_pylist()
    tables = with_value(merged(), table, "correlation", calls[-1], row=0)
    recording = Recording(tables, merged().manifest)

    rows = [each.rows[table].tolist() for each in recording.processes]
    assert sorted(rows[0] + rows[1]) == list(range(len(calls)))
    assert recording.report(tmp_path / "run.html").stat().st_size


def test_an_unknown_action_is_refused_by_the_export_that_has_no_word_for_it(tmp_path):
    tables = with_value(single(), "memory_events", "action", "newer", row=9)
    recording = Recording(tables, single().manifest)

    with pytest.raises(FormatError, match="table memory_events: an action that this version"):
        recording.export(tmp_path / "run.pickle", "torch_snapshot")
    assert recording.sites().num_rows == single().sites().num_rows
