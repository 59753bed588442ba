"""Text on terminals, which no file, name or path can make control them."""

import re
from typing import TextIO

# Control characters except line ends and tabs, characters that reorder text, other line ends, and
# surrogates, which cannot be encoded.
_CONTROLLING = re.compile(
    "[\0-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)


def printable(text: str) -> str:
    """Return a text with escapes, as in Python, for characters that control a terminal."""
    return _CONTROLLING.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def write_line(stream: TextIO | None, text: str) -> None:
    """Write a line to a stream that may be closed or missing."""
    if stream is not None and not stream.closed:
        stream.write(f"{printable(text)}\n")
        stream.flush()
