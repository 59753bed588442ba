"""Removal of names, paths and source text from a recording."""

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from gpuviz.analysis.classification import with_own
from gpuviz.analysis.collective_kernels import NCCL
from gpuviz.analysis.compilations import NUMBA
from gpuviz.analysis.derived_tables import derived
from gpuviz.data.arrays import with_columns
from gpuviz.data.columns import codes, plain
from gpuviz.data.manifest import LIBRARIES, Manifest
from gpuviz.data.tables import DICTIONARIES, Tables, schemas
from gpuviz.hazards.known import known_hazards
from gpuviz.quantities import format_counted
from gpuviz.report.callstack_redaction import redacted_frames

if TYPE_CHECKING:
    from gpuviz.recording import Recording

NOTE = (
    "Redacted: the command line, paths, source lines, the names of functions, modules, kernels, "
    "ranges, cells, threads, streams and libraries, the host's platform, and what identifies the "
    "host, the process and the GPU were removed. Sizes, times, counts, addresses, versions and the "
    "GPU's model are as recorded."
)

# Kernels of NCCL are told from others, because collectives are joined with them.
_KERNEL = "kernel"
# Functions of CUDA keep their names, which analyses need.
_CUDA_CALL = re.compile(r"cu(da)?[A-Z][A-Za-z0-9]*(_v\d+|_ptsz|_ptds)*")
_VERSION = re.compile(r"\d[0-9A-Za-z.+]{0,39}")
_SETTINGS = re.compile(r"([a-z_]{1,40}:[A-Za-z0-9_.:\[\];>-]{1,80}(,|$))*")
_STATISTIC = re.compile(r"[a-z_]{1,40}(\.[a-z_]{1,20}){0,2}")
_GPU_MODEL = re.compile(r"(NVIDIA|Tesla|Quadro|GeForce)[ A-Za-z0-9.-]{0,60}")
_SEGMENT_TYPES = ("small", "large", "unknown")


def redact(recording: "Recording") -> "Recording":
    """Return the recording without names, paths, source lines or texts of the program or host.

    Numbers are unchanged. Equal names become equal pseudonyms, such as ``kernel 3`` or
    ``function 12``. Tables and columns unknown to this version are left out.
    """
    known = schemas()
    tables = {name: recording.tables[name].select(schema.names) for name, schema in known.items()}
    tables |= redacted_frames(recording)
    tables["stacks"] = _redacted_modules(tables["stacks"])
    tables |= _redacted_strings(recording)
    tables["streams"] = _unnamed(_named(tables["streams"], "stream"))
    tables["threads"] = _named(tables["threads"], "thread")
    tables["devices"] = _redacted_devices(tables["devices"])
    tables["pools"] = _redacted_pools(tables["pools"])
    tables["processes"] = _redacted_processes(tables["processes"])
    tables["held_blocks"] = known["held_blocks"].empty_table()
    # The uptime could identify the host.
    tables["clock_snapshots"] = known["clock_snapshots"].empty_table()
    for name, column in DICTIONARIES:
        tables[name] = _with_known_words(tables[name], name, column)
    plain_tables = {name: table.cast(known[name]) for name, table in tables.items()}
    unnamed = {name: table.replace_schema_metadata(None) for name, table in plain_tables.items()}
    redacted = type(recording)(unnamed, _redacted_manifest(recording.manifest))
    kept = _with_new_names(recording.derived, unnamed["api_calls"])
    derived.keep(redacted, with_own(kept, redacted.tables))
    # Names of kernels and of the allocator say what orders operations.
    known_hazards.keep(redacted, known_hazards(recording))
    return redacted


def _with_new_names(known: Tables, calls: pa.Table) -> dict[str, pa.Table]:
    """Return the derived tables with the new ids of the names of calls."""
    waits = known["host_waits"]
    names = np.append(plain(calls["name"]), 0).astype(np.uint32)[plain(waits["call"])]
    return {**known, "host_waits": with_columns(waits, name=names)}


def _redacted_processes(processes: pa.Table) -> pa.Table:
    """Return the processes with their ranks, but without hosts, process ids and programs."""
    rows = []
    for row in processes.to_pylist():
        try:
            manifest = _redacted_manifest(Manifest.from_json(row["manifest"])).to_json()
        except ValueError:
            manifest = ""
        name = f"rank {row['rank']}" if row["rank"] >= 0 else f"process {row['id']}"
        unnamed = {"name": name, "process_id": 0, "host": "", "program": ""}
        rows.append(row | unnamed | {"manifest": manifest})
    return pa.Table.from_pylist(rows, schema=schemas()["processes"])


def _redacted_manifest(manifest: Manifest) -> Manifest:
    """Return the manifest without texts that may come from the program."""
    versions = ("created", "gpuviz_version", "python", "cupy", "driver", "runtime")
    removed = len(manifest.notes) + bool(manifest.label)
    kept: dict[str, Any] = {name: _version(getattr(manifest, name)) for name in versions}
    counted = format_counted(removed, "note of the recording was", "notes of the recording were")
    notes = (NOTE, *([f"{counted} also removed."] if removed else ()))
    return replace(
        manifest,
        **kept,
        libraries={
            name: _version(text) for name, text in manifest.libraries.items() if name in LIBRARIES
        },
        platform="",
        start_monotonic_ns=0,
        host="",
        host_hash="",
        boot_id="",
        process_id=0,
        process_start_ns=0,
        program=(),
        label="",
        allocator=manifest.allocator if manifest.allocator in ("caching", "observe") else "caching",
        allocator_name="",
        settings=manifest.settings if _SETTINGS.fullmatch(manifest.settings) else "",
        memory_stats={
            device: {key: value for key, value in stats.items() if _STATISTIC.fullmatch(key)}
            for device, stats in manifest.memory_stats.items()
        },
        notes=notes,
        tables={},
        extra={},
    )


def _version(text: str) -> str:
    return text if _VERSION.fullmatch(text.replace(":", "").replace("-", "")) else ""


def _redacted_modules(stacks: pa.Table) -> pa.Table:
    """Return ``stacks`` with numbered modules."""
    numbers: dict[str, str] = {"": ""}
    modules = [
        numbers.setdefault(module, f"module {len(numbers)}")
        for module in stacks["module"].to_pylist()
    ]
    place = stacks.schema.get_field_index("module")
    return stacks.set_column(place, "module", pa.array(modules).dictionary_encode())


def _redacted_strings(recording: "Recording") -> dict[str, pa.Table]:
    """Return ``strings`` and the tables that refer to it, with pseudonyms for each use."""
    strings = recording.tables["strings"].to_pydict()
    text_of = dict(zip(strings["id"], strings["text"], strict=True))
    pseudonyms = _Pseudonyms(text_of)
    tables = {}
    for table, column, kinds in (
        ("activities", "name", "kind"),
        ("ranges", "name", "kind"),
        ("graph_calls", "name", "kind"),
        ("memory_operations", "source", None),
        ("api_calls", "name", None),
        ("tensors", "name", "category"),
    ):
        rows = recording.tables[table].select(schemas()[table].names)
        default = {"memory_operations": "library", "api_calls": "call"}.get(table, "")
        names = DICTIONARIES[table, kinds] if kinds is not None else (default,)
        numbers = codes(rows[kinds], names) if kinds is not None else None
        ids = pseudonyms.ids(plain(rows[column]), numbers, names, is_call=table == "api_calls")
        tables[table] = with_columns(rows, **{column: np.array(ids, np.uint32)})
    tables["strings"] = pa.table(
        {"id": range(1, len(pseudonyms.texts) + 1), "text": pseudonyms.texts},
        schema=schemas()["strings"],
    )
    return tables


class _Pseudonyms:
    """Numbered pseudonyms, by kind."""

    def __init__(self, text_of: dict[int, str]) -> None:
        self.texts: list[str] = []
        self._text_of = text_of
        self._id_of: dict[tuple[str, str], int] = {}
        self._counts: dict[str, int] = {}

    def ids(
        self,
        old: np.ndarray,
        kinds: np.ndarray | None,
        nouns: tuple[str, ...],
        *,
        is_call: bool,
    ) -> np.ndarray:
        """Return the new id of each old one; ``kinds`` are positions in ``nouns``."""
        kinds = np.zeros(len(old), np.int8) if kinds is None else kinds
        combined = old.astype(np.int64) * 256 + (kinds.astype(np.int64) & 0xFF)
        distinct, rows = np.unique(combined, return_inverse=True)
        new = [
            self._id(each // 256, nouns[each % 256] if each % 256 < len(nouns) else "name", is_call)
            for each in distinct.tolist()
        ]
        return np.array(new, np.uint32)[rows] if new else old

    def _id(self, old: int, noun: str, is_call: bool) -> int:
        text = self._text_of.get(old, "")
        if old == 0 or text == "":
            return 0
        key = (noun, text)
        if key not in self._id_of:
            self.texts.append(self._pseudonym(noun, text, is_call=is_call))
            self._id_of[key] = len(self.texts)
        return self._id_of[key]

    def _pseudonym(self, noun: str, text: str, *, is_call: bool) -> str:
        if (is_call and _CUDA_CALL.fullmatch(text)) or (noun == "compile" and text == NUMBA):
            return text
        if noun == _KERNEL and text.startswith(NCCL):
            noun = f"{NCCL} {noun}"
        self._counts[noun] = self._counts.get(noun, 0) + 1
        return f"{noun} {self._counts[noun]}"


def _named(table: pa.Table, noun: str) -> pa.Table:
    """Return a table with numbered names: equal for equal names, empty for empty ones."""
    numbers: dict[str, int] = {}
    names = [
        f"{noun} {numbers.setdefault(name, len(numbers) + 1)}" if name else ""
        for name in table["name"].to_pylist()
    ]
    place = table.schema.get_field_index("name")
    return table.set_column(place, "name", pa.array(names, pa.utf8()))


def _unnamed(streams: pa.Table) -> pa.Table:
    """Return streams none of which has its name from the program."""
    return with_columns(streams, named=np.zeros(streams.num_rows, np.uint8))


def _with_known_words(table: pa.Table, name: str, column: str) -> pa.Table:
    """Return a table whose column contains only words of ``DICTIONARIES``, or ``unknown``."""
    known = DICTIONARIES[name, column]
    found = codes(table[column], known)
    words = (*known, "unknown") if (found < 0).any() else known
    numbers = np.where(found < 0, len(known), found).astype(np.int8)
    replaced = pa.DictionaryArray.from_arrays(pa.array(numbers), pa.array(words, pa.utf8()))
    return table.set_column(table.schema.get_field_index(column), column, replaced)


def _redacted_devices(table: pa.Table) -> pa.Table:
    rows = table.to_pylist()
    for row in rows:
        row["name"] = row["name"] if _GPU_MODEL.fullmatch(row["name"] or "") else ""
        row["uuid"] = ""
        row["kind"] = row["kind"] if row["kind"] in ("cuda", "simulated", "recorded") else ""
    return pa.Table.from_pylist(rows, schema=schemas()["devices"])


def _redacted_pools(table: pa.Table) -> pa.Table:
    rows = table.to_pylist()
    for row in rows:
        known = row["segment_type"] in _SEGMENT_TYPES
        row["segment_type"] = row["segment_type"] if known else "unknown"
    return pa.Table.from_pylist(rows, schema=schemas()["pools"])
