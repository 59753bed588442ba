"""Programs whose GPU waits for work of the host."""

import itertools

import pyarrow as pa

from gpuviz.advice.findings import findings
from gpuviz.data.tables import schemas
from gpuviz.recording import Recording

STEPS = 20


def chunks(gpu, *, host, kernel=200e-6, after_launch=False):
    x = gpu.empty(1 << 20)
    for _ in range(STEPS):
        if not after_launch:
            gpu.work_on_host(host)
        gpu.launch("filter", duration=kernel, writes=[x])
        if after_launch:
            gpu.work_on_host(host)
        gpu.synchronize()


def computes_between_chunks(gpu):
    chunks(gpu, host=1e-3)


def computes_nothing(gpu):
    chunks(gpu, host=1e-9)


def with_samples(recording, *, of_every=1, state="working", holder="", frames=((), ())):
    """Return a recording in which each gap between two calls was sampled, or one of several.

    `frames` are those of the functions that the sampled line calls, and of its callers.
    """
    inside, callers = frames
    calls = sorted(recording.tables["api_calls"].to_pylist(), key=lambda call: call["time"])
    stack = max(recording.tables["stacks"]["id"].to_pylist()) + 1
    frame = {"id": 1000, "name": "sort_all", "filename": "train.py", "line": 30, "cell": 0}
    frame |= {"source": "numpy.sort(values)", "installed": 0, "assigned": ""}
    frame |= {"context": "", "context_line": 0}
    gaps = [(before["end"], after["time"]) for before, after in itertools.pairwise(calls)]
    rows = [
        {"time": begin, "end": end, "thread": calls[0]["thread"], "stack": stack, "state": state}
        | {"holder": 99, "samples": 1}
        for begin, end in [gap for gap in gaps if gap[1] - gap[0] > 250_000][::of_every]
    ]
    unnamed = {"module": "", "phase": "", "forward_frame": 0, "differentiable": 0}
    added = {
        "frames": [*inside, frame, *callers],
        "stacks": [
            {
                "id": stack,
                "frames": [each["id"] for each in (*inside, frame, *callers)],
                "user_frame": 1000,
                **unnamed,
            }
        ],
        "host_samples": rows,
        "threads": [{"id": 99, "name": holder}] if holder else [],
    }
    tables = dict(recording.tables)
    for name, new in added.items():
        more = pa.Table.from_pylist(new, schemas()[name])
        tables[name] = pa.concat_tables([tables[name], more]).unify_dictionaries()
    return Recording(tables, recording.manifest)


LINE = {"cell": 0, "installed": 0, "assigned": "", "context": "", "context_line": 0}
STACK = {"module": "", "phase": "", "forward_frame": 0, "differentiable": 0}


class Sampled:
    """A recording to which call stacks and samples of threads are added."""

    def __init__(self, recording):
        self.tables, self.manifest = dict(recording.tables), recording.manifest
        self.rows = []
        calls = self.tables["api_calls"].to_pylist()
        self.calls = sorted(calls, key=lambda call: call["time"])
        self.gaps = [
            (before, after)
            for before, after in itertools.pairwise(self.calls)
            if after["time"] - before["end"] > 250_000
        ]

    def stack(self, *frames, callers=()):
        """Add a stack of ``(function, line, source)``, innermost first, and return its id."""
        known = self.tables["frames"]["id"].to_pylist()
        first = max([*known, 3000]) + 1
        rows = [
            {"id": first + place, "name": name, "filename": "train.py", "line": line, **LINE}
            | {"source": source}
            for place, (name, line, source) in enumerate(frames)
        ]
        number = max([*self.tables["stacks"]["id"].to_pylist(), 3000]) + 1
        stack = {"id": number, "frames": [*(row["id"] for row in rows), *callers], **STACK}
        self._add("frames", rows)
        self._add("stacks", [stack | {"user_frame": first}])
        return number

    def callers_of(self, stack):
        """Return the frames of a stack without its innermost one."""
        stacks = {row["id"]: row["frames"] for row in self.tables["stacks"].to_pylist()}
        return stacks[stack][1:]

    def sample(self, thread, begin, end, *, stack=0, state="working"):
        row = {"time": begin, "end": end, "thread": thread, "stack": stack, "state": state}
        self.rows.append(row | {"holder": 0, "samples": 1})

    def on_threads(self, thread_of, *, without_stack=(), longer_ns=0):
        """Let calls be those of other threads, some without call stacks, whose calls are longer."""
        rows = self.tables["api_calls"].to_pylist()
        for row in rows:
            row["thread"] = thread_of(row)
            row["end"] += longer_ns if row["thread"] in without_stack else 0
            row["stack"] = 0 if row["thread"] in without_stack else row["stack"]
        self.tables["api_calls"] = pa.Table.from_pylist(rows, self.tables["api_calls"].schema)

    def idle(self):
        self._add("host_samples", sorted(self.rows, key=lambda row: row["time"]))
        recording = Recording(self.tables, self.manifest)
        return [each for each in findings(recording, small=True) if each.rule == "R43"]

    def launches(self):
        """Return the calls that launch work."""
        launched = set(self.tables["activities"]["correlation"].to_pylist())
        return [call for call in self.calls if call["correlation"] in launched]

    def _add(self, name, rows):
        more = pa.Table.from_pylist(rows, schemas()[name])
        self.tables[name] = pa.concat_tables([self.tables[name], more]).unify_dictionaries()


UPLOAD = 16 << 20


def uploads(gpu, *, rate=11e9):
    """Upload an array in each step as `cupy.asarray` does it: through pinned memory."""
    total = gpu.empty(UPLOAD)
    for _ in range(STEPS):
        _ = (x := gpu.empty(UPLOAD)), gpu.work_on_host(UPLOAD / rate), gpu.copy_to_device(x, pinned=True)  # fmt: skip # noqa: E501
        gpu.launch("add", duration=20e-6, reads=[x, total], writes=[total])
