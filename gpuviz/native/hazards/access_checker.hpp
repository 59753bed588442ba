#pragma once

#include <vector>

#include "hazards/blocks.hpp"
#include "hazards/hazard.hpp"
#include "hazards/history.hpp"
#include "hazards/order.hpp"
#include "hazards/stream_values.hpp"

namespace gpuviz::hazards {

// Finds the past accesses to an operation's memory that the operation is in conflict with and not
// ordered after.
//
// Accesses are placed: they give addresses. What it refers to must outlive it. Not thread-safe.
class AccessChecker {
  public:
    // `unknown_may_write`: also if the other access does not write.
    AccessChecker(bool unknown_may_write, Blocks& blocks, History& history, StreamValues& values)
        : unknown_may_write_(unknown_may_write),
          blocks_(blocks),
          history_(history),
          values_(values) {}
    AccessChecker(const AccessChecker&) = delete;
    AccessChecker& operator=(const AccessChecker&) = delete;

    // Loads the past of all accesses at once; waiting for each in turn would take most of the time.
    void prefetch(const std::vector<Access>& accesses);
    void check(HazardsOfOperation& found, const std::vector<Access>& accesses, Start start);
    // A graph accesses the same addresses at each launch, whoever owns them by then.
    void check_owners(HazardsOfOperation& found, const std::vector<Access>& accesses);
    void check_free(HazardsOfOperation& found, Tier tier, BlockId id, Start start);
    void remember(OperationId operation, Moment moment, const std::vector<Access>& accesses);

    // Of the nodes that a capture has recorded, `nodes` being their accesses.
    void check_node(HazardsOfOperation& found, const std::vector<Access>& accesses, Start start,
                    History& nodes);
    static void remember_node(OperationId operation, Moment moment,
                              const std::vector<Access>& accesses, History& nodes);

  private:
    void check_past(HazardsOfOperation& found, const Access& access, std::uint64_t base,
                    const Extent& extent, Start start);
    void check_lifetime(HazardsOfOperation& found, const Access& access, const Block& block,
                        Start start);
    void check_owner(HazardsOfOperation& found, const Access& access);

    bool unknown_may_write_;
    Blocks& blocks_;
    History& history_;
    StreamValues& values_;
    std::vector<const Extent*> prefetched_;
};

}  // namespace gpuviz::hazards
