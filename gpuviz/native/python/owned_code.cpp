#include "python/owned_code.hpp"

#include <Python.h>
#include <dlfcn.h>

#include <array>
#include <exception>
#include <new>

#include "record/mixing.hpp"

namespace gpuviz::python {

using record::StackFrame;

namespace {

PyObject* code_at(std::uint64_t address) noexcept { return reinterpret_cast<PyObject*>(address); }

// PyCode_Type, which the limited API lacks.
const void* code_type() noexcept {
    static const void* const type = dlsym(RTLD_DEFAULT, "PyCode_Type");
    return type;
}

// A number of the code object at an address that differs for another one there; 0: there is none.
//
// An object that was deleted has no reference count, or parts of its allocator's list instead of it
// or of its type. The members read have the same places from 3.11 to 3.14, and do not change: three
// objects, and the number of arguments, of variables and of the first line.
std::uint64_t looks_of_code(record::MemoryReader& memory, std::uint64_t code) noexcept {
    constexpr std::array<std::size_t, 7> members{24, 32, 40, 56, 64, 72, 80};
    constexpr std::uint64_t no_count = 0x0000ffff00000000;  // bits that addresses have
    const auto references = memory.load<std::uint64_t>(code, 0);
    const auto type = memory.load<std::uint64_t>(code, 8);
    if (std::uint32_t(references) == 0 || (references & no_count) != 0 ||
        type != reinterpret_cast<std::uint64_t>(code_type())) {
        return 0;
    }
    std::uint64_t looks = 1;
    for (const std::size_t member : members) {
        looks = record::mixed(looks, memory.load<std::uint64_t>(code, member));
    }
    return memory.has_failed() ? 0 : looks;
}

}  // namespace

void OwnedCode::own(std::span<const StackFrame> frames) noexcept {
    const std::lock_guard lock(mutex_);
    for (const StackFrame& frame : record::without_marks(frames)) {
        if (frame.code != 0 && !owned_.contains(frame.code)) {
            // Before the insertion, because the code must stay alive even if that fails.
            Py_IncRef(code_at(frame.code));
            seen_.erase(frame.code);
            try {
                owned_.insert(frame.code);
            } catch (const std::exception&) {
                continue;
            }
        }
    }
}

void OwnedCode::release() noexcept {
    std::unordered_set<std::uint64_t> released;
    {
        const std::lock_guard lock(mutex_);
        released.swap(owned_);
    }
    // Without the lock, because the end of code may run Python code.
    for (const std::uint64_t code : released) {
        Py_DecRef(code_at(code));
    }
}

bool OwnedCode::owns_or_remembers(std::span<const StackFrame> frames,
                                  record::MemoryReader& memory) noexcept {
    const std::lock_guard lock(mutex_);
    bool owns_all = true;
    for (const StackFrame& frame : frames) {
        if (frame.code == 0 || owned_.contains(frame.code)) {
            continue;
        }
        owns_all = false;
        try {
            memory.restart();
            seen_[frame.code] = looks_of_code(memory, frame.code);
        } catch (const std::bad_alloc&) {
            return false;
        }
    }
    return owns_all;
}

bool OwnedCode::is_alive(std::uint64_t code, record::MemoryReader* memory) noexcept {
    const std::lock_guard lock(mutex_);
    if (code == 0 || owned_.contains(code)) {
        return true;
    }
    const auto seen = seen_.find(code);
    if (memory == nullptr || seen == seen_.end() || seen->second == 0) {
        return false;
    }
    memory->restart();
    const std::uint64_t looks = looks_of_code(*memory, code);
    return looks == seen->second;
}

}  // namespace gpuviz::python
