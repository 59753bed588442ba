#include "bindings/bindings.hpp"
#include "record/memory_event.hpp"

namespace gpuviz {

void bind_sink(nanobind::module_& m) {
    nanobind::class_<MemoryEventSink>(m, "MemoryEventSink", "Receives the events of an allocator.");
}

}  // namespace gpuviz
