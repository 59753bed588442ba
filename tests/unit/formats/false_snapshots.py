"""Snapshots of PyTorch with false values: what a pickle may say that no allocator does."""

import copy
import pickle
from functools import cache

from tests.unit.formats import false_values
from tests.unit.formats.plain_snapshots import SNAPSHOTS, snapshot

outcome = false_values.outcome
OTHERS = (None, True, 1.5, float("nan"), b"\xff", (), [], {}, 1 << 64, -(1 << 64), 1 << 200)
ACTIONS = ("alloc", "free_requested", "free_completed", "oom", "snapshot", "workspace_snapshot")
ACTIONS += ("segment_alloc", "segment_free", "segment_map", "segment_unmap")
STATES = ("active_allocated", "active_pending_free", "active_awaiting_free", "inactive")
WORDS = (*false_values.WORDS[:-1], *ACTIONS, *STATES, "\ud800")
known = cache(snapshot)


def places_in(values):
    """Return where every value of lists and dictionaries is, by the name of its key."""
    found = {}

    def visit(within):
        for key in within if isinstance(within, dict) else range(len(within)):
            found.setdefault(key if isinstance(key, str) else "", []).append((within, key))
            if isinstance(within[key], dict | list):
                visit(within[key])

    visit(values)
    return found


def any_value(present, source):
    """Return a value in place of one: near it, extreme, or of another type."""
    choice = source.random()
    if choice < 0.1:
        return source.choice(OTHERS)
    if isinstance(present, bool):
        return not present
    if isinstance(present, int):
        near = (present + 1, present - 1, -present, 2 * present, present + 512, present // 2)
        return source.choice(near if choice < 0.4 else false_values.NUMBERS)
    return source.choice(WORDS if isinstance(present, str) else OTHERS)


def change_list(values, source):
    """Remove, repeat or move some entries of a list."""
    change = source.choice(["none", "one", "twice", "order", "reversed"])
    if change == "none":
        values.clear()
    elif change == "one" and values:
        del values[source.randrange(len(values))]
    elif change == "twice":
        values.extend(copy.deepcopy(values[: source.choice([1, 40, len(values)])]))
    elif change == "order":
        source.shuffle(values)
    else:
        values.reverse()


def with_false_values(source):
    """Return the values of a snapshot, some of which are false."""
    values = copy.deepcopy(known(source.choice(SNAPSHOTS)))
    for _ in range(source.choice([1, 1, 2, 5])):
        places = places_in(values)
        # Of the names first, as there are thousands of frames and one list of segments.
        within, key = source.choice(places[source.choice(sorted(places))])
        if isinstance(within[key], list) and source.random() < 0.8:
            change_list(within[key], source)
        elif isinstance(within, dict) and source.random() < 0.1:
            del within[key]
        else:
            within[key] = any_value(within[key], source)
    return values


def snapshot_file(folder, source):
    path = folder / "snapshot.pickle"
    path.write_bytes(pickle.dumps(with_false_values(source), source.choice([2, 3, 4, 5])))
    return path


KINDS = {"snapshot": snapshot_file}
