#include <algorithm>
#include <utility>
#include <vector>

#include "allocator/caching_allocator.hpp"

namespace gpuviz::allocator {

// Frees unsplit blocks of the large default pool that have been unused longer than average, until
// the reserved bytes fall below the threshold or no block older than average is left.
void CachingAllocator::collect_garbage(const record::CallSite& site) {
    const auto threshold = static_cast<std::uint64_t>(settings_.garbage_collection_threshold *
                                                      static_cast<double>(*limit_));
    if (reserved_ <= threshold) {
        return;
    }
    const std::uint64_t target = reserved_ - threshold;
    std::vector<Block*> candidates = large_.free_blocks.in_order();
    std::erase_if(candidates, [](const Block* block) {
        return block->is_split() || block->expandable_segment != nullptr;
    });
    std::uint64_t total_age = 0;
    for (const Block* block : candidates) {
        total_age += large_.age(block);
    }
    std::uint64_t reclaimed = 0;
    bool freed = true;
    while (reclaimed < target && freed && !candidates.empty()) {
        const double average =
            static_cast<double>(total_age) / static_cast<double>(candidates.size());
        std::vector<Block*> kept;
        for (Block* block : candidates) {
            const std::uint64_t age = large_.age(block);
            if (static_cast<double>(age) < average) {
                kept.push_back(block);
                continue;
            }
            reclaimed += block->size;
            total_age -= age;
            release_segment(block, site);
        }
        freed = kept.size() < candidates.size();
        candidates = std::move(kept);
    }
}

}  // namespace gpuviz::allocator
