"""Recordings that a real Jupyter server converts for the browser."""

import io
import json
import os
import pickle
import shutil
import time
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

import pyarrow as pa
import pytest

import gpuviz
from gpuviz.conclusions.ranking import conclusions
from tests.integration.server.running_server import Answer, Server, running_server
from tests.patience import PAUSE_S
from tests.unit.recording.from_activities import Timeline

PATH = "gpuviz/api/recordings"
FINDINGS = "gpuviz/api/findings"
COMPARISONS = "gpuviz/api/comparisons"
SNAPSHOT = Path(__file__).parents[2] / "unit" / "formats" / "data" / "pipeline.pickle"
RECORDING = next(Path(gpuviz.__file__).parent.glob("commands/recordings/*.gpuviz"))
MIB = 1 << 20
# Not a `FileContentsManager`, so the server has no access to a file system.
MANAGER = """
from jupyter_server.services.contents.largefilemanager import LargeFileManager
from jupyter_server.services.contents.manager import ContentsManager


class RemoteManager(ContentsManager):
    def is_hidden(self, path):
        return path.startswith(".")

    def get(self, path, content=True, type=None, format=None, **more):
        files = LargeFileManager(root_dir=self.parent.root_dir)
        return files.get(path, content=content, type=type, format=format)
"""


class Runs:
    """Calls a function when it is unpickled."""

    def __reduce__(self):
        return os.getcwd, ()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("server")
    shutil.copy(SNAPSHOT, folder / "snapshot.pickle")
    (folder / "runs.pickle").write_bytes(pickle.dumps({"segments": [Runs()]}))
    (folder / "cut.pkl").write_bytes(SNAPSHOT.read_bytes()[:5000])
    (folder / "weights.pkl").write_bytes(pickle.dumps({"bias": [0.5, 1.5]}))
    damaged = bytearray(RECORDING.read_bytes())
    middle = len(damaged) // 2
    damaged[middle : middle + 64] = bytes(64)
    (folder / "damaged.gpuviz").write_bytes(damaged)
    (folder / ".hidden").mkdir()
    shutil.copy(SNAPSHOT, folder / ".hidden" / "snapshot.pickle")
    shutil.copy(SNAPSHOT, folder.parent / "outside.pickle")
    (folder / "nested").mkdir()
    os.mkfifo(folder / "pipe.pickle")
    (folder / "loop.pickle").symlink_to("loop.pickle")
    return folder


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Server]:
    with running_server(folder) as server:
        yield server


def asked(*paths: str | bytes, to: str = PATH) -> str:
    return f"{to}?{'&'.join(f'path={quote(path)}' for path in paths)}"


def asked_until_done(server: Server, *paths: str, to: str = PATH) -> Answer:
    answer = server.ask(asked(*paths, to=to))
    while answer.status == 202:
        answer = server.ask(asked(*paths, to=to))
    return answer


def converted(server: Server, *paths: str, to: str = PATH) -> bytes:
    return server.fetch(f"{to}/{asked_until_done(server, *paths, to=to).content['file']}")[1]


def same_tables(found: gpuviz.Recording, expected: gpuviz.Recording) -> bool:
    return found.tables.keys() == expected.tables.keys() and all(
        found.table(name).equals(table) for name, table in expected.tables.items()
    )


@pytest.mark.parametrize("name", ["snapshot.pickle", "löp 50%.pickle", "nested/a+b&c.pickle"])
def test_a_snapshot_comes_as_a_recording(server, folder, tmp_path, name):
    shutil.copy(SNAPSHOT, folder / name)
    got = tmp_path / "got.gpuviz"
    got.write_bytes(converted(server, name))

    assert same_tables(gpuviz.load(got), gpuviz.load(SNAPSHOT))


def test_recordings_and_reports_are_written_anew(server, folder, tmp_path):
    recording = gpuviz.load(RECORDING)
    recording.save(folder / "old.gpuviz")
    recording.report(folder / "old.html")
    for name in ("old.gpuviz", "old.html"):
        got = tmp_path / f"of {name}.gpuviz"
        got.write_bytes(converted(server, name))

        assert same_tables(gpuviz.load(got), recording)


def concluded(server, path, name):
    """Return the rows of a table in the archive of a file's conclusions."""
    with zipfile.ZipFile(io.BytesIO(converted(server, path, to=FINDINGS))) as archive:
        stream = archive.read(f"derived/{name}.arrow")
        return pa.ipc.open_stream(stream).read_all().to_pylist()


def test_findings_are_those_of_the_recording(server, folder):
    shutil.copy(RECORDING, folder / "run.gpuviz")
    said = concluded(server, "run.gpuviz", "shown")
    sections = concluded(server, "run.gpuviz", "sections")
    found = gpuviz.load(RECORDING).findings()

    assert found
    assert {each.title for each in found} <= {row["title"] for row in said}
    assert {"findings", "what-if", "summary"} <= {row["section"] for row in sections}


def test_findings_that_a_file_has_are_not_computed_again(server, folder):
    recording = gpuviz.load(RECORDING)
    conclusions.keep(recording, (replace(recording.findings()[0], title="As stored."),))
    recording.save(folder / "stored.gpuviz")

    titles = [row["title"] for row in concluded(server, "stored.gpuviz", "shown")]
    assert titles == ["As stored."]


def test_a_recording_without_a_device_has_no_findings(server, folder):
    Timeline().recording().save(folder / "empty.gpuviz")

    assert concluded(server, "empty.gpuviz", "shown") == []
    sections = concluded(server, "empty.gpuviz", "sections")
    assert {row["section"] for row in sections} == {"environment"}


def test_two_files_come_as_the_page_of_both(server, folder):
    shutil.copy(RECORDING, folder / "before.gpuviz")
    page = converted(server, "before.gpuviz", "snapshot.pickle", to=COMPARISONS).decode()

    assert page.count('type="application/octet-stream"') == 3  # and the sections about both
    assert "The recordings are of different programs" in page
    assert asked_until_done(server, "before.gpuviz", "cut.pkl", to=COMPARISONS).status == 422
    assert server.ask(asked("before.gpuviz", to=COMPARISONS)).status == 400
    assert server.ask(asked("before.gpuviz", ".hidden/x", to=COMPARISONS)).status == 404


def test_a_part_of_a_converted_file_can_be_had(server):
    whole = converted(server, "snapshot.pickle")
    file = asked_until_done(server, "snapshot.pickle").content["file"]
    status, part = server.fetch(f"{PATH}/{file}", Range="bytes=100-4095")

    assert status == 206
    assert part == whole[100:4096]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("runs.pickle", "could run code and is refused"),
        ("cut.pkl", "Byte 2: truncated"),
        ("weights.pkl", 'expected a dict with "segments"'),
        ("damaged.gpuviz", ": damaged ("),
    ],
)
def test_what_is_wrong_with_a_file_is_said_without_the_servers_paths(server, folder, name, said):
    answer = asked_until_done(server, name)

    assert answer.status == 422
    message = json.loads(answer.content)["message"]
    assert said in message
    assert str(folder) not in message


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("vanished.pickle", 404),
        ("../outside.pickle", 404),
        ("nested/../../outside.pickle", 404),
        (".hidden/snapshot.pickle", 404),
        ("nested", 400),
        ("pipe.pickle", 400),
        ("", 400),
        ("snapshot.pickle/through", 404),
        ("loop.pickle", 404),
        ("loop.pickle/through", 404),
        ("x" * 300, 404),
        ("x/" * 3000, 404),
        ("a\0b", 404),
        (b"\xff", 400),
        (b"\xed\xa0\x80", 400),
    ],
)
def test_only_files_that_the_server_shows_are_converted(server, folder, path, status):
    answer = server.ask(asked(path))

    assert answer.status == status
    found = json.loads(answer.content)
    assert found["message"] not in {"", "Unhandled error"}
    assert "traceback" not in found
    assert str(folder) not in str(found)


@pytest.mark.parametrize(
    "path", ["a%00b", "x" * 300, "x/" * 3000, "snapshot.pickle/x", "%FF", "0" * 32, ".", "0/1"]
)
def test_a_path_that_no_conversion_has_is_not_found(server, path):
    assert server.ask(f"{PATH}/{path}").status in {400, 403, 404}


@pytest.mark.parametrize("query", ["", "?other=1"])
def test_a_request_without_a_path_is_an_error_of_the_request(server, query):
    assert server.ask(f"{PATH}{query}").status == 400


def test_a_server_without_a_folder_for_conversions_says_so(tmp_path, monkeypatch):
    kept = tmp_path / "kept"
    kept.mkdir()
    monkeypatch.setenv("TMPDIR", str(kept))
    shutil.copy(SNAPSHOT, tmp_path / "snapshot.pickle")
    with running_server(tmp_path) as server:
        assert asked_until_done(server, "snapshot.pickle").status == 200
        for made in kept.glob("gpuviz-server-*"):
            shutil.rmtree(made)
        answer = asked_until_done(server, "snapshot.pickle")

    assert answer.status == 422
    assert "The server cannot convert files: No such file" in answer.content


def test_converted_files_are_in_a_folder_that_nobody_leaves(server):
    file = asked_until_done(server, "snapshot.pickle").content["file"]

    assert server.ask(f"{PATH}/{file.rpartition('/')[0]}").status in {403, 404}
    assert server.ask(f"{PATH}/..%2F..%2Fetc%2Fpasswd").status in {403, 404}


@pytest.mark.parametrize("token", ["", "guessed"])
def test_nobody_is_answered_without_the_token(server, token):
    file = asked_until_done(server, "snapshot.pickle").content["file"]

    assert server.ask(asked("snapshot.pickle"), token=token).status == 403
    assert not server.fetch(f"{PATH}/{file}", token=token)[1].startswith(b"PK")


def test_the_answer_is_under_the_base_url_and_nowhere_else(server):
    assert server.ask(asked("snapshot.pickle"), base="/").status == 404


def test_a_file_is_converted_once_until_it_changes(server, folder):
    shutil.copy(SNAPSHOT, folder / "shared.pickle")
    with ThreadPoolExecutor(8) as pages:
        answers = pages.map(asked_until_done, [server] * 8, ["shared.pickle"] * 8)
        files = {answer.content["file"] for answer in answers}
    os.utime(folder / "shared.pickle", ns=(1, 1))
    after = asked_until_done(server, "shared.pickle").content["file"]

    assert len(files) == 1
    assert after not in files


def test_a_server_answers_others_while_it_converts_a_large_snapshot(server, folder):
    path = folder / "large.pickle"
    event = {"action": "alloc", "size": 512, "stream": 0}
    trace = [
        event | {"addr": 512 * number, "time_us": number, "user_metadata": f"{number:04200}"}
        for number in range(25_000)
    ]
    path.write_bytes(pickle.dumps({"segments": [], "device_traces": [trace]}, 4))
    answered = 0
    with ThreadPoolExecutor(1) as page:
        converting = page.submit(asked_until_done, server, "large.pickle")
        while not converting.done():
            assert server.ask("api").status == 200
            answered += not converting.done()
            time.sleep(PAUSE_S)

    assert path.stat().st_size > 100 * MIB
    assert converting.result().status == 200
    assert answered >= 3


def test_converted_files_are_gone_with_the_server(tmp_path, monkeypatch):
    kept = tmp_path / "kept"
    kept.mkdir()
    monkeypatch.setenv("TMPDIR", str(kept))
    shutil.copy(SNAPSHOT, tmp_path / "snapshot.pickle")
    with running_server(tmp_path) as server:
        file = asked_until_done(server, "snapshot.pickle").content["file"]
        there = [path.is_file() for path in kept.glob(f"gpuviz-server-*/{file}")]

    assert there == [True]
    assert list(kept.glob("gpuviz-server-*")) == []


def test_files_of_a_server_without_a_file_system_are_converted(tmp_path):
    (tmp_path / "remote_manager.py").write_text(MANAGER)
    shutil.copy(SNAPSHOT, tmp_path / "snapshot.pickle")
    shutil.copy(SNAPSHOT, tmp_path / ".hidden")
    manager = "--ServerApp.contents_manager_class=remote_manager.RemoteManager"
    with running_server(tmp_path, manager) as server:
        got = tmp_path / "got.gpuviz"
        got.write_bytes(converted(server, "snapshot.pickle"))
        hidden = server.ask(asked(".hidden"))

    assert same_tables(gpuviz.load(got), gpuviz.load(SNAPSHOT))
    assert hidden.status == 404
