"""Derived tables and conclusions in a recording's file, read on first use."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Protocol

from gpuviz.errors import FormatError

if TYPE_CHECKING:
    import pyarrow as pa


class Stored(Protocol):
    """Derived tables and conclusions that a file has; a mapping is one, too."""

    def get(self, name: str, /) -> "pa.Table | None":
        """Return a table; None if there is none."""


class StoredTables:
    """Tables that can be computed again, so one that cannot be read is as good as missing.

    Args:
        readers: Functions that read them, by name. They may raise `FormatError`.
    """

    def __init__(self, readers: "Mapping[str, Callable[[], pa.Table]]") -> None:
        self._readers = dict(readers)
        self._tables: dict[str, pa.Table | None] = {}

    def get(self, name: str, /) -> "pa.Table | None":
        """Return a table as the file has it; None if it has none that can be read."""
        reader = self._readers.get(name)
        if reader is not None:
            try:
                self._tables[name] = reader()
            except FormatError:
                self._tables[name] = None
            # The reader holds the bytes of the file.
            self._readers.pop(name, None)
        return self._tables.get(name)
