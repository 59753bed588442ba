#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace gpuviz::hazards {

using Slot = std::uint32_t;  // a stream, or a host thread that accesses memory itself
using Device = std::uint16_t;

// An action of a stream: its position among all actions of that stream, from 1.
struct Moment {
    Slot slot = 0;
    std::uint64_t index = 0;
};

// What is known to be complete: of each stream, all actions up to an index.
class Clock {
  public:
    [[nodiscard]] std::uint64_t operator[](Slot slot) const noexcept {
        return slot < known_.size() ? known_[slot] : 0;
    }
    [[nodiscard]] bool has(Moment moment) const noexcept {
        return moment.index <= (*this)[moment.slot];
    }
    [[nodiscard]] bool has(const Clock& other) const noexcept {
        for (Slot slot = 0; slot < other.known_.size(); ++slot) {
            if (other.known_[slot] > (*this)[slot]) return false;
        }
        return true;
    }
    [[nodiscard]] bool is_empty() const noexcept { return known_.empty(); }
    void learn(Moment moment) {
        if (moment.slot >= known_.size()) known_.resize(moment.slot + 1);
        known_[moment.slot] = std::max(known_[moment.slot], moment.index);
    }
    void join(const Clock& other) {
        if (known_.size() < other.known_.size()) known_.resize(other.known_.size());
        for (std::size_t slot = 0; slot < other.known_.size(); ++slot) {
            known_[slot] = std::max(known_[slot], other.known_[slot]);
        }
    }

  private:
    std::vector<std::uint64_t> known_;
};

}  // namespace gpuviz::hazards
