#include "python/frame_objects.hpp"

#include <Python.h>

#include <algorithm>
#include <array>
#include <cstdint>

#include "python/reference.hpp"
#include "record/outer_frames.hpp"

namespace gpuviz::python {

using record::FrameLayout;
using record::StackFrame;

// Walks f_back, f_code and f_lasti. Code stays alive because its frame is running.
std::size_t read_frame_objects(std::span<StackFrame> frames) noexcept {
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    record::OuterFrames outer(frames);
    std::size_t count = 0;
    Reference frame(reinterpret_cast<PyObject*>(PyThreadState_GetFrame(PyThreadState_Get())));
    while (frame && frame.get() != Py_None && (count < frames.size() || outer.wants_more())) {
        const Reference code(PyObject_GetAttrString(frame.get(), "f_code"));
        const Reference instruction(PyObject_GetAttrString(frame.get(), "f_lasti"));
        if (!code || !instruction) {
            break;
        }
        const StackFrame found{reinterpret_cast<std::uint64_t>(code.get()),
                               PyLong_AsLongLong(instruction.get())};
        if (count < frames.size()) {
            frames[count++] = found;
        } else {
            outer.push(found);
        }
        frame.reset(PyObject_GetAttrString(frame.get(), "f_back"));
    }
    PyErr_Restore(type, value, traceback);
    outer.finish();
    return count;
}

namespace {

// More frames of a thread are not compared.
constexpr std::size_t most_compared = 256;

PyObject* compare_walks(PyObject* layout, PyObject*) {
    const auto* tried = static_cast<const FrameLayout*>(PyCapsule_GetPointer(layout, nullptr));
    std::array<StackFrame, most_compared> expected;
    std::array<StackFrame, most_compared> found;
    const std::size_t expected_count = read_frame_objects(expected);
    const std::size_t count = record::read_frames(*tried, PyThreadState_Get(), found);
    return PyBool_FromLong(count >= 3 &&
                           std::equal(found.begin(), found.begin() + count, expected.begin(),
                                      expected.begin() + expected_count));
}

// Whether the first local variables of the functions below are those that frame objects have.
bool shows_same_locals(const FrameLayout& layout) noexcept {
    std::uint64_t address = record::innermost_frame(layout, PyThreadState_Get());
    Reference frame(reinterpret_cast<PyObject*>(PyThreadState_GetFrame(PyThreadState_Get())));
    int same = 0;
    for (int depth = 0; depth < 4 && frame && frame.get() != Py_None; ++depth) {
        while (address != 0 && record::is_interpreters(layout, address)) {
            address = record::previous_of(layout, address);
        }
        if (address == 0) {
            break;
        }
        const Reference locals(PyObject_GetAttrString(frame.get(), "f_locals"));
        const Reference first(locals ? PyMapping_GetItemString(locals.get(), "depth") : nullptr);
        PyErr_Clear();
        if (first) {
            same +=
                reinterpret_cast<PyObject*>(record::first_local_of(layout, address)) == first.get()
                    ? 1
                    : -4;
        }
        address = record::previous_of(layout, address);
        frame.reset(PyObject_GetAttrString(frame.get(), "f_back"));
    }
    PyErr_Clear();
    return same == 3;
}

PyObject* compare_locals(PyObject* layout, PyObject*) {
    const auto* tried = static_cast<const FrameLayout*>(PyCapsule_GetPointer(layout, nullptr));
    return PyBool_FromLong(shows_same_locals(*tried));
}

// Whether a comparison of `layout` with frame objects succeeds in a chain of calls through a
// generator.
bool succeeds(PyCFunction comparison, const FrameLayout& layout) {
    constexpr const char* chain =
        "def chain(depth):\n"
        "    return chain(depth - 1) if depth else any(compare() for _ in (0,))\n"
        "same = chain(3)\n";
    PyMethodDef compare{"compare", comparison, METH_NOARGS, nullptr};
    const Reference capsule(PyCapsule_New(const_cast<FrameLayout*>(&layout), nullptr, nullptr));
    const Reference function(PyCFunction_NewEx(&compare, capsule.get(), nullptr));
    const Reference code(Py_CompileString(chain, "<gpuviz>", Py_file_input));
    const Reference globals(PyDict_New());
    if (function && code && globals &&
        PyDict_SetItemString(globals.get(), "__builtins__", PyEval_GetBuiltins()) == 0 &&
        PyDict_SetItemString(globals.get(), "compare", function.get()) == 0) {
        const Reference done(PyEval_EvalCode(code.get(), globals.get(), globals.get()));
        // `chain` and its globals refer to each other: `compare` must not outlive this call.
        const bool same = done && PyDict_GetItemString(globals.get(), "same") == Py_True;
        PyDict_Clear(globals.get());
        PyErr_Clear();
        return same;
    }
    PyErr_Clear();
    return false;
}

}  // namespace

bool has_same_frames(const FrameLayout& layout) { return succeeds(compare_walks, layout); }

bool has_same_locals(const FrameLayout& layout) { return succeeds(compare_locals, layout); }

}  // namespace gpuviz::python
