"""Pools of several processes in a merged recording."""

import gpuviz
from gpuviz.analysis.pools import RMM_OWNER, TORCH_OWNER, allocator_beside, private_pools
from gpuviz.data.manifest import Manifest
from gpuviz.recording import Recording
from tests.unit.merging.processes_of_a_run import process
from tests.unit.recording.from_activities import rows_of


def test_private_pools_of_two_processes_are_apart_and_default_pools_together():
    def pooled(number):
        tables = {
            "memory_events": [
                {"action": "segment_alloc", "address": 1 << 21, "size": 2 << 20, "pool": pool}
                for pool in (0, 3)
            ]
        }
        pools = [
            {"id": 0, "owner": 0, "segment_type": "small"},
            {"id": 3, "owner": 1, "segment_type": "large"},
        ]
        tables = {name: rows_of(name, each) for name, each in tables.items()}
        return process(Recording(tables | {"pools": rows_of("pools", pools)}, Manifest()), number)

    merged = gpuviz.merge([pooled(0), pooled(1)])

    assert sorted(merged.table("memory_events")["pool"].to_pylist()) == [0, 0, 3, 5]
    assert [(row["id"], row["owner"]) for row in merged.table("pools").to_pylist()] == [
        (0, 0),
        (3, 1),
        (5, 2),
    ]


def test_torchs_own_pools_stay_torchs():
    def pooled(number):
        rows = [{"id": 0, "owner": 0}, {"id": 2 * TORCH_OWNER + 1, "owner": TORCH_OWNER}]
        rows.append({"id": 2 * TORCH_OWNER + 2, "owner": TORCH_OWNER + 1})
        tables = {"pools": rows_of("pools", rows), "memory_events": rows_of("memory_events", [])}
        return process(Recording(tables, Manifest()), number)

    merged = gpuviz.merge([pooled(0), pooled(1)])

    assert allocator_beside(merged.tables) == "PyTorch's allocator"
    owners = sorted(set(merged.table("pools")["owner"].to_pylist()))
    assert owners == [0, TORCH_OWNER, TORCH_OWNER + 1, TORCH_OWNER + 2]
    assert len(private_pools(merged.tables)) == 2


def test_blocks_of_rmm_stay_rmms():
    def pooled(number):
        rows = [{"id": 0, "owner": 0}]
        rows.append({"id": 2 * RMM_OWNER, "owner": RMM_OWNER, "memory": ("", "managed")[number]})
        tables = {"pools": rows_of("pools", rows), "memory_events": rows_of("memory_events", [])}
        return process(Recording(tables, Manifest()), number)

    merged = gpuviz.merge([pooled(0), pooled(1)])

    assert allocator_beside(merged.tables) == "RMM's memory resource"
    assert sorted(merged.table("pools")["owner"].to_pylist()) == [0, RMM_OWNER]
    assert len(private_pools(merged.tables)) == 0
