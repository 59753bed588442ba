#pragma once

#include "cupti/cupti_calls.hpp"
#include "record/stream_calls.hpp"

namespace gpuviz::cupti {

// What a call means for streams and events.
[[nodiscard]] record::StreamCall stream_call_of(const CuptiCall& call, const void* parameters);

}  // namespace gpuviz::cupti
