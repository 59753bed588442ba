#include "analysis/covered.hpp"

#include <cstddef>

#include "analysis/interval_union.hpp"

namespace gpuviz::analysis {

LongColumn<std::int64_t> covered(const IntervalRows& parts, const IntervalRows& wanted) {
    IntervalUnion whole;
    for (std::size_t part = 0; part < parts.begin.size(); ++part) {
        whole.add(sound(parts.begin[part], parts.end[part]));
    }
    LongColumn<std::int64_t> found(wanted.begin.size());
    std::size_t cursor = 0;
    for (std::size_t row = 0; row < found.size(); ++row) {
        found[row] = whole.covered(sound(wanted.begin[row], wanted.end[row]), cursor);
    }
    return found;
}

}  // namespace gpuviz::analysis
