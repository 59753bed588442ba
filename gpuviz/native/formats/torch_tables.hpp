#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "formats/table.hpp"
#include "formats/torch_history.hpp"
#include "formats/torch_snapshot.hpp"
#include "formats/torch_times.hpp"

namespace gpuviz::formats {

// Columns of the table `memory_events`: the trace and the events added around it.
struct TorchEventColumns {
    std::vector<std::int64_t> time;
    std::vector<record::Action> action;
    std::vector<std::uint64_t> address;
    std::vector<std::int64_t> size;
    std::vector<std::int64_t> requested_size;
    std::vector<std::int16_t> device;
    std::vector<std::uint64_t> handle;  // of the stream
    std::vector<std::uint32_t> pool;
    std::vector<std::uint32_t> stack;
    std::vector<std::uint32_t> range;

    [[nodiscard]] std::size_t count() const noexcept { return time.size(); }
};

// Clears the events of the snapshot, whose memory the columns take over.
[[nodiscard]] TorchEventColumns torch_event_columns(TorchSnapshot& snapshot,
                                                    const TorchHistory& history,
                                                    const TorchTimes& times,
                                                    std::vector<std::uint32_t> ranges);

// Appends `memory_events`, `devices`, `streams` and `pools`.
void append_event_tables(TorchEventColumns columns, std::vector<Table>& tables);
// Appends `frames` and `stacks`.
void append_stack_tables(const TorchSnapshot& snapshot, std::vector<Table>& tables);

}  // namespace gpuviz::formats
