"""The version of gpuviz: that of the tag of the commit, else of the release in development.

A tag such as ``v0.1.0`` names a release. An editable install, a wheel of any other commit, and a
copy without git or tags have the version ``next`` of pyproject.toml with ``.dev0``. An sdist keeps
the version that it was made with.
"""

import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_TAG = re.compile(r"v(\d+\.\d+\.\d+(?:(?:a|b|rc)\d+)?)")


def dynamic_metadata(
    settings: Mapping[str, Any],
    project: Mapping[str, Any],  # noqa: ARG001 - the build passes it
) -> dict[str, str]:
    """Return the version for the build."""
    return {"version": version_of(Path.cwd(), settings["next"])}


def version_of(root: Path, following: str) -> str:
    """Return the version of the sources in a folder."""
    packaged = root / "PKG-INFO"
    if packaged.exists():
        found = re.search(r"^Version: (\S+)$", packaged.read_text(encoding="utf-8"), re.MULTILINE)
        if found:
            return found[1]
    tags = _tags(root)
    return tags[-1] if tags else f"{following}.dev0"


def _tags(root: Path) -> list[str]:
    """Return the versions of the tags of the commit, without changes since, the oldest first."""
    if not (root / ".git").exists():
        return []
    # Pre-releases come before their release.
    suffixes = [f"versionsort.suffix={each}" for each in ("a", "b", "rc")]
    options = [part for each in (f"safe.directory={root}", *suffixes) for part in ("-c", each)]
    git = ("git", *options, "-C", str(root))
    try:
        changed = _output(*git, "status", "--porcelain", "--untracked-files=no")
        named = _output(*git, "tag", "--points-at", "HEAD", "--sort=version:refname")
    except (OSError, subprocess.CalledProcessError):
        return []
    return [] if changed else [found[1] for found in map(_TAG.fullmatch, named.split()) if found]


def _output(*command: str) -> str:
    done = subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603
    return done.stdout
