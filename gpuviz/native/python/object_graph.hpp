#pragma once

#include <Python.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "python/object_pages.hpp"

namespace gpuviz::python {

// A class whose instances own GPU memory. The descriptors are C code that reads an integer field.
struct OwnerType {
    PyObject* type;
    PyObject* address;  // null for a subclass of an owner that owns nothing itself
    PyObject* size;
};

// A mapping whose values are held by name.
struct Names {
    PyObject* dict;
    // Searched in this order.
    int tier;
    // Whether each value stands for another reference, which no object shows.
    bool is_copy;
};

// A name that holds an object.
struct Label {
    enum Kind : std::uint8_t { name, of_class, class_itself };
    Kind kind;
    bool is_copy;
    std::uint32_t names;  // of Kind name: position
    PyObject* owner;      // of the other kinds: the class
    PyObject* key;        // null if it is the class itself
    PyObject* value;
};

// The objects that are reachable from names, with the references between them.
//
// Everything happens with the GIL held, in one call from Python, without running Python code:
// objects are visited as by the garbage collector. No reference is taken.
class ObjectGraph {
  public:
    using Id = ObjectPages::Id;
    struct Owner {
        PyObject* object;
        std::uint64_t address, size;
    };
    struct Held {
        std::vector<PyObject*> objects;
        std::vector<std::pair<std::uint32_t, std::uint32_t>> edges;
        std::vector<std::pair<std::uint32_t, std::uint32_t>> labels;  // label, object
        std::vector<std::int64_t> unseen;                             // references, by object
        std::vector<std::uint32_t> owners;                            // object of each owner
    };

    ObjectGraph(std::vector<OwnerType> types, PyObject* numpy_array);

    // Visits neither `object` nor, through it, what it refers to.
    void skip(PyObject* object);
    void add(const Names& names);
    // Adds a reference that `holder` does not show to the garbage collector.
    void add_hidden(PyObject* holder, PyObject* held) { hidden_[holder].push_back(held); }
    // Corrects the number of references to an object by those that Python does not count.
    void add_references(PyObject* object, std::int64_t count) { uncounted_[object] += count; }
    // Visits what small containers hold that is reachable from `tier`.
    void walk_small(int tier);
    // Visits the smallest large container and what it leads to; false if there is none.
    bool walk_large();
    // Visits an object that no name led to, and what it leads to.
    void walk_unreached(PyObject* object);
    // Reads the new owners' fields.
    void read_owners();

    [[nodiscard]] std::span<const Owner> owners() const noexcept { return owners_; }
    [[nodiscard]] std::span<const Label> labels() const noexcept { return labels_; }
    [[nodiscard]] std::size_t visited() const noexcept { return order_.size(); }
    // The owners that `wanted` selects with all objects that keep them alive.
    [[nodiscard]] Held held(std::span<const std::uint32_t> wanted);

  private:
    struct Kind {
        PyTypeObject* type = nullptr;
        traverseproc traverse = nullptr;
        inquiry is_gc = nullptr;
        const OwnerType* owner = nullptr;
        bool has_gc = false, is_type = false, is_array = false;
        Py_ssize_t (*length)(PyObject*) = nullptr;
    };
    static int visit_edge(PyObject* object, void* graph) noexcept;
    static int visit_class(PyObject* object, void* graph) noexcept;

    const Kind& kind_of(PyObject* object);
    // The id of an object that can keep others alive or owns memory, which is queued when new;
    // false for other objects.
    bool meet(PyObject* object, Id& id);
    void expand(PyObject* object);
    void expand_names(std::uint32_t names);
    void expand_class(PyObject* type);
    void add_label(const Label& label);
    void drain();

    std::vector<OwnerType> types_;
    PyTypeObject* numpy_array_;
    std::unordered_map<PyObject*, std::vector<PyObject*>> hidden_;
    std::unordered_map<PyObject*, std::int64_t> uncounted_;
    ObjectPages pages_;
    std::unordered_map<PyTypeObject*, Kind> kinds_;
    std::array<Kind, 1024> kind_cache_;
    std::vector<Names> names_;
    std::size_t next_names_ = 0;
    std::vector<Label> labels_;
    std::vector<Id> label_ids_;
    std::vector<PyObject*> small_;
    std::size_t next_small_ = 0;
    std::vector<std::pair<Py_ssize_t, PyObject*>> large_;  // a heap, smallest first
    std::vector<PyObject*> classes_;
    PyObject* current_class_ = nullptr;
    // Expanded objects, the number of references of each, and the references.
    std::vector<PyObject*> order_;
    std::vector<std::uint32_t> degrees_;
    std::vector<Id> edges_;
    std::vector<PyObject*> found_owners_;
    std::vector<Owner> owners_;
    bool follows_classes_ = false;
    bool failed_ = false;
};

}  // namespace gpuviz::python
