"""The devices of a real Jupyter server's machine."""

import json
import os
import platform
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpuviz import __version__
from tests.integration.server.fake_devices import FIRST_PID, GIB, FakeDevices, two_devices
from tests.integration.server.running_server import Server, running_server
from tests.patience import wait_until

PATH = "gpuviz/api/devices"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("server")


@pytest.fixture(scope="module")
def module(folder: Path) -> FakeDevices:
    return FakeDevices(folder)


@pytest.fixture(scope="module")
def server(module: FakeDevices) -> Iterator[Server]:
    folder = module.folder
    # A script around the kernel, as in some environments, so that the kernel is its child process.
    kernels = folder / "data" / "kernels" / "wrapped"
    kernels.mkdir(parents=True)
    command = f"echo $$ > {folder}/begun; '{sys.executable}' -m ipykernel_launcher -f $0; true"
    kernel = {"argv": ["sh", "-c", command, "{connection_file}"], "display_name": "Wrapped"}
    (kernels / "kernel.json").write_text(json.dumps(kernel | {"language": "python"}))
    with running_server(folder) as server:
        yield server


@pytest.fixture
def devices(module: FakeDevices) -> Iterator[FakeDevices]:
    yield module
    module.tell(devices=two_devices(), is_held=False, failure="")


def test_the_server_tells_of_each_gpu_and_of_its_processes(server):
    answer = server.ask(PATH)

    assert answer.status == 200
    assert answer.content["machine"] == platform.node()
    assert [(each["uuid"], each["used"]) for each in answer.content["devices"]] == [
        ("GPU-aaaa", 53 * GIB),
        ("GPU-bbbb", 3 * GIB),
    ]
    assert [each["processes"] for each in answer.content["devices"]] == [
        [
            {"pid": FIRST_PID, "used": 12 * GIB, "kernel": None},
            {"pid": FIRST_PID + 1, "used": 40 * GIB, "kernel": None},
        ],
        [{"pid": FIRST_PID + 2, "used": None, "kernel": None}],
    ]


@pytest.mark.parametrize("token", ["", "guessed"])
def test_nobody_is_told_without_the_token(server, token):
    answer = server.ask(PATH, token=token)

    assert answer.status == 403
    assert "GPU" not in answer.content


def test_the_answer_is_under_the_base_url_and_nowhere_else(server):
    assert server.ask(PATH, base="/").status == 404


def test_one_reading_serves_all_who_ask_within_a_second(server, devices):
    devices.tell(is_held=True)
    before = devices.times_asked
    pages = [server.begin_to_ask(PATH) for _ in range(12)]
    wait_until(lambda: devices.times_asked > before)
    for _ in range(2):
        server.ask("api")  # the server has then taken in what came before
    devices.tell(is_held=False)
    answers = [json.load(page.getresponse()) for page in pages]

    assert answers == 12 * answers[:1]
    assert len(answers[0]["devices"]) == 2
    assert devices.times_asked - before == 1


def test_the_server_serves_others_while_it_reads(server, devices):
    devices.tell(is_held=True)
    before = devices.times_asked
    page = server.begin_to_ask(PATH)
    wait_until(lambda: devices.times_asked > before)
    other = server.ask("api")
    devices.tell(is_held=False)

    assert other.status == 200
    assert len(json.load(page.getresponse())["devices"]) == 2


def test_without_a_driver_there_are_no_devices(server, devices):
    devices.tell(failure="no driver")

    assert server.ask(PATH).content == {"machine": platform.node(), "devices": []}


def test_a_reading_that_fails_is_an_error_of_that_answer_and_the_next_is_right(server, devices):
    devices.tell(failure="out of order")
    failed = server.ask(PATH)
    devices.tell(failure="")
    answer = server.ask(PATH)

    assert failed.status == 500
    assert "out of order" not in failed.content
    assert len(answer.content["devices"]) == 2


def test_a_process_is_of_the_kernel_that_began_it(server, devices, folder):
    kernel = server.ask("api/kernels", sent={"name": "wrapped"})
    begun = folder / "begun"
    wait_until(lambda: begun.exists() and begun.read_text())
    shell = int(begun.read_text())
    children = Path(f"/proc/{shell}/task/{shell}/children")
    wait_until(children.read_text)
    pids = [int(children.read_text().split()[0]), os.getpid()]
    told = two_devices()[:1]
    told[0]["processes"] = [{"pid": pid, "used": GIB} for pid in pids]
    devices.tell(devices=told)
    (device,) = server.ask(PATH).content["devices"]

    assert kernel.status == 201
    assert [each["kernel"] for each in device["processes"]] == [kernel.content["id"], None]


def test_to_be_asked_is_no_use_of_the_server(server):
    def last_activity() -> str:
        return server.ask("api/status").content["last_activity"]

    at_first = last_activity()
    server.ask(PATH)
    when_asked = last_activity()
    server.ask("api/kernels")

    assert when_asked == at_first
    assert last_activity() > at_first


def test_an_installation_enables_the_server_part():
    command = [sys.executable, "-m", "jupyter", "server", "extension", "list"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    said = re.sub(r"\x1b\[\d+m", "", done.stdout + done.stderr)

    assert "gpuviz.server enabled" in said
    assert re.search(r"gpuviz\.server \S+ OK", said)[0] == f"gpuviz.server {__version__} OK"


def test_the_server_loads_nothing_of_gpuviz_but_what_it_needs():
    code = """
import sys
import gpuviz.server.devices, gpuviz.server.recordings, gpuviz.recorder.nvml
print(sorted(name for name in sys.modules if name.startswith("gpuviz.")))
print({"numpy", "pyarrow", "pandas"} & set(sys.modules))
"""
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)

    loaded = [
        "gpuviz.recorder",
        "gpuviz.recorder.nvml",
        "gpuviz.server",
        "gpuviz.server.conversions",
        "gpuviz.server.devices",
        "gpuviz.server.kernel_processes",
        "gpuviz.server.recordings",
        "gpuviz.server.shared_reading",
    ]
    assert done.stdout == f"{loaded}\nset()\n"
