#include "allocator/statistics.hpp"

namespace gpuviz::allocator {

namespace {

template <typename Stats, typename Visit>
void for_each_counter(Stats& stats, Visit visit) {
    visit("allocation", stats.allocation);
    visit("segment", stats.segment);
    visit("active", stats.active);
    visit("inactive_split", stats.inactive_split);
    visit("allocated_bytes", stats.allocated_bytes);
    visit("reserved_bytes", stats.reserved_bytes);
    visit("active_bytes", stats.active_bytes);
    visit("inactive_split_bytes", stats.inactive_split_bytes);
    visit("requested_bytes", stats.requested_bytes);
    visit("oversize_allocations", stats.oversize_allocations);
    visit("oversize_segments", stats.oversize_segments);
}

template <typename Stats, typename Visit>
void for_each_host_value(Stats& stats, Visit visit) {
    visit("allocations", stats.allocations);
    visit("allocated_bytes", stats.allocated_bytes);
    visit("active_requests", stats.active_requests);
    visit("active_bytes", stats.active_bytes);
    visit("host_alloc_time", stats.host_alloc_time);
    visit("host_free_time", stats.host_free_time);
}

class Flattener {
  public:
    explicit Flattener(std::vector<std::pair<std::string, std::int64_t>>& values)
        : values_(values) {}

    void operator()(const std::string& name, const Counter& counter) {
        values_.emplace_back(name + ".current", counter.current);
        values_.emplace_back(name + ".peak", counter.peak);
        values_.emplace_back(name + ".allocated", counter.allocated);
        values_.emplace_back(name + ".freed", counter.freed());
    }
    void operator()(const std::string& name, const PoolCounters& counters) {
        (*this)(name + ".all", counters.all());
        (*this)(name + ".small_pool", counters.small_pool);
        (*this)(name + ".large_pool", counters.large_pool);
    }
    void operator()(const std::string& name, const CallTimes& times) {
        values_.emplace_back(name + ".total", times.total);
        values_.emplace_back(name + ".max", times.max);
        values_.emplace_back(name + ".min", times.min);
        values_.emplace_back(name + ".count", times.count);
        values_.emplace_back(name + ".avg", times.average());
    }

  private:
    std::vector<std::pair<std::string, std::int64_t>>& values_;
};

}  // namespace

void Statistics::reset_peak() noexcept {
    for_each_counter(*this, [](const char*, auto& counter) { counter.reset_peak(); });
}

void Statistics::reset_accumulated() noexcept {
    for_each_counter(*this, [](const char*, auto& counter) { counter.reset_accumulated(); });
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
    for_each_counter(*this, Flattener(values));
    std::sort(values.begin(), values.end());
    return values;
}

void HostStatistics::reset_peak() noexcept {
    for_each_host_value(*this, [](const char*, auto& value) { value.reset_peak(); });
}

void HostStatistics::reset_accumulated() noexcept {
    for_each_host_value(*this, [](const char*, auto& value) { value.reset_accumulated(); });
    num_host_alloc = 0;
    num_host_free = 0;
}

std::vector<std::pair<std::string, std::int64_t>> HostStatistics::flattened() const {
    std::vector<std::pair<std::string, std::int64_t>> values{{"num_host_alloc", num_host_alloc},
                                                             {"num_host_free", num_host_free}};
    for_each_host_value(*this, Flattener(values));
    std::sort(values.begin(), values.end());
    return values;
}

}  // namespace gpuviz::allocator
