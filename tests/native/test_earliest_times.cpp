// Constraints of any content against repeated relaxation, and times out of range without overflow.

#include "analysis/earliest_times.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <random>
#include <stdexcept>
#include <vector>

#include "check.hpp"

namespace {

using gpuviz::analysis::Constraints;
using gpuviz::analysis::earliest_times;

struct Columns {
    std::vector<std::uint32_t> source, target;
    std::vector<std::int64_t> lag, not_before;

    Columns(std::mt19937_64& random, std::uint32_t moments, bool wild) {
        const auto any = [&] { return static_cast<std::int64_t>(random()); };
        for (std::uint32_t moment = 0; moment < moments; ++moment) {
            not_before.push_back(wild ? any() : any() % 100);
            for (auto count = moment == 0 ? 0 : random() % 4; count > 0; --count) {
                source.push_back(static_cast<std::uint32_t>(random() % moment));
                target.push_back(moment);
                lag.push_back(wild ? any() : any() % 50);
            }
        }
    }

    [[nodiscard]] Constraints constraints() const { return {source, target, lag}; }
};

void check_against_relaxation() {
    std::mt19937_64 random(1);
    for (std::uint32_t moments = 0; moments < 60; ++moments) {
        const Columns columns(random, moments, false);
        std::vector<std::int64_t> expected = columns.not_before;
        for (std::uint32_t round = 0; round < moments; ++round) {
            for (std::size_t row = 0; row < columns.lag.size(); ++row) {
                auto& time = expected[columns.target[row]];
                time = std::max(time, expected[columns.source[row]] + columns.lag[row]);
            }
        }
        const auto times = earliest_times(columns.not_before, columns.constraints());
        CHECK_EQUAL(std::ranges::equal(times, expected), true);
    }
}

void check_wild_times() {
    std::mt19937_64 random(2);
    for (std::uint32_t moments = 0; moments < 60; ++moments) {
        const Columns columns(random, moments, true);
        const auto times = earliest_times(columns.not_before, columns.constraints());
        for (std::size_t moment = 0; moment < times.size(); ++moment) {
            CHECK_EQUAL(times[moment] >= columns.not_before[moment], true);
        }
    }
}

bool is_refused(std::vector<std::uint32_t> source, std::vector<std::uint32_t> target) {
    const std::vector<std::int64_t> lag(source.size()), not_before(2);
    try {
        static_cast<void>(earliest_times(not_before, {source, target, lag}));
    } catch (const std::invalid_argument&) {
        return true;
    }
    return false;
}

}  // namespace

int main() {
    check_against_relaxation();
    check_wild_times();
    CHECK_EQUAL(is_refused({0}, {1}), false);
    CHECK_EQUAL(is_refused({1}, {1}), true);
    CHECK_EQUAL(is_refused({0}, {2}), true);
    CHECK_EQUAL(is_refused({0, 0}, {1, 0}), true);
}
