"""Jupyter packages of this environment."""

import json
import re
from collections.abc import Iterator, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from gpuviz.doctor.finding import Finding, Level
from gpuviz.doctor.machine import Machine

EXTENSION = "gpuviz"
_PACKAGES = ("jupyterlab", "notebook", "ipykernel", "ipywidgets", "anywidget")
_SERVERS = ("jupyterlab", "notebook")
# Versions with known problems: pattern, level, meaning, remedy.
_FAULTS: dict[str, tuple[tuple[str, Level, str, str], ...]] = {
    "ipykernel": (
        (
            r"7\.0\..*",
            "warning",
            "Messages of threads do not reach the notebook, so live views do not update.",
            "pip install 'ipykernel>=6.29,!=7.0.*'",
        ),
        (
            r"7\.4\.0",
            "ok",
            "Widgets respond after the cell has ended, as in ipykernel 6; views still update.",
            "",
        ),
    ),
    "jupyterlab": (
        (
            r"[123]\..*|4\.[01]\..*",
            "warning",
            "gpuviz needs JupyterLab 4.2 or newer.",
            "pip install --upgrade jupyterlab",
        ),
    ),
    "ipywidgets": (
        (
            r"[1-7]\..*",
            "warning",
            "Views need ipywidgets 8.1 or newer.",
            "pip install --upgrade ipywidgets",
        ),
    ),
}


def installed() -> dict[str, str]:
    """Return the versions of the relevant installed packages."""
    found = {}
    for name in _PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def findings(machine: Machine, packages: Mapping[str, str]) -> Iterator[Finding]:
    """Yield findings about gpuviz's views in Jupyter.

    Args:
        machine: The machine, for the extension.
        packages: The result of `installed`.
    """
    for name in ("ipywidgets", "anywidget"):
        if name not in packages:
            meaning = "Live views and timelines in notebooks need this package."
            yield Finding(name, "warning", "not installed", meaning, f"pip install {name}")
    for name, found in packages.items():
        yield _package(name, found)
    if not any(name in packages for name in _SERVERS):
        meaning = "The Jupyter server may run in another environment; check that one too."
        yield Finding("JupyterLab", "ok", "not in this Python environment", meaning)
        return
    yield _extension(machine)


def _package(name: str, found: str) -> Finding:
    for pattern, level, meaning, remedy in _FAULTS.get(name, ()):
        if re.fullmatch(pattern, found):
            return Finding(name, level, found, meaning, remedy)
    return Finding(name, "ok", found)


def _extension(machine: Machine) -> Finding:
    topic = "labextension"
    if not any(
        (folder / EXTENSION / "package.json").exists() for folder in _extension_folders(machine)
    ):
        meaning = (
            "JupyterLab's panel, menus and file viewer are not available; views in cells do not "
            "need them."
        )
        return Finding(topic, "ok", "not installed", meaning)
    by = next((path for path in _page_configs(machine) if _disables(path)), None)
    if by is not None:
        meaning = "JupyterLab does not load gpuviz's extension."
        remedy = f"jupyter labextension enable {EXTENSION}"
        return Finding(topic, "warning", f"disabled by {by}", meaning, remedy)
    return Finding(topic, "ok", "installed and enabled")


def _extension_folders(machine: Machine) -> Iterator[Path]:
    own = machine.environment.get("JUPYTER_PATH", "")
    yield from (Path(folder) / "labextensions" for folder in own.split(":") if folder)
    data = machine.environment.get("JUPYTER_DATA_DIR")
    yield Path(data or machine.home / ".local/share/jupyter") / "labextensions"
    yield machine.prefix / "share/jupyter/labextensions"
    for folder in ("usr/local/share", "usr/share"):
        yield machine.root / folder / "jupyter/labextensions"


def _page_configs(machine: Machine) -> Iterator[Path]:
    config = machine.environment.get("JUPYTER_CONFIG_DIR")
    for folder in (
        Path(config or machine.home / ".jupyter"),
        machine.prefix / "etc/jupyter",
        machine.root / "usr/local/etc/jupyter",
        machine.root / "etc/jupyter",
    ):
        yield folder / "labconfig/page_config.json"
    yield machine.prefix / "share/jupyter/lab/settings/page_config.json"


def _disables(page_config: Path) -> bool:
    try:
        config = json.loads(page_config.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    disabled = config.get("disabledExtensions") if isinstance(config, dict) else None
    if isinstance(disabled, dict):
        disabled = [name for name, is_off in disabled.items() if is_off]
    names = disabled if isinstance(disabled, list) else []
    return any(str(name).partition(":")[0] == EXTENSION for name in names)
