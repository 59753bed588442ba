#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "formats/pickle_value.hpp"

namespace gpuviz::formats {

// The distinct texts of a pickle, numbered from 1 in the order of their appearance.
class PickleTexts {
  public:
    explicit PickleTexts(PickleArena& arena) : arena_(&arena), slots_(1024) {}

    const PickleText* intern(std::string_view text);
    [[nodiscard]] const std::vector<const PickleText*>& all() const noexcept { return texts_; }

  private:
    void grow();
    [[nodiscard]] std::size_t slot_of(std::string_view text) const noexcept;

    PickleArena* arena_;
    std::vector<const PickleText*> slots_;  // open addressing; a power of two, at most half full
    std::vector<const PickleText*> texts_;
};

}  // namespace gpuviz::formats
