#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "formats/pickle_texts.hpp"
#include "formats/pickle_value.hpp"
#include "formats/pickle_walk.hpp"
#include "formats/torch_snapshot.hpp"
#include "formats/torch_stacks.hpp"

namespace gpuviz::formats {

inline constexpr std::int64_t most_devices = 1024;
// Limit of addresses and sizes, below which their sums cannot overflow.
inline constexpr std::uint64_t end_of_memory = std::uint64_t{1} << 60;

// Converts the values of a snapshot's pickle to columns.
class TorchSnapshotReader {
  public:
    // `most_rows`: more rows than bytes in the file mean that rows are referenced repeatedly.
    TorchSnapshotReader(PickleTexts& texts, std::uint64_t most_rows)
        : texts_(&texts), most_rows_(most_rows), stacks_(snapshot_.stacks, snapshot_.frames) {}
    TorchSnapshotReader(const TorchSnapshotReader&) = delete;
    TorchSnapshotReader& operator=(const TorchSnapshotReader&) = delete;

    // Throws FormatError that names the invalid entry.
    TorchSnapshot read(PickleValue root);

  private:
    struct Block;

    void read_traces(PickleValue traces);
    void read_event(PickleValue event, std::int16_t device, const Place& place);
    bool push_event(std::uint32_t action, const Place& place);
    void read_segments(PickleValue segments);
    void read_segment(PickleValue segment, const Place& place);
    void read_blocks(PickleValue blocks, const Place& place);
    Block block_of(PickleValue block, const Place& place);
    void read_history(PickleValue history, Block& block, const Place& place);
    void read_annotations(PickleValue annotations);
    std::uint32_t pool_of(PickleValue pool, const Place& place);
    std::uint8_t state_of(PickleValue state, const Place& place) const;
    void count_rows(std::uint64_t added, std::string_view list);
    void leave_out(const std::string& what, std::int64_t count);

    PickleTexts* texts_;
    std::uint64_t most_rows_;
    std::uint64_t rows_ = 0;
    TorchSnapshot snapshot_;
    TorchStackTable stacks_;
    std::map<std::pair<std::int64_t, std::int64_t>, std::uint32_t> pool_ids_;
    std::map<std::string, std::int64_t> left_out_;
};

}  // namespace gpuviz::formats
