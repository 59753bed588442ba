#include "cupy/cupy_pointer.hpp"

#include <cstring>

namespace nb = nanobind;

namespace gpuviz::cupy {

namespace {

// Values that no object contains by chance.
constexpr std::uint64_t kAddress = 0x5c0f'fee5'0dad'a000;
constexpr std::uint64_t kSize = 0x0dec'af15'badd'ecaf;
constexpr std::uint64_t kOwner = 0x5ca1'ab1e'0ddb'a115;
constexpr std::uint64_t kOffset = 0x1600;
constexpr std::int32_t kDevice = 0x2bad'1dea;

template <typename T>
void write(PyObject* object, std::size_t offset, T value) noexcept {
    std::memcpy(reinterpret_cast<char*>(object) + offset, &value, sizeof(T));
}

template <typename T>
T read(PyObject* object, std::size_t offset) noexcept {
    T value;
    std::memcpy(&value, reinterpret_cast<const char*>(object) + offset, sizeof(T));
    return value;
}

// The offset of the only field of `object` with this value.
template <typename T>
std::optional<std::size_t> find_field(nb::handle object, T value) {
    const auto bytes = nb::cast<std::size_t>(object.type().attr("__basicsize__"));
    std::optional<std::size_t> found;
    for (std::size_t offset = sizeof(PyObject); offset + sizeof(T) <= bytes; offset += sizeof(T)) {
        if (std::memcmp(reinterpret_cast<char*>(object.ptr()) + offset, &value, sizeof(T)) == 0) {
            if (found) {
                return std::nullopt;
            }
            found = offset;
        }
    }
    return found;
}

void ignore_free(void* /*owner*/, void* /*address*/, int /*device*/) {}

template <typename Function>
std::uint64_t as_integer(Function* function) noexcept {
    return reinterpret_cast<std::uint64_t>(function);
}

}  // namespace

CupyPointer::CupyPointer(nb::handle memory_module, void* owner, Malloc malloc, Free free)
    : memory_type_(memory_module.attr("CFunctionAllocatorMemory")),
      base_type_(memory_module.attr("BaseMemory")),
      pointer_type_(memory_module.attr("MemoryPointer")),
      malloc_(memory_module
                  .attr("CFunctionAllocator")(as_integer(static_cast<char*>(owner)),
                                              as_integer(malloc), as_integer(free), nb::none())
                  .attr("malloc")),
      no_arguments_(nb::steal(PyTuple_New(0))),
      new_memory_(reinterpret_cast<newfunc>(
          PyType_GetSlot(reinterpret_cast<PyTypeObject*>(memory_type_.ptr()), Py_tp_new))),
      new_pointer_(reinterpret_cast<newfunc>(
          PyType_GetSlot(reinterpret_cast<PyTypeObject*>(pointer_type_.ptr()), Py_tp_new))),
      owner_(owner),
      free_(free),
      layout_(find_layout(memory_module)) {}

std::optional<CupyPointer::Layout> CupyPointer::find_layout(nb::handle memory_module) {
    // Size 0, so that the constructor calls no malloc.
    const nb::object memory = memory_module.attr("CFunctionAllocatorMemory")(
        0, kOwner, 0, as_integer(&ignore_free), kDevice);
    memory.attr("ptr") = kAddress;
    memory.attr("size") = kSize;
    const nb::object pointer = memory_module.attr("MemoryPointer")(memory, kOffset);
    const auto address = find_field(memory, kAddress);
    const auto size = find_field(memory, kSize);
    const auto device = find_field(memory, kDevice);
    const auto owner = find_field(memory, kOwner);
    const auto free = find_field(memory, as_integer(&ignore_free));
    const auto pointer_address = find_field(pointer, kAddress + kOffset);
    const auto pointer_device = find_field(pointer, kDevice);
    const auto pointer_memory = find_field(pointer, memory.ptr());
    const auto in_base =
        nb::cast<std::size_t>(memory_module.attr("BaseMemory").attr("__basicsize__"));
    memory.attr("ptr") = 0;
    if (address && size && device && owner && free && pointer_address && pointer_device &&
        pointer_memory && *size + sizeof(std::uint64_t) <= in_base) {
        return Layout{*address,         *size,           *device,        *owner, *free,
                      *pointer_address, *pointer_device, *pointer_memory};
    }
    return std::nullopt;
}

PyObject* CupyPointer::make(std::uint64_t address, std::size_t size, int device) const {
    if (!layout_) {
        PyObject* argument = PyLong_FromSize_t(size);
        if (argument == nullptr) {
            return nullptr;
        }
        PyObject* pointer = PyObject_CallFunctionObjArgs(malloc_.ptr(), argument, nullptr);
        Py_DECREF(argument);
        return pointer;
    }
    PyObject* memory = new_memory_(reinterpret_cast<PyTypeObject*>(memory_type_.ptr()),
                                   no_arguments_.ptr(), nullptr);
    if (memory == nullptr) {
        return nullptr;
    }
    PyObject* pointer = new_pointer_(reinterpret_cast<PyTypeObject*>(pointer_type_.ptr()),
                                     no_arguments_.ptr(), nullptr);
    if (pointer == nullptr) {
        Py_DECREF(memory);
        return nullptr;
    }
    write(memory, layout_->address, address);
    write(memory, layout_->size, size);
    write(memory, layout_->device, device);
    write(memory, layout_->owner, owner_);
    write(memory, layout_->free, free_);
    write(pointer, layout_->pointer_address, address);
    write(pointer, layout_->pointer_device, device);
    // A new MemoryPointer has None there.
    auto* const previous = read<PyObject*>(pointer, layout_->pointer_memory);
    write(pointer, layout_->pointer_memory, memory);
    Py_XDECREF(previous);
    return pointer;
}

// Only a class written in Python may compute its attributes.
bool CupyPointer::has_known_fields(PyObject* memory) const noexcept {
    auto* const base = reinterpret_cast<PyTypeObject*>(base_type_.ptr());
    return PyObject_TypeCheck(memory, base) != 0 &&
           (PyType_GetFlags(Py_TYPE(memory)) & Py_TPFLAGS_HEAPTYPE) == 0;
}

CupyPointer::Target CupyPointer::target_of(nb::handle pointer) const {
    if (layout_ && Py_TYPE(pointer.ptr()) == reinterpret_cast<PyTypeObject*>(pointer_type_.ptr())) {
        auto* const memory = read<PyObject*>(pointer.ptr(), layout_->pointer_memory);
        if (has_known_fields(memory)) {
            return {read<std::uint64_t>(pointer.ptr(), layout_->pointer_address),
                    read<std::uint64_t>(memory, layout_->size),
                    read<std::int32_t>(pointer.ptr(), layout_->pointer_device), nb::borrow(memory)};
        }
    }
    const nb::object memory = pointer.attr("mem");
    return {nb::cast<std::uint64_t>(pointer.attr("ptr")),
            nb::cast<std::uint64_t>(memory.attr("size")), nb::cast<int>(pointer.attr("device_id")),
            memory};
}

}  // namespace gpuviz::cupy
