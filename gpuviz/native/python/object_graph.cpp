#include "python/object_graph.hpp"

#include <algorithm>
#include <functional>
#include <new>
#include <utility>

#include "python/numpy_arrays.hpp"

namespace gpuviz::python {

using Id = ObjectPages::Id;

namespace {

// Larger containers are searched later, because most of them hold data rather than arrays.
constexpr Py_ssize_t kLarge = 4096;

unsigned long flags_of(PyTypeObject* type) noexcept { return PyType_GetFlags(type); }

// The references to an object; from Python 3.12 on, the upper half of the field has other uses.
std::int64_t references(PyObject* object) noexcept {
    const std::int64_t raw = Py_REFCNT(object);
    static const bool is_half = Py_Version >= 0x030C0000;
    return is_half ? static_cast<std::int64_t>(raw & 0xFFFFFFFF) : raw;
}

std::uint64_t field(PyObject* descriptor, PyObject* object) {
    const auto get =
        reinterpret_cast<descrgetfunc>(PyType_GetSlot(Py_TYPE(descriptor), Py_tp_descr_get));
    PyObject* value = get(descriptor, object, reinterpret_cast<PyObject*>(Py_TYPE(object)));
    if (value == nullptr) {
        PyErr_Clear();  // an object whose constructor failed
        return 0;
    }
    const std::uint64_t number = PyLong_Check(value) ? PyLong_AsUnsignedLongLong(value) : 0;
    Py_DECREF(value);
    if (PyErr_Occurred()) {
        PyErr_Clear();
        return 0;
    }
    return number;
}

}  // namespace

ObjectGraph::ObjectGraph(std::vector<OwnerType> types, PyObject* numpy_array)
    : types_(std::move(types)), numpy_array_(reinterpret_cast<PyTypeObject*>(numpy_array)) {}

void ObjectGraph::skip(PyObject* object) { pages_.set(pages_.id_of(object), ObjectPages::seen); }

void ObjectGraph::add(const Names& names) {
    skip(names.dict);
    names_.push_back(names);
}

const ObjectGraph::Kind& ObjectGraph::kind_of(PyObject* object) {
    PyTypeObject* type = Py_TYPE(object);
    Kind& cached = kind_cache_[reinterpret_cast<std::uintptr_t>(type) / 64 % kind_cache_.size()];
    if (cached.type == type) {
        return cached;
    }
    const auto [entry, is_new] = kinds_.try_emplace(type);
    Kind& kind = entry->second;
    if (is_new) {
        const unsigned long flags = flags_of(type);
        kind.type = type;
        kind.has_gc = (flags & Py_TPFLAGS_HAVE_GC) != 0;
        kind.is_type = (flags & Py_TPFLAGS_TYPE_SUBCLASS) != 0;
        kind.is_array = numpy_array_ != nullptr && PyType_IsSubtype(type, numpy_array_) != 0;
        if (kind.has_gc) {
            kind.traverse = reinterpret_cast<traverseproc>(PyType_GetSlot(type, Py_tp_traverse));
            kind.is_gc = reinterpret_cast<inquiry>(PyType_GetSlot(type, Py_tp_is_gc));
        }
        if ((flags & Py_TPFLAGS_LIST_SUBCLASS) != 0) {
            kind.length = &PyList_Size;
        } else if ((flags & Py_TPFLAGS_TUPLE_SUBCLASS) != 0) {
            kind.length = &PyTuple_Size;
        } else if ((flags & Py_TPFLAGS_DICT_SUBCLASS) != 0) {
            kind.length = &PyDict_Size;
        }
        // The first match is the most specific one.
        for (const OwnerType& each : types_) {
            if (PyType_IsSubtype(type, reinterpret_cast<PyTypeObject*>(each.type)) != 0) {
                kind.owner = each.address == nullptr ? nullptr : &each;
                break;
            }
        }
    }
    cached = kind;
    return cached;
}

bool ObjectGraph::meet(PyObject* object, Id& id) {
    id = pages_.id_of(object);
    if (pages_.has(id, ObjectPages::seen)) {
        return pages_.has(id, ObjectPages::node);
    }
    pages_.set(id, ObjectPages::seen);
    const Kind& kind = kind_of(object);
    const bool can_refer = kind.has_gc && (kind.is_gc == nullptr || kind.is_gc(object) != 0);
    if (!can_refer && kind.owner == nullptr && !kind.is_array) {
        return false;
    }
    if (kind.is_type && follows_classes_) {
        // A class holds what its names hold, whoever refers to the class.
        classes_.push_back(object);
        return false;
    }
    pages_.set(id, ObjectPages::node);
    if (kind.owner != nullptr) {
        found_owners_.push_back(object);
    }
    const Py_ssize_t length = kind.length == nullptr ? 0 : kind.length(object);
    if (length > kLarge) {
        large_.emplace_back(length, object);
        std::push_heap(large_.begin(), large_.end(), std::greater<>());
    } else {
        small_.push_back(object);
    }
    return true;
}

int ObjectGraph::visit_edge(PyObject* object, void* graph) noexcept {
    auto& self = *static_cast<ObjectGraph*>(graph);
    try {
        if (Id id; self.meet(object, id)) {
            self.edges_.push_back(id);
        }
        return 0;
    } catch (...) {
        self.failed_ = true;
        return 1;
    }
}

int ObjectGraph::visit_class(PyObject* object, void* graph) noexcept {
    auto& self = *static_cast<ObjectGraph*>(graph);
    try {
        PyObject* type = self.current_class_;
        if (!PyDict_CheckExact(object)) {
            self.add_label({Label::class_itself, false, 0, type, nullptr, object});
            return 0;
        }
        self.skip(object);
        Py_ssize_t position = 0;
        PyObject *key, *value;
        while (PyDict_Next(object, &position, &key, &value) != 0) {
            self.add_label({Label::of_class, false, 0, type, key, value});
        }
        return 0;
    } catch (...) {
        self.failed_ = true;
        return 1;
    }
}

void ObjectGraph::add_label(const Label& label) {
    if (Id id; meet(label.value, id)) {
        labels_.push_back(label);
        label_ids_.push_back(id);
    }
}

void ObjectGraph::expand_names(std::uint32_t names) {
    const Names from = names_[names];
    Py_ssize_t position = 0;
    PyObject *key, *value;
    while (PyDict_Next(from.dict, &position, &key, &value) != 0) {
        add_label({Label::name, from.is_copy, names, nullptr, key, value});
    }
}

void ObjectGraph::expand_class(PyObject* type) {
    current_class_ = type;
    const Kind& kind = kind_of(type);
    kind.traverse(type, &visit_class, this);
}

void ObjectGraph::expand(PyObject* object) {
    const std::size_t before = edges_.size();
    const Kind kind = kind_of(object);
    if (kind.is_array) {
        visit_array(object, &visit_edge, this);
    }
    if (kind.traverse != nullptr && (kind.is_gc == nullptr || kind.is_gc(object) != 0)) {
        kind.traverse(object, &visit_edge, this);
    }
    if (const auto hidden = hidden_.find(object); hidden != hidden_.end()) {
        for (PyObject* const held : hidden->second) {
            visit_edge(held, this);
        }
    }
    order_.push_back(object);
    degrees_.push_back(static_cast<std::uint32_t>(edges_.size() - before));
    if (failed_) {
        throw std::bad_alloc();
    }
}

void ObjectGraph::drain() {
    while (next_small_ < small_.size()) {
        expand(small_[next_small_++]);
        if (next_small_ == small_.size()) {
            small_.clear();
            next_small_ = 0;
        }
    }
}

void ObjectGraph::walk_small(int tier) {
    follows_classes_ = true;
    while (next_names_ < names_.size() && names_[next_names_].tier <= tier) {
        expand_names(static_cast<std::uint32_t>(next_names_++));
    }
    drain();
    while (!classes_.empty()) {
        PyObject* const type = classes_.back();
        classes_.pop_back();
        expand_class(type);
        drain();
    }
}

bool ObjectGraph::walk_large() {
    if (large_.empty()) {
        return false;
    }
    std::pop_heap(large_.begin(), large_.end(), std::greater<>());
    PyObject* const object = large_.back().second;
    large_.pop_back();
    expand(object);
    walk_small(names_.empty() ? 0 : names_.back().tier);
    return true;
}

void ObjectGraph::walk_unreached(PyObject* object) {
    follows_classes_ = false;
    Id id;
    if (meet(object, id)) {
        drain();
        while (!large_.empty()) {
            std::pop_heap(large_.begin(), large_.end(), std::greater<>());
            PyObject* const next = large_.back().second;
            large_.pop_back();
            expand(next);
            drain();
        }
    }
}

void ObjectGraph::read_owners() {
    for (; owners_.size() < found_owners_.size();) {
        PyObject* const object = found_owners_[owners_.size()];
        const OwnerType& type = *kind_of(object).owner;
        owners_.push_back({object, field(type.address, object), field(type.size, object)});
    }
}

ObjectGraph::Held ObjectGraph::held(std::span<const std::uint32_t> wanted) {
    pages_.clear(ObjectPages::marked);
    for (const std::uint32_t each : wanted) {
        pages_.set(pages_.id_of(owners_[each].object), ObjectPages::marked);
    }
    // Most references lead to objects found later, so that few rounds from the end suffice.
    for (bool changed = true; changed;) {
        changed = false;
        std::size_t edge = edges_.size();
        for (std::size_t node = order_.size(); node-- > 0;) {
            const std::size_t first = edge - degrees_[node];
            const auto is_marked = [this](Id id) { return pages_.has(id, ObjectPages::marked); };
            if (std::any_of(edges_.begin() + static_cast<std::ptrdiff_t>(first),
                            edges_.begin() + static_cast<std::ptrdiff_t>(edge), is_marked)) {
                const Id id = pages_.id_of(order_[node]);
                if (!pages_.has(id, ObjectPages::marked)) {
                    pages_.set(id, ObjectPages::marked);
                    changed = true;
                }
            }
            edge = first;
        }
    }
    Held result;
    std::unordered_map<Id, std::uint32_t> position;
    const auto take = [&](PyObject* object) {
        const auto [entry, is_new] = position.try_emplace(
            pages_.id_of(object), static_cast<std::uint32_t>(result.objects.size()));
        if (is_new) {
            result.objects.push_back(object);
            const auto uncounted = uncounted_.find(object);
            result.unseen.push_back(references(object) +
                                    (uncounted == uncounted_.end() ? 0 : uncounted->second));
        }
        return entry->second;
    };
    for (PyObject* const object : order_) {
        if (pages_.has(pages_.id_of(object), ObjectPages::marked)) {
            take(object);
        }
    }
    for (const std::uint32_t each : wanted) {
        result.owners.push_back(take(owners_[each].object));
    }
    std::size_t edge = 0;
    for (std::size_t node = 0; node < order_.size(); ++node) {
        const std::size_t last = edge + degrees_[node];
        for (; edge < last; ++edge) {
            if (pages_.has(edges_[edge], ObjectPages::marked)) {
                const auto found = position.find(edges_[edge]);
                if (found != position.end()) {
                    result.edges.emplace_back(position.at(pages_.id_of(order_[node])),
                                              found->second);
                    --result.unseen[found->second];
                }
            }
        }
    }
    for (std::uint32_t label = 0; label < labels_.size(); ++label) {
        const auto found = position.find(label_ids_[label]);
        if (found != position.end()) {
            result.labels.emplace_back(label, found->second);
            result.unseen[found->second] -= labels_[label].is_copy ? 2 : 1;
        }
    }
    return result;
}

}  // namespace gpuviz::python
