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
from typing import Any

import click
import pyarrow as pa

from gpuviz.commands.cli import commands
from gpuviz.data import conclusions, derived, tables
from gpuviz.doctor import variables
from gpuviz.formats.column_units import unit_of
from gpuviz.notebook.arguments import parsers
from scripts import reference_names

ROOT = Path(__file__).parents[1]
LAB_SETTINGS = ROOT / "extension" / "labextension" / "schema" / "settings.json"
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
    names = {
        f"api_{page}.md": _joined(reference_names.names_page(*found))
        for page, found in reference_names.PUBLIC_NAMES.items()
    }
    return {
        **names,
        "api_values.md": _joined(reference_names.values_page()),
        "api_errors.md": _joined(reference_names.errors_page()),
        "commands.md": _commands(),
        "magics.md": _magics(),
        "tables.md": _tables(),
        "environment.md": _environment(),
        "jupyterlab_settings.md": _lab_settings(),
    }


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
