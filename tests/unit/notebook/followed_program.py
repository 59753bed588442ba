"""A program recorded while a page follows it, and the expected content of the page."""

import time

from gpuviz.data.tables import REVISED

PAUSE_S = 0.002


def listeners(recorder):
    return recorder._views.feed.listeners


def drain(recorder):
    """Let the recorder send everything recorded so far."""
    return recorder.recording


def run_program(source, steps, seed=0):
    held = []
    for step in range(steps):
        held.append(source.allocate(1024 * (1 + (step * 7 + seed) % 9)))
        if step % 3 == 2:
            source.free(held.pop(0))
        if step % 20 == 19:
            time.sleep(PAUSE_S)
    for address in held:
        source.free(address)


def last_rows(rows):
    """Return the last row of each id."""
    return {row["id"]: row for row in rows}


def assert_has_all(browser, recording):
    for name, table in recording.tables.items():
        expected = table.to_pylist()
        if name in REVISED:
            assert last_rows(browser.rows(name)) == last_rows(expected), name
        else:
            assert browser.rows(name) == expected, name
