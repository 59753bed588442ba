"""Units of columns in the metadata of their Arrow schema."""

import pyarrow as pa

from gpuviz.data.tables import schemas

UNIT = b"unit"
_NS = {
    *("time", "start", "begin", "end", "created", "destroyed", "wall", "boot", "uncertainty"),
    "clock_error",
}
_BYTES = {
    *("size", "requested_size", "bytes", "used", "total_memory", "libraries", "rest"),
    *("static_shared_memory", "dynamic_shared_memory", "added", "largest", "largest_free"),
    *("peak_allocated", "peak_reserved", "peak_reserved_lower"),
    *("requested", "allocated", "active", "reserved", "inactive_split"),
}
_ABOUT = (
    "A table of a gpuviz recording. Times are nanoseconds since the recording's start, sizes are "
    "bytes. Ids start at 1 and name a row of another table, 0 is none; devices are ordinals."
)


def described(name: str, table: pa.Table) -> pa.Table:
    """Return a table with one chunk per column and units in the schema's metadata."""
    known = schemas().get(name)
    fields = [
        field.with_metadata({UNIT: unit_of(field.name)})
        if known is not None and field.name in known.names and unit_of(field.name)
        else field
        for field in table.schema
    ]
    table = table.unify_dictionaries().combine_chunks()
    metadata = {**(table.schema.metadata or {}), b"about": _ABOUT.encode()}
    return table.cast(_schema(fields, metadata))


def plain_schema(table: pa.Table) -> pa.Table:
    """Return a table with one chunk per column, without the metadata that `described` added."""
    fields = []
    for field in table.schema:
        metadata = {key: text for key, text in (field.metadata or {}).items() if key != UNIT}
        fields.append(field.with_metadata(metadata) if metadata else field.remove_metadata())
    kept = {key: text for key, text in (table.schema.metadata or {}).items() if key != b"about"}
    plain = table.cast(_schema(fields, kept))
    return plain.unify_dictionaries().combine_chunks()


def _schema(fields: list[pa.Field], metadata: dict[bytes, bytes]) -> pa.Schema:
    return pa.schema(fields, metadata or None)


def unit_of(column: str) -> bytes:
    """Return the unit of a column of a table or of a result: ``ns``, ``bytes`` or none."""
    if column in _NS or column.endswith(("_ns", "_time")):
        return b"ns"
    return b"bytes" if column in _BYTES or column.endswith("_bytes") else b""
