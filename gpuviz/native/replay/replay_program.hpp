#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "allocator/allocator.hpp"
#include "device/device.hpp"

namespace gpuviz::replay {

enum class Operation : std::uint8_t {
    malloc,         // block `id` of `argument` bytes on `stream`
    free,           // block `id`
    record_stream,  // block `id` is used by `stream`
    busy,           // endless work on `stream`
    sync,           // every stream finishes
    empty_cache,
    begin_pool,  // private pool number `argument`, from 0
    end_pool,
    settings,  // text number `argument`
    stats,     // the statistics are stored
    // Those of recordings: what happened, where a program knows only what it asked for.
    free_pending,  // block `id`, which stays pending until `complete`
    complete,      // block `id`, of a free_pending, may be reused
    release_pool,  // private pool number `argument`, which is not used again
    memory_limit,  // `argument` bytes may be reserved
    expandable,    // expandable segments are on (`argument` 1) or off
    place,         // the next segment begins at address `argument`, if that is free
    // What existed before: a segment of `argument` bytes of the pool `id` (2 * its number + 3 or,
    // if it is small, 2; the default pool is 1 or 0), and its blocks `id` of `argument` bytes, of
    // which `stream` were requested, in ascending order, with free bytes between them.
    restore_segment,
    restore_pages,  // the same for pages of an expandable segment at the address of the last
                    // `place`
    restore_gap,
    restore_block,
};
inline constexpr Operation last_operation = Operation::restore_block;

// A sequence of operations in columns of equal length. Ids are dense: 0 .. block_count - 1.
struct ReplayProgram {
    std::vector<std::uint8_t> operation;
    std::vector<std::uint32_t> id;
    std::vector<std::uint64_t> argument;
    std::vector<device::StreamHandle> stream;
    std::vector<std::uint32_t> stack;         // empty: 0 for all
    std::vector<std::uint32_t> thread;        // empty: 0 for all
    std::vector<std::int8_t> framework = {};  // empty: unknown for all
    std::vector<std::int64_t> time_ns;  // since the first operation, ascending; empty: untimed
    std::vector<std::string> settings;
    std::vector<std::int64_t>
        origin;  // row of the recording that an operation repeats; empty: none
    // Whether a pool serves the thread that began it, or everything; see PoolFilter.
    allocator::PoolFilter pool_filter = allocator::PoolFilter::everything;

    [[nodiscard]] std::size_t size() const noexcept { return operation.size(); }

    // Throws std::invalid_argument that names the row and its problem.
    void validate() const;
    [[nodiscard]] std::uint32_t block_count() const noexcept;
    [[nodiscard]] std::uint64_t pool_count() const noexcept;
};

}  // namespace gpuviz::replay
