#include "allocator/statistics.hpp"

namespace gpuviz {

namespace {

template <typename Pools, typename Visit>
void visit_pools(const char* name, Pools& counters, Visit visit) {
    visit(std::string(name) + ".all", counters.all);
    visit(std::string(name) + ".small_pool", counters.small_pool);
    visit(std::string(name) + ".large_pool", counters.large_pool);
}

template <typename Stats, typename Visit>
void for_each_counter(Stats& stats, Visit visit) {
    visit_pools("allocation", stats.allocation, visit);
    visit_pools("segment", stats.segment, visit);
    visit_pools("active", stats.active, visit);
    visit_pools("inactive_split", stats.inactive_split, visit);
    visit_pools("allocated_bytes", stats.allocated_bytes, visit);
    visit_pools("reserved_bytes", stats.reserved_bytes, visit);
    visit_pools("active_bytes", stats.active_bytes, visit);
    visit_pools("inactive_split_bytes", stats.inactive_split_bytes, visit);
    visit_pools("requested_bytes", stats.requested_bytes, visit);
    visit("oversize_allocations", stats.oversize_allocations);
    visit("oversize_segments", stats.oversize_segments);
}

}  // namespace

void Statistics::reset_peak() noexcept {
    for_each_counter(*this,
                     [](const std::string&, Counter& counter) { counter.peak = counter.current; });
}

void Statistics::reset_accumulated() noexcept {
    for_each_counter(*this, [](const std::string&, Counter& counter) {
        counter.allocated = 0;
        counter.freed = 0;
    });
    num_alloc_retries = 0;
    num_ooms = 0;
    num_sync_all_streams = 0;
    num_device_alloc = 0;
    num_device_free = 0;
}

std::vector<std::pair<std::string, std::int64_t>> Statistics::flattened() const {
    std::vector<std::pair<std::string, std::int64_t>> values{
        {"num_alloc_retries", num_alloc_retries},       {"num_ooms", num_ooms},
        {"num_sync_all_streams", num_sync_all_streams}, {"num_device_alloc", num_device_alloc},
        {"num_device_free", num_device_free},           {"max_split_size", max_split_size}};
    for_each_counter(*this, [&](const std::string& name, const Counter& counter) {
        values.emplace_back(name + ".current", counter.current);
        values.emplace_back(name + ".peak", counter.peak);
        values.emplace_back(name + ".allocated", counter.allocated);
        values.emplace_back(name + ".freed", counter.freed);
    });
    std::sort(values.begin(), values.end());
    return values;
}

}  // namespace gpuviz
