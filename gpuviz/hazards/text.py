"""What hazards are called."""

from typing import TYPE_CHECKING

from gpuviz.quantities import format_bytes, format_counted

if TYPE_CHECKING:
    from gpuviz.hazards.hazard import Hazard, HazardOperation

NOTHING_FOUND = "No unordered operations on the same memory were found."
_TITLES = {
    "RAW": "read without waiting for the write",
    "WAR": "overwritten without waiting for the read",
    "WAW": "written twice without an order",
    "reuse": "memory reused while it may still be in use",
    "use_after_free": "memory freed while it may still be in use",
    "use_before_alloc": "memory used before its allocation",
}


_TITLES_OF_PINNED = {
    "reuse": "pinned memory handed out again while a copy may still use it",
    "use_after_free": "pinned memory freed while a copy may still use it",
}
_TITLES_OF_GRAPHS = {
    "reuse": "memory of a graph belongs to another array",
    "use_after_free": "memory freed that a graph still uses",
}


def is_of_graph(hazard: "Hazard") -> bool:
    """Return whether a graph was launched after its memory was freed, whatever ordered the two."""
    return hazard.first.mode in {"frees", "reuses"}


_TITLES_OF_HOST = {
    "RAW": "pinned memory read by the host before the copy to it has ended",
    "WAR": "pinned memory overwritten by the host before the copy from it has ended",
    "WAW": "pinned memory written by the host while a copy to it may still write",
}


def what(hazard: "Hazard") -> str:
    """Return what happens in a hazard, in a few words."""
    if is_of_graph(hazard):
        return _TITLES_OF_GRAPHS[hazard.kind]
    if hazard.second.is_of_host:
        return _TITLES_OF_HOST[hazard.kind]
    if hazard.workspace and hazard.kind in ("RAW", "WAR", "WAW"):
        return f"{hazard.workspace} used by two streams at once"
    own = _TITLES_OF_PINNED if hazard.memory == "pinned" else {}
    return own.get(hazard.kind, _TITLES[hazard.kind])


def title(hazard: "Hazard") -> str:
    """Return what a hazard is, in one line."""
    pairs = format_counted(hazard.count, "pair", "pairs")
    seen = "showed in this run" if hazard.showed else "did not show in this run"
    if hazard.tier == "latent":
        seen = "harmful once the memory is reused"
    tier = f"{hazard.kind}, {hazard.tier}: {what(hazard)}"
    return f"{tier} ({format_bytes(hazard.bytes)}, {pairs}, {seen})"


def place(hazard: "Hazard", operation: "HazardOperation") -> str:
    """Return the line of one of the operations of a hazard, as it is called next to the other."""
    is_again = operation is hazard.second and operation.site == hazard.first.site
    is_loop = is_again and operation.activity >= 0
    return f"a later iteration of {operation.site}" if is_loop else operation.site


def done(hazard: "Hazard", operation: "HazardOperation") -> str:
    """Return what one of the operations of a hazard does, in a few words."""
    if operation.is_of_host:
        place = " before this call" if operation.is_before_site else ""
        return f"the host {operation.mode} it{place}"
    if hazard.memory == "pinned" and operation.event >= 0:
        is_free = operation.mode == "frees"
        return "the program frees it" if is_free else "the program gets it for another array"
    if operation.mode == "frees":
        return f"the program frees it, which was allocated on {operation.where}"
    return f"{operation.short_name} {operation.mode} it on {operation.where}"
