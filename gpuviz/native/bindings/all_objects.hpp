#pragma once

#include <Python.h>

#include <vector>

namespace gpuviz::bindings {

// Collecting garbage would run finalizers during a search.
class NoCollection {
  public:
    NoCollection() : was_enabled_(PyGC_Disable()) {}
    NoCollection(const NoCollection&) = delete;
    NoCollection& operator=(const NoCollection&) = delete;
    ~NoCollection() {
        if (was_enabled_ != 0) {
            PyGC_Enable();
        }
    }

  private:
    int was_enabled_;
};

// Every object that the garbage collector knows. No reference to one may be kept while another
// thread runs: a tuple that it is making must have no second one.
[[nodiscard]] std::vector<PyObject*> all_objects();

}  // namespace gpuviz::bindings
