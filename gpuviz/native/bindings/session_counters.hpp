#pragma once

#include <nanobind/nanobind.h>

#include "record/session.hpp"

namespace gpuviz::bindings {

// The properties of a session that count what it has recorded, lost and spent.
void bind_session_counters(nanobind::class_<record::Session>& session);

}  // namespace gpuviz::bindings
