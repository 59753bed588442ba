#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

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
};

// A sequence of operations in columns of equal length. Ids are dense: 0 .. block_count - 1.
struct ReplayProgram {
    std::vector<std::uint8_t> operation;
    std::vector<std::uint32_t> id;
    std::vector<std::uint64_t> argument;
    std::vector<device::StreamHandle> stream;
    std::vector<std::uint32_t> stack;   // empty: 0 for all
    std::vector<std::uint32_t> thread;  // empty: 0 for all
    std::vector<std::int64_t> time_ns;  // since the first operation, ascending; empty: untimed
    std::vector<std::string> settings;

    [[nodiscard]] std::size_t size() const noexcept { return operation.size(); }

    // Throws std::invalid_argument that names the row and its problem.
    void validate() const;
    [[nodiscard]] std::uint32_t block_count() const noexcept;
    [[nodiscard]] std::uint64_t pool_count() const noexcept;
};

}  // namespace gpuviz::replay
