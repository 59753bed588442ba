#include "python/python_stack.hpp"

#include <Python.h>
#include <dlfcn.h>

#include <algorithm>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <unordered_set>
#include <utility>

#include "python/frame_objects.hpp"
#include "python/gil.hpp"
#include "python/reference.hpp"
#include "record/stack_memo.hpp"

namespace gpuviz::python {

using record::FrameLayout;
using record::StackFrame;

namespace {

PyObject* object_at(std::uint64_t address) noexcept { return reinterpret_cast<PyObject*>(address); }

// A finalizing interpreter must not be used. The function is public from 3.13 on and private
// before.
int (*find_is_finalizing())() {
    for (const char* name : {"Py_IsFinalizing", "_Py_IsFinalizing"}) {
        if (void* found = dlsym(RTLD_DEFAULT, name)) {
            return reinterpret_cast<int (*)()>(found);
        }
    }
    return [] { return int{!Py_IsInitialized()}; };
}

// Whether an address is that of a thread's state now. Requires the GIL. The limited API lacks these
// functions.
bool is_thread(const void* state) noexcept {
    using Head = PyThreadState* (*)(PyInterpreterState*);
    using Next = PyThreadState* (*)(PyThreadState*);
    static const auto head =
        reinterpret_cast<Head>(dlsym(RTLD_DEFAULT, "PyInterpreterState_ThreadHead"));
    static const auto next = reinterpret_cast<Next>(dlsym(RTLD_DEFAULT, "PyThreadState_Next"));
    if (head == nullptr || next == nullptr) {
        return state == PyThreadState_Get();
    }
    PyThreadState* thread = head(PyInterpreterState_Get());
    while (thread != nullptr && thread != state) {
        thread = next(thread);
    }
    return thread != nullptr;
}

// How many of a stack's outermost frames its thread is still in.
std::size_t still_running(std::span<const StackFrame> stack,
                          std::span<const StackFrame> running) noexcept {
    const std::size_t most = std::min(stack.size(), running.size());
    for (std::size_t count = 0; count < most; ++count) {
        const StackFrame& before = stack[stack.size() - 1 - count];
        const StackFrame& now = running[running.size() - 1 - count];
        if (before.code != now.code) {
            return count;
        }
        if (before.instruction != now.instruction) {
            return count + 1;  // it has continued since, so what it called then has returned
        }
    }
    return most;
}

// The walkers that exist, for calls that the interpreter makes later. Requires the GIL.
std::unordered_set<const void*>& walkers() {
    static std::unordered_set<const void*> all;
    return all;
}

}  // namespace

PythonStackWalker::PythonStackWalker(std::size_t max_depth, std::optional<FrameLayout> layout)
    : max_depth_(max_depth), is_finalizing_(find_is_finalizing()) {
    if (max_depth == 0 || max_depth > depth_limit) {
        throw std::invalid_argument("The stack depth must be between 1 and " +
                                    std::to_string(depth_limit) + ", got " +
                                    std::to_string(max_depth) + ".");
    }
    if (layout && has_same_frames(*layout)) {
        layout_ = layout;
        if (!has_same_locals(*layout)) {
            layout_->locals = 0;
        }
        auto observer = std::make_unique<Observer>();
        if (observer->memory.is_usable()) {
            observer_ = std::move(observer);
        }
    }
    walkers().insert(this);
}

std::optional<FrameLayout> PythonStackWalker::own_layout() noexcept {
    const auto* runtime = static_cast<const std::uint64_t*>(dlsym(RTLD_DEFAULT, "_PyRuntime"));
    return record::known_layout(Py_Version, runtime);
}

PythonStackWalker::~PythonStackWalker() {
    walkers().erase(this);
    if (!is_finalizing_()) {
        code_.release();
    }
}

const void* PythonStackWalker::first_local_of(const void* frame) const noexcept {
    // PyFrameObject has the same head from 3.11 to 3.14.
    constexpr std::size_t interpreters_frame = 24;
    if (!layout_ || layout_->locals == 0) {
        return nullptr;
    }
    auto* const object = static_cast<PyObject*>(const_cast<void*>(frame));
    const Reference code(PyObject_GetAttrString(object, "f_code"));
    const auto address = record::StableMemory{}.load<std::uint64_t>(
        reinterpret_cast<std::uint64_t>(frame), interpreters_frame);
    if (record::code_of(*layout_, address) != reinterpret_cast<std::uint64_t>(code.get())) {
        return nullptr;
    }
    return object_at(record::first_local_of(*layout_, address));
}

std::span<StackFrame> PythonStackWalker::read(const void* thread, record::StackTable& table,
                                              Buffer& buffer, bool& is_new) const noexcept {
    std::size_t count = record::read_frames(*layout_, thread, std::span(buffer.data(), max_depth_));
    const std::uint64_t code = table.modules().code();
    if (code == 0 || layout_->locals == 0) {
        return {buffer.data(), count};
    }
    const std::size_t most = count + most_modules;
    for (std::uint64_t frame = record::innermost_frame(*layout_, thread);
         frame != 0 && count < most; frame = record::previous_of(*layout_, frame)) {
        if (record::is_interpreters(*layout_, frame) || record::code_of(*layout_, frame) != code) {
            continue;
        }
        if (const std::uint64_t module = record::first_local_of(*layout_, frame)) {
            const record::Modules::Number number = table.modules().number_of(module);
            buffer[count++] = {std::uint64_t(record::StackMark::module), number.value};
            is_new = is_new || number.is_new;
        }
    }
    return {buffer.data(), count};
}

std::uint32_t PythonStackWalker::find(const void* thread, record::StackTable& table, Buffer& buffer,
                                      std::span<StackFrame>& frames) noexcept {
    thread_local record::StackMemo memo;
    if (const std::uint32_t known = memo.find(*layout_, thread, table)) {
        return known;
    }
    bool has_new_module = false;
    frames = read(thread, table, buffer, has_new_module);
    if (has_new_module) {
        own_soon(table);
    }
    const std::uint32_t known = table.find(frames);
    if (known != 0) {
        memo.remember(*layout_, thread, table, known, record::without_marks(frames).size());
    }
    return known;
}

std::uint32_t PythonStackWalker::capture(record::StackTable& table) noexcept {
    // A thread's frames do not change while it runs this, with or without the GIL.
    PyThreadState* const thread = PyGILState_GetThisThreadState();
    if (thread == nullptr || is_finalizing_()) {
        return 0;
    }
    Buffer buffer;
    std::span<StackFrame> frames;
    if (layout_) {
        const std::uint32_t known = find(thread, table, buffer, frames);
        if (known != 0 || frames.empty()) {
            return known;
        }
    }
    const PyGILState_STATE state = PyGILState_Ensure();
    if (!layout_) {
        const std::span<StackFrame> all(buffer.data(), max_depth_);
        frames = all.first(read_frame_objects(all));
    }
    const std::uint32_t id = add(table, frames);
    PyGILState_Release(state);
    return id;
}

std::uint32_t PythonStackWalker::capture_without_waiting(record::StackTable& table) noexcept {
    if (holds_gil()) {
        return capture(table);
    }
    PyThreadState* const thread = PyGILState_GetThisThreadState();
    if (thread == nullptr || is_finalizing_() || !layout_) {
        return 0;
    }
    Buffer buffer;
    std::span<StackFrame> frames;
    const std::uint32_t known = find(thread, table, buffer, frames);
    if (known != 0 || frames.empty()) {
        return known;
    }
    const record::StackTable::Interned stack = table.intern_unowned(frames, thread);
    if (stack.is_new) {
        own_soon(table);
    }
    return stack.id;
}

const void* PythonStackWalker::calling_thread() noexcept { return PyGILState_GetThisThreadState(); }

// A running thread changes its frames between two reads; the outer ones that did not change are its
// stack. No address is used that is not of a frame now, or of code that is owned.
std::uint32_t PythonStackWalker::stack_of(const void* thread, record::StackTable& table) noexcept {
    if (observer_ == nullptr || is_finalizing_()) {
        return 0;
    }
    const auto read = [&](Buffer& buffer) {
        observer_->memory.restart();
        const std::span<StackFrame> frames(buffer.data(), max_depth_);
        const std::size_t count = record::read_frames(*layout_, thread, observer_->memory, frames);
        return frames.first(observer_->memory.has_failed() ? 0 : count);
    };
    const std::span<const StackFrame> first = read(observer_->frames);
    const std::span<const StackFrame> second = read(observer_->again);
    const std::span<const StackFrame> frames = first.last(still_running(first, second));
    if (frames.empty()) {
        return 0;
    }
    if (const std::uint32_t known = table.find(frames)) {
        return known;
    }
    if (code_.owns_or_remembers(frames, observer_->memory)) {
        return table.intern(frames).id;
    }
    return table.intern_unowned(frames, thread).id;  // until own_running()
}

std::uint32_t PythonStackWalker::add(record::StackTable& table,
                                     std::span<const StackFrame> frames) noexcept {
    const record::StackTable::Interned stack = table.intern(frames);
    if (stack.is_new) {
        learn_gil();
        code_.own(frames);
    }
    return stack.id;
}

void PythonStackWalker::own_soon(record::StackTable& table) noexcept {
    if (waiting_.exchange(&table) == nullptr && Py_AddPendingCall(own_waiting, this) != 0) {
        waiting_ = nullptr;  // the interpreter's queue is full; the next capture tries again
    }
}

int PythonStackWalker::own_waiting(void* walker) noexcept {
    auto* const self = static_cast<PythonStackWalker*>(walker);
    if (walkers().contains(self)) {
        if (record::StackTable* const table = self->waiting_.exchange(nullptr)) {
            self->own_running(*table);
        }
    }
    return 0;
}

void PythonStackWalker::own_running(record::StackTable& table) noexcept {
    learn_gil();
    record::MemoryReader* const memory =
        observer_ == nullptr ? nullptr : &observer_->memory_of_code;
    try {
        for (const auto& [id, thread] : table.unowned()) {
            if (!is_thread(thread)) {
                continue;
            }
            // It has no GIL, or it is this one, so its frames do not change.
            Buffer buffer;
            std::span<StackFrame> running(buffer.data(), max_depth_);
            running = running.first(record::read_frames(*layout_, thread, running));
            const std::vector<StackFrame> stack = table.frames(id);
            const std::span<const StackFrame> frames = record::without_marks(stack);
            std::size_t count = still_running(frames, running);
            while (count != frames.size() &&
                   code_.is_alive(frames[frames.size() - 1 - count].code, memory)) {
                ++count;
            }
            if (count == frames.size()) {
                add(table, stack);
            } else if (count != 0) {
                code_.own(frames.last(count));
                table.forget_inner(id, frames.size() - count);
            }
        }
        table.modules().name_new();
    } catch (const std::bad_alloc&) {
        // They stay unowned.
    }
}

}  // namespace gpuviz::python
