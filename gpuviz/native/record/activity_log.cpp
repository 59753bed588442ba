#include "record/activity_log.hpp"

#include <cstring>
#include <new>
#include <string_view>
#include <type_traits>

namespace gpuviz::record {
namespace {

static_assert(std::has_unique_object_representations_v<LaunchConfigurationRow>);

std::string_view bytes_after_id(const LaunchConfigurationRow& launch) noexcept {
    return {reinterpret_cast<const char*>(&launch.grid_x), sizeof launch - sizeof launch.id};
}

}  // namespace

std::size_t ActivityLog::Hash::operator()(const LaunchConfigurationRow& launch) const noexcept {
    return std::hash<std::string_view>{}(bytes_after_id(launch));
}

bool ActivityLog::Equal::operator()(const LaunchConfigurationRow& left,
                                    const LaunchConfigurationRow& right) const noexcept {
    return bytes_after_id(left) == bytes_after_id(right);
}

std::uint32_t ActivityLog::launch_id(const LaunchConfigurationRow& launch) noexcept {
    const std::lock_guard lock(mutex_);
    try {
        const auto [known, is_new] = launches_.try_emplace(launch, launches_.size() + 1);
        if (is_new) {
            LaunchConfigurationRow row = launch;
            row.id = known->second;
            launch_configurations.append(row);
        }
        return known->second;
    } catch (const std::bad_alloc&) {
        return 0;
    }
}

std::uint64_t ActivityLog::dropped() const noexcept {
    std::uint64_t total = lost_.load();
    for_each_log(*this, [&](const char*, const auto& log) { total += log.dropped(); });
    return total;
}

std::size_t ActivityLog::bytes() const noexcept {
    std::size_t total = 0;
    for_each_log(*this, [&](const char*, const auto& log) { total += log.bytes(); });
    return total;
}

}  // namespace gpuviz::record
