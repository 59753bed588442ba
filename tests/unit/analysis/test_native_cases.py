"""The cases for TypeScript equal the native code's current results."""

from tests.unit.recording.native_cases import FILE, as_text


def test_the_cases_that_typescript_reads_are_those_of_the_native_code():
    """Update them with ``python -m tests.unit.recording.native_cases``."""
    assert FILE.read_text(encoding="utf-8") == as_text()
