"""Escaping of text that cannot be encoded."""


def as_unicode(text: str) -> str:
    """Return a text with its lone surrogates escaped, which stand for bytes that are not UTF-8."""
    return text.encode(errors="backslashreplace").decode()
