"""Pages of the reference that follow from the code.

The public names from their docstrings, the commands and magics from their help, the tables of a
recording with the units of their columns, and the settings of JupyterLab. The documentation's
``conf.py`` writes them before each build.
"""

import inspect
import json
import re
from argparse import ArgumentParser
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import click
import pyarrow as pa

import gpuviz
from gpuviz.commands.cli import commands
from gpuviz.data import conclusions, derived, tables
from gpuviz.doctor import variables
from gpuviz.formats.column_units import unit_of
from gpuviz.notebook.arguments import parsers

ROOT = Path(__file__).parents[1]
LAB_SETTINGS = ROOT / "extension" / "labextension" / "schema" / "settings.json"
# The public names by page: title, first sentence, names.
PUBLIC_NAMES = {
    "recording": (
        "Recording a program",
        "A recorder, and what names the parts of a program in it.",
        ("record", "Recorder", "RecorderStatus", "range", "name_stream"),
    ),
    "recordings": (
        "Recordings",
        "Reading, analysing, comparing and merging what was recorded.",
        ("load", "Recording", "merge", "diff", "Diff", "leaks"),
    ),
    "allocator": (
        "The allocator",
        "The functions of `torch.cuda.memory` for gpuviz's allocator, in the running process.",
        (
            *("memory_allocated", "max_memory_allocated", "memory_reserved", "max_memory_reserved"),
            *("mem_get_info", "list_gpu_processes", "memory_stats", "memory_stats_as_nested_dict"),
            *("memory_summary", "memory_snapshot", "reset_peak_memory_stats"),
            *("reset_accumulated_memory_stats", "set_per_process_memory_fraction"),
            *("get_per_process_memory_fraction", "empty_cache", "set_allocator_settings"),
            *("get_allocator_settings", "record_stream", "MemPool", "use_mem_pool", "graph"),
            *("caching_allocator_alloc", "caching_allocator_delete", "malloc", "malloc_pinned"),
            *("empty_host_cache", "host_memory_stats", "host_memory_stats_as_nested_dict"),
            *("reset_peak_host_memory_stats", "reset_accumulated_host_memory_stats", "allocators"),
        ),
    ),
    "notebooks": (
        "Notebooks and clusters",
        "What is shown live, and who keeps memory alive.",
        ("dashboard", "holders", "release", "dask"),
    ),
    "simulation": (
        "Without a GPU",
        "A simulated GPU with gpuviz's own allocator, and replays of recordings.",
        ("SimulatedGPU", "replay"),
    ),
}
# What public functions and methods return, by module.
VALUES = {
    "gpuviz.analysis.peak": ("Peak",),
    "gpuviz.advice.finding": ("Finding",),
    "gpuviz.advice.evidence": ("Line", "Evidence"),
    "gpuviz.hazards.hazard": ("Hazard", "HazardOperation"),
    "gpuviz.analysis.overlap": ("Overlap", "DeviceOverlap", "StreamOverlap"),
    "gpuviz.analysis.steady_state": ("SteadyState",),
    "gpuviz.advice.replay.compensation": ("RecordingCost",),
    "gpuviz.analysis.fragmentation": ("Fragmentation",),
    "gpuviz.analysis.packing": ("Packing",),
    "gpuviz.analysis.host_memory": ("HostMemory",),
    "gpuviz.out_of_memory.failures": ("OutOfMemory",),
    "gpuviz.out_of_memory.verdict": ("FailedRequest",),
    "gpuviz.analysis.processes": ("Process",),
    "gpuviz.analysis.device_links": ("DeviceLink",),
    "gpuviz.ownership.held_memory": ("HeldMemory", "HeldBlock", "Holder", "Release"),
    "gpuviz.allocator.graph": ("Graph",),
    "gpuviz.dask.cluster_recording": ("ClusterRecording",),
    "gpuviz.simulation.stream": ("SimulatedStream", "SimulatedEvent", "SimulatedGraph"),
    "gpuviz.simulation.arrays": ("SimulatedArray", "SimulatedPinnedArray"),
}
# Members of public classes that serve other modules of gpuviz.
PLUMBING = {
    "Recording": (
        *("take_path", "of", "with_manifest", "with_note", "memory_columns", "device_or_first"),
        *("call_stacks", "of_checked"),
    ),
    "Recorder": ("end", "follow_statistics", "read_statistics", "statistics", "verdict"),
    "Diff": ("devices", "lines"),
    "SimulatedGPU": ("source", "tracer"),
    "SimulatedStream": (
        *("allocator", "belongs_to", "captured_addresses", "check_not_capturing"),
        *("is_capturing", "launch"),
    ),
    "HostMemory": ("as_device",),
}
# The allocator modules with functions of their own, beside the names above.
MODULES = {
    "allocators": ("cupy", "torch", "numba", "rmm", "cuda_core"),
}
_CODE = re.compile(r"^```(?:python|ipython)\n(.*?)^```", re.DOTALL | re.MULTILINE)
_ITEM = re.compile(r"^- ``(\w+)``: (.*?)(?=^- ``|^\S|\Z)", re.DOTALL | re.MULTILINE)


def write(folder: Path) -> None:
    """Write the pages into a folder, each only if its text changed."""
    for name, text in pages().items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def pages() -> dict[str, str]:
    """Return the text of each page by its file name, in MyST's Markdown."""
    api = {f"api_{page}.md": _api(*found) for page, found in PUBLIC_NAMES.items()}
    return {
        **api,
        "api_values.md": _values(),
        "api_errors.md": _errors(),
        "commands.md": _commands(),
        "magics.md": _magics(),
        "tables.md": _tables(),
        "environment.md": _environment(),
        "jupyterlab_settings.md": _lab_settings(),
    }


def documented_names() -> set[str]:
    """Return the public names that the pages describe."""
    return {name for _, _, names in PUBLIC_NAMES.values() for name in names}


def _directive(kind: str, name: str, **options: str) -> str:
    lines = [f".. {kind}:: {name}", *(f"   :{key}: {text}" for key, text in options.items())]
    return "\n".join(["```{eval-rst}", *lines, "```"])


def _api(title: str, about: str, names: Iterable[str]) -> str:
    parts = [f"# {title}", about]
    for name in names:
        value = getattr(gpuviz, name)
        parts.append(f"## gpuviz.{name}")
        if isinstance(value, ModuleType):
            parts += _module(name, value)
        elif inspect.isclass(value):
            parts.append(_class(f"gpuviz.{name}"))
        else:
            parts.append(_directive("autofunction", f"gpuviz.{name}"))
        parts.append(_examples(name))
    return _joined(parts)


def _class(path: str) -> str:
    options = {"members": "", "inherited-members": "object"}
    left_out = ", ".join(PLUMBING.get(path.rpartition(".")[2], ()))
    if left_out:
        options["exclude-members"] = left_out
    return _directive("autoclass", path, **options)


def example_pages() -> dict[str, list[Path]]:
    """Return the pages with code that uses each public name."""
    found: dict[str, list[Path]] = {name: [] for name in sorted(documented_names())}
    for page in sorted((ROOT / "docs").rglob("*.md")):
        code = "\n".join(_CODE.findall(page.read_text(encoding="utf-8")))
        for name in set(re.findall(r"\bgpuviz\.(\w+)", code)) & found.keys():
            found[name].append(page)
    return found


def _examples(name: str) -> str:
    pages = example_pages()[name]
    titles = [each.read_text(encoding="utf-8").partition("\n")[0].strip("# ") for each in pages]
    links = [
        f"[{title}](../../{page.relative_to(ROOT / 'docs').as_posix()})"
        for title, page in zip(titles, pages, strict=True)
    ]
    return f"Used in: {', '.join(links)}." if links else ""


def _module(name: str, module: ModuleType) -> Iterator[str]:
    yield _directive("automodule", module.__name__, members="", **{"ignore-module-all": ""})
    for part in MODULES.get(name, ()):
        yield f"### gpuviz.{name}.{part}"
        yield _directive("automodule", f"{module.__name__}.{part}", members="")


def _values() -> str:
    parts = ["# Returned objects", "What the functions and methods of this reference return."]
    for module, names in VALUES.items():
        for name in names:
            parts += [f"## {name}", _class(f"{module}.{name}")]
    return _joined(parts)


def _errors() -> str:
    parts = ["# Exceptions", _directive("automodule", "gpuviz.errors", members="")]
    return _joined(parts)


def _commands() -> str:
    parts = [
        "# Commands",
        (
            "[Using the command line](../command_line.md) describes exit codes, output and what "
            "`gpuviz run` does. Each command prints this with `--help`."
        ),
    ]
    for name, command in sorted(commands.commands.items()):
        context = click.Context(command, info_name=f"gpuviz {name}")
        about, _, examples = (command.help or "").partition("\b")
        usage = " ".join(command.collect_usage_pieces(context))
        parts += [f"## gpuviz {name}", about.strip(), f"```text\ngpuviz {name} {usage}\n```"]
        rows = [
            (_names(each), _effect(each))
            for each in command.params
            if isinstance(each, click.Option)
        ]
        if rows:
            parts.append(_table(("option", "effect"), rows))
        lines = [line.strip("$ ") for line in examples.strip().splitlines()[1:]]
        if lines:
            parts.append("\n".join(["```sh", *lines, "```"]))
    return _joined(parts)


def _names(option: click.Option) -> str:
    has_word = not option.is_flag and not isinstance(option.type, click.Choice)
    value = f" {option.make_metavar(click.Context(commands))}" if has_word else ""
    return ", ".join(f"`{name}{value}`" for name in option.opts)


def _effect(option: click.Option) -> str:
    choices = option.type.choices if isinstance(option.type, click.Choice) else None
    words = f" One of {_listed(choices)}." if choices else ""
    default = f" By default `{option.default}`." if option.show_default else ""
    return f"{option.help or ''}{words}{default}"


def _listed(words: Iterable[Any]) -> str:
    return ", ".join(f"`{each}`" for each in words)


def _magics() -> str:
    parts = [
        "# Magics",
        (
            "`%load_ext gpuviz` defines them. [Notebooks](../../how-to/notebooks.md) describes "
            "what they show."
        ),
    ]
    for parser in parsers():
        parts += [f"## `{parser.prog}`", parser.description or "", *_arguments(parser)]
    return _joined(part.replace("%%%%", "%%") for part in parts)


def _arguments(parser: ArgumentParser) -> Iterator[str]:
    rows = [
        (
            ", ".join(f"`{name}`" for name in action.option_strings) or f"`{action.metavar}`",
            f"{action.help or ''}{_choices(action.choices)}",
        )
        for action in parser._actions  # noqa: SLF001 - argparse has no public list of them
        if "--help" not in action.option_strings and not isinstance(action.choices, dict)
    ]
    if rows:
        yield _table(("argument", "effect"), rows)


def _choices(choices: Iterable[Any] | None) -> str:
    return "" if choices is None else f": {_listed(choices)}"


def _tables() -> str:
    words = {**tables.DICTIONARIES, **derived.DICTIONARIES}
    references = {(table, column): target for table, column, target in tables.REFERENCES}
    parts = [
        "# Tables and columns",
        (
            "`recording.table(name)` returns a table, and a `.gpuviz` file has each as an Arrow "
            "stream. Times are nanoseconds since the recording's start. Ids start at 1, and 0 is "
            "none; devices are ordinals. Row numbers start at 0, and -1 is none."
        ),
    ]
    for title, module in (
        ("Recorded tables", tables),
        ("Derived tables", derived),
        ("Conclusions", conclusions),
    ):
        about = dict(_ITEM.findall(inspect.getdoc(module.schemas) or ""))
        parts.append(f"## {title}")
        for name, schema in module.schemas().items():
            rows = [
                (
                    f"`{field.name}`",
                    _type(words.get((name, field.name)), field.type),
                    unit_of(field.name).decode(),
                    _link(references.get((name, field.name), "")),
                )
                for field in schema
            ]
            parts += [f"### {name}", _sentence(_markdown(about[name]))]
            parts.append(_table(("column", "type or words", "unit", "id in"), rows))
    return _joined(parts)


def _type(words: Iterable[str] | None, kind: pa.DataType) -> str:
    if words is not None:
        return ", ".join(f"`{each}`" for each in words if each)
    is_text = pa.types.is_dictionary(kind)
    return "`string`" if is_text else f"`{kind}`"


def _link(table: str) -> str:
    return table and f"[{table}](#{table})"


def _environment() -> str:
    rows = [
        (f"`{name}`", meaning, remedy) for name, (meaning, remedy) in variables.MEANINGS.items()
    ]
    return _joined(
        [
            "# Variables of CUDA and CuPy",
            (
                "Environment variables of other software that change what a recording shows. "
                "`gpuviz doctor` reports those that are set. gpuviz's own are in "
                "[settings](../settings.md)."
            ),
            _table(("variable", "meaning", "what to do"), rows),
        ]
    )


def _lab_settings() -> str:
    schema = json.loads(LAB_SETTINGS.read_text(encoding="utf-8"))
    rows = [
        (
            f"`{name}`",
            each["title"],
            " ".join([each["description"], *_options(each.get("oneOf", ()))]),
            f"`{json.dumps(each['default'])}`",
        )
        for name, each in schema["properties"].items()
    ]
    return _joined(
        [
            "# Settings of JupyterLab's extension",
            (
                f"{schema['description']} They are in JupyterLab's *Settings*, under "
                f"*{schema['title']}*."
            ),
            _table(("setting", "label", "effect", "default"), rows),
        ]
    )


def _options(choices: Iterable[dict[str, str]]) -> Iterator[str]:
    for each in choices:
        yield f"`{each['const']}`: {each['title']}."


def _markdown(text: str) -> str:
    return " ".join(text.replace("``", "`").split())


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    heads = list(heads)
    lines = [
        heads,
        ["---"] * len(heads),
        *([each.replace("|", "\\|") for each in row] for row in rows),
    ]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _joined(parts: Iterable[str]) -> str:
    return "\n\n".join(filter(None, parts)) + "\n"
