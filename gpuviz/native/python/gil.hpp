#pragma once

#include <Python.h>
#include <cxxabi.h>
#include <dlfcn.h>
#include <unistd.h>

namespace gpuviz::python {

// Release or acquire the GIL for the lifetime of the object, like nanobind's gil_scoped_release and
// gil_scoped_acquire. Up to Python 3.13, an exiting interpreter terminates other threads that
// request the GIL by unwinding, which must not leave a destructor or nanobind, so the process would
// abort. Such a thread blocks here until the process ends, as it does from Python 3.14 on.

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

// Whether the calling thread holds the GIL; false once the interpreter has begun to exit. The
// function is not in the limited API.
inline bool holds_gil() noexcept {
    static const auto check = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "PyGILState_Check"));
    return check != nullptr && Py_IsInitialized() != 0 && check() != 0;
}

}  // namespace gpuviz::python
