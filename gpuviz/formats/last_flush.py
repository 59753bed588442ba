"""The file ``last_flush.json``: how much of a growing recording is on disk."""

import json
import zlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

LAST_FLUSH = "last_flush.json"


@dataclass(frozen=True, slots=True)
class Written:
    """How much of one table was written.

    Attributes:
        rows: Rows in complete batches.
        length: Bytes of these batches, from the start of the file.
        crc32: The checksum of these bytes.
    """

    rows: int
    length: int
    crc32: int

    def problem(self, content: bytes) -> str:
        """Describe why a file does not start with the written bytes; empty if it does."""
        if len(content) < self.length:
            return f"damaged ({len(content)} bytes, {self.length} were written)"
        if zlib.crc32(memoryview(content)[: self.length]) != self.crc32:
            return "damaged (the checksum of what was written differs)"
        return ""


@dataclass(frozen=True, slots=True)
class LastFlush:
    """The state of the directory after its last flush; ``unix_ns`` is 0 if unknown."""

    unix_ns: int = 0
    tables: Mapping[str, Written] = field(default_factory=dict)

    def to_json(self) -> str:
        """Return the content of the file."""
        tables = {name: asdict(written) for name, written in self.tables.items()}
        return json.dumps({"unix_ns": self.unix_ns, "tables": tables})

    @classmethod
    def from_json(cls, text: str | bytes) -> "LastFlush":
        """Parse the content of the file.

        Raises:
            ValueError: The content is invalid.
        """
        try:
            values = json.loads(text)
            tables = {name: Written(**each) for name, each in values["tables"].items()}
            flush = cls(values["unix_ns"], tables)
            numbers = [flush.unix_ns]
            for each in tables.values():
                numbers += [each.rows, each.length, each.crc32]
        except (AttributeError, KeyError, TypeError, RecursionError) as error:
            raise ValueError(f"expected unix_ns and tables ({error})") from None
        if not all(type(number) is int and 0 <= number < 2**63 for number in numbers):
            raise ValueError("expected integers from 0 to 2**63")
        return flush
