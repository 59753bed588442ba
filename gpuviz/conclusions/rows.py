"""Conclusions as rows of the table that files keep of them."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import pyarrow as pa

from gpuviz.advice.evidence import Evidence, Line
from gpuviz.advice.finding import Finding
from gpuviz.data.conclusions import schemas

# What a damaged recording leads to may be larger.
_MOST = 2**63 - 1


def table_of(found: Sequence[Finding]) -> pa.Table:
    """Return conclusions as a table."""
    return pa.Table.from_pylist(list(map(_row, found)), schemas()["conclusions"])


def _row(finding: Finding) -> dict[str, Any]:
    row = {name: getattr(finding, name) for name in schemas()["conclusions"].names}
    row |= {name: min(row[name], _MOST) for name in row if isinstance(row[name], int)}
    row["lines"] = list(map(asdict, finding.lines))
    row["evidence"] = [
        {
            "table": each.table,
            "rows": list(each.rows),
            "begin": each.window[0],
            "end": min(each.window[1], _MOST),
        }
        for each in (finding.evidence,)
        if each is not None
    ]
    return row


def finding_of(row: dict[str, Any]) -> Finding:
    """Return the conclusion in a row."""
    evidence = [
        Evidence(each["table"], tuple(each["rows"]), (each["begin"], each["end"]))
        for each in row["evidence"]
    ]
    changed = {
        "lines": tuple(Line(**line) for line in row["lines"]),
        "evidence": evidence[0] if evidence else None,
    }
    return Finding(**(row | changed))
