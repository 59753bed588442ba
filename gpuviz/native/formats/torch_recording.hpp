#pragma once

#include <string>
#include <vector>

#include "formats/table.hpp"
#include "formats/torch_snapshot.hpp"

namespace gpuviz::formats {

// A recording as a snapshot describes it.
struct TorchRecording {
    std::string manifest;       // manifest.json, with notes on what is unknown
    std::vector<Table> tables;  // those with rows
};

// Throws FormatError if the times of the trace are impossible.
[[nodiscard]] TorchRecording torch_recording(TorchSnapshot snapshot);

}  // namespace gpuviz::formats
