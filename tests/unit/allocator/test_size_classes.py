import pytest

from gpuviz import _core

MIB = 1 << 20


@pytest.mark.parametrize(
    ("conf", "requested", "rounded"),
    [
        ("", 1, 512),
        ("", 512, 512),
        ("", 513, 1024),
        ("", 84 * MIB, 84 * MIB),
        ("roundup_power2_divisions:4", 84 * MIB, 96 * MIB),
        ("roundup_power2_divisions:8", 84 * MIB, 88 * MIB),
        ("roundup_power2_divisions:2", 84 * MIB, 96 * MIB),
        ("roundup_power2_divisions:4", 64 * MIB, 64 * MIB),
        ("roundup_power2_divisions:4", 1200, 1536),
        ("roundup_power2_divisions:4", 2049, 2560),
        ("roundup_power2_divisions:[64:8,128:2,256:4,>:2]", 84 * MIB, 88 * MIB),
        ("roundup_power2_divisions:[64:8,128:2,256:4,>:2]", 130 * MIB, 192 * MIB),
        ("roundup_power2_divisions:[64:8,128:2,256:4,>:2]", 300 * MIB, 320 * MIB),
        ("roundup_power2_divisions:[64:8,128:2,256:4,>:2]", 600 * MIB, 768 * MIB),
        ("roundup_power2_divisions:[64:8,>:0]", 5 * MIB + 1, 5 * MIB + MIB // 2),
    ],
)
def test_a_request_is_rounded_up_as_the_settings_say(make, conf, requested, rounded):
    allocator, _ = make(conf)

    address = allocator.allocate(requested)

    assert allocator.block_at(address)["size"] == rounded
    assert allocator.memory_stats()["allocated_bytes.all.current"] == rounded
    assert allocator.memory_stats()["requested_bytes.all.current"] == requested


@pytest.mark.parametrize("megabytes", [11, 20, 64])
@pytest.mark.parametrize(
    "rounded", [512, MIB, MIB + 512, 10 * MIB - 512, 10 * MIB, 10 * MIB + 512, 31 * MIB]
)
def test_settings_tell_the_size_of_a_segment_as_the_allocator_asks_for_it(make, megabytes, rounded):
    conf = f"large_segment_size_mb:{megabytes}"
    allocator, device = make(conf)

    allocator.allocate(rounded)

    assert device.used == _core.AllocatorSettings.parse(conf).segment_size(rounded)


@pytest.mark.parametrize(
    ("requested", "segment", "kind"),
    [
        (1, 2 * MIB, "small"),
        (MIB, 2 * MIB, "small"),
        (MIB + 1, 20 * MIB, "large"),
        (10 * MIB - 512, 20 * MIB, "large"),
        (10 * MIB - 511, 10 * MIB, "large"),
        (10 * MIB + 1, 12 * MIB, "large"),
        (31 * MIB, 32 * MIB, "large"),
    ],
)
def test_a_segment_has_the_size_that_its_request_asks_for(make, requested, segment, kind):
    allocator, device = make()

    allocator.allocate(requested)
    (found,) = allocator.memory_snapshot()

    assert (found["total_size"], found["segment_type"]) == (segment, kind)
    assert device.used == segment


def test_a_request_for_nothing_gets_no_block_and_leaves_no_trace(make):
    allocator, device = make()
    before = allocator.memory_stats()

    assert allocator.allocate(0) == 0
    assert allocator.memory_stats() == before
    assert device.used == 0
