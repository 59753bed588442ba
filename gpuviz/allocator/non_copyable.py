"""Objects that give back something native when they go."""

from typing import NoReturn


class SoleOwner:
    """An object that no second one may stand for: a copy would give the same back again."""

    __slots__ = ()

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            f"a {type(self).__name__} cannot be copied or pickled: what it stands for is given "
            "back once, when it goes",
        )
