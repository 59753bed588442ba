import random

import pytest

from tests.examples import share_of

MIB = 1 << 20


def shape(allocator):
    """Return the size in MiB and state of every block, by segment."""
    return [
        [(block["size"] / MIB, block["state"]) for block in segment["blocks"]]
        for segment in allocator.memory_snapshot()
    ]


def best_fit(snapshot, size, stream):
    """Return the best fit of a search over all blocks; None on a miss."""
    free = [
        (block["size"], block["address"])
        for segment in snapshot
        for block in segment["blocks"]
        if block["state"] == "inactive"
        and segment["stream"] == stream
        and block["size"] >= size
        and segment["segment_type"] == "small"
    ]
    return min(free, default=(None, None))[1]


@pytest.mark.parametrize("seed", range(3))
def test_the_smallest_block_that_fits_wins_and_then_the_lowest_address(make, seed):
    generator = random.Random(seed)
    allocator, _ = make()
    live = [
        allocator.allocate(512 * generator.choice([1, 2, 3, 5, 40]), stream)
        for stream in (0, 9)
        for _ in range(2000)
    ]
    rounds, hits = share_of(400), 0

    for _ in range(rounds):
        generator.shuffle(live)
        for _ in range(generator.choice([1, 1, 1, 20])):
            allocator.free(live.pop())
        size, stream = 512 * generator.randrange(1, 50), generator.choice([0, 9])
        expected = best_fit(allocator.memory_snapshot(), size, stream)
        live.append(allocator.allocate(size, stream))
        if expected is not None:
            assert live[-1] == expected
            hits += 1

    assert hits > rounds / 2


def test_a_large_block_is_split_only_if_more_than_a_mebibyte_remains(make):
    allocator, _ = make()

    allocator.free(allocator.allocate(19 * MIB))
    allocator.allocate(18 * MIB)

    assert shape(allocator) == [[(18, "active_allocated"), (2, "inactive")]]

    allocator, _ = make()
    allocator.free(allocator.allocate(20 * MIB))
    allocator.allocate(19 * MIB)

    assert shape(allocator) == [[(20, "active_allocated")]]


def test_a_small_block_is_split_if_512_bytes_remain(make):
    allocator, _ = make()

    allocator.allocate(MIB)
    allocator.allocate(MIB - 512)

    assert shape(allocator)[0][2] == (512 / MIB, "inactive")


def test_neighbours_merge_in_whatever_order_they_are_freed(make):
    for order in ([0, 1, 2], [0, 2, 1], [1, 0, 2], [2, 1, 0]):
        allocator, _ = make()
        blocks = [allocator.allocate(5 * MIB) for _ in range(3)]

        for index in order:
            allocator.free(blocks[index])

        assert shape(allocator) == [[(20, "inactive")]]


def test_a_stream_never_gets_the_block_of_another_one(make):
    allocator, _ = make()
    address = allocator.allocate(5 * MIB, 1)
    allocator.free(address)

    other = allocator.allocate(5 * MIB, 2)
    again = allocator.allocate(5 * MIB, 1)

    assert other != address
    assert again == address


def test_a_small_request_leaves_a_block_above_max_split_size_alone(make):
    allocator, _ = make("max_split_size_mb:40")
    allocator.free(allocator.allocate(60 * MIB))

    allocator.allocate(30 * MIB)

    assert sorted(shape(allocator)) == [[(30, "active_allocated")], [(60, "inactive")]]


def test_an_oversize_request_takes_a_block_that_is_not_much_larger(make):
    allocator, _ = make("max_split_size_mb:40")
    allocator.free(allocator.allocate(69 * MIB))
    first = allocator.allocate(50 * MIB)
    stats = allocator.memory_stats()

    allocator.free(first)
    allocator.allocate(48 * MIB)

    assert stats["oversize_allocations.current"] == 1
    assert stats["max_split_size"] == 40 * MIB
    assert sorted(shape(allocator)) == [[(50, "active_allocated")], [(70, "inactive")]]


@pytest.mark.parametrize("address", [0, 1, 0x7F0000000000])
def test_freeing_what_was_never_allocated_names_the_address(make, address):
    allocator, _ = make()

    with pytest.raises(ValueError, match=f"invalid device pointer: {address:#x}$"):
        allocator.free(address)


def test_freeing_twice_is_an_error_and_changes_nothing(make):
    allocator, _ = make()
    address = allocator.allocate(1234)
    allocator.free(address)
    before = allocator.memory_stats()

    with pytest.raises(ValueError, match="invalid device pointer"):
        allocator.free(address)

    assert allocator.memory_stats() == before
    assert not allocator.owns(address)
    assert allocator.block_at(address) == {}
