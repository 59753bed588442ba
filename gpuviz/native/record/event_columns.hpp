#pragma once

#include <cstdint>
#include <tuple>

#include "record/columns.hpp"
#include "record/memory_event.hpp"

namespace gpuviz::record {

// Row of the table `memory_events`.
struct MemoryEventRow {
    std::int64_t time;
    Action action;
    std::uint64_t address;
    std::int64_t size;
    std::int64_t requested_size;
    std::int16_t device;
    std::uint32_t stream;
    std::uint32_t pool;
    std::uint32_t stack;
    std::uint32_t thread;
    std::uint32_t range;
    Framework framework;

    static constexpr auto fields() {
        using Self = MemoryEventRow;
        return std::tuple{Field{"time", &Self::time},
                          Field{"action", &Self::action},
                          Field{"address", &Self::address},
                          Field{"size", &Self::size},
                          Field{"requested_size", &Self::requested_size},
                          Field{"device", &Self::device},
                          Field{"stream", &Self::stream},
                          Field{"pool", &Self::pool},
                          Field{"stack", &Self::stack},
                          Field{"thread", &Self::thread},
                          Field{"range", &Self::range},
                          Field{"framework", &Self::framework}};
    }
};

using EventColumns = Columns<MemoryEventRow>;

}  // namespace gpuviz::record
