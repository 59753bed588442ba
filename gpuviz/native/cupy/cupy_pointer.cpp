#include "cupy/cupy_pointer.hpp"

#include "cupy/object_fields.hpp"

namespace nb = nanobind;

namespace gpuviz::cupy {

namespace {

// Values that no object contains by chance.
constexpr std::uint64_t kAddress = 0x5c0f'fee5'0dad'a000;
constexpr std::uint64_t kSize = 0x0dec'af15'badd'ecaf;
constexpr std::uint64_t kOwner = 0x5ca1'ab1e'0ddb'a115;
constexpr std::uint64_t kOffset = 0x1600;
constexpr std::int32_t kDevice = 0x2bad'1dea;

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
      new_memory_(new_function(memory_type_)),
      new_pointer_(new_function(pointer_type_)),
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
    write_field(memory, layout_->address, address);
    write_field(memory, layout_->size, size);
    write_field(memory, layout_->device, device);
    write_field(memory, layout_->owner, owner_);
    write_field(memory, layout_->free, free_);
    write_field(pointer, layout_->pointer_address, address);
    write_field(pointer, layout_->pointer_device, device);
    write_reference(pointer, layout_->pointer_memory, memory);
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
        auto* const memory = read_field<PyObject*>(pointer.ptr(), layout_->pointer_memory);
        if (has_known_fields(memory)) {
            return {read_field<std::uint64_t>(pointer.ptr(), layout_->pointer_address),
                    read_field<std::uint64_t>(memory, layout_->size),
                    read_field<std::int32_t>(pointer.ptr(), layout_->pointer_device),
                    nb::borrow(memory)};
        }
    }
    const nb::object memory = pointer.attr("mem");
    return {nb::cast<std::uint64_t>(pointer.attr("ptr")),
            nb::cast<std::uint64_t>(memory.attr("size")), nb::cast<int>(pointer.attr("device_id")),
            memory};
}

}  // namespace gpuviz::cupy
