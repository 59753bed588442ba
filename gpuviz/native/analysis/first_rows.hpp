#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace gpuviz::analysis {

// The first row of each correlation id other than 0.
class FirstRows {
  public:
    FirstRows() = default;
    explicit FirstRows(std::span<const std::uint32_t> correlations);
    [[nodiscard]] std::optional<std::size_t> of(std::uint32_t correlation) const noexcept;

  private:
    // Indexed by id from the lowest on if ids are dense; else sorted pairs of id and row.
    std::uint32_t lowest_ = 0;
    std::vector<std::uint32_t> dense_;
    std::vector<std::pair<std::uint32_t, std::uint32_t>> sorted_;
};

}  // namespace gpuviz::analysis
