#include "bindings/bindings.hpp"
#include "record/memory_event.hpp"

namespace gpuviz::bindings {

void bind_sink(nanobind::module_& m) {
    nanobind::class_<record::MemoryEventSink>(m, "MemoryEventSink",
                                              "Receives the events of an allocator.");
}

}  // namespace gpuviz::bindings
