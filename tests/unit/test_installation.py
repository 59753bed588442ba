"""The commands that install what is missing."""

import re
import sys
import tomllib
from pathlib import Path

import pytest

import gpuviz
from gpuviz import installation
from gpuviz.errors import MissingPackageError
from gpuviz.figures.style import figure

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]


@pytest.mark.parametrize("extra", ["charts", "cuda12", "cuda13", "dask", "pandas", "torch"])
def test_an_extra_is_named_by_its_packages(extra):
    assert installation.extra_requirements(extra) == tuple(EXTRAS[extra])


def test_an_extra_in_an_extra_is_named_by_its_packages():
    assert EXTRAS["lab"][0] == "gpuviz[charts]"
    assert installation.extra_requirements("lab") == (*EXTRAS["charts"], *EXTRAS["lab"][1:])


def test_a_command_is_one_for_a_shell():
    assert installation.pip_install("plotly>=5", "rich") == "pip install 'plotly>=5' rich"


def test_a_chart_without_plotly_is_answered_with_the_command_that_installs_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "plotly.graph_objects", None)

    with pytest.raises(MissingPackageError, match="plotly is not installed: `pip install 'plotly>"):
        figure("Levels", x_title="Time", y_title="Bytes")


def test_a_recording_of_a_cluster_without_dask_is_answered_with_the_command(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "distributed", None)

    with pytest.raises(ModuleNotFoundError, match=r"`pip install 'distributed>=2025\.1'`"):
        gpuviz.dask.record(tmp_path)


def test_a_fault_inside_of_an_installed_package_is_not_a_missing_package(monkeypatch):
    def broken(_name):
        raise ModuleNotFoundError("No module named 'tenacity'", name="tenacity")

    monkeypatch.setattr(installation.importlib, "import_module", broken)
    with pytest.raises(ModuleNotFoundError, match="tenacity") as raised:
        installation.import_extra("plotly.graph_objects", "charts")

    assert not isinstance(raised.value, MissingPackageError)


def test_no_message_installs_gpuviz_from_an_index_where_another_could_own_the_name():
    sources = [*(ROOT / "gpuviz").rglob("*.py"), *(ROOT / "extension/src").rglob("*.ts")]
    command = re.compile(r"pip install ['\"]?gpuviz")

    assert [path for path in sources if command.search(path.read_text())] == []
