"""Closing of widgets with all their parts."""

from collections.abc import Iterator

from ipywidgets import Widget


class ClosedByRequest:
    """A widget, as its first base, that deletion does not close.

    ipywidgets keeps every open widget alive, so only the end of the interpreter deletes one. Its
    other threads no longer run then, and closing would wait for them forever.
    """

    def __del__(self) -> None:
        """Replace the finalizer of `ipywidgets.Widget`, which calls ``close``."""


def close_parts(widget: Widget) -> None:
    """Close the children of a widget, and the layout and style of each.

    ipywidgets keeps a reference to every open widget, and thereby to the owners of its callbacks.
    """
    for part in list(_parts(widget)):
        part.close()


def _parts(widget: Widget) -> Iterator[Widget]:
    for name in ("layout", "style"):
        part = getattr(widget, name, None)
        if isinstance(part, Widget):
            yield part
    for child in getattr(widget, "children", ()):
        yield from _parts(child)
        yield child
