"""Texts of ids of the table ``strings``."""

from collections.abc import Callable

import numpy as np

from gpuviz.data.columns import distinct, plain
from gpuviz.data.tables import Tables


def texts(tables: Tables, ids: np.ndarray) -> list[str]:
    """Return the texts of ids of ``strings``, which are untrusted; empty for id 0."""
    known, strings = plain(tables["strings"]["id"]), tables["strings"]["text"]
    wanted = np.flatnonzero(np.isin(known, ids)).tolist()
    text_of = {int(known[row]): strings[row].as_py() for row in wanted}
    return [text_of.get(number, "") for number in ids.tolist()]


def are_named(tables: Tables, ids: np.ndarray, matches: Callable[[str], object]) -> np.ndarray:
    """Return whether the text of each id of ``strings`` matches, such as by `re.Pattern.match`."""
    known = distinct(ids)
    found = np.array([bool(matches(text)) for text in texts(tables, known)], bool)
    named: np.ndarray = np.isin(ids, known[found])
    return named


def ids_named(tables: Tables, matches: Callable[[str], object]) -> np.ndarray:
    """Return the ids of ``strings`` whose text matches, such as by `re.Pattern.search`."""
    strings = tables["strings"]
    is_named = [bool(matches(text)) for text in strings["text"].to_pylist()]
    named: np.ndarray = plain(strings["id"])[np.array(is_named, bool)]
    return named
