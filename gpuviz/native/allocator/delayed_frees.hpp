#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include "allocator/block.hpp"
#include "allocator/last_use.hpp"

namespace gpuviz::allocator {

// Frees of one line that waited for work of one line on another stream.
struct DelayedFrees {
    struct Lines {
        std::uint32_t allocated;  // call stacks
        std::uint32_t freed;
        std::uint32_t used;
        device::StreamHandle own_stream;
        device::StreamHandle stream;  // that used the memory

        auto operator<=>(const Lines&) const = default;
    };

    Lines lines{};
    std::uint64_t frees = 0;
    std::uint64_t bytes = 0;
    double byte_seconds = 0;  // held, from the free until the allocator saw that the work was done
};

// Counts frees that wait for the last use of their block, or would wait.
class DelayedFreeCounts {
  public:
    using Clock = std::function<std::int64_t()>;
    using Uses = std::vector<std::shared_ptr<LastUse>>;

    void begin(Clock clock) {
        clock_ = std::move(clock);
        rows_.clear();
        held_.clear();
        imagined_.clear();
    }
    // Unfinished waits end now.
    void end();
    // A block is held until released().
    void hold(const Block& block, const Uses& uses, std::uint32_t freed) {
        held_[&block] = begun(block, uses, freed);
    }
    void released(const Block& block);
    // A block would be held until these uses are complete, which poll() finds out.
    void imagine(const Block& block, Uses uses, std::uint32_t freed);
    [[nodiscard]] bool is_imagining() const noexcept { return !imagined_.empty(); }
    void poll(device::Device& device);
    [[nodiscard]] std::vector<DelayedFrees> rows() const;

  private:
    struct Wait {
        DelayedFrees::Lines lines;
        std::uint64_t bytes;
        std::int64_t since_ns;
    };
    struct Imagined {
        Wait wait;
        Uses uses;
    };

    [[nodiscard]] Wait begun(const Block& block, const Uses& uses, std::uint32_t freed);
    void ended(const Wait& wait, std::int64_t now_ns);

    Clock clock_;
    std::map<DelayedFrees::Lines, DelayedFrees> rows_;
    std::unordered_map<const Block*, Wait> held_;
    std::vector<Imagined> imagined_;
};

}  // namespace gpuviz::allocator
