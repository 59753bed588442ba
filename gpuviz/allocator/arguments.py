"""Checks of arguments that Python or the native core would reject without naming them."""

import operator

_LIMIT = 1 << 64


def integer(name: str, value: object, what: str = "an int") -> int:
    """Return an integer argument that the native core can represent.

    Args:
        name: Name of the argument.
        value: Its value.
        what: What it should be.

    Raises:
        TypeError: It is no integer.
        ValueError: It is negative, or 2**64 or more.
    """
    if isinstance(value, bool) or not hasattr(type(value), "__index__"):
        raise TypeError(f"{name} must be {what}, got {_shown(value)}")
    number = operator.index(value)  # type: ignore[arg-type]
    if not 0 <= number < _LIMIT:
        raise ValueError(f"{name} must be {what} from 0 to 2**64 - 1, got {_shown(number)}")
    return number


def flag(name: str, value: object) -> bool:
    """Return an argument that is True or False.

    Raises:
        TypeError: It is neither.
    """
    if not isinstance(value, bool):
        raise TypeError(f"{name} must be True or False, got {_shown(value)}")
    return value


def text(name: str, value: object) -> str:
    """Return an argument that is a str.

    Raises:
        TypeError: It is not.
        ValueError: It has lone surrogates.
    """
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a str, got {_shown(value)}")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"{name} must be valid Unicode ({error.reason})") from None
    return value


def _shown(value: object) -> str:
    kind = type(value).__name__
    return kind if value is None else f"{kind} {value!r:.40}"
