#pragma once

#include <Python.h>
#include <cxxabi.h>
#include <unistd.h>

namespace gpuviz::python {

// Let other threads have the GIL, and get it back, for the life of the object; as nanobind's
// gil_scoped_release and gil_scoped_acquire. But while Python exits, up to 3.13, it ends any other
// thread that wants the GIL with an unwinding which may not leave a destructor nor nanobind: the
// whole process would be aborted. Such a thread stays here until the process is gone, as from
// Python 3.14 on.

template <typename Take>
auto take_gil(Take&& take) {
    try {
        return take();
    } catch (const abi::__forced_unwind&) {
        while (true) {
            pause();
        }
    }
}

class GilRelease {
  public:
    GilRelease() noexcept : state_(PyEval_SaveThread()) {}
    GilRelease(const GilRelease&) = delete;
    GilRelease& operator=(const GilRelease&) = delete;
    ~GilRelease() {
        take_gil([this] { PyEval_RestoreThread(state_); });
    }

  private:
    PyThreadState* state_;
};

class GilAcquire {
  public:
    GilAcquire() : state_(take_gil([] { return PyGILState_Ensure(); })) {}
    GilAcquire(const GilAcquire&) = delete;
    GilAcquire& operator=(const GilAcquire&) = delete;
    ~GilAcquire() { PyGILState_Release(state_); }

  private:
    PyGILState_STATE state_;
};

}  // namespace gpuviz::python
