"""Whether tables are those of a recording."""

from typing import TYPE_CHECKING

from gpuviz.tables import schemas

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa


class NonconformingTableError(ValueError):
    """A table lacks a column, or has another type or value than expected."""

    def __init__(self, table: str, problem: str) -> None:
        super().__init__(table, problem)
        self.table = table
        self.problem = problem

    def __str__(self) -> str:
        return f"table {self.table}: {self.problem}"


def conform(tables: "Mapping[str, pa.Table]") -> "dict[str, pa.Table]":
    """Return the tables with exactly the expected types, absent ones empty, unknown ones kept.

    Text may come as any of Arrow's text types, with or without dictionary. Columns that are not
    expected stay, after the expected ones.

    Raises:
        NonconformingTableError: A column is missing, has another type, or has nulls.
    """
    conforming = {
        name: _conforming_table(name, tables[name], schema) if name in tables else _empty(schema)
        for name, schema in schemas().items()
    }
    return conforming | {name: table for name, table in tables.items() if name not in conforming}


def check_references(tables: "Mapping[str, pa.Table]") -> None:
    """Check that every stack and frame that is named exists, and that no size is negative.

    Raises:
        NonconformingTableError: The first that does not; the text has the value.
    """
    import pyarrow.compute as pc

    events = tables["memory_events"]
    for column in ("size", "requested_size", "device"):
        smallest = pc.min(events[column]).as_py()
        if smallest is not None and smallest < 0:
            problem = f"column {column} has {smallest}, expected at least 0"
            raise NonconformingTableError("memory_events", problem)
    _check_ids("memory_events", "stack", events["stack"], "stacks", tables["stacks"]["id"])
    frames = pc.list_flatten(tables["stacks"]["frames"])
    _check_ids("stacks", "frames", frames, "frames", tables["frames"]["id"])


def without_unknown_stacks(tables: "Mapping[str, pa.Table]") -> "dict[str, pa.Table]":
    """Return the tables with 0 in place of stacks that are not in ``stacks``."""
    import pyarrow as pa
    import pyarrow.compute as pc

    events = tables["memory_events"]
    known = pc.is_in(events["stack"], value_set=tables["stacks"]["id"].combine_chunks())
    stacks = pc.if_else(known, events["stack"], pa.scalar(0, pa.uint32()))
    position = events.schema.get_field_index("stack")
    return dict(tables) | {"memory_events": events.set_column(position, "stack", stacks)}


def _check_ids(
    table: str,
    column: str,
    used: "pa.ChunkedArray",
    target: str,
    known: "pa.ChunkedArray",
) -> None:
    import pyarrow as pa
    import pyarrow.compute as pc

    distinct = pc.unique(used)
    known_or_none = pa.concat_arrays([*known.chunks, pa.array([0], pa.uint32())])
    unknown = distinct.filter(pc.invert(pc.is_in(distinct, value_set=known_or_none)))
    if len(unknown):
        problem = f"column {column} has id {unknown[0].as_py()}, which {target} does not have"
        raise NonconformingTableError(table, problem)


def _empty(schema: "pa.Schema") -> "pa.Table":
    return schema.empty_table()


def _conforming_table(name: str, table: "pa.Table", schema: "pa.Schema") -> "pa.Table":
    import pyarrow as pa

    columns = {}
    for field in schema:
        positions = table.schema.get_all_field_indices(field.name)
        if len(positions) != 1:
            problem = f"expected one column {field.name}, found {len(positions)}"
            raise NonconformingTableError(name, problem)
        column = table.column(positions[0])
        columns[field.name] = _conforming_column(name, field, column)
        if _has_nulls(columns[field.name]):
            problem = f"column {field.name} has nulls, expected a value in every row"
            raise NonconformingTableError(name, problem)
    known = pa.table(columns, schema=schema)
    for position, field in enumerate(table.schema):
        if field.name not in columns:
            known = known.append_column(field, table.column(position))
    return known


def _conforming_column(
    name: str,
    field: "pa.Field",
    column: "pa.ChunkedArray",
) -> "pa.ChunkedArray":
    import pyarrow as pa

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


def _has_nulls(column: "pa.ChunkedArray") -> bool:
    import pyarrow as pa

    if column.null_count or not pa.types.is_dictionary(column.type):
        return bool(column.null_count)
    return any(chunk.dictionary.null_count for chunk in column.chunks)


def _is_text(kind: "pa.DataType") -> bool:
    import pyarrow as pa

    value = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_string(value) or pa.types.is_large_string(value))
