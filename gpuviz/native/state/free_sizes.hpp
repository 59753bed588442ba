#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace gpuviz::state {

// The sizes of free blocks, of which the largest is known. The sizes of a class differ by less
// than an eighth, so that few different ones fit into a device's memory together.
class FreeSizes {
  public:
    void add(std::uint64_t size) {
        const std::size_t number = class_of(size);
        auto& sizes = classes_[number];
        const auto known = std::ranges::find(sizes, size, &Counted::size);
        if (known != sizes.end()) {
            ++known->count;
        } else {
            sizes.push_back({size, 1});
        }
        highest_ = std::max(highest_, number);
    }

    // Removes a size that was added.
    void remove(std::uint64_t size) {
        auto& sizes = classes_[class_of(size)];
        const auto known = std::ranges::find(sizes, size, &Counted::size);
        if (--known->count == 0) {
            *known = sizes.back();
            sizes.pop_back();
        }
    }

    // 0 if there are none.
    [[nodiscard]] std::uint64_t largest() const {
        while (highest_ > 0 && classes_[highest_].empty()) --highest_;
        const auto& sizes = classes_[highest_];
        return sizes.empty() ? 0 : std::ranges::max(sizes, {}, &Counted::size).size;
    }

  private:
    struct Counted {
        std::uint64_t size;
        std::uint32_t count;
    };

    static constexpr unsigned bits = 3;

    // The position of the highest bit, and the bits after it.
    static std::size_t class_of(std::uint64_t size) noexcept {
        const unsigned width = static_cast<unsigned>(std::bit_width(size));
        const unsigned shift = width > bits + 1 ? width - bits - 1 : 0;
        return (std::size_t{shift} << bits) + static_cast<std::size_t>(size >> shift);
    }

    std::array<std::vector<Counted>, (64 - bits + 1) << bits> classes_;
    // No higher class has sizes.
    mutable std::size_t highest_ = 0;
};

}  // namespace gpuviz::state
