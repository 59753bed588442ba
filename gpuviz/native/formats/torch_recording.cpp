#include "formats/torch_recording.hpp"

#include <utility>

#include "formats/torch_history.hpp"
#include "formats/torch_manifest.hpp"
#include "formats/torch_ranges.hpp"
#include "formats/torch_tables.hpp"
#include "formats/torch_times.hpp"

namespace gpuviz::formats {

TorchRecording torch_recording(TorchSnapshot snapshot) {
    const TorchHistory history = torch_history(snapshot);
    const TorchTimes times = torch_times(snapshot);
    TorchRecording recording;
    recording.manifest = torch_manifest(snapshot, history, times);
    TorchRanges ranges(snapshot, times);
    auto of_events = ranges.of_events();
    ranges.append_tables(recording.tables);
    append_stack_tables(snapshot, recording.tables);
    append_event_tables(torch_event_columns(snapshot, history, times, std::move(of_events)),
                        recording.tables);
    return recording;
}

}  // namespace gpuviz::formats
