"""The cases that TypeScript is held to are what the native code computes today."""

from tests.unit.recording.native_cases import FILE, as_text


def test_the_cases_that_typescript_reads_are_those_of_the_native_code():
    """Write them again with ``python -m tests.unit.recording.native_cases``."""
    assert FILE.read_text(encoding="utf-8") == as_text()
