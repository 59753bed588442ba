#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <span>
#include <vector>

#include "analysis/timed_rows.hpp"

namespace gpuviz::analysis {

// The length of a union of intervals that arrive roughly in order of time. It is exact unless an
// interval begins before `settled`; its part before that is not counted. At least the last half of
// `most_parts` separate parts begin after it. Adding costs time for the added intervals and for the
// parts that end after the first of them begins. Not thread-safe.
class GrowingUnion {
  public:
    explicit GrowingUnion(std::size_t most_parts) : most_parts_(most_parts) {}

    void add(std::vector<Interval> intervals);

    [[nodiscard]] std::int64_t length() const noexcept { return length_; }
    // The total length of the parts of intervals that arrived too late.
    [[nodiscard]] std::int64_t uncounted() const noexcept { return uncounted_; }
    [[nodiscard]] std::size_t parts() const noexcept { return parts_.size(); }

  private:
    void settle(std::size_t parts);

    std::size_t most_parts_;
    std::vector<Interval> parts_;
    std::int64_t length_ = 0;
    std::int64_t settled_ = std::numeric_limits<std::int64_t>::min();
    std::int64_t uncounted_ = 0;
};

// Columns of activities, of equal length; `is_kernel` and `is_copy` are 0 or 1.
struct BusyRows {
    std::span<const std::int64_t> time;
    std::span<const std::int64_t> end;
    std::span<const std::int16_t> device;
    std::span<const std::uint8_t> is_kernel;
    std::span<const std::uint8_t> is_copy;
};

// When a device was busy, by kind of activity; `either` is a kernel or a copy.
struct DeviceBusyTimes {
    explicit DeviceBusyTimes(std::size_t most_parts)
        : any(most_parts), kernels(most_parts), copies(most_parts), either(most_parts) {}

    void add(const BusyRows& rows, std::int16_t device);

    std::int64_t activities = 0;
    Interval window;  // from the first start to the last end
    GrowingUnion any;
    GrowingUnion kernels;
    GrowingUnion copies;
    GrowingUnion either;
};

// The busy times of all devices, as activities are added. Not thread-safe.
class BusyTimes {
  public:
    explicit BusyTimes(std::size_t most_parts) : most_parts_(most_parts) {}

    void add(const BusyRows& rows);

    [[nodiscard]] const std::map<std::int16_t, DeviceBusyTimes>& devices() const noexcept {
        return devices_;
    }

  private:
    std::size_t most_parts_;
    std::map<std::int16_t, DeviceBusyTimes> devices_;
};

}  // namespace gpuviz::analysis
