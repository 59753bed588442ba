"""The HTML page as a file: its content and its escaping."""

import base64
import hashlib
import re
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser

import pytest

from gpuviz.data.tables import schemas
from gpuviz.recording import load
from gpuviz.report.page import build_page, write_report
from gpuviz.report.viewer import write_viewer
from tests.unit.recording.from_activities import Timeline
from tests.unit.report.recordings import MIB, SEGMENT, Events, make_recording, small_program

HOSTILE = """</script><script>alert(1)</script>"'&<img src=x onerror=alert(2)>\n{{script}}"""
LARGEST_SCRIPT = 227_500
LARGEST_SMALL_REPORT = 2_000_000


class Elements(HTMLParser):
    """Collects each element's attributes, and the text of scripts and styles."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {"script": [], "style": []}
        self.feed(page)

    @property
    def program(self) -> str:
        """The text of the script that draws."""
        scripts = [attributes for tag, attributes in self.elements if tag == "script"]
        return self.texts["script"][[each["type"] for each in scripts].index("module")]

    def handle_starttag(self, tag, attrs):
        """Begin an element."""
        self.elements.append((tag, dict(attrs)))
        if tag in self.texts:
            self.texts[tag].append("")

    def handle_data(self, data):
        """Continue the text of a script or style; it comes in pieces."""
        if self.cdata_elem is not None:
            self.texts[self.cdata_elem][-1] += data


def visible_text(page: str) -> str:
    body = page[page.index("<body") :]
    without_scripts = re.sub(r"<script.*?</script>", "", body, flags=re.DOTALL)
    return unescape(re.sub(r"<[^>]+>", " ", without_scripts))


def test_the_page_gives_the_recording_back(recording, tmp_path):
    path = write_report(recording, tmp_path / "run.html")

    back = load(path)

    assert back.manifest.program == recording.manifest.program
    assert back.table("memory_events").equals(recording.table("memory_events"))


def policy_and_digests(page):
    """Return the policy of a page, and the digests of its script and of its style."""
    found = Elements(page)
    policy = next(
        attributes["content"]
        for tag, attributes in found.elements
        if tag == "meta" and attributes.get("http-equiv") == "Content-Security-Policy"
    )
    script, style = found.program, found.texts["style"][0]
    return policy, *(
        f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
        for text in (script, style)
    )


def test_the_policy_allows_only_the_page_s_own_script_and_style(recording):
    policy, script, style = policy_and_digests(build_page(recording))

    assert policy == (
        f"default-src 'none'; script-src {script}; "
        f"style-src {style}; base-uri 'none'; form-action 'none'"
    )


def test_the_policy_of_the_viewer_allows_webassembly_too(tmp_path):
    page = write_viewer(tmp_path / "viewer.html").read_text()

    policy, script, style = policy_and_digests(page)

    assert policy == (
        f"default-src 'none'; script-src {script} 'wasm-unsafe-eval'; "
        f"style-src {style}; base-uri 'none'; form-action 'none'"
    )


def test_names_from_the_recording_stay_text(recording):
    hostile = build_page(make_recording(text=HOSTILE, label=HOSTILE, notes=(HOSTILE,)))

    tags = [tag for tag, _ in Elements(hostile).elements]

    # The program, and the recording and its end.
    assert tags.count("script") == 3
    assert tags.count("img") == 0
    assert visible_text(hostile).count(HOSTILE) >= 5
    assert tags.count("table") == [t for t, _ in Elements(build_page(recording)).elements].count(
        "table",
    )


def test_a_manifest_with_what_is_no_unicode_is_shown_escaped(recording, tmp_path):
    manifest = replace(recording.manifest, program=("run.py", "\udcff"))

    path = write_report(type(recording)(recording.tables, manifest), tmp_path / "run.html")

    assert r"run.py \udcff" in path.read_text(encoding="utf-8")
    assert load(path).manifest.program == ("run.py", "\udcff")


def test_nothing_in_the_page_names_another_place_to_load_from(recording):
    attributes = [name for _, found in Elements(build_page(recording)).elements for name in found]

    assert {"src", "href", "srcset", "action", "style", "onclick"} & set(attributes) == set()


def test_the_head_says_what_ran_and_what_is_missing():
    recording = make_recording(
        label="Replayed on the simulated device of a recorded run.",
        simulated=True,
        dropped=77,
        complete=False,
    )

    text = visible_text(build_page(recording))

    assert "Replayed on the simulated device of a recorded run." in text
    assert "77 dropped" in text
    assert "train.py --steps 5" in text
    assert "expandable_segments:False" in text
    assert "80.0 GiB" in text
    assert "5; 77 dropped" in text


def test_headline_numbers_are_those_of_the_recording(recording):
    text = re.sub(r"\s+", " ", visible_text(build_page(recording)))

    assert f"Peak allocated 12.0 MiB {12 * MIB:,} B, first at 200 µs" in text
    assert f"Peak reserved 20.0 MiB {20 * MIB:,} B, first at 0 ns" in text
    assert "Allocations 2 during the recording" in text
    assert "Still allocated 6.00 MiB 2 blocks" in text
    assert "Free in segments at the peak 8.00 MiB 40 % of the reserved memory" in text
    assert "Out of memory 1 failed allocation" in text


def test_each_number_at_the_head_of_a_page_says_what_it_counts(recording):
    figures = re.findall(r'<li class="gpuviz-headline__figure"[^>]*>', build_page(recording))

    assert len(figures) >= 3
    assert all('title="' in each for each in figures)


def test_the_table_lists_each_line_with_its_text_and_stack(recording):
    text = re.sub(r"\s+", " ", visible_text(build_page(recording)))

    assert "x = train.py train.py (train.py:12)" in text
    assert "main (main.py:34)" in text
    assert "(no call stack)" in text


def test_an_existing_file_is_not_overwritten_unless_asked(recording, tmp_path):
    path = tmp_path / "run.html"
    path.write_text("precious")

    with pytest.raises(FileExistsError, match=r"run\.html exists.*overwrite=True"):
        write_report(recording, path)

    assert path.read_text() == "precious"
    assert write_report(recording, path, overwrite=True) == path
    assert path.read_text().startswith("<!doctype html>")
    assert [each.name for each in tmp_path.iterdir()] == ["run.html"]


def test_a_report_of_a_thousand_events_is_small():
    events = Events()
    events.add("segment_alloc", SEGMENT, 2048 * MIB)
    for index in range(999):
        events.add("alloc", SEGMENT + index * MIB, MIB)

    page = build_page(make_recording(events.rows, initial_events=0))
    [_, code] = Elements(page).program.split("*/", 1)  # after the licence

    assert len(page.encode()) < LARGEST_SMALL_REPORT
    assert len(code.encode()) < LARGEST_SCRIPT


def test_a_recording_without_events_still_makes_a_page():
    page = build_page(make_recording([], initial_events=0, devices=0))

    assert "This recording is empty" in visible_text(page)


def test_each_device_has_its_own_numbers():
    rows = [*small_program(0), *small_program(1)]
    initial = [row for row in rows if row["time"] == 0]
    later = [row for row in rows if row["time"] > 0]
    recording = make_recording([*initial, *later], initial_events=4, devices=2)

    found = Elements(build_page(recording)).elements

    summaries = [a["id"] for tag, a in found if (a.get("id") or "").startswith("summary")]
    assert summaries == ["summary-0", "summary-1"]


def test_what_an_allocator_does_not_tell_is_called_unknown():
    events = Events()
    events.add("alloc", SEGMENT, 3 * MIB)
    recording = make_recording(events.rows, initial_events=0, allocator="observe")

    text = re.sub(r"\s+", " ", visible_text(build_page(recording)))

    assert "Peak reserved unknown this allocator does not expose its segments" in text
    assert "Fragmentation" not in text


def test_the_memory_in_use_on_a_device_is_told_where_it_was_sampled(recording):
    import pyarrow as pa

    samples = pa.table(
        {"time": [0, 5, 9], "device": [0, 0, 0], "used": [3 << 20, 5 << 20, 4 << 20]},
        schema=schemas()["device_memory"],
    )
    sampled = replace(recording, tables={**recording.tables, "device_memory": samples})

    assert "3.00 MiB to 5.00 MiB in use on device 0, including other allocators" in visible_text(
        build_page(sampled),
    )
    assert "Device memory" not in visible_text(build_page(recording))


def test_the_peak_has_a_bar_for_each_known_level_and_no_heading_without_memory(recording):
    page = build_page(recording)
    known = [row for row in recording.peak_chain().to_pylist() if row["bytes"] is not None]
    drawn = [row for row in known if row["responsible"] != "others"]
    timeline = Timeline()
    timeline.kernel(0, 1000)

    assert page.count("<h4>Peak of memory</h4>") == 1
    _, _, chain = page.partition("<h4>Peak of memory</h4>")
    assert chain.partition("</table>")[0].count('class="gpuviz-bar"') == len(drawn) > 3
    assert "Peak of memory</h4>" not in build_page(timeline.recording())
