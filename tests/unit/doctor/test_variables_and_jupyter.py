import json

import pytest

from gpuviz.doctor import jupyter, variables
from gpuviz.doctor.machine import Machine


def told(findings):
    return [(finding.level, finding.found) for finding in findings]


@pytest.mark.parametrize(
    ("name", "value", "level"),
    [
        ("CUDA_LAUNCH_BLOCKING", "1", "warning"),
        ("CUDA_VISIBLE_DEVICES", "0", "ok"),
        ("CUDA_VISIBLE_DEVICES", "", "ok"),
        ("CUDA_DEVICE_MAX_CONNECTIONS", "1", "warning"),
        ("CUDA_INJECTION64_PATH", "/opt/tool.so", "warning"),
        ("NVTX_INJECTION64_PATH", "/opt/tool.so", "warning"),
        ("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "20", "warning"),
        ("CUPY_GPU_MEMORY_LIMIT", "4294967296", "warning"),
        ("CUPY_TF32", "1", "ok"),
        ("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True", "ok"),
        ("GPUVIZ_ALLOC_CONF", "expandable_segments:True", "ok"),
    ],
)
def test_variables_that_change_results_are_told(name, value, level):
    found = told(variables.findings(Machine(environment={name: value, "PATH": "/bin"})))

    assert found == [(level, f"{name}={value}")]


@pytest.mark.parametrize("environment", [{}, {"CUDA_LAUNCH_BLOCKING": "0"}, {"CUPY_TF32": ""}])
def test_variables_that_change_nothing_are_not_told(environment):
    assert told(variables.findings(Machine(environment=environment))) == []


def test_settings_that_the_allocator_refuses_make_recording_impossible():
    [finding] = variables.findings(Machine(environment={"GPUVIZ_ALLOC_CONF": "no_such:1"}))

    assert finding.level == "problem"
    assert "no_such" in finding.found


def test_other_variables_of_cupy_are_told_together():
    environment = {"CUPY_CACHE_DIR": "/x", "CUPY_ACME": "1", "CUPY_TF32": "1"}
    found = told(variables.findings(Machine(environment=environment)))

    assert found == [("ok", "CUPY_TF32=1"), ("ok", "CUPY_ACME, CUPY_CACHE_DIR")]


def test_a_toolkit_that_is_not_there_is_told(tmp_path):
    environment = {"CUDA_PATH": f"{tmp_path}/none", "CUDA_HOME": str(tmp_path)}

    assert told(variables.findings(Machine(environment=environment))) == [
        ("warning", f"CUDA_PATH={tmp_path}/none, which does not exist")
    ]


GOOD = {"jupyterlab": "4.6.6", "ipykernel": "7.1.0", "ipywidgets": "8.1.9", "anywidget": "0.11.0"}


@pytest.fixture
def machine(tmp_path):
    return Machine(
        root=tmp_path / "root", prefix=tmp_path / "prefix", home=tmp_path / "home", environment={}
    )


def levels(machine, packages):
    found = jupyter.findings(machine, packages)
    return {finding.topic: finding.level for finding in found}


def test_good_versions_are_good(machine):
    assert set(levels(machine, GOOD).values()) == {"ok"}


@pytest.mark.parametrize(
    ("name", "version", "level"),
    [
        ("ipykernel", "6.31.0", "ok"),
        ("ipykernel", "7.0.0", "warning"),
        ("ipykernel", "7.0.1", "warning"),
        ("ipykernel", "7.1.0", "ok"),
        ("ipykernel", "7.4.0", "ok"),
        ("jupyterlab", "4.1.8", "warning"),
        ("jupyterlab", "3.6.0", "warning"),
        ("jupyterlab", "4.2.0", "ok"),
        ("ipywidgets", "7.8.1", "warning"),
    ],
)
def test_versions_with_known_faults_are_told(machine, name, version, level):
    assert levels(machine, GOOD | {name: version})[name] == level


@pytest.mark.parametrize("name", ["ipywidgets", "anywidget"])
def test_packages_that_views_need_are_missed(machine, name):
    packages = {package: version for package, version in GOOD.items() if package != name}

    assert levels(machine, packages)[name] == "warning"


def test_an_environment_without_jupyterlab_says_so(machine):
    found = list(jupyter.findings(machine, {"ipywidgets": "8.1.9", "anywidget": "0.11.0"}))

    assert found[-1].found == "not in this Python environment"


def extension(machine):
    return list(jupyter.findings(machine, GOOD))[-1]


@pytest.mark.parametrize(
    "place", ["prefix/share/jupyter", "home/.local/share/jupyter", "root/usr/local/share/jupyter"]
)
def test_the_labextension_is_found_wherever_jupyterlab_looks(machine, tmp_path, place):
    before = extension(machine).found
    folder = tmp_path / place / "labextensions/gpuviz"
    folder.mkdir(parents=True)
    (folder / "package.json").write_text("{}")

    assert (before, extension(machine).found) == ("not installed", "installed and enabled")


@pytest.mark.parametrize(
    ("disabled", "level"),
    [
        ({"gpuviz": True}, "warning"),
        ({"gpuviz:plugin": True}, "warning"),
        (["gpuviz"], "warning"),
        ({"gpuviz": False}, "ok"),
        ({"other": True}, "ok"),
    ],
)
@pytest.mark.parametrize("place", ["home/.jupyter", "prefix/etc/jupyter", "root/etc/jupyter"])
def test_a_labextension_that_is_disabled_is_told(machine, tmp_path, disabled, level, place):
    folder = tmp_path / "prefix/share/jupyter/labextensions/gpuviz"
    folder.mkdir(parents=True)
    (folder / "package.json").write_text("{}")
    config = tmp_path / place / "labconfig/page_config.json"
    config.parent.mkdir(parents=True)
    config.write_text(json.dumps({"disabledExtensions": disabled}))

    assert extension(machine).level == level


@pytest.mark.parametrize("text", ["", "[]", "{", '{"disabledExtensions": null}'])
def test_a_page_config_that_cannot_be_read_disables_nothing(machine, tmp_path, text):
    folder = tmp_path / "prefix/share/jupyter/labextensions/gpuviz"
    folder.mkdir(parents=True)
    (folder / "package.json").write_text("{}")
    config = tmp_path / "home/.jupyter/labconfig/page_config.json"
    config.parent.mkdir(parents=True)
    config.write_text(text)

    assert extension(machine).level == "ok"
