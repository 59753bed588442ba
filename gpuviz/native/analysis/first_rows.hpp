#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "analysis/long_column.hpp"

namespace gpuviz::analysis {

// The first row of each id other than 0; ids are std::uint32_t or std::int64_t.
template <typename Id>
class FirstRows {
  public:
    FirstRows() = default;
    explicit FirstRows(std::span<const Id> ids);
    [[nodiscard]] std::optional<std::size_t> of(Id id) const noexcept;
    // The same, and `none` without one.
    [[nodiscard]] std::uint32_t row(Id id) const noexcept;

    static constexpr auto none = std::numeric_limits<std::uint32_t>::max();

  private:
    // Indexed by id from the lowest on if ids are dense; else sorted pairs of id and row.
    Id lowest_ = 0;
    LongColumn<std::uint32_t> dense_;
    std::vector<std::pair<Id, std::uint32_t>> sorted_;
};

// The first row of each wanted id; -1 if there is none, or for id 0.
template <typename Id>
[[nodiscard]] LongColumn<std::int64_t> first_rows(std::span<const Id> known,
                                                  std::span<const Id> wanted);

}  // namespace gpuviz::analysis
