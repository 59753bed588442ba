#include "analysis/event_places.hpp"

#include <utility>

#include "analysis/interval_union.hpp"

namespace gpuviz::analysis {
namespace {

// How many of some ascending times are before another one, or equal to it. A query is faster the
// closer its time is to that of the previous one.
class Earlier {
  public:
    explicit Earlier(const LongColumn<std::int64_t>& times) noexcept : times_(times) {}

    std::int64_t before(std::int64_t time) noexcept {
        place_ = partition_near(times_, place_, [=](std::int64_t each) { return each < time; });
        return static_cast<std::int64_t>(place_);
    }
    std::int64_t until(std::int64_t time) noexcept {
        place_ = partition_near(times_, place_, [=](std::int64_t each) { return each <= time; });
        return static_cast<std::int64_t>(place_);
    }

  private:
    const LongColumn<std::int64_t>& times_;
    std::size_t place_ = 0;
};

}  // namespace

EventPlaces::EventPlaces(LongColumn<std::int64_t> events, LongColumn<std::int64_t> begins,
                         LongColumn<std::int64_t> ends) noexcept
    : events_(std::move(events)), begins_(std::move(begins)), ends_(std::move(ends)) {}

std::size_t EventPlaces::count() const noexcept {
    return 2 * events_.size() + begins_.size() + ends_.size() + 2;
}

LongColumn<std::int64_t> EventPlaces::of_events() const {
    LongColumn<std::int64_t> places(events_.size() + 1, static_cast<std::int64_t>(count()) - 1);
    Earlier begins(begins_);
    Earlier ends(ends_);
    for (std::size_t row = 0; row < events_.size(); ++row) {
        const std::int64_t time = events_[row];
        const auto between = 2 * static_cast<std::int64_t>(row) + 1;
        places[row] = between + begins.until(time) + ends.before(time);
    }
    return places;
}

template <typename Place>
LongColumn<std::int64_t> EventPlaces::at(std::span<const std::int64_t> times, Place place) const {
    LongColumn<std::int64_t> places(times.size());
    Earlier events(events_);
    Earlier begins(begins_);
    Earlier ends(ends_);
    for (std::size_t row = 0; row < times.size(); ++row) {
        places[row] = place(times[row], events, begins, ends);
    }
    return places;
}

LongColumn<std::int64_t> EventPlaces::before(std::span<const std::int64_t> times) const {
    return at(times, [](std::int64_t time, Earlier& events, Earlier& begins, Earlier& ends) {
        const std::int64_t first = events.before(time);
        const bool is_at_event = events.until(time) > first;
        const std::int64_t ended = is_at_event ? ends.before(time) : ends.until(time);
        return 2 * first + begins.before(time) + ended;
    });
}

LongColumn<std::int64_t> EventPlaces::after(std::span<const std::int64_t> times) const {
    return at(times, [](std::int64_t time, Earlier& events, Earlier& begins, Earlier& ends) {
        const std::int64_t first = events.before(time);
        const std::int64_t last = events.until(time);
        const std::int64_t begun = last > first ? begins.until(time) : begins.before(time);
        return 2 * last + begun + ends.until(time);
    });
}

}  // namespace gpuviz::analysis
