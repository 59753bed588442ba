"""Exceptions of libraries about damaged bytes, as the `FormatError` that names the member."""

import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from struct import error as struct_error

import pyarrow as pa

from gpuviz.data.validation import NonconformingTableError
from gpuviz.errors import FormatError
from gpuviz.formats.arrow_stream import TABLE_SUFFIX

_DAMAGE = (
    zipfile.BadZipFile,
    zipfile.LargeZipFile,
    zlib.error,
    struct_error,
    EOFError,
    NotImplementedError,
    RuntimeError,
    UnicodeError,
    ValueError,
    TypeError,
    OverflowError,
    KeyError,
    IndexError,
)


@contextmanager
def naming(path: str, member: str) -> Iterator[None]:
    """Turn a library's exception for damaged bytes into a FormatError that names the member.

    Disk errors and out of memory pass through, because the bytes may be intact.
    """
    try:
        yield
    except (FormatError, MemoryError):
        raise
    except (*_DAMAGE, OSError, pa.ArrowException) as error:
        # Arrow raises OSError without an errno for damaged bytes.
        if isinstance(error, OSError) and error.errno is not None:
            raise
        summary = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise FormatError(path, member, f"damaged ({summary})") from None


@contextmanager
def naming_table(path: str) -> Iterator[None]:
    """Turn the error of an invalid table into a FormatError that names its member."""
    try:
        yield
    except NonconformingTableError as error:
        raise FormatError(path, error.table + TABLE_SUFFIX, error.problem) from None
