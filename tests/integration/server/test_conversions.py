"""Conversions of recordings: limits of time and disk space, and sharing."""

import asyncio
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpuviz.server import conversions as module
from gpuviz.server.conversions import ConversionError, Conversions

SNAPSHOT = Path(__file__).parents[2] / "unit" / "formats" / "data" / "pipeline.pickle"


async def snapshot(_folder: Path) -> Path:
    return SNAPSHOT


@pytest.fixture
def conversions() -> Iterator[Conversions]:
    conversions = Conversions("recording.gpuviz")
    yield conversions
    shutil.rmtree(conversions.folder)


def kept(conversions: Conversions) -> list[str]:
    return [path.parent.name for path in conversions.folder.glob("*/recording.gpuviz")]


def test_only_the_user_of_the_server_can_read_its_folder(conversions):
    file = asyncio.run(conversions.converted(1, snapshot))

    assert conversions.folder.stat().st_mode & 0o777 == 0o700
    assert re.fullmatch(conversions.names, file)
    assert file != asyncio.run(conversions.converted(2, snapshot))


def test_who_asks_for_what_takes_long_is_told_to_ask_again(conversions, monkeypatch):
    monkeypatch.setattr(module, "PATIENCE_S", 0.01)

    async def ask() -> list[str | None]:
        answers: list[str | None] = [None]
        while answers[-1] is None:
            answers.append(await conversions.converted("a", snapshot))
        return answers

    answers = asyncio.run(ask())

    assert len(answers) > 2
    assert set(answers[:-1]) == {None}
    assert kept(conversions) == [Path(answers[-1]).parent.name]


def test_a_failure_is_told_also_to_who_asks_again(conversions, monkeypatch, tmp_path):
    monkeypatch.setattr(module, "PATIENCE_S", 0.01)
    (tmp_path / "empty").touch()

    async def empty(_folder: Path) -> Path:
        return tmp_path / "empty"

    async def ask() -> None:
        while await conversions.converted("a", empty) is None:
            pass

    with pytest.raises(ConversionError, match="Not a gpuviz recording"):
        asyncio.run(ask())
    assert list(conversions.folder.iterdir()) == []


def test_what_takes_too_long_is_ended(conversions, monkeypatch):
    # Less than importing pyarrow takes.
    monkeypatch.setattr(module, "LIMIT_S", 0.005)

    with pytest.raises(ConversionError, match="takes longer than"):
        asyncio.run(conversions.converted("a", snapshot))
    assert list(conversions.folder.iterdir()) == []


def test_the_least_recently_used_file_goes_first(conversions, monkeypatch):
    async def ask() -> list[str | None]:
        first = await conversions.converted("a", snapshot)
        size = (conversions.folder / str(first)).stat().st_size
        monkeypatch.setattr(module, "KEPT_BYTES", 2 * size)
        second = await conversions.converted("b", snapshot)
        again = await conversions.converted("a", snapshot)
        return [first, second, again, await conversions.converted("c", snapshot)]

    first, second, again, third = asyncio.run(ask())

    assert first == again
    assert len({first, second, third}) == 3
    assert set(kept(conversions)) == {Path(first).parent.name, Path(third).parent.name}


def test_a_file_that_the_system_removed_is_made_again(conversions):
    async def ask() -> list[str | None]:
        first = await conversions.converted("a", snapshot)
        shutil.rmtree((conversions.folder / str(first)).parent)
        return [first, await conversions.converted("a", snapshot)]

    first, second = asyncio.run(ask())

    assert kept(conversions) == [Path(second).parent.name]
    assert first != second
