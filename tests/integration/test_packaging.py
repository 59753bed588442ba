import ctypes
import os
import subprocess
import sys
import sysconfig
import zipfile
from importlib.metadata import version
from pathlib import Path

import pytest

import gpuviz

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "cmake"))

from cuda_headers import folders  # noqa: E402 - the build runs and imports these from there
from release_version import version_of  # noqa: E402

HEAVY = ("cupy", "pyarrow", "plotly", "ipywidgets", "anywidget", "numpy", "tornado", "distributed")


def run_python(code: str, *options: str) -> str:
    command = [sys.executable, *options, "-c", code]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def test_the_version_is_that_of_the_metadata():
    assert gpuviz.__version__ == version("gpuviz")


def run_git(folder: Path, *arguments: str) -> None:
    command = ["git", "-c", "user.name=a", "-c", "user.email=a@b.c", "-C", str(folder), *arguments]
    subprocess.run(command, check=True, capture_output=True)


def test_the_version_is_that_of_the_tag_of_a_commit_without_changes(tmp_path):
    known = []

    def note(*arguments: str) -> None:
        if arguments:
            run_git(tmp_path, *arguments)
        known.append(version_of(tmp_path, "0.2.0"))

    note()
    note("init")
    (tmp_path / "file").write_text("1")
    run_git(tmp_path, "add", "file")
    note("commit", "-m", "First")
    run_git(tmp_path, "tag", "v0.2.0rc1")
    note("tag", "v0.2.0")
    (tmp_path / "file").write_text("2")
    note()
    note("commit", "-am", "Second")
    note("tag", "other")
    (tmp_path / "PKG-INFO").write_text("Metadata-Version: 2.4\nName: gpuviz\nVersion: 0.3.0\n")
    note()

    development = "0.2.0.dev0"
    assert known[:3] == [development] * 3
    assert known[3:] == ["0.2.0", development, development, development, "0.3.0"]


def test_cudas_headers_are_those_of_wheels_or_else_of_a_conda_environment(tmp_path, monkeypatch):
    conda = tmp_path / "targets" / "x86_64-linux" / "include"
    conda.mkdir(parents=True)
    of_wheels = folders(tmp_path)
    (conda / "cuda.h").touch()
    without_cupti = folders(tmp_path)
    (conda / "cupti.h").touch()
    both = folders(tmp_path)
    monkeypatch.setattr("cuda_headers.find_spec", lambda _name: None)

    assert [each.name for each in of_wheels] == ["include"]
    assert without_cupti == of_wheels
    assert both == [*of_wheels, conda]
    assert folders(tmp_path) == [conda]


def test_import_loads_no_heavy_library():
    code = (
        f"import sys, gpuviz; gpuviz.dask; print([name for name in {HEAVY} if name in sys.modules])"
    )

    assert run_python(code).strip() == "[]"


def test_import_starts_no_thread():
    code = "import os, gpuviz; print(len(os.listdir('/proc/self/task')))"

    assert run_python(code).strip() == "1"


def test_import_touches_no_gpu():
    code = "import gpuviz; print('libcuda' in open('/proc/self/maps').read())"

    assert run_python(code).strip() == "False"


def test_a_wheel_builds_without_a_system_node_and_holds_what_it_should(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    sources = [name for name in names if name.endswith((".cpp", ".hpp", ".txt", ".ts"))]

    assert "abi3" in wheel.name
    # Compiled on the users' machines, with the headers of their torch.
    ours = [name for name in sources if "dist-info" not in name]
    assert ours == ["gpuviz/frameworks/torch_tracker.cpp"]
    assert {"gpuviz/_core.abi3.so", "gpuviz/_core.pyi", "gpuviz/py.typed"} <= set(names)
    assert "gpuviz/static/report.js" in names


def test_building_a_wheel_leaves_the_bundles_that_servers_read_meanwhile(wheel):
    begun = (wheel.parent / "bin").stat().st_mtime_ns  # made before the build
    folders = (ROOT / "gpuviz" / "static", ROOT / "gpuviz" / "labextension")
    files = [path for folder in folders for path in folder.rglob("*") if path.is_file()]

    assert len(files) > 10
    assert [path.name for path in files if path.stat().st_mtime_ns > begun] == []


def test_a_wheel_brings_the_extensions_of_jupyterlab_and_of_its_server(wheel):
    names = {name.partition(".data/data/")[2] for name in zipfile.ZipFile(wheel).namelist()}

    assert {
        "share/jupyter/labextensions/gpuviz/package.json",
        "share/jupyter/labextensions/gpuviz/install.json",
        "etc/jupyter/jupyter_server_config.d/gpuviz.json",
    } <= names


def test_a_wheel_registers_the_command_and_the_pytest_plugin(wheel):
    archive = zipfile.ZipFile(wheel)
    (path,) = (name for name in archive.namelist() if name.endswith("/entry_points.txt"))
    entry_points = archive.read(path).decode()

    assert "[pytest11]\ngpuviz = gpuviz.testing.plugin" in entry_points
    assert "gpuviz = gpuviz.commands.main:main" in entry_points


def test_a_wheel_holds_the_recordings_that_the_demo_replays(wheel):
    folder = "gpuviz/commands/recordings"
    shipped = {f"{folder}/{path.name}" for path in (ROOT / folder).glob("*.gpuviz")}

    assert shipped == {
        name for name in zipfile.ZipFile(wheel).namelist() if name.startswith(f"{folder}/")
    }


def test_a_wheels_library_is_one_that_nvtx_can_load(wheel, tmp_path):
    with zipfile.ZipFile(wheel) as archive:
        library = ctypes.CDLL(archive.extract("gpuviz/_core.abi3.so", tmp_path))

    assert hasattr(library, "InitializeInjectionNvtx2")


# What a Python does at its start that reads .start files, as PEP 829 says.
START = """\
import pkgutil, sys
from pathlib import Path
wheel, packages = sys.argv[1:]
sys.path += [wheel, packages]
for start in Path(wheel).glob("*.start"):
    for entry in start.read_text().splitlines():
        pkgutil.resolve_name(entry)()
print("gpuviz" in sys.modules)
import gpuviz
gpu = gpuviz.SimulatedGPU()
kept = gpu.empty(1234567)
"""


@pytest.mark.parametrize("is_recorded", [True, False])
def test_a_python_without_import_lines_in_pth_files_records_from_its_start(
    wheel, tmp_path, is_recorded
):
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "wheel")
    environment = {name: os.environ[name] for name in os.environ if name != "GPUVIZ_RECORD"}
    if is_recorded:
        environment["GPUVIZ_RECORD"] = str(tmp_path / "recorded")
    folders = [tmp_path / "wheel", sysconfig.get_path("purelib")]
    done = subprocess.run(
        [sys.executable, "-S", "-c", START, *folders],
        check=True,
        capture_output=True,
        text=True,
        env=environment,
        cwd=tmp_path,
    )
    recorded = [gpuviz.load(path) for path in (tmp_path / "recorded").glob("*")]
    sizes = [each.table("memory_events")["requested_size"].to_pylist() for each in recorded]

    assert done.stdout == f"{is_recorded}\n"
    assert [1234567 in each for each in sizes] == [True] * is_recorded


def test_both_startup_files_name_the_same_function(wheel):
    with zipfile.ZipFile(wheel) as archive:
        module, function = archive.read("gpuviz_record.start").decode().strip().split(":")
        line = archive.read("gpuviz_record.pth").decode().strip()

    assert line == f"import {module}; {module}.{function}()"


def test_pytest_does_not_warn_about_what_a_wheel_imports_when_python_starts(wheel, tmp_path):
    site, test = tmp_path / "site", tmp_path / "test_nothing.py"
    with zipfile.ZipFile(wheel) as contents:
        contents.extractall(site)
    test.write_text("def test_nothing(): pass\n")
    # The module of the editable install, which no wheel has.
    other = "ignore:Module already imported so cannot be rewritten; _editable_skbc_gpuviz"
    warned = "error::pytest.PytestAssertRewriteWarning"
    options = ["-q", "-W", warned, "-W", other, str(test)]
    done = run_python(
        f"import pytest, site; site.addsitedir({str(site)!r}); pytest.main({options!r})"
    )

    assert "1 passed" in done
