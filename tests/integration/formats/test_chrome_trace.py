"""Chrome's JSON against the recording's tables, and in Perfetto's reader."""

import json
from pathlib import Path

from hypothesis import given

import gpuviz
from gpuviz.exports.chrome_trace import write
from tests.examples import examples
from tests.integration.formats import plain_trace
from tests.integration.formats.plain_trace import Slice
from tests.integration.formats.trace_processor import answers
from tests.unit.formats.any_recording import HOSTILE, any_recording, empty
from tests.unit.recording.from_activities import Timeline

EXAMPLES = examples(30)
RECORDED = Path(gpuviz.__file__).parent / "commands" / "recordings"


def events(path, phase):
    return [each for each in json.loads(path.read_bytes())["traceEvents"] if each["ph"] == phase]


def ns(microseconds):
    return round(microseconds * 1000)


def slices(path):
    """Return the slices in the form of the tables."""
    names = {
        (each["pid"], each["tid"]): each["args"]["name"]
        for each in events(path, "M")
        if each["name"] == "thread_name"
    }
    found = []
    for each in events(path, "X"):
        arguments = each.get("args", {})
        if "stream" in arguments and each["cat"] != "synchronization":
            place = (arguments["device"], arguments["stream"])
        else:
            place = (thread_of(names[each["pid"], each["tid"]]),)
        duration = ns(each["ts"] + each["dur"]) - ns(each["ts"])
        found.append(Slice(each["cat"], place, ns(each["ts"]), duration, each["name"]))
    return sorted(found)


def thread_of(name):
    known = {"MainThread": 1, "unknown thread": 0}
    return known[name] if name in known else int(name.removeprefix("thread "))


def assert_nested(path):
    """Check that slices of a track are disjoint or nested."""
    lines = {}
    for each in events(path, "X"):
        lines.setdefault((each["pid"], each["tid"]), []).append(each)
    for line in lines.values():
        ends = []
        for each in line:
            begin, end = ns(each["ts"]), ns(each["ts"] + each["dur"])
            while ends and ends[-1] <= begin:
                ends.pop()
            assert not ends or end <= ends[-1]
            ends.append(end)


@EXAMPLES
@given(recording=any_recording())
def test_events_are_those_of_the_tables(recording, tmp_path_factory):
    path = write(recording, tmp_path_factory.mktemp("trace") / "run.json")

    assert slices(path) == plain_trace.slices(recording)
    assert_nested(path)
    begins = {each["id"]: ns(each["ts"]) for each in events(path, "s")}
    ends = {each["id"]: ns(each["ts"]) for each in events(path, "f")}
    pairs = [(begins[number], ends[number]) for number in begins.keys() | ends.keys()]
    assert sorted(pairs) == plain_trace.flows(recording)
    values = [(each["name"], ns(each["ts"]), each["args"]["bytes"]) for each in events(path, "C")]
    expected = plain_trace.counters(recording).items()
    assert sorted(values) == sorted((name, *row) for (_, name), rows in expected for row in rows)


def test_perfetto_reads_the_same_from_json_as_from_its_own_format(tmp_path):
    recording = gpuviz.load(RECORDED / "fft_filter.gpuviz")
    queries = (
        "select category, name, ts, dur from slice order by category, name, ts, dur",
        "select count(*) from flow",
        "select sum(value) from counter",
        "select name, value from stats where value != 0 and severity != 'info'",
    )

    of_json = answers(recording.export(tmp_path / "run.json").read_bytes(), *queries)
    own = answers(recording.export(tmp_path / "run.pftrace").read_bytes(), *queries)

    assert own == of_json
    assert own[3] == []


def test_names_of_any_text_are_valid_json(tmp_path):
    timeline = Timeline()
    for number, name in enumerate(HOSTILE):
        timeline.kernel(10 * number, 10 * number + 5, name)
    recording = timeline.recording(program=("caf\udce9.py",), label=HOSTILE[0])
    path = recording.export(tmp_path / "run.json")

    content = path.read_bytes()

    assert content.isascii()
    assert [each["name"] for each in events(path, "X")] == list(HOSTILE)
    assert json.loads(content)["otherData"]["description"].endswith(HOSTILE[0])


def test_times_keep_their_nanoseconds(tmp_path):
    timeline = Timeline()
    timeline.kernel(-1_000_001, 3_600_000_000_123)
    path = timeline.recording().export(tmp_path / "run.json")

    assert b'"ts":-1000.001,"dur":3600001000.124,' in path.read_bytes()


def test_a_recording_of_nothing_is_valid_json(tmp_path):
    path = empty().export(tmp_path / "run.json")

    assert [each["name"] for each in json.loads(path.read_bytes())["traceEvents"]] == [
        "process_name",
        "process_sort_index",
    ]
