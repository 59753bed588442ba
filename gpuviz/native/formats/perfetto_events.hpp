#pragma once

#include <cstdint>
#include <span>

#include "formats/trace_rows.hpp"

namespace gpuviz::formats {

// The id of a sequence of Perfetto packets, and the time of its clock at the recording's time 0. A
// track's uuid and an interned text's iid are its position + 1.
struct PerfettoSequence {
    std::uint32_t id;
    std::int64_t zero_ns;
};

// Writes TracePackets with the TrackEvents of all rows, ordered by time.
void write_perfetto_rows(std::span<const TraceRows> tables, PerfettoSequence sequence,
                         const TraceSink& sink);

// Writes one TracePacket for each value.
void write_perfetto_counter(const TraceCounter& counter, PerfettoSequence sequence,
                            const TraceSink& sink);

}  // namespace gpuviz::formats
