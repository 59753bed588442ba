#include "cupy/pinned_pointer.hpp"

#include <utility>

#include "cupy/object_fields.hpp"

namespace nb = nanobind;

namespace gpuviz::cupy {

namespace {

// Values that no object contains by chance.
constexpr std::uint64_t kPinnedAddress = 0x5c0f'fee5'0dad'a000;
constexpr std::uint64_t kPinnedOffset = 0x1600;

}  // namespace

PinnedPointer::PinnedPointer(nb::object type)
    : type_(std::move(type)),
      no_arguments_(nb::steal(PyTuple_New(0))),
      ptr_(nb::steal(PyUnicode_InternFromString("ptr"))),
      size_(nb::steal(PyUnicode_InternFromString("size"))),
      new_(new_function(type_)),
      layout_(find_layout(type_)) {}

std::optional<PinnedPointer::Layout> PinnedPointer::find_layout(nb::handle type) {
    const nb::object memory = nb::module_::import_("types").attr("SimpleNamespace")();
    memory.attr("ptr") = kPinnedAddress;
    const nb::object pointer = type(memory, kPinnedOffset);
    const auto held = find_field(pointer, memory.ptr());
    const auto address = find_field(pointer, kPinnedAddress + kPinnedOffset);
    return held && address ? std::optional(Layout{*held, *address}) : std::nullopt;
}

PyObject* PinnedPointer::make(nb::object memory, std::uint64_t address) const {
    if (!layout_) {
        return type_(memory, 0).release().ptr();
    }
    PyObject* pointer =
        new_(reinterpret_cast<PyTypeObject*>(type_.ptr()), no_arguments_.ptr(), nullptr);
    if (pointer != nullptr) {
        write_field(pointer, layout_->address, address);
        write_reference(pointer, layout_->memory, memory.release().ptr());
    }
    return pointer;
}

PinnedPointer::Target PinnedPointer::target_of(nb::handle pointer) const {
    const nb::object size =
        nb::steal(PyObject_CallMethodObjArgs(pointer.ptr(), size_.ptr(), nullptr));
    if (!size.is_valid()) {
        throw nb::python_error();
    }
    return {nb::cast<std::uint64_t>(nb::getattr(pointer, ptr_)), nb::cast<std::uint64_t>(size)};
}

}  // namespace gpuviz::cupy
