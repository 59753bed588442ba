#pragma once

#include <cstdint>
#include <map>

#include "allocator/size_classes.hpp"
#include "record/memory_event.hpp"

namespace gpuviz::torch {

// torch's rules for the sizes of blocks.
struct BlockSizes {
    std::uint64_t max_split_size;
    allocator::RoundupDivisions divisions;
};

// What torch's allocator has of one device's memory, as far as known.
//
// The functions take an event and complete it with what the trace lacks. They return false for one
// of memory that is not known.
struct DeviceMemory {
    struct Home {
        std::uint64_t size;
        std::uint64_t stream;
        std::uint32_t pool;
        bool is_expandable;
    };
    struct Live {
        std::uint64_t size;
        std::uint64_t requested_size;
        std::uint32_t pool;
        bool is_pending = false;  // known from TorchObserver::update() only
    };
    using Homes = std::map<std::uint64_t, Home>;
    using Lives = std::map<std::uint64_t, Live>;

    // The event's size is the one that was requested.
    void allocated(record::MemoryEvent& event, const BlockSizes& sizes);
    [[nodiscard]] bool freed(record::MemoryEvent& event);
    void mapped(const record::MemoryEvent& event);
    [[nodiscard]] bool unmapped(record::MemoryEvent& event);

    Homes homes;
    Lives lives;
    // The block whose free was requested last: most frees are completed directly after it.
    Lives::iterator requested = lives.end();
};

}  // namespace gpuviz::torch
