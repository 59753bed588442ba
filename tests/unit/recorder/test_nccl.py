"""NCCL's collectives as rows of a recording; NCCL's side is played by ctypes."""

import os
import threading

import pytest

import gpuviz
from gpuviz import _core
from gpuviz.recorder.injection import NCCL_PLUGIN
from tests.unit.recorder.nccl_calls import (
    COLLECTIVE,
    COLLECTIVE_CALL,
    GROUP_CALL,
    PEER,
    PEER_CALL,
    Collective,
    CollectiveCall,
    Communicator,
    Peer,
    PeerCall,
)

ALL_REDUCE = Collective(
    seqNumber=7,
    func=b"AllReduce",
    sendBuff=0x7000,
    recvBuff=0x9000,
    count=1234,
    root=0,
    datatype=b"ncclFloat32",
    nChannels=24,
    nWarps=16,
    algo=b"RING",
    proto=b"LL128",
)
SEND = Peer(func=b"Send", buff=0x7000, datatype=b"ncclInt8", count=4321, peer=3, nChannels=2)


def rows(recorder):
    return recorder.recording.table("collectives").to_pylist()


@pytest.mark.parametrize("version", [4, 5, 6])
def test_a_collective_is_a_row_with_its_function_size_buffers_and_algorithm(
    new_recorder, source, version
):
    with new_recorder(source) as recorder, gpuviz.range("step"):
        communicator = Communicator(version, number=2**63 + 5, ranks=8, rank=2)
        communicator.stop(communicator.start(COLLECTIVE, ALL_REDUCE))
        communicator.finalize()
    (row,) = rows(recorder)
    (step,) = recorder.recording.table("ranges").to_pylist()

    assert 0 < row.pop("time") <= recorder.recording.duration_ns
    assert row == {
        "function": "all_reduce",
        "communicator": 2**63 + 5,
        "rank": 2,
        "ranks": 8,
        "sequence": 7,
        "peer": -1,
        "count": 1234,
        "element": "float32",
        "bytes": 4 * 1234,
        "source": 0x7000,
        "destination": 0x9000,
        "stream": 0,
        "algorithm": "ring",
        "protocol": "ll128",
        "channels": 24,
        "thread": threading.get_native_id(),
        "range": step["id"],
    }


@pytest.mark.parametrize("version", [4, 5, 6])
def test_a_send_and_a_receive_are_rows_with_one_buffer_and_their_peer(
    new_recorder, source, version
):
    receive = Peer(func=b"Recv", buff=0x9000, datatype=b"ncclInt8", count=4321, peer=1)
    with new_recorder(source) as recorder:
        communicator = Communicator(version, number=1, ranks=4, rank=0)
        communicator.start(PEER, SEND)
        communicator.start(PEER, receive)
        communicator.finalize()

    found = [
        (row["function"], row["peer"], row["source"], row["destination"], row["bytes"])
        for row in rows(recorder)
    ]
    assert found == [("send", 3, 0x7000, 0, 4321), ("receive", 1, 0, 0x9000, 4321)]


def test_the_root_of_a_broadcast_is_its_peer(new_recorder, source):
    broadcast = Collective(func=b"Broadcast", root=5, datatype=b"ncclBfloat16", count=10)
    with new_recorder(source) as recorder:
        communicator = Communicator(6, number=1, ranks=8, rank=0)
        communicator.start(COLLECTIVE, broadcast)
        communicator.finalize()

    (row,) = rows(recorder)
    assert (row["function"], row["peer"], row["bytes"]) == ("broadcast", 5, 20)


def test_words_of_a_newer_nccl_are_unknown(new_recorder, source):
    strange = Collective(func=b"AllFold", datatype=b"ncclInt4", algo=None, proto=b"", count=3)
    with new_recorder(source) as recorder:
        communicator = Communicator(6, number=1, ranks=8, rank=0)
        communicator.start(COLLECTIVE, strange)
        communicator.finalize()

    (row,) = rows(recorder)
    words = [row[name] for name in ("function", "element", "algorithm", "protocol")]
    assert words == ["unknown"] * 4
    assert (row["count"], row["bytes"]) == (3, 0)


def test_a_call_is_the_handle_of_its_stream_and_other_events_have_none(new_recorder, source):
    with new_recorder(source) as recorder:
        communicator = Communicator(6, number=1, ranks=8, rank=0)
        handles = [
            communicator.start(COLLECTIVE_CALL, CollectiveCall(stream=0x5000)),
            communicator.start(PEER_CALL, PeerCall(stream=0x6000)),
            communicator.start(GROUP_CALL, CollectiveCall(stream=0x7000)),
            communicator.start(COLLECTIVE, ALL_REDUCE, parent=0x5000),
        ]
        default = communicator.start(COLLECTIVE_CALL, CollectiveCall(stream=None))
        communicator.start(COLLECTIVE, ALL_REDUCE, parent=default)
        for handle in handles:
            communicator.stop(handle)
        communicator.finalize()

    assert communicator.mask == COLLECTIVE | PEER | COLLECTIVE_CALL | PEER_CALL
    assert handles == [0x5000, 0x6000, None, None]
    assert default is not None
    assert len(rows(recorder)) == 2


def test_collectives_outside_a_recording_are_not_recorded(new_recorder, source):
    communicator = Communicator(6, number=1, ranks=8, rank=0)
    communicator.start(COLLECTIVE, ALL_REDUCE)
    with new_recorder(source) as recorder:
        communicator.start(COLLECTIVE, ALL_REDUCE)
    communicator.start(COLLECTIVE, ALL_REDUCE)
    communicator.finalize()

    assert len(rows(recorder)) == 1


def test_nccl_finds_the_plugin_only_during_a_recording(new_recorder, source, monkeypatch):
    monkeypatch.delenv(NCCL_PLUGIN, raising=False)
    with new_recorder(source) as recorder:
        during = os.environ[NCCL_PLUGIN]

    assert during == _core.__file__
    assert NCCL_PLUGIN not in os.environ
    assert recorder.status().notes == ()


def test_another_plugin_stays_and_is_noted(new_recorder, source, monkeypatch):
    monkeypatch.setenv(NCCL_PLUGIN, "inspector")
    with new_recorder(source) as recorder:
        during = os.environ[NCCL_PLUGIN]

    assert during == os.environ[NCCL_PLUGIN] == "inspector"
    (note,) = recorder.status().notes
    assert note.endswith("another tool gets them (NCCL_PROFILER_PLUGIN=inspector)")


def test_a_window_has_its_collectives_and_their_ranges(new_recorder, source):
    with new_recorder(source) as recorder:
        communicator = Communicator(6, number=1, ranks=8, rank=0)
        for name in ("first", "second"):
            with gpuviz.range(name):
                communicator.start(COLLECTIVE, ALL_REDUCE)
        communicator.finalize()
    whole = recorder.recording
    first, second = (row["time"] for row in whole.table("collectives").to_pylist())

    part = whole.window(first, second)

    assert [row["time"] for row in part.table("collectives").to_pylist()] == [second]
    assert part.table("collectives")["range"].to_pylist() == [2]
    assert 2 in part.table("ranges")["id"].to_pylist()
