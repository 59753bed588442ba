"""A number at the head of a page, and what the numbers of each name count."""

from dataclasses import dataclass

DEFINITIONS = {
    "Peak": "The most bytes allocated at once, as rounded by the allocator",
    "Reserved": "The most bytes that the allocator held from CUDA at once, and how many of them no "
    "block used at the peak",
    "GPU busy": "Share of the time in which at least one kernel, copy, memset or graph ran",
    "GPU idle": "Time between activities in which nothing ran on the GPU",
    "Copies hidden": "Share of the time of copies from or to the host in which a kernel ran, too",
    "Host blocked": "Time in which a call made the host wait for the GPU",
    "Iterations": "How often the program repeats itself, and the median duration",
    "Out of memory": "Allocations that failed",
    "Dropped": "Events that were not recorded because a buffer was full",
}


@dataclass(frozen=True, slots=True)
class Number:
    """A headline number: name, value and explanation, and where a page shows more.

    Attributes:
        name: What it is.
        value: Its value with the unit.
        detail: What it refers to.
        window: The time to show, in ns.
        tab: The table to show.
    """

    name: str
    value: str
    detail: str = ""
    window: tuple[int, int] | None = None
    tab: str = ""

    @property
    def definition(self) -> str:
        """What it counts; empty if its name says that."""
        return DEFINITIONS.get(self.name, "")

    def __str__(self) -> str:
        return " ".join(filter(None, (self.name, self.value, self.detail)))
