#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "hazards/history.hpp"

namespace gpuviz::hazards {

// The words of the rules that the litmus programs state.
enum class Kind : std::uint8_t { raw, war, waw, reuse, use_after_free, use_before_alloc };
enum class Tier : std::uint8_t { certain, probable, latent };

// Two operations that access the same bytes in conflicting ways, with no guaranteed order.
struct Hazard {
    Kind kind;
    Tier tier;
    OperationId first;
    OperationId second;
    BlockId block;        // the one that the second operation accesses or frees
    BlockId other_block;  // the one that the first accesses, if another; else 0
    std::vector<std::pair<std::uint64_t, std::uint64_t>> bytes;  // of `block`; ascending, disjoint
};

// The hazards of which one operation is the second, one for each kind, tier, first and blocks.
class HazardsOfOperation {
  public:
    // `moment` is that of an action of a stream.
    explicit HazardsOfOperation(OperationId second, Moment moment = {})
        : second_(second), moment_(moment) {}

    void add(Kind kind, Tier tier, OperationId first, BlockId block, BlockId other_block,
             std::uint64_t start, std::uint64_t stop);
    void append_to(std::vector<Hazard>& hazards);
    [[nodiscard]] OperationId second() const noexcept { return second_; }
    [[nodiscard]] Moment moment() const noexcept { return moment_; }

  private:
    OperationId second_;
    Moment moment_;
    std::vector<Hazard> hazards_;
};

// Whether accesses conflict if nothing orders them.
[[nodiscard]] bool conflict(const PastAccess& first, const Access& second) noexcept;
// The kind of a conflict inside one allocation.
[[nodiscard]] Kind kind_of(Mode first, Mode second) noexcept;
// For each byte of a block, only the strongest of an operation's accesses.
[[nodiscard]] std::vector<Access> strongest(std::vector<Access> accesses);

}  // namespace gpuviz::hazards
