"""The handles of streams."""

import threading

from gpuviz._core import stream_name
from gpuviz.data.stream_handle import PER_THREAD, known_handle, stream_row


def test_a_per_thread_default_stream_has_a_handle_for_each_thread():
    handles = [known_handle(PER_THREAD)]
    thread = threading.Thread(target=lambda: handles.append(known_handle(PER_THREAD)))
    thread.start()
    thread.join()

    assert len(set(handles)) == 2
    assert stream_name(handles[0]) == (
        f"per-thread default stream of thread {threading.get_native_id()}"
    )


def test_other_handles_are_kept_and_named():
    assert [known_handle(handle) for handle in (0, 0x7F30_0000_1000)] == [0, 0x7F30_0000_1000]
    assert stream_name(0) == "default stream"
    assert stream_name(0x7F30_0000_1000) == "stream 0x7f3000001000"


def test_a_stream_that_the_driver_made_for_itself_is_not_the_default_stream():
    row = stream_row(5, 0, 2**64 - 1)

    assert (row["name"], row["kind"]) == ("internal stream 5", "unknown")
