#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "hazards/clock.hpp"
#include "hazards/hazard.hpp"
#include "hazards/order.hpp"

namespace gpuviz::hazards {

// The values in memory that streams write and wait for.
//
// A wait may be enqueued before the write that ends it. Until then, a conflict of what runs after
// the wait is a doubt, which the write may dispel. Not thread-safe.
class StreamValues {
  public:
    // The last action of the stream writes the value at the address.
    void write(Order& order, Slot stream, std::uint64_t address);
    // The action waits for the value at the address.
    void wait(Order& order, Moment action, std::uint64_t address);

    // Whether the action runs after a value that nobody has written yet.
    [[nodiscard]] bool waits_early(Moment action) const;
    // Keeps a hazard whose first operation waits early, and may thus run after the second.
    void doubt(Moment first, Moment second, Hazard hazard);
    [[nodiscard]] bool has_doubts() const noexcept { return !doubts_.empty(); }
    // Appends the hazards that no write has dispelled, and forgets them.
    void take_doubts(std::vector<Hazard>& hazards);

  private:
    struct Value {
        bool is_written = false;
        Clock clock;
        std::vector<Moment> early_waits;  // enqueued before the first write
    };
    // A conflict whose first operation waits for a value that may be written after the second.
    struct Doubt {
        Moment first;
        Moment second;
        Hazard hazard;
    };

    std::unordered_map<std::uint64_t, Value> values_;
    std::vector<Doubt> doubts_;
};

}  // namespace gpuviz::hazards
