"""Validation of a recording's tables."""

import numpy as np
import pyarrow as pa

from gpuviz.data.arrays import coded, empty
from gpuviz.data.columns import codes, plain, rows_at
from gpuviz.data.implied_columns import (
    with_assigned,
    with_frameworks,
    with_host_memories,
    with_installed,
    with_named,
    with_user_frames,
)
from gpuviz.data.staged_copies import with_staged_copies
from gpuviz.data.tables import DEFAULTS, DICTIONARIES, IMPLIED, REFERENCES, REVISED, Tables, schemas
from gpuviz.errors import FormatError

# Beside `REVISED`: a file that a recorder could not finish may have rows twice.
_DESCRIBED_ONCE = (
    *("devices", "pools", "stacks", "frames", "launch_configurations", "strings", "processes"),
)
# Ids with at most this many gaps per id are looked up in an array indexed by id.
_DENSE = 4


class NonconformingTableError(FormatError):
    """A table lacks a column, or has another type or value than expected."""

    def __init__(self, table: str, problem: str) -> None:
        super().__init__("", f"table {table}", problem)
        self.args = (table, problem)
        self.table = table


def conform(tables: Tables) -> dict[str, pa.Table]:
    """Return the tables with exactly the expected types, missing ones empty, unknown ones kept.

    Of several rows with the same id in a table of objects, the last one is kept, in the position of
    the first. Text may have any of Arrow's text types, with or without dictionary. A column of
    ``DEFAULTS`` that is missing, or has only nulls, is filled; an implied column is computed. The
    halves of copies between GPUs that go through the host are marked.
    Unexpected columns are kept, after the expected ones.

    Raises:
        NonconformingTableError: A column is missing, has another type, or has nulls.
    """
    conforming = {
        name: _conforming_table(name, tables[name], schema) if name in tables else empty(schema)
        for name, schema in schemas().items()
    }
    if "installed" not in conforming["frames"].schema.names:
        conforming["frames"] = with_installed(conforming["frames"])
    if "assigned" not in conforming["frames"].schema.names:
        conforming["frames"] = with_assigned(conforming["frames"])
    if "user_frame" not in conforming["stacks"].schema.names:
        conforming["stacks"] = with_user_frames(conforming["stacks"], conforming["frames"])
    if "host_memory" not in conforming["activities"].schema.names:
        conforming["activities"] = with_host_memories(conforming["activities"])
    if "framework" not in conforming["memory_events"].schema.names:
        conforming["memory_events"] = with_frameworks(
            conforming["memory_events"], conforming["pools"]
        )
    if "named" not in conforming["streams"].schema.names:
        conforming["streams"] = with_named(conforming["streams"])
    conforming = with_staged_copies(conforming)
    return conforming | {name: table for name, table in tables.items() if name not in conforming}


def check_references(tables: Tables) -> None:
    """Check that every id refers to an existing row.

    Raises:
        NonconformingTableError: A value is invalid; the message contains the first one.
    """
    for table, column, target in REFERENCES:
        used = tables[table][column]
        if not len(used):
            continue
        if pa.types.is_list(used.type):
            used = _items(used)
        if used.null_count:
            raise _unknown_id(table, column, None, target)
        ids = plain(used)
        is_known = _is_known(ids, plain(tables[target]["id"]))
        if not is_known.all():
            raise _unknown_id(table, column, ids[np.argmin(is_known)], target)


def _is_known(ids: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Return whether each id is 0 or known."""
    if not ids.size:
        # np.isin() would import numpy.ma.
        return np.ones(0, bool)
    last = int(known.max(initial=0))
    if last > _DENSE * len(known) or ids.max(initial=0) > last:
        return np.isin(ids, np.append(known, 0))
    by_id = np.zeros(last + 1, bool)
    by_id[known] = by_id[0] = True
    found: np.ndarray = by_id[ids]
    return found


def _items(lists: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the items of all lists, which are not null."""
    parts = []
    for chunk in lists.chunks:
        ends = chunk.offsets
        first, last = (ends[0].as_py(), ends[len(chunk)].as_py()) if len(chunk) else (0, 0)
        parts.append(chunk.values.slice(first, last - first))
    return pa.chunked_array(parts, lists.type.value_type)


def _unknown_id(
    table: str, column: str, number: int | None, target: str
) -> NonconformingTableError:
    problem = f"column {column} has id {number}, which {target} does not have"
    return NonconformingTableError(table, problem)


def without_unknown_ids(tables: Tables) -> dict[str, pa.Table]:
    """Return the tables with ids that refer to no row replaced by 0, or left out of lists."""
    import pyarrow.compute as pc

    repaired = dict(tables)
    for table, column, target in REFERENCES:
        used = repaired[table][column]
        known = tables[target]["id"].combine_chunks()
        if pa.types.is_list(used.type):
            ids = _lists_of_known(used, known)
        else:
            ids = pc.if_else(pc.is_in(used, value_set=known), used, pa.scalar(0, pa.uint32()))
        position = repaired[table].schema.get_field_index(column)
        repaired[table] = repaired[table].set_column(position, column, ids)
    return repaired


def _lists_of_known(lists: pa.ChunkedArray, known: pa.Array) -> pa.ChunkedArray:
    """Return the lists without items that are not known, which may be 0."""
    import pyarrow.compute as pc

    items = _items(lists)
    is_known = pc.is_in(items, value_set=pa.concat_arrays([known, pa.array([0], known.type)]))
    if pc.all(is_known).as_py() is not False:
        return lists
    kept = np.concatenate([[0], np.cumsum(is_known.to_numpy())])
    ends = np.concatenate([[0], np.cumsum(pc.list_value_length(lists).to_numpy())])
    offsets = pa.array(kept[ends], pa.int32())
    whole = pa.ListArray.from_arrays(offsets, items.filter(is_known).combine_chunks())
    return pa.chunked_array([whole], lists.type)


def _conforming_table(name: str, table: pa.Table, schema: pa.Schema) -> pa.Table:
    if not table.num_rows and table.schema.equals(schema, check_metadata=True):
        return table
    known = _with_expected_columns(name, table, schema)
    return _last_of_each_id(known) if name in (*REVISED, *_DESCRIBED_ONCE) else known


def _with_expected_columns(name: str, table: pa.Table, schema: pa.Schema) -> pa.Table:
    is_expected = table.schema.equals(schema, check_metadata=True)
    if is_expected and not any(map(_has_nulls, table.columns)):
        return _with_known_words_in(name, table)
    columns = {}
    for field in schema:
        positions = table.schema.get_all_field_indices(field.name)
        if (name, field.name) in IMPLIED and _is_missing(table, positions):
            continue
        if (name, field.name) in DEFAULTS and _is_without_values(table, positions):
            filled = pa.array([DEFAULTS[name, field.name]] * table.num_rows, field.type)
            columns[field.name] = pa.chunked_array([filled])
            continue
        if len(positions) != 1:
            problem = f"expected one column {field.name}, found {len(positions)}"
            raise NonconformingTableError(name, problem)
        column = _conforming_column(name, field, table.column(positions[0]))
        columns[field.name] = _with_known_words(column, DICTIONARIES.get((name, field.name), ()))
        if _has_nulls(columns[field.name]):
            problem = f"column {field.name} has nulls, expected a value in every row"
            raise NonconformingTableError(name, problem)
    known = pa.table(columns, schema=pa.schema([schema.field(each) for each in columns]))
    for position, field in enumerate(table.schema):
        if field.name not in schema.names:
            known = known.append_column(field, table.column(position))
    return known


def _with_known_words_in(name: str, table: pa.Table) -> pa.Table:
    for position, field in enumerate(table.schema):
        words = DICTIONARIES.get((name, field.name))
        if words is not None:
            column = table.column(position)
            known = _with_known_words(column, words)
            table = table if known is column else table.set_column(position, field, known)
    return table


def _is_missing(table: pa.Table, positions: list[int]) -> bool:
    return not positions or (len(positions) == 1 and table.column(positions[0]).null_count > 0)


def _last_of_each_id(table: pa.Table) -> pa.Table:
    ids = plain(table["id"])
    if (ids[1:] > ids[:-1]).all():
        return table
    _, first = np.unique(ids, return_index=True)
    if len(first) == len(ids):
        return table
    _, last_from_end = np.unique(ids[::-1], return_index=True)
    return rows_at(table, len(ids) - 1 - last_from_end[np.argsort(first)])


def _conforming_column(
    name: str,
    field: pa.Field,
    column: pa.ChunkedArray,
) -> pa.ChunkedArray:
    if column.type == field.type:
        return column
    if not (_is_text(column.type) and _is_text(field.type)):
        problem = f"column {field.name} has type {column.type}, expected {field.type}"
        raise NonconformingTableError(name, problem)
    try:
        plain = column.cast(pa.utf8())
        is_dictionary = pa.types.is_dictionary(field.type)
        return plain.dictionary_encode().cast(field.type) if is_dictionary else plain
    except pa.ArrowInvalid as error:
        problem = f"column {field.name} is no {field.type} ({error})"
        raise NonconformingTableError(name, problem) from None


def _with_known_words(column: pa.ChunkedArray, words: tuple[str, ...]) -> pa.ChunkedArray:
    """Return a column with the word for unknown instead of those of newer versions, if it has one.

    Columns without such a word, as ``action``, keep theirs: rows of unknown actions have no effect.
    """
    unknown = next((word for word in ("", "unknown") if word in words), None)
    if unknown is None or all(
        set(each.dictionary.to_pylist()) <= {*words} for each in column.chunks
    ):
        return column
    found = codes(column, words).copy()
    found[found < 0] = words.index(unknown)
    return pa.chunked_array([coded(found, words)], column.type)


def _is_without_values(table: pa.Table, positions: list[int]) -> bool:
    return all(table.column(each).null_count == table.num_rows > 0 for each in positions)


def _has_nulls(column: pa.ChunkedArray) -> bool:
    if column.null_count or not pa.types.is_dictionary(column.type):
        return bool(column.null_count)
    return any(chunk.dictionary.null_count for chunk in column.chunks)


def _is_text(kind: pa.DataType) -> bool:
    value = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_string(value) or pa.types.is_large_string(value))
