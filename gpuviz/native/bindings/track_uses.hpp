#pragma once

#include <string>

#include "allocator/caching_allocator.hpp"
#include "python/gil.hpp"
#include "record/session.hpp"

namespace gpuviz::bindings {

// CachingAllocator::track_uses() with the calls that the session's tracer sees.
inline void track_uses(allocator::CachingAllocator& allocator, record::Session& session,
                       const std::string& record_stream, bool poison,
                       const allocator::DelayedFreeCounts::Clock& clock) {
    using allocator::UseTracking;
    const UseTracking tracking = record_stream == "auto"     ? UseTracking::delay
                                 : record_stream == "report" ? UseTracking::report
                                                             : UseTracking::off;
    const python::GilRelease unlocked;
    session.set_stream_calls(allocator.device().ordinal(),
                             &allocator.track_uses(tracking, poison, clock));
}

}  // namespace gpuviz::bindings
