import copy
from pathlib import Path

import pytest

from tests.conformance.comparison import compare
from tests.conformance.golden import Golden
from tests.conformance.replay import replay

DATA = Path(__file__).parent / "data"
SHARED = Path(__file__).parents[3] / "shared" / "goldens"
FILES = sorted({path.name: path for path in (*DATA.glob("*.xz"), *SHARED.glob("*.xz"))}.items())


@pytest.mark.parametrize("path", [path for _, path in FILES], ids=[name for name, _ in FILES])
def test_a_recorded_program_is_reproduced_in_full(path: Path) -> None:
    golden = Golden.read(path)

    counts = compare(golden, replay(golden))

    assert [count.first_difference for count in counts] == [None] * 4
    assert [count.equal for count in counts] == [count.total for count in counts]
    assert min(count.total for count in counts) > 0


@pytest.mark.parametrize("what", ["mallocs", "stats", "trace", "segments"])
def test_a_single_wrong_value_is_found_and_named(what: str) -> None:
    golden = Golden.read(DATA / "gc_1.json.xz")
    outcome = copy.deepcopy(replay(golden))
    wrong = {
        "mallocs": lambda: outcome.mallocs.__setitem__(7, 1234),
        "stats": lambda: outcome.stats[7].__setitem__("num_ooms", 1234),
        "trace": lambda: outcome.trace[7].__setitem__("size", 1234),
        "segments": lambda: outcome.segments[7]["blocks"][0].__setitem__("size", 1234),
    }

    wrong[what]()
    counts = {count.what: count for count in compare(golden, outcome)}

    assert {count.what for count in counts.values() if count.first_difference} == {what}
    assert counts[what].equal == counts[what].total - 1
    assert str(counts[what].first_difference).startswith(f"{what}[7]")
    assert "found 1234" in str(counts[what].first_difference)


def test_a_file_of_another_kind_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "other.json.xz"
    path.write_bytes(b"not xz")

    with pytest.raises(ValueError, match=r"other\.json\.xz is not an acceptance file"):
        Golden.read(path)
