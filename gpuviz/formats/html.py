"""The recording embedded in an HTML report."""

import base64
import binascii
import re
from pathlib import Path

from gpuviz.data.recording_data import RecordingData
from gpuviz.errors import FormatError
from gpuviz.formats import gpuviz
from gpuviz.formats.load_limit import LoadLimit

SCRIPT_ID = "gpuviz-recording"
# Of the script before it that has the archive's last bytes, in pages of this version.
END_ID = "gpuviz-recording-end"

_HTML_START = re.compile(rb"\s*<(!doctype\s+html|html|!--|head|body|script)\b", re.IGNORECASE)


def is_page(start: bytes) -> bool:
    """Return whether the first bytes of a file are those of an HTML page."""
    return _HTML_START.match(start.removeprefix(b"\xef\xbb\xbf")) is not None


def read(path: Path, *, limit: LoadLimit | None = None) -> RecordingData:
    """Return the recording that an HTML report embeds.

    Raises:
        FormatError: The page embeds no recording, or the recording is damaged or too large.
    """
    page = path.read_bytes()
    text = _script(page, SCRIPT_ID, path)
    if text is None:
        raise FormatError(
            str(path), "", "the page has no recording: it is truncated, or not a gpuviz report"
        )
    text += _script(page, END_ID, path) or b""
    try:
        content = base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise FormatError(str(path), SCRIPT_ID, f"damaged (not base64: {error})") from None
    return gpuviz.read_archive(content, f"{path}: {SCRIPT_ID}", limit or LoadLimit(path))


def _script(page: bytes, name: str, path: Path) -> bytes | None:
    """Return the text of a script without whitespace; None if the page has none of this id."""
    opening = re.search(rb'<script\b[^>]*\bid="%s"[^>]*>' % name.encode(), page)
    if opening is None:
        return None
    end = page.find(b"</script>", opening.end())
    if end < 0:
        raise FormatError(str(path), name, "truncated; the script does not end")
    return page[opening.end() : end].translate(None, b" \t\r\n")
