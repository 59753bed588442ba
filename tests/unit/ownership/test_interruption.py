"""A search that is interrupted at any line leaves everything as it was."""

import gc
import sys
from types import ModuleType

import pytest

import gpuviz
from tests.examples import share_of

SIZE = (4 << 20) + 1536
MOST_INTERRUPTIONS = share_of(100)


class Interruption:
    """Interrupts the search of holders at its n-th line; at none if n is 0."""

    def __init__(self, line):
        self.left = line

    def trace(self, frame, event, _):
        if "/gpuviz/ownership/" not in frame.f_code.co_filename:
            return None
        if event == "line":
            self.left -= 1
            if self.left == 0:
                raise KeyboardInterrupt
        return self.trace


def searched(line):
    """Search, and return how many lines that took and whether it was interrupted."""
    interruption = Interruption(line)
    sys.settrace(interruption.trace)
    try:
        gpuviz.holders()
    except KeyboardInterrupt:
        return line, True
    finally:
        sys.settrace(None)
    return line - interruption.left, False


@pytest.fixture
def kept(monkeypatch):
    main = ModuleType("__main__")
    monkeypatch.setitem(sys.modules, "__main__", main)
    main.kept = [gpuviz.SimulatedGPU(real_time=False).empty(SIZE)]
    return main.kept


def test_a_search_can_be_interrupted_at_any_line(kept):
    before = sys.getrefcount(kept), sys.getrefcount(kept[0])
    lines, _ = searched(0)
    # The first lines, which change the state of the process, and some of all others.
    chosen = [*range(1, 20), *range(20, lines // 2, lines // MOST_INTERRUPTIONS)]

    for line in chosen:
        assert searched(line) == (line, True)
        assert gc.isenabled()

    assert (sys.getrefcount(kept), sys.getrefcount(kept[0])) == before
    (block,) = (each for each in gpuviz.holders().blocks if each.size == SIZE)
    assert "kept[0]" in {holder.path for holder in block.holders}


def test_the_traceback_of_an_interrupted_search_keeps_nothing(kept, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    # When everything has been found. Tracing, as above, would itself keep what the frames hold.
    monkeypatch.setattr("gpuviz.ownership.paths.PathNames.text", interrupt)
    before = sys.getrefcount(kept), sys.getrefcount(kept[0])

    with pytest.raises(KeyboardInterrupt) as caught:
        gpuviz.holders()

    assert (sys.getrefcount(kept), sys.getrefcount(kept[0])) == before
    assert caught.traceback[-1].name == "interrupt"
