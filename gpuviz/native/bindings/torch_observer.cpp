#include "torch/torch_observer.hpp"

#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <tuple>
#include <utility>
#include <vector>

#include "allocator/settings.hpp"
#include "bindings/bindings.hpp"
#include "python/gil.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace gpuviz::bindings {

namespace {

// torch calls an observer until the process ends, even after the interpreter has, so it is never
// deleted.
struct Observer {
    explicit Observer(const allocator::Settings& settings)
        : native(new torch::TorchObserver(settings.max_split_size,
                                          settings.roundup_power2_divisions)) {}

    torch::TorchObserver* native;
};

using SegmentTuple = std::tuple<int, std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t,
                                std::uint64_t, bool, bool>;
using BlockTuple = std::tuple<int, std::uint64_t, std::uint64_t, std::uint64_t, bool>;

struct State {
    State(const std::vector<SegmentTuple>& segments, const std::vector<BlockTuple>& blocks) {
        for (const auto& [device, address, size, stream, first, second, is_large, is_expandable] :
             segments) {
            this->segments.push_back(
                {device, address, size, stream, {first, second}, is_large, is_expandable});
        }
        for (const auto& [device, address, size, requested_size, is_pending] : blocks) {
            this->blocks.push_back({device, address, size, requested_size, is_pending});
        }
    }

    std::vector<torch::Segment> segments;
    std::vector<torch::Block> blocks;
};

void describe(Observer& observer, const std::vector<SegmentTuple>& segments,
              const std::vector<BlockTuple>& blocks) {
    const State state(segments, blocks);
    const python::GilRelease unlocked;
    observer.native->describe(state.segments, state.blocks);
}

void update(Observer& observer, const std::vector<SegmentTuple>& segments,
            const std::vector<BlockTuple>& blocks) {
    const State state(segments, blocks);
    const python::GilRelease unlocked;
    observer.native->update(state.segments, state.blocks);
}

}  // namespace

void bind_torch_observer(nb::module_& m) {
    const auto unlocked = nb::call_guard<python::GilRelease>();
    nb::class_<Observer>(m, "TorchObserver", "Turns the trace of torch's allocator into events.")
        .def(nb::init<const allocator::Settings&>(), "settings"_a,
             "With the settings of torch's allocator.")
        .def_static(
            "function",
            [] { return reinterpret_cast<std::uintptr_t>(&torch::TorchObserver::trace); },
            "The address of the function that a tracker calls with an observer's `address` and an "
            "entry.")
        .def_prop_ro(
            "address",
            [](const Observer& self) { return reinterpret_cast<std::uintptr_t>(self.native); },
            "Valid until the process ends.")
        .def(
            "set_session",
            [](Observer& self, record::Session* session, bool stacks) {
                self.native->set_session(session, stacks);
            },
            "session"_a.none(), "stacks"_a = true, unlocked,
            "Send events to a session, which must outlive this; None ends it.")
        .def("describe", &describe, "segments"_a, "blocks"_a,
             "Push what exists. Segments: device, address, size, stream, both numbers of the pool, "
             "whether large, whether expandable. Blocks: device, address, size, requested size, "
             "whether freed but in use.")
        .def("update", &update, "segments"_a, "blocks"_a,
             "Push how the state differs from the one known so far, without what came and went in "
             "between; given as in `describe`.")
        .def(
            "set_workspaces",
            [](Observer& self, std::vector<std::uint64_t> sizes) {
                self.native->set_workspaces(std::move(sizes));
            },
            "sizes"_a, unlocked,
            "Note blocks as workspaces of a library if one of these sizes was requested; those of "
            "`describe` if it was the first.")
        .def(
            "devices", [](const Observer& self) { return self.native->devices(); }, unlocked,
            "Return the devices with events.")
        .def("abandon", [](Observer& self) { self.native->abandon(); });
    m.def(
        "torch_pool_owner", [] { return torch::TorchObserver::first_owner; },
        "The `owner` of the pool of torch's blocks; those of its private pools follow.");
}

}  // namespace gpuviz::bindings
