"""A program behaves the same with ``gpuviz run`` and ``python``."""

import signal
import subprocess

import pytest

from gpuviz.commands.startup.sitecustomize import ENDED_EARLY
from tests.integration.commands.programs import GPUVIZ, PYTHON, outcome, run, said
from tests.patience import wait_until_asleep

PROGRAMS = {
    "nothing": "pass",
    "arguments": "import sys; print(sys.argv, sys.orig_argv[1:], sys.flags)",
    "main": "print(__name__, __file__, getattr(__spec__, 'name', 0), __package__, __cached__)",
    "path": "import sys, os; print(sys.path, os.environ.get('PYTHONPATH'), len(os.environ))",
    "modules": "import sys; print(sorted(set(sys.modules) - {'sitecustomize', 'atexit'}))",
    "neighbour": "import neighbour; print(neighbour.__file__)",
    "stdin": "import sys; print(sys.stdin.read(), sys.stdin.isatty())",
    "exception": "def f():\n    raise ValueError('no luck')\n\nf()",
    "chained": "try:\n    1 / 0\nexcept ZeroDivisionError as e:\n    raise KeyError('k') from e",
    "syntax": "def f(:\n    pass",
    "interrupt": "raise KeyboardInterrupt",
    "exit 3": "import sys; sys.exit(3)",
    "exit text": "import sys; sys.exit('a reason')",
    "exit none": "raise SystemExit",
    "exit object": "raise SystemExit([1, 2])",
    "exit at once": "import os; print('lost'); os._exit(7)",
    "abort": "import os; os.abort()",
    "terminate": "import os, signal; os.kill(os.getpid(), signal.SIGTERM)",
    "kill": "import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
    "atexit": "import atexit; atexit.register(print, 'bye'); atexit.register(int, 'one')",
    "warning": "import warnings; warnings.warn('careful')",
    "thread": "import threading; threading.Thread(target=lambda: 1 / 0).start()",
    "failing import": "import broken",
    "missing import": "import absent",
    "closed stderr": "import sys; sys.stderr.close(); sys.stderr = None",
    "fork": (
        "import os, sys\nif os.fork() == 0:\n    print('child')\n    sys.exit(5)\n"
        "print(os.waitstatus_to_exitcode(os.wait()[1]))"
    ),
    "excepthook": "import sys\nsys.excepthook = lambda *a: print('hooked', a[0])\nraise OSError",
    "recursion": "def f(n):\n    return f(n + 1)\n\nf(0)",
    **{
        f"multiprocessing {way}": (
            "import multiprocessing as m, sys\n"
            "def f(x):\n    return x * x, __name__ in ('__main__', '__mp_main__')\n"
            "if __name__ == '__main__':\n"
            f"    with m.get_context('{way}').Pool(1) as pool:\n"
            "        print(pool.map(f, [1, 2, 3]))\n"
        )
        for way in ("fork", "spawn", "forkserver")
    },
}


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "neighbour.py").write_text("")
    (tmp_path / "broken.py").write_text("import email.nothing")
    return tmp_path


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_script_does_the_same(folder, name):
    (folder / "script.py").write_text(PROGRAMS[name])
    arguments = ["script.py", "--output", "x", "-m", "--", "é"]
    plain = run([PYTHON, *arguments], folder, text="typed")
    recorded = run([GPUVIZ, "run", *arguments], folder, text="typed")

    assert outcome(recorded) == outcome(plain)
    assert list(folder.glob("*.gpuviz*")) == []


@pytest.mark.parametrize("name", ["arguments", "main", "path", "exception", "exit 3", "neighbour"])
@pytest.mark.parametrize("way", ["module", "package", "code", "stdin", "folder"])
def test_modules_code_and_folders_do_the_same(folder, name, way):
    package = folder / "package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "__main__.py").write_text(PROGRAMS[name])
    (package / "module.py").write_text(PROGRAMS[name])
    (package / "neighbour.py").write_text("")
    arguments = {
        "module": ["-m", "package.module", "-q"],
        "package": ["-mpackage", "--force"],
        "code": ["-c", PROGRAMS[name], "--force"],
        "stdin": ["-", "--force"],
        "folder": ["package", "--force"],
    }[way]
    text = PROGRAMS[name] if way == "stdin" else ""
    plain = run([PYTHON, *arguments], folder, text=text)
    recorded = run([GPUVIZ, "run", *arguments], folder, text=text)

    assert outcome(recorded) == outcome(plain)


@pytest.mark.parametrize("arguments", [["absent.py"], ["-m", "absent"], ["-c", "1 +"]])
def test_what_python_cannot_run_is_told_as_python_does(folder, arguments):
    plain = run([PYTHON, *arguments], folder)
    recorded = run([GPUVIZ, "run", *arguments], folder)

    assert outcome(recorded) == outcome(plain)
    assert plain.returncode != 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_does_the_same(folder, number):
    program = "import time\nprint('ready', flush=True)\ntime.sleep(60)"
    (folder / "script.py").write_text(program)
    ends = []
    for command in ([PYTHON], [GPUVIZ, "run", "--quiet"]):
        with subprocess.Popen(
            [*command, "script.py"],
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            process.stdout.readline()
            wait_until_asleep(process.pid)
            process.send_signal(number)
            ends.append((*process.communicate(timeout=60), process.returncode))

    assert ends[0] == ends[1]
    assert ends[0][2] == -number


def test_variables_for_python_keep_their_meaning(folder):
    (folder / "script.py").write_text("import sys; print(sys.path, sys.flags, sys.warnoptions)")
    environment = {"PYTHONPATH": f"{folder}/a:{folder}/b", "PYTHONDEVMODE": "1"}
    plain = run([PYTHON, "script.py"], folder, environment=environment)
    recorded = run([GPUVIZ, "run", "script.py"], folder, environment=environment)

    assert outcome(recorded) == outcome(plain)
    assert f"{folder}/a" in plain.stdout


@pytest.mark.parametrize("text", ["print('own')", "1 / 0", "import absent"])
def test_a_sitecustomize_of_ones_own_runs_too(folder, text):
    (folder / "own").mkdir()
    (folder / "own" / "sitecustomize.py").write_text(text)
    (folder / "script.py").write_text("import sys; print('sitecustomize' in sys.modules)")
    environment = {"PYTHONPATH": f"{folder}/own"}
    plain = run([PYTHON, "script.py"], folder, environment=environment)
    recorded = run([GPUVIZ, "run", "script.py"], folder, environment=environment)

    # It runs in the same process as the command.
    assert recorded.returncode == plain.returncode
    assert recorded.stdout == plain.stdout.replace("own\n", "own\nown\n")
    assert outcome(recorded)[2] == plain.stderr * 2


@pytest.mark.parametrize("body", ["import absent", "1 / 0", "raise ImportError('no library')"])
def test_a_cupy_that_cannot_be_imported_has_its_own_traceback(folder, body):
    (folder / "cupy").mkdir()
    (folder / "cupy" / "__init__.py").write_text(f"def load():\n    {body}\n\nload()\n")
    (folder / "script.py").write_text("def f():\n    import cupy\n\nf()")
    plain = run([PYTHON, "script.py"], folder)
    recorded = run([GPUVIZ, "run", "script.py"], folder)

    assert outcome(recorded) == outcome(plain)
    assert said(recorded) == [f"nothing was recorded: {ENDED_EARLY}"]


def test_what_comes_before_the_program_loads_no_library(folder):
    heavy = ("rich", "pyarrow", "numpy", "cupy", "gpuviz._core")
    code = (
        "import os, sys\n"
        f"os.execve = lambda *_: print([name for name in {heavy} if name in sys.modules])\n"
        "sys.argv = ['gpuviz', 'run', 'script.py']\n"
        "from gpuviz.commands.main import main\nmain()\n"
    )

    assert run([PYTHON, "-c", code], folder).stdout == "[]\n"
