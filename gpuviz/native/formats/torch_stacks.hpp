#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "formats/pickle_value.hpp"
#include "formats/pickle_walk.hpp"
#include "formats/torch_snapshot.hpp"

namespace gpuviz::formats {

// Assigns equal stacks the same id. A list or a frame is read once, however often it is referenced:
// its id replaces its items.
class TorchStackTable {
  public:
    TorchStackTable(TorchStacks& stacks, TorchFrames& frames)
        : stacks_(&stacks), frames_(&frames) {}

    // 0 for an empty list or None.
    std::uint32_t stack(PickleValue frames, const Place& place);

  private:
    std::uint32_t frame(PickleValue frame, const Place& place);
    std::uint32_t stack_of(const std::vector<std::uint32_t>& frames);

    TorchStacks* stacks_;
    TorchFrames* frames_;
    std::vector<std::uint32_t> scratch_;
    std::unordered_multimap<std::uint64_t, std::uint32_t> stack_ids_;  // by hash
    std::unordered_multimap<std::uint64_t, std::uint32_t> frame_ids_;
};

}  // namespace gpuviz::formats
