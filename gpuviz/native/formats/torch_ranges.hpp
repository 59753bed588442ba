#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "formats/table.hpp"
#include "formats/torch_snapshot.hpp"
#include "formats/torch_times.hpp"

namespace gpuviz::formats {

// Creates `ranges` from `external_annotations` and `user_metadata`. Consecutive events of a device
// with the same metadata form a range from the first to the last, unless an annotation of that name
// covers them.
class TorchRanges {
  public:
    TorchRanges(const TorchSnapshot& snapshot, const TorchTimes& times);

    // The id of the range of each event; 0 if it has none.
    [[nodiscard]] std::vector<std::uint32_t> of_events();
    // Appends the tables `ranges` and `strings`.
    void append_tables(std::vector<Table>& tables) const;

  private:
    // Matches the starts and ends of annotations; an end matches the latest start of its name.
    void pair();
    std::size_t add(std::uint32_t name, std::int64_t start, std::int64_t end);
    std::uint32_t covering(std::uint32_t name, std::int64_t start, std::int64_t end);

    const TorchSnapshot* snapshot_;
    const TorchTimes* times_;
    std::vector<std::uint32_t> names_;
    std::vector<std::int64_t> starts_;
    std::vector<std::int64_t> ends_;
    // Start and row of the annotations of a name, in order.
    std::map<std::uint32_t, std::vector<std::pair<std::int64_t, std::size_t>>> annotated_;
};

}  // namespace gpuviz::formats
