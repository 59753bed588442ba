#include "analysis/earliest_times.hpp"

#include <algorithm>
#include <cstddef>
#include <stdexcept>

namespace gpuviz::analysis {

LongColumn<std::int64_t> earliest_times(std::span<const std::int64_t> not_before,
                                        const Constraints& constraints) {
    LongColumn<std::int64_t> times(not_before.begin(), not_before.end());
    std::uint32_t latest = 0;
    for (std::size_t row = 0; row < constraints.target.size(); ++row) {
        const std::uint32_t source = constraints.source[row];
        const std::uint32_t target = constraints.target[row];
        if (source >= target || target >= times.size() || target < latest) {
            throw std::invalid_argument("constraints must be sorted by target, after their source");
        }
        latest = target;
        std::int64_t time = 0;
        // Times of a damaged recording may be out of range; such a constraint says nothing.
        if (__builtin_add_overflow(times[source], constraints.lag[row], &time)) continue;
        times[target] = std::max(times[target], time);
    }
    return times;
}

}  // namespace gpuviz::analysis
