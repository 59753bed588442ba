"""Invalid tables are rejected with the name of the table."""

from functools import cache

import numpy as np
import pyarrow as pa
import pytest

from gpuviz.data.manifest import Manifest
from gpuviz.data.tables import ACTIONS, DEFAULTS, DICTIONARIES, IMPLIED, REVISED, schemas
from gpuviz.data.validation import NonconformingTableError
from gpuviz.errors import FormatError
from gpuviz.formats.gpuviz import read_known
from gpuviz.formats.load_limit import LoadLimit
from gpuviz.recording import Recording, load
from tests.unit.recording.from_events import one_line_stacks, rows_table

ROW = {"action": "alloc", "address": 512, "size": 512, "requested_size": 500, "stack": 3}
COLUMNS = [(name, field.name) for name, schema in schemas().items() for field in schema]
REQUIRED = [column for column in COLUMNS if column not in (*DEFAULTS, *IMPLIED)]


def tables():
    """Return one row in every table, in which every id refers to a row."""
    return dict(_tables())


@cache
def _tables():
    rows = {
        name: pa.Table.from_pylist([_example(name, schema)], schema)
        for name, schema in schemas().items()
    }
    return rows | {"memory_events": rows_table([ROW]), **one_line_stacks([3])}


def _example(name, schema):
    values = {"time": 1, "end": 2, "device": 0, "handle": 0, "frames": [1], "stack": 3}
    values |= {"devices": [0, 1], "ordinals": [0, 1]}
    return {
        field.name: values[field.name]
        if field.name in values
        else DICTIONARIES[name, field.name][0]
        if (name, field.name) in DICTIONARIES
        else "text"
        if pa.types.is_string(getattr(field.type, "value_type", field.type))
        else [0]
        if pa.types.is_list(field.type)
        else 1
        for field in schema
    }


def test_every_table_is_held_against_its_schema():
    assert {
        name: table.schema for name, table in Recording(tables(), Manifest()).tables.items()
    } == schemas()


@pytest.mark.parametrize(("table", "column"), REQUIRED, ids=".".join)
@pytest.mark.parametrize("change", ["missing", "twice", "of another type", "null"])
def test_a_column_that_is_not_as_expected_is_named(table, column, change):
    made = tables()
    position = made[table].schema.get_field_index(column)
    other = pa.array([None], schemas()[table].field(column).type)
    changed = {
        "missing": lambda t: t.drop_columns([column]),
        "twice": lambda t: t.append_column(column, t.column(position)),
        "of another type": lambda t: t.set_column(position, column, pa.array([1.5])),
        "null": lambda t: t.set_column(position, column, other),
    }[change](made[table])

    with pytest.raises(NonconformingTableError, match=f"table {table}: .*{column}"):
        Recording(made | {table: changed}, Manifest())


@pytest.mark.parametrize("name", sorted({table for table, _ in DEFAULTS}))
@pytest.mark.parametrize("is_absent", [True, False])
def test_columns_that_came_later_are_filled(name, is_absent):
    made = tables()
    later = {column: value for (table, column), value in DEFAULTS.items() if table == name}
    older = made[name].drop_columns(list(later))
    if not is_absent:
        for column in later:
            older = older.append_column(column, pa.nulls(1, schemas()[name].field(column).type))

    filled = Recording(made | {name: older}, Manifest()).tables[name]

    assert filled.schema == schemas()[name]
    assert filled.select(list(later)).to_pylist() == [later]


def test_a_column_that_came_later_has_a_value_in_every_row_or_in_none():
    made = tables()
    rows = [{"id": 1, "owner": 0, "segment_type": "large"}] * 2
    pools = pa.Table.from_pylist([rows[0] | {"memory": "pinned"}, rows[1]], schemas()["pools"])

    with pytest.raises(NonconformingTableError, match="column memory has nulls"):
        Recording(made | {"pools": pools}, Manifest())


@pytest.mark.parametrize("table", REVISED)
def test_the_last_row_of_an_id_holds(table):
    made = tables()
    again = pa.concat_tables([made[table], made[table]])
    position = again.schema.get_field_index("device" if table == "streams" else "end")
    name = again.schema.names[position]
    again = again.set_column(position, name, pa.array([5, 7], again.schema.types[position]))

    assert Recording(made | {table: again}, Manifest()).tables[table][name].to_pylist() == [7]


@pytest.mark.parametrize(
    "names",
    [
        pa.array(["alloc"]),
        pa.array(["alloc"], pa.large_utf8()),
        pa.array(["alloc"]).dictionary_encode(),
        pa.DictionaryArray.from_arrays(pa.array([1], pa.int8()), pa.array(["oom", "alloc"])),
    ],
    ids=["text", "large text", "another index", "another order"],
)
def test_actions_may_come_in_any_form_of_text(names):
    made = tables()
    events = made["memory_events"].set_column(1, "action", names)

    recording = Recording(made | {"memory_events": events}, Manifest())

    assert recording.memory_stats()["allocation.all.current"] == 1


def test_more_actions_than_their_type_can_count_are_refused():
    made = tables()
    rows = pa.concat_tables([made["memory_events"]] * 300)
    events = rows.set_column(1, "action", pa.array([f"action {n}" for n in range(300)]))

    with pytest.raises(NonconformingTableError, match="memory_events: column action"):
        Recording(made | {"memory_events": events}, Manifest())


def test_text_that_is_null_behind_its_index_is_refused():
    made = tables()
    names = pa.DictionaryArray.from_arrays(pa.array([0], pa.int32()), pa.array([None], pa.utf8()))
    frames = made["frames"].set_column(1, "name", names)

    with pytest.raises(NonconformingTableError, match="frames: column name has nulls"):
        Recording(made | {"frames": frames}, Manifest())


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"stack": 4}, "column stack has id 4, which stacks does not have"),
        ({"size": -1}, "column size has -1, expected at least 0"),
        ({"requested_size": -5}, "column requested_size has -5, expected at least 0"),
        ({"device": -1}, "column device has -1, expected at least 0"),
    ],
)
def test_values_out_of_range_are_named(change, problem):
    with pytest.raises(NonconformingTableError, match=problem):
        Recording(tables() | {"memory_events": rows_table([ROW | change])}, Manifest())


def test_a_stack_of_unknown_frames_is_refused():
    stacks = pa.Table.from_pylist([{"id": 3, "frames": [3, 9]}], schema=schemas()["stacks"])

    with pytest.raises(NonconformingTableError, match="frames has id 9, which frames does not"):
        Recording(tables() | {"stacks": stacks}, Manifest())


@pytest.mark.parametrize("first", [7, 2**31])
def test_only_the_frames_of_a_tables_own_rows_are_checked(first):
    schema = schemas()
    ids = [first, first + 1]
    frame = dict.fromkeys(("name", "filename", "source"), "") | dict.fromkeys(("line", "cell"), 0)
    frames = [frame | {"id": each, "installed": 0} for each in ids]
    rows = [
        {"id": 1, "frames": [999], "user_frame": 999},
        {"id": 3, "frames": ids, "user_frame": ids[0]},
        {"id": 4, "frames": [999, 0], "user_frame": 999},
    ]
    stacks = pa.Table.from_pylist(rows, schema["stacks"])
    made = tables() | {"frames": pa.Table.from_pylist(frames, schema["frames"])}

    part = Recording(made | {"stacks": stacks.slice(1, 1)}, Manifest())

    assert part.table("stacks")["frames"].to_pylist() == [ids]
    with pytest.raises(NonconformingTableError, match="column frames has id 999, which frames"):
        Recording(made | {"stacks": stacks.slice(1)}, Manifest())


def test_a_frame_that_is_null_is_refused():
    row = {"id": 3, "frames": [None], "user_frame": 0}
    stacks = pa.Table.from_pylist([row], schema=schemas()["stacks"])

    with pytest.raises(NonconformingTableError, match="column frames has id None, which frames"):
        Recording(tables() | {"stacks": stacks}, Manifest())


def test_columns_of_newer_versions_survive_a_round_trip_and_tables_are_noted(tmp_path):
    made = tables()
    threads = made["threads"].append_column("priority", pa.array([7]))
    added = {"threads": threads, "kernels": pa.table({"name": ["add"]})}

    path = Recording(made | added, Manifest(extra={"theme": "dark"})).save(tmp_path / "a.gpuviz")
    again = load(load(path).save(tmp_path / "b.gpuviz"))

    assert again.tables["threads"] == threads
    assert "kernels" not in again.tables
    assert again.notes == (
        "The file has tables that this version of gpuviz does not read: 'kernels'.",
    )
    assert again.manifest.extra == {"theme": "dark"}


def test_an_index_outside_its_dictionary_is_refused_when_read(tmp_path):
    events = rows_table([ROW])
    codes = pa.array(np.array([len(ACTIONS)], np.int8))
    wrong = pa.DictionaryArray.from_arrays(codes, pa.array(ACTIONS), safe=False)
    sink = pa.BufferOutputStream()
    table = events.set_column(1, "action", wrong)
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)

    with pytest.raises(ValueError, match="out of bounds"):
        read_known(sink.getvalue().to_pybytes(), "memory_events", LoadLimit(tmp_path))


def test_no_such_table_lists_those_there_are():
    with pytest.raises(KeyError, match=r"no table 'blocks'.*device_memory.*memory_levels"):
        Recording({}, Manifest()).table("blocks")


def test_a_nonconforming_table_in_a_file_names_its_member(tmp_path, monkeypatch):
    path = Recording(tables(), Manifest()).save(tmp_path / "a.gpuviz")
    monkeypatch.setattr("gpuviz.formats.gpuviz.read_known", lambda *_: pa.table({"time": []}))

    with pytest.raises(FormatError) as caught:
        load(path)

    assert caught.value.member.endswith(".arrow")
