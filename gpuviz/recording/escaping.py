"""Escaping of text that cannot be encoded."""


def as_unicode(text: str) -> str:
    """Return a text with what no file can hold, such as a name's bytes outside UTF-8, escaped."""
    return text.encode(errors="backslashreplace").decode()
