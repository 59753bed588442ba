#include <algorithm>
#include <stdexcept>
#include <string>

#include "allocator/caching_allocator.hpp"

namespace gpuviz::allocator {

PrivatePool& CachingAllocator::pool_at(std::uint64_t pool) {
    const auto entry = private_pools_.find(pool);
    if (entry == private_pools_.end() || entry->second->use_count == 0) {
        throw std::invalid_argument("There is no private pool (0, " + std::to_string(pool) +
                                    "): it was never created, or it has been released.");
    }
    return *entry->second;
}

// 0: the default pool.
BlockPool& CachingAllocator::pool_of(std::uint64_t pool, bool is_small) {
    if (pool == 0) {
        return is_small ? small_ : large_;
    }
    PrivatePool& owner = pool_at(pool);
    return is_small ? owner.small : owner.large;
}

std::uint64_t CachingAllocator::create_pool(bool use_on_oom, bool no_split) {
    const std::lock_guard lock(mutex_);
    auto pool = std::make_unique<PrivatePool>(++last_pool_);
    pool->use_on_oom = use_on_oom;
    pool->no_split = no_split;
    private_pools_.emplace(last_pool_, std::move(pool));
    return last_pool_;
}

void CachingAllocator::begin_pool(std::uint64_t pool, PoolFilter filter) {
    const std::lock_guard lock(mutex_);
    PrivatePool& entered = pool_at(pool);
    const std::thread::id thread = std::this_thread::get_id();
    for (const PoolScope& scope : scopes_) {
        if (scope.pool == pool && (scope.filter == PoolFilter::everything ||
                                   filter == PoolFilter::everything || scope.thread == thread)) {
            throw std::invalid_argument("Allocations already go to the private pool (0, " +
                                        std::to_string(pool) +
                                        "); leave it before entering again.");
        }
    }
    scopes_.push_back({pool, thread, filter});
    entered.use_count += 1;
    open_captures_ += filter == PoolFilter::everything ? 1 : 0;
}

void CachingAllocator::end_pool(std::uint64_t pool) {
    const std::lock_guard lock(mutex_);
    const std::thread::id thread = std::this_thread::get_id();
    const auto scope = std::find_if(scopes_.rbegin(), scopes_.rend(), [&](const PoolScope& open) {
        return open.pool == pool &&
               (open.filter == PoolFilter::everything || open.thread == thread);
    });
    if (scope == scopes_.rend()) {
        throw std::invalid_argument("Allocations do not go to the private pool (0, " +
                                    std::to_string(pool) + ").");
    }
    open_captures_ -= scope->filter == PoolFilter::everything ? 1 : 0;
    scopes_.erase(std::next(scope).base());
    private_pools_.at(pool)->use_count -= 1;
}

void CachingAllocator::release_pool(std::uint64_t pool, const record::CallSite& site) {
    const std::lock_guard lock(mutex_);
    PrivatePool& released = pool_at(pool);
    released.use_on_oom = false;
    released.use_count -= 1;
    if (released.use_count > 0) {
        return;
    }
    released.no_split = false;
    if (!frees_wait()) {
        synchronize_events(&released, site);
    }
    release_unused_pool(private_pools_.find(pool), site);
}

}  // namespace gpuviz::allocator
