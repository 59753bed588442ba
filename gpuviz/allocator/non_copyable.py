"""Base class of owners of native resources."""

from typing import NoReturn


class NonCopyable:
    """An owner of a native resource; copying or pickling it raises TypeError.

    A copy would release the same resource a second time.
    """

    __slots__ = ()

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            f"a {type(self).__name__} cannot be copied or pickled: it owns a native resource, "
            "which is released once"
        )
