"""The installed doctor on a machine without a GPU, or with all GPUs hidden."""

import json

import pytest

from gpuviz.commands.doctor import verdict
from gpuviz.doctor.finding import Finding
from tests.integration.commands.programs import GPUVIZ, PYTHON, run

NO_GPU = {"CUDA_VISIBLE_DEVICES": "-1"}


def test_a_machine_without_a_gpu_is_told_so_in_plain_words(tmp_path):
    done = run([GPUVIZ, "doctor"], tmp_path, environment=NO_GPU)
    words = " ".join(done.stdout.split())

    assert (done.returncode, done.stderr) == (1, "")
    assert "GPU programs cannot be recorded on this machine." in words
    assert "cupy-cuda" in words
    assert words.endswith("This machine cannot record; the problem is with: driver.")


def test_programs_can_read_what_the_doctor_finds(tmp_path):
    environment = NO_GPU | {"CUDA_LAUNCH_BLOCKING": "1"}
    done = run([GPUVIZ, "doctor", "--json"], tmp_path, environment=environment)
    told = json.loads(done.stdout)
    by_topic = {finding["topic"]: finding for finding in told["findings"]}

    assert done.returncode == 1
    assert told["can_record"] is False
    assert by_topic["driver"]["level"] == "problem"
    assert by_topic["platform"]["level"] == "ok"
    assert [each["level"] for each in told["findings"] if "BLOCKING=1" in each["found"]] == [
        "warning"
    ]


@pytest.mark.parametrize("option", ["--try", "--calibrate"])
def test_trying_where_there_is_no_gpu_is_one_more_finding(option, tmp_path):
    done = run([GPUVIZ, "doctor", option, "--json"], tmp_path, environment=NO_GPU)
    [attempt] = [each for each in json.loads(done.stdout)["findings"] if each["topic"] == "attempt"]

    assert (done.returncode, attempt["level"]) == (1, "problem")
    assert "DeviceUnavailableError" in attempt["found"]


def test_the_doctor_loads_no_table_and_no_chart(tmp_path):
    heavy = ("pyarrow", "plotly", "ipywidgets", "anywidget", "pandas")
    code = (
        "import sys\nfrom gpuviz.commands import doctor\n"
        "doctor.run(as_json=True, attempt=False)\n"
        f"sys.exit(str([name for name in {heavy} if name in sys.modules]))"
    )
    done = run([PYTHON, "-c", code], tmp_path)

    assert done.stderr == "[]\n"


@pytest.mark.parametrize(
    ("levels", "sentence"),
    [
        (["ok"], "This machine can record."),
        (["ok", "warning", "warning"], "This machine can record, with limits: thing 1, thing 2."),
        (["warning", "problem"], "This machine cannot record; the problem is with: thing 1."),
    ],
)
def test_the_verdict_is_one_sentence(levels, sentence):
    found = [Finding(f"thing {n}", level, "") for n, level in enumerate(levels)]

    assert verdict(found) == sentence
