#include "cupy/observed_pinned_pool.hpp"

#include <exception>
#include <optional>
#include <utility>

#include "record/sampled_cost.hpp"

namespace nb = nanobind;

namespace gpuviz::cupy {

namespace {

record::PinnedObserver& observer_in(const nb::object& object) {
    return *nb::inst_ptr<record::PinnedObserver>(object);
}

}  // namespace

ObservedPinnedMemory::ObservedPinnedMemory(nb::object observer, nb::object held,
                                           std::uint64_t address, std::uint64_t size) noexcept
    : observer_(std::move(observer)), held_(std::move(held)), address_(address), size_(size) {}

ObservedPinnedMemory::~ObservedPinnedMemory() { observer_in(observer_).freed(address_); }

ObservedPinnedPool::ObservedPinnedPool(nb::object observer, nb::callable allocator,
                                       nb::object pointer_type)
    : observer_(std::move(observer)),
      allocator_(std::move(allocator)),
      pointer_(std::move(pointer_type)) {}

PyObject* ObservedPinnedPool::malloc(PyObject* size) noexcept {
    try {
        nb::object pointer = allocator_(nb::handle(size));
        record::PinnedObserver& observer = observer_in(observer_);
        std::optional<record::SampledCost::Call> call;
        if (record::SampledCost* const cost = observer.cost()) {
            call.emplace(*cost);
        }
        const auto [address, bytes] = pointer_.target_of(pointer);
        static const nb::handle type = nb::type<ObservedPinnedMemory>();
        nb::object memory = nb::inst_alloc(type);
        new (nb::inst_ptr<ObservedPinnedMemory>(memory))
            ObservedPinnedMemory(observer_, std::move(pointer), address, bytes);
        nb::inst_mark_ready(memory);
        observer.allocated(address, bytes, nb::cast<std::uint64_t>(nb::handle(size)));
        return pointer_.make(std::move(memory), address);
    } catch (nb::python_error& error) {
        error.restore();
    } catch (const nb::cast_error&) {
        PyErr_SetString(PyExc_TypeError, "size must be a number of bytes");
    } catch (const std::exception& error) {
        PyErr_SetString(PyExc_RuntimeError, error.what());
    }
    return nullptr;
}

}  // namespace gpuviz::cupy
