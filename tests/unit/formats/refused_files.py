"""Files that are not loaded, and do not fill the memory."""

import pytest

from gpuviz.errors import FormatError
from gpuviz.recording import load


def refused(path):
    with pytest.raises(FormatError, match=r"needs .* of memory.*raise the limit") as caught:
        load(path)
    assert str(caught.value).startswith(str(path))
    return caught.value.member
