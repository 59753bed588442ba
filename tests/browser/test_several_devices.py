"""Reports of one process that used two GPUs, with copies between them."""

import pytest

from tests.browser.test_report_links import open_at
from tests.unit.recording.from_activities import Timeline

pytestmark = pytest.mark.browser

US = 1_000
TRAINING, STAGING, SERVING = 1, 2, 3
OF_DEVICE = {TRAINING: 0, STAGING: 0, SERVING: 1}
MIB = 1 << 20


def two_devices():
    """Train on GPU 0, copy the result to GPU 1 on a stream of its own, and use it there."""
    timeline = Timeline()
    for device in (0, 1):
        timeline.add("devices", {"id": device, "name": "GPU", "total_memory": 80 << 30})
    for stream, name in ((TRAINING, "training"), (STAGING, "staging"), (SERVING, "serving")):
        timeline.add("streams", {"id": stream, "device": OF_DEVICE[stream], "name": name})
    correlation = 0

    def row(stream):
        nonlocal correlation
        correlation += 1
        return {"stream": stream, "device": OF_DEVICE[stream], "correlation": correlation}

    def wait(recorded, waiting, time, number):
        event = {"event": number, "event_sync_id": number}
        timeline.synchronization("event_record", time, time, **event, **row(recorded))
        timeline.synchronization("stream_wait_event", time, time, **event, **row(waiting))

    between = {"copy_kind": "peer_to_peer", "source": "device", "bytes": 64 * MIB}
    for step in range(6):
        at = step * 1000 * US
        timeline.kernel(at + 20 * US, at + 420 * US, "train", **row(TRAINING))
        wait(TRAINING, STAGING, at + 420 * US, 2 * step + 1)
        ends = {"source_device": 0, "destination_device": 1}
        timeline.copy(at + 430 * US, at + 600 * US, **between, **ends, **row(STAGING))
        wait(STAGING, SERVING, at + 600 * US, 2 * step + 2)
        timeline.kernel(at + 610 * US, at + 900 * US, "serve", **row(SERVING))
        if step == 5:
            # Nothing on GPU 0 waits for this one.
            ends = {"source_device": 1, "destination_device": 0}
            timeline.copy(at + 900 * US, at + 990 * US, **between, **ends, **row(SERVING))
    return timeline.recording(duration_ns=6000 * US, simulated=True)


def test_each_gpu_has_a_group_of_lanes_and_copies_between_them_are_arrows(page, tmp_path):
    recording = two_devices()
    copies = recording.derived["peer_copies"].to_pylist()
    assert [(row["source_stream"], row["destination_stream"]) for row in copies] == [
        *[(STAGING, SERVING)] * 6,
        (SERVING, 0),
    ]
    open_at(page, recording, tmp_path)

    lanes = [lane.get_attribute("data-lane") for lane in page.locator("[data-lane]").all()]

    assert [lane for lane in lanes if lane in {"training", "staging", "serving"}] == [
        "training",
        "staging",
        "serving",
    ]
    spoken = page.locator("[data-lane='serving']").inner_text()
    assert spoken.startswith("GPU 1, serving")
    assert page.get_by_text("copied to another GPU").is_visible()
