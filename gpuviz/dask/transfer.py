"""Fetches recordings from the workers of a cluster, in pieces through its scheduler."""

import asyncio
import hashlib
import os
import shutil
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from gpuviz.dask import worker_files
from gpuviz.errors import RecordingError
from gpuviz.formats.output_path import created_meanwhile, part_of

if TYPE_CHECKING:
    from distributed import Client

    from gpuviz.dask.worker_files import Entry, Member

# Of each recording that is being fetched, the client and the scheduler hold one piece.
PIECE_BYTES = 4 << 20
AT_ONCE = 8
_SUFFIX = ".gpuviz"


class Transfer:
    """Fetches recordings into a directory.

    A recording is there under its name once all of it arrived, and is then removed from the
    worker's disk. Each is tried from every worker that can read it.

    Attributes:
        paths: What was fetched.
    """

    def __init__(self, client: "Client", directory: Path) -> None:
        self.paths: list[Path] = []
        self._problems: dict[Entry, str] = {}
        self._client = client
        self._directory = directory
        self._at_once = asyncio.Semaphore(AT_ONCE)

    @property
    def problems_by_worker(self) -> dict[str, str]:
        """Why a recording was not fetched, by the name of the recorded worker."""
        return {unquote(entry.worker): problem for entry, problem in self._problems.items()}

    async def fetch(self, run: str | None) -> "set[Entry]":
        """Fetch the recordings of a run, or all, and return which there were."""
        listed = await self._client.run(worker_files.ended, run, on_error="ignore")
        holders = _holders(listed)
        names = _free_names(self._directory, holders)
        await asyncio.gather(
            *(self._fetch_from_any(entry, names[entry], holders[entry]) for entry in names)
        )
        self.paths.sort()
        return set(holders)

    async def _fetch_from_any(self, entry: "Entry", path: Path, workers: list[str]) -> None:
        async with self._at_once:
            for worker in workers:
                try:
                    self.paths.append(await self._fetch(entry, path, worker))
                except Exception as error:  # noqa: BLE001 - the other recordings are fetched
                    self._problems[entry] = f"{worker}: {error or type(error).__name__}"
                    continue
                self._problems.pop(entry, None)
                # What remains there is fetched again by the next call.
                with suppress(Exception):
                    await self._ask(worker, worker_files.remove, entry)
                return

    async def _fetch(self, entry: "Entry", path: Path, worker: str) -> Path:
        members = await self._ask(worker, worker_files.members, entry)
        if not members:
            raise RecordingError(f"{entry.name} is empty or was removed")
        is_file = members[0].name == ""
        path = path if is_file else part_of(path)
        unfinished = path.with_name(f".{path.name}.fetched")
        try:
            if not is_file:
                unfinished.mkdir()
            for member in members:
                target = unfinished / _file_name(member) if member.name else unfinished
                await self._fetch_member(entry, member, target, worker)
            _publish(unfinished, path)
        finally:
            _discard(unfinished)
        return path

    async def _fetch_member(
        self, entry: "Entry", member: "Member", target: Path, worker: str
    ) -> None:
        digest, length = hashlib.sha256(), 0
        with target.open("xb") as file:
            while length < member.size:
                piece = await self._ask(
                    worker, worker_files.read_piece, entry, member.name, length, PIECE_BYTES
                )
                if not piece:
                    break
                digest.update(piece)
                file.write(piece)
                length += len(piece)
        if (length, digest.hexdigest()) != (member.size, member.sha256):
            raise RecordingError(
                f"{entry.name} {member.name}".rstrip()
                + f" arrived damaged ({length} of {member.size} bytes, or another digest)"
            )

    async def _ask(self, worker: str, function: Callable[..., Any], *arguments: object) -> Any:
        answers = await self._client.run(function, *arguments, workers=[worker])
        return answers[worker]


def _holders(listed: "Mapping[str, Iterable[Entry]]") -> "dict[Entry, list[str]]":
    """Return the workers that can read each recording, those with the fewest to send first."""
    by_entry: dict[Entry, list[str]] = {}
    for worker, entries in listed.items():
        for entry in entries:
            if entry.is_plain:
                by_entry.setdefault(entry, []).append(worker)
    sent = dict.fromkeys(listed, 0)
    for entry in sorted(by_entry, key=lambda entry: (entry.run, entry.name)):
        by_entry[entry].sort(key=sent.__getitem__)
        sent[by_entry[entry][0]] += 1
    return by_entry


def _free_names(directory: Path, entries: "Iterable[Entry]") -> "dict[Entry, Path]":
    """Return a free path for each recording, by its worker and then in the order of the starts."""
    taken: set[Path] = set()
    names = {}
    for entry in sorted(entries, key=lambda entry: (entry.worker, entry.name, entry.run)):
        path, number = directory / f"{entry.worker}{_SUFFIX}", 2
        while path in taken or any(map(os.path.lexists, (path, part_of(path)))):
            path = directory / f"{entry.worker}-{number}{_SUFFIX}"
            number += 1
        taken.add(path)
        names[entry] = path
    return names


def _file_name(member: "Member") -> str:
    if not worker_files.is_plain_name(member.name):
        raise RecordingError(f"a worker named a file {member.name!r}, which is not a file name")
    return member.name


def _publish(unfinished: Path, path: Path) -> None:
    if os.path.lexists(path):
        raise created_meanwhile(path)
    unfinished.rename(path)


def _discard(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    path.unlink(missing_ok=True)
