#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "analysis/long_column.hpp"

namespace gpuviz::analysis {

// The order of memory events and of the begins and ends of lines of the program, as numbers. Lines
// that begin or end between the same two events have an order if they are among those that the
// scale was made with. If one line ends when another begins, both have the same place.
class EventPlaces {
  public:
    // Times in ns, ascending; those of begins and ends of lines are distinct.
    EventPlaces(LongColumn<std::int64_t> events, LongColumn<std::int64_t> begins,
                LongColumn<std::int64_t> ends) noexcept;

    // More than any place.
    [[nodiscard]] std::size_t count() const noexcept;
    // The place of each event, and one after all.
    [[nodiscard]] LongColumn<std::int64_t> of_events() const;
    // The places of lines that begin at some times; an event then is in the line.
    [[nodiscard]] LongColumn<std::int64_t> before(std::span<const std::int64_t> times) const;
    // The places of lines that end at some times; an event then is in the line.
    [[nodiscard]] LongColumn<std::int64_t> after(std::span<const std::int64_t> times) const;

  private:
    // What `place` returns for each time, to which it gets cursors into the three columns.
    template <typename Place>
    LongColumn<std::int64_t> at(std::span<const std::int64_t> times, Place place) const;

    LongColumn<std::int64_t> events_;
    LongColumn<std::int64_t> begins_;
    LongColumn<std::int64_t> ends_;
};

}  // namespace gpuviz::analysis
