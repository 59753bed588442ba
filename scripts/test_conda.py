"""Builds conda/recipe.yaml into a package and runs its tests, without conda's channels.

Usage: scripts/setup dev conda && python -m scripts.test_conda VERSION, where dist/ has the sdist of
that version.

The recipe's requirements come from a channel that is made here: this Python, the distributions of
this environment, and empty packages in place of the compiler and its C library, which are the
system's. So a package that passes has the recipe's files and dependencies, but links to this
system's glibc.
"""

import argparse
import asyncio
import io
import json
import os
import re
import sys
import tarfile
import tempfile
import warnings
from collections.abc import Iterator
from importlib.metadata import Distribution, distribution
from pathlib import Path

import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from rattler.index import index_fs
from rattler_build import Package
from rattler_build.cli_api import build_recipes

ROOT = Path(__file__).parents[1]
RECIPE = ROOT / "conda" / "recipe.yaml"
PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
LIBRARY = f"lib/python{PYTHON}"
PLATFORM = "linux-64"
# conda's packages of CUDA's headers, and the wheels that have them.
HEADERS = {
    "cuda-crt-dev": "nvidia-cuda-crt",
    "cuda-cudart-dev": "nvidia-cuda-runtime",
    "cuda-cupti-dev": "nvidia-cuda-cupti",
}
# What the recipe's functions for a C++ compiler and its C library stand for.
OF_THE_SYSTEM = {"gxx_linux-64": "14.0", "sysroot_linux-64": "2.28"}
# Programs that are Python only as wheels: conda's build environment has no Python.
PROGRAMS = ("cmake", "ninja")
# Parts of a Python that no build needs.
OMITTED = {"site-packages", "test", "tests", "idlelib", "__pycache__"}
Files = dict[str, Path | bytes]


def write_package(channel: Path, name: str, version: str, files: Files, depends: list[str]) -> None:
    """Write a package of conda into a channel."""
    build = "0_cpython" if name == "python" else "0"
    index = {"name": name, "version": version, "build": build, "build_number": 0}
    index |= {"depends": depends, "subdir": PLATFORM}
    parts = {path: each for path, each in files.items() if isinstance(each, bytes)}
    parts |= {
        "info/index.json": json.dumps(index).encode(),
        "info/files": "\n".join(files).encode(),
    }
    with tarfile.open(
        channel / PLATFORM / f"{name}-{version}-{build}.tar.bz2", "w:bz2", compresslevel=1
    ) as tar:
        for path, content in parts.items():
            entry = tarfile.TarInfo(path)
            entry.size, entry.mode = len(content), 0o755
            tar.addfile(entry, io.BytesIO(content))
        for path, each in files.items():
            if isinstance(each, Path):
                tar.add(each.resolve(), path, recursive=False)


def files_below(folder: Path, place: str = "") -> Files:
    """Return the files of a folder by their paths in a package."""
    found = (each.relative_to(folder) for each in folder.rglob("*") if each.is_file())
    return {str(place / each): folder / each for each in found if not OMITTED & {*each.parts}}


def files_of(wheel: Distribution) -> Files:
    """Return the files of an installed distribution by their paths in a package."""
    prefix = Path(sys.prefix).resolve()
    found: Files = {}
    for each in wheel.files or ():
        path = Path(str(wheel.locate_file(each))).resolve()
        if path.is_file() and path.is_relative_to(prefix) and "__pycache__" not in path.parts:
            content = path.read_bytes() if path.parent.name == "bin" else b""
            is_script = content.startswith(b"#!")
            _, _, program = content.partition(b"\n")
            name = str(path.relative_to(prefix))
            found[name] = b"#!/usr/bin/env python\n" + program if is_script else path
    return found


def needed(names: list[str]) -> Iterator[Distribution]:
    """Yield installed distributions and those that they need."""
    seen: set[str] = set()
    while names:
        name = canonicalize_name(names.pop())
        if name not in seen:
            seen.add(name)
            wheel = distribution(name)
            names += requirements(wheel)
            yield wheel


def requirements(wheel: Distribution) -> list[str]:
    """Return the names of what a distribution needs here, without extras."""
    found = map(Requirement, wheel.requires or ())
    return [each.name for each in found if not each.marker or each.marker.evaluate({"extra": ""})]


def headers_of(wheel: Distribution) -> Files:
    """Return the headers of a distribution of CUDA where conda has them."""
    found = (str(each).partition("/include/") for each in wheel.files or ())
    return {
        f"targets/x86_64-linux/include/{path}": Path(
            str(wheel.locate_file(f"{top}/include/{path}"))
        )
        for top, _, path in found
        if path and not path.endswith(".pyc")
    }


def program_of(wheel: Distribution) -> Files:
    """Return a program that a distribution brings, without its Python."""
    whole = files_below(Path(str(wheel.locate_file(wheel.name))) / "data")
    return whole or {path: each for path, each in files_of(wheel).items() if path[:4] == "bin/"}


def fill(channel: Path, recipe: dict[str, dict[str, list[str]]]) -> None:
    """Write packages of all that the recipe requires into a channel."""
    base = Path(sys.base_prefix)
    python = files_below(base / LIBRARY, LIBRARY) | files_below(base / "include", "include")
    python |= {f"lib/{each.name}": each for each in base.glob("lib/libpython*.so*")}
    python |= {f"bin/{name}": Path(sys.executable) for name in ("python", f"python{PYTHON}")}
    write_package(channel, "python", ".".join(map(str, sys.version_info[:3])), python, [])
    required = {*recipe["requirements"]["host"], *recipe["requirements"]["run"]}
    names = {re.split(r"[ <>=]", each)[0] for each in required} - {"python", *HEADERS}
    for wheel in needed(sorted(names)):
        name, *depends = map(canonicalize_name, [wheel.name, *requirements(wheel)])
        write_package(channel, name, wheel.version, files_of(wheel), ["python", *depends])
    for name, of in HEADERS.items():
        wheel = distribution(of)
        write_package(channel, name, wheel.version, headers_of(wheel), [])
    for name in PROGRAMS:
        wheel = distribution(name)
        write_package(channel, name, wheel.version, program_of(wheel), [])
    for name, version in OF_THE_SYSTEM.items():
        write_package(channel, name, version, {f"share/{name}": b""}, [])


def main() -> int:
    """Build and test the package; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m scripts.test_conda")
    parser.add_argument("version", metavar="VERSION")
    version = parser.parse_args().version
    os.environ["GPUVIZ_VERSION"] = version
    warnings.simplefilter("ignore", DeprecationWarning)
    with tempfile.TemporaryDirectory() as folder:
        channel = Path(folder, "channel")
        for subdir in (PLATFORM, "noarch"):
            (channel / subdir).mkdir(parents=True)
        fill(channel, yaml.safe_load(RECIPE.read_text(encoding="utf-8")))
        asyncio.run(index_fs(channel))
        variants = Path(folder, "variants.yaml")
        stdlib = yaml.safe_load((ROOT / "conda" / "variants.yaml").read_text(encoding="utf-8"))
        variants.write_text(yaml.safe_dump(stdlib | {"python": [f"{PYTHON}.*"]}), encoding="utf-8")
        made = Path(folder, "made")
        local = {"use_zstd": False, "use_bz2": False, "use_sharded": False}
        build_recipes(
            [RECIPE],
            channel=[channel.as_uri()],
            variant_config=[str(variants)],
            output_dir=made,
            test="skip",
            **local,
        )
        [path] = (made / PLATFORM).glob("gpuviz-*.conda")
        results = Package.from_file(path).run_tests(channel=[channel.as_uri()], **local)
        print(*("\n".join(each.output) for each in results), sep="\n")
        print(f"{path.name}: {path.stat().st_size / 1e6:.1f} MB, {[*map(str, results)]}")
        return 0 if results and all(each.success for each in results) else 1


if __name__ == "__main__":
    sys.exit(main())
