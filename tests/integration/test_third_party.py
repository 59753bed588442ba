"""The notices of bundled software, and the list of it, against what is in a wheel."""

import json
import re
import subprocess
import sys
import zipfile
from html import unescape
from pathlib import Path

import pytest

import gpuviz
from gpuviz.report.viewer import write_viewer

ROOT = Path(__file__).parents[2]
STATIC = ROOT / "gpuviz" / "static"


def words(text):
    return " ".join(text.split())


@pytest.fixture(scope="module")
def files(wheel):
    with zipfile.ZipFile(wheel) as archive:
        found = {name: archive.read(name) for name in archive.namelist()}
    return {re.sub(r"^gpuviz-[^/]*/(data/)?", "", name): found[name] for name in found}


@pytest.fixture(scope="module")
def listed(files):
    sbom = json.loads(files["sboms/gpuviz.cdx.json"])
    return {component["name"]: component for component in sbom["components"]}


def bundled():
    return json.loads((STATIC / "components.json").read_text())


def test_the_notices_are_those_of_what_is_bundled(tmp_path):
    script = ROOT / "scripts" / "third_party.py"
    subprocess.run([sys.executable, script, "notices", tmp_path / "made"], check=True)

    assert (tmp_path / "made").read_text() == (ROOT / "THIRD_PARTY_NOTICES.txt").read_text()


def test_a_wheel_has_the_licence_of_all_that_its_list_names(files, listed):
    notices = files["licenses/THIRD_PARTY_NOTICES.txt"].decode()
    names = re.findall(r"^={80}\n(.+)\n={80}$", notices, re.MULTILINE)

    assert sorted(names) == sorted(listed)
    assert {each["name"] for each in bundled()} | {"nanobind"} == set(listed)
    assert b"Apache License" in files["licenses/licenses/Apache-2.0.txt"]


def test_the_list_names_versions_and_licences(listed):
    versions = {each["name"]: each["version"] for each in bundled()}

    assert {name: listed[name]["version"] for name in versions} == versions
    assert listed["@uwdata/flechette"]["purl"].startswith("pkg:npm/%40uwdata/flechette@")
    assert listed["nanobind"]["licenses"] == [{"license": {"id": "BSD-3-Clause"}}]
    assert listed["llvm-project"]["licenses"] == [{"expression": "Apache-2.0 WITH LLVM-exception"}]


def test_the_list_names_each_package_of_which_a_script_has_code(files, listed):
    # The marks of packages whose code was in a bundle at some time; another one adds its own.
    marks = {"@uwdata/flechette": b"ARROW1", "@rspack/core": b"rspackChunk"}
    scripts = b"".join(content for name, content in files.items() if name.endswith(".js"))

    assert {name for name, mark in marks.items() if mark in scripts} <= set(listed)


@pytest.mark.parametrize("script", ["report.js", "widget.js"])
def test_a_script_begins_with_the_licence_of_the_arrow_reader(files, script):
    [reader] = [each for each in bundled() if each["name"] == "@uwdata/flechette"]
    comment = files[f"gpuviz/static/{script}"].decode().partition("*/")[0]

    assert words(reader["text"]) in words(comment)


def test_a_report_contains_the_licence_of_the_arrow_reader(tmp_path):
    gpu = gpuviz.SimulatedGPU()
    with gpuviz.record(device=gpu) as recorder:
        gpu.empty(1234)
    page = recorder.recording.report(tmp_path / "run.html").read_text()

    assert "Copyright (c) 2024, UW Interactive Data Lab" in page


def test_the_viewer_contains_the_licences_of_the_libraries_in_its_reader(tmp_path):
    page = words(unescape(write_viewer(tmp_path / "viewer.html").read_text()))
    linked = [each for each in bundled() if each.get("ecosystem") == "generic"]

    assert {each["name"] for each in linked} == {"llvm-project", "musl", "wasi-libc", "zig"}
    assert all(words(each["text"]) in page for each in linked)


def test_the_extension_has_its_licences_where_jupyterlab_looks_for_them(files):
    folder = "share/jupyter/labextensions/gpuviz/static"
    packages = json.loads(files[f"{folder}/third-party-licenses.json"])["packages"]

    of_npm = {each["name"] for each in bundled() if "ecosystem" not in each}
    assert {each["name"] for each in packages} == of_npm
    assert all(each["extractedText"] for each in packages)
