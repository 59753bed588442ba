"""Queries of a recording's tables for tests."""


def texts(recording):
    return {0: ""} | {row["id"]: row["text"] for row in recording.table("strings").to_pylist()}


def named(recording, table):
    """Return the rows of a table with names for their ids."""
    names = texts(recording)
    return [row | {"name": names[row["name"]]} for row in recording.table(table).to_pylist()]


def activities(recording, kind=None):
    rows = [row for row in named(recording, "activities") if kind in {None, row["kind"]}]
    return sorted(rows, key=lambda row: (row["time"], row["end"]))


def kernels(recording):
    """Return the activities of kernels by name; the names must differ."""
    rows = activities(recording, "kernel")
    by_name = {row["name"]: row for row in rows}
    assert len(by_name) == len(rows)
    return by_name


def calls(recording, name):
    return [row for row in named(recording, "api_calls") if row["name"] == name]


def overlap_ns(rows, others):
    """Return the total overlap of pairs of rows from both sides, in ns."""
    return sum(
        max(0, min(a["end"], b["end"]) - max(a["time"], b["time"])) for a in rows for b in others
    )
