"""Whole files with false values: any number, word, row or conclusion that a stranger may write."""

import base64
import io
import json
import tempfile
import zipfile
from dataclasses import replace
from functools import cache
from pathlib import Path

import pyarrow as pa

import gpuviz
from gpuviz.analysis.derived_tables import derived_for_file
from gpuviz.conclusions.store import for_report
from gpuviz.data import conclusions, derived
from gpuviz.errors import GpuvizError
from gpuviz.exports.writers import FORMATS
from gpuviz.formats.gpuviz import DERIVED_FOLDER, write_archive, write_stream
from gpuviz.recording import Recording, load
from gpuviz.report.sections import sections_table
from tests.unit.merging.ranks_of_a_run import MS, ranks
from tests.unit.recording.from_activities import rows_of

NUMBERS = [-1, 0, 1, 2, 3, 7, 127, 1 << 15, 1 << 16, 1 << 24, (1 << 31) - 1, 1 << 31]
NUMBERS += [(1 << 32) - 1, 1 << 32, 1 << 40, 1 << 62, (1 << 63) - 1, 1 << 63, (1 << 64) - 1]
NUMBERS += [-2, -(1 << 15), -(1 << 31), -(1 << 63)]
WORDS = ["", "cupy", "kernel", "x", "<script>alert(1)</script>", "\x1b[31m", "\ud7ff\U0010ffff\0"]
RECORDINGS = Path(gpuviz.__file__).parent / "commands" / "recordings"


@cache
def single():
    """Return a recording of streams, copies, graphs, collectives and what uses pinned memory."""
    recording = load(RECORDINGS / "one_pool_shared.gpuviz")
    events = recording.tables["memory_events"]
    pinned = events.slice(0, 40).drop_columns(["device", "stream", "pool", "framework"])
    collectives = ranks([[MS, 5 * MS]])[0].tables["collectives"]
    touched = recording.tables["launch_blocks"].slice(0, 40).to_pylist()
    accesses = [
        {"time": MS, "mode": "write", "correlation": row["correlation"], "address": row["address"]}
        | {"bytes": 64, "stack": 1, "thread": 1, "exact": number % 2}
        for number, row in enumerate(touched)
    ]
    rank = {"collectives": collectives, "host_memory_events": pinned}
    rank["host_accesses"] = rows_of("host_accesses", accesses)
    links = [dict.fromkeys(("other", "access", "native_atomics", "performance_rank"), 1)]
    links[0] |= {"nvlinks": 4, "nvlink_version": 4, "pcie": 20}
    stats = {0: gpuviz.load(RECORDINGS / "fft_filter.gpuviz").memory_stats()}
    manifest = replace(
        recording.manifest, device_links={"0": links}, memory_stats=stats, initial_events=3
    )
    return Recording({**recording.tables, **rank}, manifest)


@cache
def merged():
    """Return the merged recording of two ranks."""
    return gpuviz.merge(ranks([[MS, 5 * MS], [20 * MS, 20 * MS], [40 * MS, 43 * MS]]))


@cache
def members(of):
    """Return the members of a report's archive by name."""
    recording, buffer = of(), io.BytesIO()
    conclusions = for_report(recording, sections_table(recording))
    write_archive(buffer, recording, derived_for_file(recording) | conclusions)
    with zipfile.ZipFile(buffer) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def any_value(kind, present, source):
    """Return a value of an Arrow type: extreme, or one that is present elsewhere."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if present and source.random() < 0.3:
        return source.choice(present)
    if pa.types.is_string(kind):
        return source.choice(WORDS)
    if pa.types.is_list(kind):
        return [any_value(kind.value_type, [], source) for _ in range(source.choice([0, 1, 2, 40]))]
    if pa.types.is_struct(kind):
        return {field.name: any_value(field.type, [], source) for field in kind}
    if pa.types.is_floating(kind):
        return source.choice([0.0, -1.0, 1e308, float("nan"), float("inf")])
    lowest, highest = bounds(kind)
    return source.choice([number for number in NUMBERS if lowest <= number <= highest])


def bounds(kind):
    bits = kind.bit_width
    return (-(1 << bits - 1), (1 << bits - 1) - 1) if str(kind)[0] == "i" else (0, (1 << bits) - 1)


def changed(table, source):
    """Return a table with values, or rows, that are false."""
    change = source.choice(["value", "value", "value", "column", "none", "one", "twice", "order"])
    rows = table.num_rows
    if change in {"value", "column"}:
        place = source.randrange(table.num_columns)
        field = table.schema.field(place)
        values = table.column(place).to_pylist()
        chosen = range(rows) if change == "column" else source.sample(range(rows), min(rows, 3))
        value = any_value(field.type, values[:20], source)
        for row in chosen:
            values[row] = value
        return table.set_column(place, field, pa.array(values, field.type))
    if change == "none":
        return table.slice(0, 0)
    if change == "one":
        return table.slice(source.randrange(max(rows, 1)), 1)
    if change == "twice":
        return pa.concat_tables([table, table])
    order = list(range(rows))
    source.shuffle(order)
    return table.take(pa.array(order, pa.int64()))


def changed_manifest(content, source):
    """Return a manifest in which a number or a word is false, at any depth."""
    manifest = json.loads(content)
    places = []

    def visit(value):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            if isinstance(inner, dict | list):
                visit(inner)
            elif key not in {"format", "version"}:
                places.append((value, key))

    visit(manifest)
    for within, key in source.sample(places, 2):
        words = [*WORDS[:-1], "\ud800", 1.5, None, True]
        within[key] = source.choice(NUMBERS if isinstance(within[key], int) else words)
    return json.dumps(manifest).encode()


def stream_of(table):
    sink = io.BytesIO()
    write_stream(table, sink)
    return sink.getvalue()


def table_of(content):
    return pa.ipc.open_stream(content).read_all()


def with_false_tables(of, source):
    """Return members with false values of tables and of the manifest, and no number of rows."""
    parts = dict(members(of))
    manifest = json.loads(parts["manifest.json"])
    parts["manifest.json"] = json.dumps(manifest | {"tables": {}}).encode()
    if source.random() < 0.15:
        parts["manifest.json"] = changed_manifest(parts["manifest.json"], source)
        return parts
    names = [name for name in parts if name.endswith(".arrow") and "/" not in name]
    filled = [name for name in names if table_of(parts[name]).num_rows]
    for name in source.sample(filled, source.choice([1, 1, 2])):
        parts[name] = stream_of(changed(table_of(parts[name]), source))
    return parts


def with_false_conclusions(of, source):
    """Return members with false derived tables and conclusions, with the right marks."""
    recording, parts = of(), dict(members(of))
    name = source.choice([name for name in parts if name.startswith(DERIVED_FOLDER)])
    short = name.removeprefix(DERIVED_FOLDER).removesuffix(".arrow")
    table = changed(recording.table(short), source)
    if short in conclusions.schemas():
        marked = conclusions.marked({short: table}, recording)
    else:
        known = {each: recording.derived[each] for each in recording.derived}
        marked = derived.marked(known | {short: table}, recording.tables)
    return parts | {name: stream_of(marked[short])}


def written(parts, folder):
    path = folder / "run.gpuviz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return path


def report(parts, folder):
    text = base64.b64encode(written(parts, folder).read_bytes())
    path = folder / "run.html"
    path.write_bytes(b'<!doctype html><script id="gpuviz-recording">' + text + b"</script>")
    return path


KINDS = {
    "tables": lambda folder, source: written(with_false_tables(single, source), folder),
    "derived": lambda folder, source: written(with_false_conclusions(single, source), folder),
    "merged": lambda folder, source: written(with_false_tables(merged, source), folder),
    "report": lambda folder, source: report(
        source.choice([with_false_tables, with_false_conclusions])(
            source.choice([single, merged]), source
        ),
        folder,
    ),
}

ANALYSES = {
    "sites": lambda recording: recording.sites(),
    "sites_by_line": lambda recording: recording.sites("line", at="end"),
    "memory_stats": lambda recording: list(map(recording.memory_stats, recording.devices)),
    "memory_snapshot": lambda recording: recording.memory_snapshot("peak"),
    "fragmentation": lambda recording: recording.fragmentation("peak"),
    "packing": lambda recording: recording.packing(seconds=0.1),
    "what_if": lambda recording: recording.what_if(),
    "what_if_cupy": lambda recording: recording.what_if(["cupy", "cudaMallocAsync"]),
    "replay": gpuviz.replay,
    "out_of_memory": lambda recording: [str(each) for each in recording.out_of_memory()],
    "findings": lambda recording: recording.findings(small=True),
    "hazards": lambda recording: recording.hazards(),
    "default_stream_work": lambda recording: recording.default_stream_work(),
    "peak": lambda recording: recording.peak(),
    "peak_chain": lambda recording: recording.peak_chain(seconds=0.1),
    "overlap": lambda recording: recording.overlap(),
    "kernels": lambda recording: recording.kernels("line"),
    "lines": lambda recording: recording.lines(),
    "iterations": lambda recording: recording.table("iterations"),
    "leaks": lambda recording: recording.leaks(),
    "copies": lambda recording: recording.copies("line"),
    "compilations": lambda recording: recording.compilations(),
    "collectives": lambda recording: recording.collectives(),
    "other_memory": lambda recording: (recording.other_memory(), recording.other_memory("time")),
    "graph_pools": lambda recording: recording.graph_pools(),
    "delayed_frees": lambda recording: recording.delayed_frees(),
    "writes_after_free": lambda recording: recording.writes_after_free(),
    "synchronizations": lambda recording: recording.synchronizations("line"),
    "host_memory": lambda recording: (recording.host_memory.peak(), recording.host_memory.sites()),
    "device_links": lambda recording: recording.device_links,
    "text": lambda recording: (repr(recording), recording._repr_html_(), recording.notes),
    "diff": lambda recording: gpuviz.diff(recording, single())._repr_html_(),
    "merge": lambda recording: gpuviz.merge([recording, *ranks([[MS, 5 * MS]])]),
    "window": lambda recording: recording.window(
        recording.duration_ns // 3, recording.duration_ns // 2
    ).findings(),
}


def analysed(recording, folder):
    """Return the errors of all analyses, reports and exports of a recording, by their names."""
    tasks = dict(ANALYSES)
    tasks["report"] = lambda recording: recording.report(folder / "again.html", redact=True)
    tasks["save"] = lambda recording: load(recording.save(folder / "again.gpuviz"))
    for name in FORMATS:
        tasks[name] = lambda recording, name=name: recording.export(folder / name, name)
    found = {}
    for name, analyse in tasks.items():
        try:
            analyse(recording)
        except Exception as error:  # noqa: BLE001 - what it may be is the question
            found[name] = error
    return found


def outcome(path):
    """Return whether a file could be loaded, or an error that is not gpuviz's own."""
    try:
        recording = load(path)
    except GpuvizError as error:
        return False if str(error).startswith(str(path)) else error
    with tempfile.TemporaryDirectory() as folder:
        errors = analysed(recording, Path(folder))
    foreign = {name: error for name, error in errors.items() if not isinstance(error, GpuvizError)}
    for error in foreign.values():
        error.add_note(f"in {', '.join(foreign)}")
        return error
    return True
