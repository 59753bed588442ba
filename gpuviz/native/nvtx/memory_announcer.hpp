#pragma once

#include <map>
#include <memory>

#include "nvtx/memory_tool_abi.hpp"
#include "record/memory_event.hpp"

namespace gpuviz::nvtx {

// The tool that NVTX_INJECTION64_PATH names, if it takes part in NVTX's memory extension.
struct MemoryTool {
    Domain domain = nullptr;
    HeapRegister heap_register = nullptr;
    HeapUnregister heap_unregister = nullptr;
    RegionsRegister regions_register = nullptr;
    RegionsUnregister regions_unregister = nullptr;

    // Loads it at the first call; null: there is none. It stays loaded.
    [[nodiscard]] static const MemoryTool* find() noexcept;
};

// Announces an allocator's segments as heaps, and its blocks as regions of the requested size, so
// that a memory checker reports accesses outside live blocks. Passes every event on.
//
// A block is a region from its allocation until its free has completed. Not announced, so that all
// accesses are allowed: private pools, whose blocks a graph uses after they were freed, and
// expandable segments, which the extension does not provide for.
class MemoryAnnouncer final : public record::MemoryEventRelay {
  public:
    explicit MemoryAnnouncer(const MemoryTool& tool) noexcept : tool_(tool) {}

    void push(const record::MemoryEvent& event) noexcept override;

  private:
    struct Segment {
        std::uint64_t size;
        Heap heap;
    };

    void announce(const record::MemoryEvent& event);
    void add_heap(const record::MemoryEvent& event);
    void remove_heap(std::uint64_t address);
    [[nodiscard]] const Segment* segment_of(std::uint64_t address) const noexcept;
    void add_region(const record::MemoryEvent& event) const;
    void remove_region(std::uint64_t address) const;

    const MemoryTool& tool_;
    std::map<std::uint64_t, Segment> segments_;  // by address
};

}  // namespace gpuviz::nvtx
