#pragma once

#include <nanobind/nanobind.h>

#include "device/device.hpp"

namespace gpuviz::bindings {

// Of an object with `__cuda_stream__`, or the handle itself.
[[nodiscard]] device::StreamHandle stream_handle(nanobind::handle stream);

}  // namespace gpuviz::bindings
