#pragma once

#include <nanobind/nanobind.h>

#include <utility>

namespace gpuviz::cupy {

// A Python function of one argument over `Owner::malloc`, with `Owner::name` and `docstring`. A
// plain C function is called several times faster than a bound method.
//
// `make` returns the owner on the first call, and is then released. The function keeps the owner;
// an owner whose memory may outlive the function must keep itself alive.
template <typename Owner>
nanobind::object malloc_function(nanobind::callable make) {
    struct Lazy {
        nanobind::object make;
        nanobind::object made;
        Owner* owner = nullptr;
    };
    static constexpr const char* kCapsule = "gpuviz.malloc";
    static PyMethodDef definition{Owner::name,
                                  [](PyObject* self, PyObject* size) -> PyObject* {
                                      auto& lazy =
                                          *static_cast<Lazy*>(PyCapsule_GetPointer(self, kCapsule));
                                      if (lazy.owner == nullptr) {
                                          try {
                                              const nanobind::object make = lazy.make;
                                              nanobind::object made = make();
                                              lazy.owner = nanobind::cast<Owner*>(made);
                                              lazy.made = std::move(made);
                                              lazy.make.reset();
                                          } catch (nanobind::python_error& error) {
                                              error.restore();
                                              return nullptr;
                                          }
                                      }
                                      // Another thread may delete the function in the meantime.
                                      const nanobind::object kept = lazy.made;
                                      return lazy.owner->malloc(size);
                                  },
                                  METH_O, Owner::docstring};
    const nanobind::object self = nanobind::steal(
        PyCapsule_New(new Lazy{std::move(make), {}}, kCapsule, [](PyObject* capsule) {
            delete static_cast<Lazy*>(PyCapsule_GetPointer(capsule, kCapsule));
        }));
    return nanobind::steal(PyCFunction_New(&definition, self.ptr()));
}

}  // namespace gpuviz::cupy
