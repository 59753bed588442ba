#include "bindings/bindings.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "allocator/caching_allocator.hpp"
#include "allocator/cupy_pool.hpp"
#include "bindings/track_uses.hpp"
#include "python/allocator_values.hpp"
#include "python/gil.hpp"
#include "record/clock.hpp"
#include "record/thread_id.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace gpuviz::bindings {

using allocator::Allocator;
using allocator::CachingAllocator;
using allocator::PoolFilter;
using allocator::Settings;
using device::Address;
using python::GilRelease;

namespace {

record::CallSite site(std::uint32_t stack = 0) {
    return {.stack = stack, .thread = record::current_thread_id()};
}

Address allocate_block(CachingAllocator& allocator, std::uint64_t size, device::StreamHandle stream,
                       std::uint32_t stack) {
    if (const std::optional<Address> address = allocator.try_allocate(size, stream, site(stack))) {
        return *address;
    }
    const GilRelease release;
    return allocator.allocate(size, stream, site(stack), true);
}

void free_block(CachingAllocator& allocator, Address address, std::uint32_t stack) {
    if (!allocator.try_free(address, site(stack))) {
        const GilRelease release;
        allocator.free(address, site(stack));
    }
}

// The allocator copies and drops its callback without the GIL, so it gets a shared owner that
// takes the GIL to let the object go. An error in `callback` is reported as unraisable.
// A Python function as a callback for any thread; what it raises is reported and counts as false.
std::function<bool()> native_callback(nb::object callback) {
    if (callback.is_none()) {
        return nullptr;
    }
    const std::shared_ptr<nb::object> owner(new nb::object(std::move(callback)),
                                            [](const nb::object* object) {
                                                const python::GilAcquire acquire;
                                                delete object;
                                            });
    return [owner] {
        const python::GilAcquire acquire;
        try {
            return static_cast<bool>(nb::bool_((*owner)()));
        } catch (nb::python_error& error) {
            error.discard_as_unraisable(*owner);
            return false;
        }
    };
}

// Held until the next sink: kept alive as long as the allocator, sinks of every recording would
// stay.
constexpr const char* held_sink = "_sink";

void attach(nb::handle_t<Allocator> self, nb::handle_t<record::MemoryEventSink> sink) {
    nb::cast<Allocator&>(self).set_event_sink(nb::cast<record::MemoryEventSink*>(sink));
    self.attr(held_sink) = sink;
}

void detach(nb::handle_t<Allocator> self) {
    nb::cast<Allocator&>(self).set_event_sink(nullptr);
    self.attr(held_sink) = nb::none();
}

nb::dict block_at(const CachingAllocator& allocator, Address address) {
    const std::optional<allocator::BlockDetails> block = allocator.block_at(address);
    nb::dict values;
    if (block) {
        values["address"] = block->address;
        values["size"] = block->size;
        values["requested_size"] = block->requested_size;
        values["stream"] = block->stream;
        values["pool"] = nb::make_tuple(0, block->pool);
        values["stack"] = block->stack;
    }
    return values;
}

nb::list to_python(const std::vector<allocator::DelayedFrees>& rows) {
    nb::list values;
    for (const allocator::DelayedFrees& row : rows) {
        nb::dict value;
        value["allocated"] = row.lines.allocated;
        value["freed"] = row.lines.freed;
        value["used"] = row.lines.used;
        value["own_stream"] = row.lines.own_stream;
        value["stream"] = row.lines.stream;
        value["frees"] = row.frees;
        value["bytes"] = row.bytes;
        value["byte_seconds"] = row.byte_seconds;
        values.append(value);
    }
    return values;
}

nb::list stop_tracking_uses(CachingAllocator& allocator) {
    const auto rows = [&] {
        const GilRelease unlocked;
        return allocator.stop_tracking_uses();
    };
    return to_python(rows());
}

nb::list writes_after_free(CachingAllocator& allocator) {
    const auto found = [&] {
        const GilRelease unlocked;
        return allocator.writes_after_free();
    };
    nb::list values;
    for (const allocator::WriteAfterFree& write : found()) {
        nb::dict value;
        value["address"] = write.address;
        value["size"] = write.size;
        value["offset"] = write.offset;
        value["allocated"] = write.allocated;
        value["freed"] = write.freed;
        value["reused"] = write.reused;
        value["stream"] = write.stream;
        values.append(value);
    }
    return values;
}

nb::list delayed_frees(const CachingAllocator& allocator) {
    const auto rows = [&] {
        const GilRelease unlocked;
        return allocator.delayed_frees();
    };
    return to_python(rows());
}

void bind_pools(nb::class_<CachingAllocator, Allocator>& allocator) {
    nb::enum_<PoolFilter>(allocator, "PoolFilter")
        .value("this_thread", PoolFilter::this_thread)
        .value("everything", PoolFilter::everything);
    allocator
        .def("create_pool", &CachingAllocator::create_pool, "use_on_oom"_a = false,
             "no_split"_a = false, "Return the n of a new private pool's id (0, n).")
        .def("begin_pool", &CachingAllocator::begin_pool, "pool"_a,
             "filter"_a = PoolFilter::this_thread, "Allocate in the pool from now on.")
        .def("end_pool", &CachingAllocator::end_pool, "pool"_a)
        .def(
            "release_pool",
            [](CachingAllocator& self, std::uint64_t pool) { self.release_pool(pool, site()); },
            "pool"_a, nb::call_guard<GilRelease>(),
            "Release the pool's memory to the device as its blocks become free.")
        .def(
            "hold_allocated", &CachingAllocator::hold_allocated, "except_pool"_a,
            nb::call_guard<GilRelease>(),
            "Let what is allocated now, except in a private pool, stay so despite its free; return "
            "the number of this hold.")
        .def(
            "keep_used",
            [](CachingAllocator& self, std::uint64_t hold, std::vector<device::Address> used) {
                self.keep_used(hold, std::move(used), site());
            },
            "hold"_a, "used"_a, nb::call_guard<GilRelease>(),
            "Hold the blocks that contain one of these addresses, and no others.")
        .def(
            "release_hold",
            [](CachingAllocator& self, std::uint64_t hold) { self.release_hold(hold, site()); },
            "hold"_a, nb::call_guard<GilRelease>())
        .def("held_bytes", &CachingAllocator::held_bytes, "hold"_a, nb::call_guard<GilRelease>(),
             "Return the bytes of the blocks of a hold.");
}

// What allocators share.
void bind_base(nb::module_& m) {
    nb::class_<Allocator>(m, "Allocator", nb::dynamic_attr(), "An allocator that can be replayed.")
        .def(
            "memory_stats",
            [](const Allocator& self) {
                // Who holds the lock may wait for a callback of CUDA's that needs the GIL.
                const auto statistics = [&] {
                    const GilRelease unlocked;
                    return self.statistics();
                };
                return python::to_python(statistics());
            },
            nb::sig("def memory_stats(self) -> dict[str, int]"),
            "Return every value of torch.cuda.memory_stats, by its key.")
        .def("attach", &attach, "sink"_a, "Push every event to `sink` from now on.")
        .def("detach", &detach);
    nb::class_<allocator::CupyPool, Allocator>(m, "CupyPool",
                                               "A model of CuPy's memory pool for one device.")
        .def(nb::init<device::Device&>(), "device"_a, nb::keep_alive<1, 2>());
}

void bind_state(nb::class_<CachingAllocator, Allocator>& allocator) {
    allocator
        .def(
            "memory_snapshot",
            [](CachingAllocator& self) {
                const auto snapshot = [&] {
                    const GilRelease unlocked;
                    return self.snapshot();
                };
                return python::to_python(snapshot());
            },
            nb::sig("def memory_snapshot(self) -> list[dict[str, typing.Any]]"),
            "Return the segments in the shape of torch.cuda.memory_snapshot, with stack ids.")
        .def("releasable_bytes", &CachingAllocator::releasable_bytes, nb::call_guard<GilRelease>(),
             "Return the bytes that empty_cache() would release now.")
        .def("reset_peak_stats", &CachingAllocator::reset_peak_stats, nb::call_guard<GilRelease>())
        .def("reset_accumulated_stats", &CachingAllocator::reset_accumulated_stats,
             nb::call_guard<GilRelease>())
        .def(
            "set_memory_fraction",
            [](CachingAllocator& self, double fraction) {
                self.set_memory_fraction(fraction, site());
            },
            "fraction"_a, nb::call_guard<GilRelease>(),
            "Limit reserved memory to a fraction of the device's.")
        .def(
            "set_memory_limit",
            [](CachingAllocator& self, std::uint64_t bytes) {
                self.set_memory_limit(bytes, site());
            },
            "bytes"_a, nb::call_guard<GilRelease>(),
            "Limit reserved memory; the device's memory removes the limit.")
        .def_prop_ro("device", &CachingAllocator::device, nb::rv_policy::reference_internal)
        .def_prop_ro("memory_fraction", &CachingAllocator::memory_fraction,
                     nb::call_guard<GilRelease>())
        .def("apply_settings", &CachingAllocator::apply_settings, "settings"_a,
             nb::call_guard<GilRelease>())
        .def_prop_ro("settings", &CachingAllocator::settings)
        .def("identify_stream", &CachingAllocator::identify_stream, "stream"_a, "id"_a,
             nb::call_guard<GilRelease>())
        .def("owns", &CachingAllocator::owns, "address"_a, nb::call_guard<GilRelease>())
        .def("block_at", &block_at, "address"_a,
             nb::sig("def block_at(self, address: int) -> dict[str, typing.Any]"),
             "Return the allocated block that starts at an address; {} when there is none.")
        .def("stop_tracking_uses", &stop_tracking_uses,
             nb::sig("def stop_tracking_uses(self) -> list[dict[str, typing.Any]]"),
             "Stop following streams, and return the delayed frees by their lines.")
        .def("delayed_frees", &delayed_frees,
             nb::sig("def delayed_frees(self) -> list[dict[str, typing.Any]]"),
             "Return the delayed frees by their lines, up to now.")
        .def_prop_ro("untracked_uses", &CachingAllocator::untracked_uses,
                     nb::call_guard<GilRelease>(), "Calls whose use of memory is unknown.")
        .def(
            "track_uses",
            [](CachingAllocator& self, record::Session& session, const std::string& record_stream,
               bool poison) { track_uses(self, session, record_stream, poison, record::now_ns); },
            "session"_a, "record_stream"_a, "poison"_a = false,
            "Delay the reuse of freed blocks until other streams have used them (`auto`), or only "
            "count what this would delay (`report`); fill freed blocks (`poison`). The session's "
            "tracer must not have started.")
        .def("writes_after_free", &writes_after_free,
             nb::sig("def writes_after_free(self) -> list[dict[str, int]]"),
             "Return the writes to freed memory that were found.")
        .def_prop_ro("unchecked_frees", &CachingAllocator::unchecked_frees,
                     nb::call_guard<GilRelease>(),
                     "Freed blocks that could not be filled or checked.")
        .def(
            "set_quarantine",
            [](CachingAllocator& self, std::uint64_t bytes) { self.set_quarantine(bytes, site()); },
            "bytes"_a, nb::call_guard<GilRelease>(),
            "Hold freed blocks back until they have this many bytes in all; 0: do not.")
        .def("describe_state", &CachingAllocator::describe_state, "sink"_a, "stacks_are_valid"_a,
             "Push the events that recreate the current state.");
}

}  // namespace

void bind_allocator(nb::module_& m) {
    bind_base(m);
    nb::class_<CachingAllocator, Allocator> allocator(
        m, "CachingAllocator", nb::is_weak_referenceable(),
        "torch's CUDA caching allocator for one device.");
    allocator
        .def(nb::init<device::Device&, const Settings&>(), "device"_a, "settings"_a,
             nb::keep_alive<1, 2>())
        .def(
            "__init__",
            [](CachingAllocator* self, device::Device& device) {
                new (self) CachingAllocator(device, Settings{});
            },
            "device"_a, nb::keep_alive<1, 2>())
        .def("allocate", &allocate_block, "size"_a, "stream"_a = 0, "stack"_a = 0,
             "Return the address of at least `size` bytes for use on `stream`; 0 for size 0.\n\n"
             "Raises:\n    OutOfMemoryError: Nothing is left after every retry.")
        .def("free", &free_block, "address"_a, "stack"_a = 0,
             "Return a block to the cache.\n\nRaises:\n    ValueError: No allocated block starts "
             "there.")
        .def(
            "set_free_memory_callback",
            [](CachingAllocator& self, nb::object callback) {
                self.set_free_memory_callback(native_callback(std::move(callback)));
            },
            "callback"_a.none(),
            nb::sig("def set_free_memory_callback("
                    "self, callback: collections.abc.Callable[[], bool] | None) -> None"),
            "Call `callback` when the cache has no block; if it returns True, search again.")
        .def(
            "set_last_resort",
            [](CachingAllocator& self, nb::object callback) {
                self.set_last_resort(native_callback(std::move(callback)));
            },
            "callback"_a.none(),
            nb::sig("def set_last_resort("
                    "self, callback: collections.abc.Callable[[], bool] | None) -> None"),
            "Call `callback` before a request fails; if it returns True, try everything again.")
        .def(
            "record_stream",
            [](CachingAllocator& self, Address address, device::StreamHandle stream) {
                self.record_stream(address, stream, site());
            },
            "address"_a, "stream"_a, nb::call_guard<GilRelease>(),
            "Keep the block's memory, once freed, until `stream` has passed this point.")
        .def(
            "empty_cache", [](CachingAllocator& self) { self.empty_cache(site()); },
            nb::call_guard<GilRelease>(), "Release unused segments to the device.");
    bind_pools(allocator);
    bind_state(allocator);
}

}  // namespace gpuviz::bindings
