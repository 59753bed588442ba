#pragma once

#include <cstdint>
#include <unordered_map>

#include "record/activity_log.hpp"
#include "record/sampled_cost.hpp"
#include "record/session.hpp"

namespace gpuviz::record {

// Records the pinned host memory that a program takes from an allocator of its own. The allocator's
// segments are not known: its blocks are in none. The GIL must be held throughout.
class PinnedObserver {
  public:
    // To be called after an allocation, of the bytes that were asked for and the block's size.
    void allocated(std::uint64_t address, std::uint64_t size, std::uint64_t requested_size);
    // To be called before a free.
    void freed(std::uint64_t address);

    // Pushes the live blocks and sends events to a session, which must outlive this; null ends it.
    void set_session(Session* session, bool stacks);

    // What recording costs the program's threads; null without a session.
    [[nodiscard]] SampledCost* cost() const noexcept {
        return session_ == nullptr ? nullptr : &session_->log().memory_cost;
    }

    // To be called in the child of a fork: stops recording.
    void abandon() noexcept { session_ = nullptr; }

  private:
    struct Block {
        std::uint64_t size;
        std::uint64_t requested_size;
    };

    void write(Action action, std::uint64_t address, const Block& block, std::int64_t time,
               const CallSite& site);

    Session* session_ = nullptr;
    bool stacks_ = true;
    std::unordered_map<std::uint64_t, Block> blocks_;
};

}  // namespace gpuviz::record
