"""Allowed imports between rooms in C++, Python and TypeScript. A file without a rule fails."""

import ast
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest

from gpuviz import allocators

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "gpuviz"
NATIVE = PACKAGE / "native"
TYPESCRIPT = ROOT / "extension" / "src"
TYPESCRIPT_TESTING = ROOT / "extension" / "testing"

# The packages of client libraries, by the only module that imports them.
CLIENTS = {
    "cupy": {"cupy", "cupyx"},
    "torch": {"torch"},
    "numba": {"numba"},
    "cuda_core": {"cuda"},
    "rmm": {"rmm"},
}

# A layer, and the layers that it may import besides itself.
CPP = {
    "device": set[str](),
    "record": set[str](),
    "state": {"record"},
    "analysis": set[str](),
    "packing": set[str](),
    "hazards": set[str](),
    "allocator": {"device", "record", "hazards"},
    "cupti": {"device", "record"},
    "nvtx": {"record"},
    "nccl": {"record"},
    "simulation": {"device", "record"},
    "replay": {"device", "record", "allocator"},
    "formats": {"record", "state", "allocator", "torch"},
    "torch": {"record", "allocator"},
    "clients": {"device", "record", "allocator"},
    "python": {"record", "allocator"},
    "cupy": {"device", "record", "allocator", "python"},
    "bindings": {"device", "record", "state", "analysis", "allocator", "cupti", "nvtx", "nccl"}
    | {
        "packing",
        "hazards",
        "simulation",
        "replay",
        "formats",
        "clients",
        "python",
        "cupy",
        "torch",
    },
    "testing": {"record", "cupti", "python"},
    "viewer": {"record", "state", "analysis", "formats"},
}
# Layers that may include the headers of Python and nanobind.
CPP_PYTHON = {"python", "cupy", "bindings", "testing"}
TS = {
    "base": set[str](),
    "wire": {"base"},
    "model": {"base", "wire"},
    "render": {"base"},
    "view": {"base", "wire", "model", "render"},
    "widget": {"base", "wire", "model", "render", "view"},
    "report": {"base", "wire", "model", "render", "view"},
    "lab": {"base", "wire", "model", "render", "view"},
}
# The rooms in their order: each imports only those before it. A single module has its own place
# where rooms before its own need it.
PYTHON = (
    "terminal",
    "messages",
    "errors",
    "installation",
    "quantities",
    # What a recording is, and its files.
    "data",
    "recorder.status",
    "formats",
    # What follows from it.
    "analysis",
    "merging",
    "exports",
    # What gpuviz says about it.
    "hazards",
    "advice.evidence",
    "advice.rule",
    "advice.source",
    "advice.replay",
    "advice.finding",
    "advice.scale",
    "advice.judged",
    "advice.host_lines",
    "advice.arrays",
    "advice.kernels",
    "advice.host",
    "advice.waits",
    "advice.fusion",
    "advice.precision",
    "advice.reductions",
    "advice.training",
    "advice.needless",
    "advice.reserved",
    "advice.rules",
    "advice",
    "out_of_memory",
    "conclusions",
    "comparison",
    "recording",
    # The process that is recorded.
    "commands.startup",
    "recorder.nvml",
    "recorder.source",
    "recorder.tracer",
    "recorder.cupti_library",
    "recorder.calibration",
    "recorder.cupti",
    "recorder.prevention",
    "recorder.samples",
    "recorder.stream_ranges",
    "recorder.ranges",
    "allocator.driver",
    "frameworks.cupy_current",
    "allocator",
    "frameworks",
    "allocators",
    "simulation",
    # Where it is shown.
    "figures",
    "present",
    "report",
    "recording_diff",
    "ownership",
    "recorder",
    "simulation.replay",
    "notebook",
    "server",
    "doctor",
    "dask",
    "testing",
    "commands",
    "__main__",
)
# Rooms that compute with arrays and tables, so that their files import NumPy and pyarrow.
COMPUTING = {
    *("data", "formats", "analysis", "merging", "exports"),
    *(room for room in PYTHON if room.split(".")[0] == "advice"),
    *("hazards", "out_of_memory", "conclusions", "comparison"),
    *("simulation", "simulation.replay", "figures", "present", "report"),
    *("recorder", "notebook"),
}
# Imports of later rooms, inside functions: values show themselves in notebooks and as pages,
# and the startup hook begins the recording.
LATER = {
    "commands.startup.sitecustomize": {"commands.recorded_run"},
    "advice.finding": {"present.conclusions_html", "present.text"},
    "recording": {"notebook.values", "report.page"},
}


def cpp_files() -> list[Path]:
    return sorted([*NATIVE.rglob("*.hpp"), *NATIVE.rglob("*.cpp")])


@cache
def python_files() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def typescript_files() -> list[Path]:
    return sorted(TYPESCRIPT.rglob("*.ts"))


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("path", cpp_files(), ids=relative)
def test_a_native_file_includes_only_layers_below_it(path):
    layer = path.relative_to(NATIVE).parts[0]
    included = set(re.findall(r'#include "(\w+)/', path.read_text()))

    assert included - CPP[layer] - {layer} == set()


@pytest.mark.parametrize("path", cpp_files(), ids=relative)
def test_python_is_included_only_by_the_rooms_that_serve_it(path):
    included = re.findall(r"#include [<\"](?:nanobind|Python\.h)", path.read_text())

    assert not included or path.relative_to(NATIVE).parts[0] in CPP_PYTHON


@pytest.mark.parametrize("path", cpp_files(), ids=relative)
def test_a_native_file_declares_its_names_in_the_namespace_of_its_room(path):
    opened = set(re.findall(r"^namespace (gpuviz\S*) \{", path.read_text(), re.MULTILINE))

    if path.suffix == ".hpp" or opened:
        assert opened == {"gpuviz::" + path.relative_to(NATIVE).parts[0]}


@pytest.mark.parametrize("path", cpp_files(), ids=relative)
def test_the_gil_is_given_up_only_in_a_way_that_outlives_the_exit_of_python(path):
    nanobinds = re.findall(r"nb::gil_scoped_\w+", path.read_text())

    assert nanobinds == [] or path == NATIVE / "testing" / "module.cpp"


def offenders(
    paths: list[Path], wrong_in: Callable[[Path], Collection[str]]
) -> dict[str, Collection[str]]:
    """Return the offences of each file that has any."""
    return {relative(path): wrong for path in paths if (wrong := wrong_in(path))}


@cache
def imports(path: Path) -> tuple[tuple[str, bool], ...]:
    """Return the absolute name of each import, and whether it runs when the file is imported."""
    return tuple(_imports(path))


def _imports(path: Path) -> Iterator[tuple[str, bool]]:
    tree = tree_of(path)
    package = path.relative_to(ROOT).with_suffix("").parts[:-1]
    at_import = {id(node) for node in statements(tree)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, id(node) in at_import
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else ()
            base = ".".join([*above, *([node.module] if node.module else [])])
            for alias in node.names:
                yield f"{base}.{alias.name}", id(node) in at_import


def typing_imports(path: Path) -> set[str]:
    """Return the modules imported for annotations only."""
    return {
        alias.name
        for block in ast.walk(tree_of(path))
        if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING"
        for node in block.body
        if isinstance(node, ast.Import)
        for alias in node.names
    }


def statements(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield the statements that run on import: no function bodies, no TYPE_CHECKING blocks."""
    for node in ast.iter_child_nodes(tree):
        typing_only = isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) or typing_only:
            continue
        yield node
        yield from statements(node)


@cache
def room_of(module: str) -> str:
    """Return the room of a module, given without its leading ``gpuviz.``."""
    return max(
        (name for name in PYTHON if f"{module}.".startswith(f"{name}.")), key=len, default=""
    )


@cache
def module_of(path: Path) -> str:
    return ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__")


def layer_of(path: Path) -> str:
    return room_of(module_of(path))


def test_a_python_file_imports_only_rooms_before_its_own():
    assert offenders(python_files(), imports_of_later_rooms) == {}


def imports_of_later_rooms(path: Path) -> set[str]:
    module = module_of(path)
    if module == "__init__":
        return set()
    room = room_of(module)
    assert room, f"{module} is in no room"
    wrong = set[str]()
    for name, at_import in imports(path):
        target = name.removeprefix("gpuviz.")
        if not name.startswith("gpuviz.") or not room_of(target):
            continue
        is_known = not at_import and any(
            f"{target}.".startswith(f"{each}.") for each in LATER.get(module, ())
        )
        if PYTHON.index(room_of(target)) > PYTHON.index(room) and not is_known:
            wrong.add(name)
    return wrong


def test_no_python_files_import_each_other_in_a_circle():
    edges = {module_of(path): imported_modules(path) for path in python_files()}

    assert in_circles(edges) == {}


def in_circles(edges: Mapping[str, set[str]]) -> dict[str, set[str]]:
    """Return what files import that are in a circle, or import one that is."""
    found = dict(edges)
    while leaves := {name for name, targets in found.items() if not targets & found.keys()}:
        found = {name: targets for name, targets in found.items() if name not in leaves}
    return found


def imported_modules(path: Path) -> set[str]:
    """Return the modules that a file imports, also in functions, but not for annotations."""
    known = {module_of(each) for each in python_files()}
    presented = LATER.get(module_of(path), set())
    found = set[str]()
    for name, _ in imports(path):
        target = name.removeprefix("gpuviz.")
        if name.startswith("gpuviz."):
            owner = target if target in known else target.rpartition(".")[0]
            found |= {owner} & known - presented
    return found - typing_modules(path) - {module_of(path)}


def typing_modules(path: Path) -> set[str]:
    """Return the modules whose names are imported for annotations only."""
    blocks = [
        node
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    ]
    typing = {id(node) for block in blocks for node in ast.walk(block)}
    real = {
        node.module
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.ImportFrom) and id(node) not in typing
    }
    only = {
        node.module
        for block in blocks
        for node in ast.walk(block)
        if isinstance(node, ast.ImportFrom)
    }
    return {str(name).removeprefix("gpuviz.") for name in only - real}


def imports_from(path: Path, libraries: set[str]) -> set[str]:
    return {name for name, _ in imports(path) if name.split(".")[0] in libraries}


def test_every_library_with_an_allocator_is_among_the_client_libraries():
    files = sorted(path.stem for path in (PACKAGE / "allocators").glob("[!_]*.py"))

    assert files == sorted(CLIENTS) == sorted(allocators.__all__)


@pytest.mark.parametrize("framework", CLIENTS)
def test_a_library_is_imported_only_by_its_framework_and_by_the_programs_to_record(framework):
    users = [PACKAGE / "frameworks" / f"{framework}.py", PACKAGE / "commands" / "workloads"]
    others = [path for path in python_files() if not any(map(path.is_relative_to, users))]

    def wrong(path: Path) -> set[str]:
        return imports_from(path, CLIENTS[framework]) - typing_imports(path)

    assert offenders(others, wrong) == {}


def test_ipython_is_imported_only_by_what_a_notebook_asks_for():
    others = [path for path in python_files() if layer_of(path) != "notebook"]

    assert offenders(others, lambda path: imports_from(path, {"IPython", "ipykernel"})) == {}


def test_heavy_libraries_are_imported_only_when_they_are_needed():
    assert offenders(python_files(), heavy_imports) == {}


def heavy_imports(path: Path) -> set[str]:
    heavy = {"cupy", "cupyx", "plotly", "ipywidgets", "anywidget", "pyarrow.compute"}
    if layer_of(path) not in COMPUTING:
        # Programs and Jupyter servers import these files before they record or show anything.
        heavy |= {"numpy", "pyarrow"}
    if layer_of(path) == "notebook":
        # Widgets derive from their classes; their files are imported only when a widget is created.
        heavy -= {"ipywidgets", "anywidget"}
    return {
        name
        for name, at_import in imports(path)
        if at_import and any(f"{name}.".startswith(f"{each}.") for each in heavy)
    }


def test_only_templates_escape_and_write_tables():
    """HTML made elsewhere is text that `present.markup` fills in and escapes."""

    def wrong(path: Path) -> set[str]:
        escaping = {name for name, _ in imports(path) if name == "html.escape"}
        return escaping | set(re.findall(r"<t(?:able|r|d|h)\b", path.read_text()))

    assert offenders(python_files(), wrong) == {}


def test_headline_numbers_are_worded_in_one_module():
    owner = PACKAGE / "conclusions" / "numbers.py"
    others = [path for path in python_files() if path != owner]

    assert offenders(others, lambda path: re.findall(r"\bNumber\(", path.read_text())) == {}


def test_a_typescript_file_imports_only_layers_below_it():
    assert offenders(typescript_files(), typescript_imports_of_layers_above) == {}


def typescript_imports_of_layers_above(path: Path) -> set[Path]:
    layer = path.relative_to(TYPESCRIPT).parts[0]
    known = [TYPESCRIPT / each for each in TS[layer] | {layer}]
    if path.name.endswith(".test.ts"):
        known.append(TYPESCRIPT_TESTING)
    return {
        target for target in typescript_imports(path) if not any(map(target.is_relative_to, known))
    }


def typescript_imports(path: Path) -> set[Path]:
    found = re.findall(r"""(?:from|import)\s*\(?\s*["'](\.[^"']*)["']""", path.read_text())
    return {(path.parent / target).resolve() for target in found}


def test_no_typescript_files_import_each_other_in_a_circle():
    edges = {
        relative(path): set(map(relative, typescript_imports(path))) for path in typescript_files()
    }

    assert in_circles(edges) == {}


def test_typescript_does_not_reach_the_network():
    reaching = re.compile(r"\b(?:fetch|WebSocket|XMLHttpRequest|EventSource)\s*\(")

    assert offenders(typescript_files(), lambda path: reaching.findall(path.read_text())) == {}
