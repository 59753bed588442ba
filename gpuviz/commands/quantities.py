"""Times and sizes among the options of commands."""

from gpuviz.errors import GpuvizError
from gpuviz.quantities import parse_bytes, parse_quantity

_UNITS_NS = {"ns": 1, "us": 10**3, "µs": 10**3, "ms": 10**6, "s": 10**9, "min": 60 * 10**9}


def parse_range(text: str) -> tuple[int, int]:
    """Return a range such as ``1.5s:200ms`` in ns; a number without a unit is in seconds.

    Raises:
        GpuvizError: It is not a range, or ends before it starts.
    """
    start, colon, end = text.partition(":")
    bounds = (parse_quantity(start, _UNITS_NS, "s"), parse_quantity(end, _UNITS_NS, "s"))
    if not colon or bounds[0] is None or bounds[1] is None:
        raise GpuvizError(
            f"--range {text} is not START:END: two times since the start of the recording, in "
            "seconds or with a unit, as in 1.5:2 or 350ms:0.4s.",
        )
    if bounds[0] >= bounds[1]:
        raise GpuvizError(f"--range {text} ends before it starts.")
    return bounds[0], bounds[1]


def parse_size(text: str, option: str = "--max-size") -> int:
    """Return a size such as ``20MB`` or ``1.5GiB`` in bytes; a number without a unit is in bytes.

    Raises:
        GpuvizError: It is not a size of at least one byte.
    """
    size = parse_bytes(text)
    if not size:
        raise GpuvizError(f"{option} {text} is not a size, as in 5000000, 20MB or 1.5GiB.")
    return size
