#include <nanobind/nanobind.h>
#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <tuple>
#include <unordered_set>
#include <utility>
#include <vector>

#include "analysis/ownership.hpp"
#include "bindings/all_objects.hpp"
#include "bindings/bindings.hpp"
#include "python/object_graph.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace gpuviz::bindings {

namespace {

using analysis::OwnershipGraph;
using python::Label;
using python::ObjectGraph;

// An owner with as many labels may have more.
constexpr std::uint32_t kMostLabels = 64;
constexpr std::size_t kMostPaths = 8;

std::vector<python::OwnerType> owner_types(const nb::list& types) {
    std::vector<python::OwnerType> result;
    for (const nb::handle each : types) {
        const auto [type, address, size] =
            nb::cast<std::tuple<nb::handle, nb::handle, nb::handle>>(each);
        result.push_back({type.ptr(), address.is_none() ? nullptr : address.ptr(),
                          size.is_none() ? nullptr : size.ptr()});
    }
    return result;
}

class Search {
  public:
    Search(const nb::list& types, nb::handle numpy_array, const nb::list& skipped,
           const nb::list& names, const nb::handle& wanted)
        : graph_(owner_types(types), numpy_array.is_none() ? nullptr : numpy_array.ptr()) {
        for (const nb::handle each : skipped) {
            graph_.skip(each.ptr());
        }
        for (const nb::handle each : names) {
            PyObject* const dict = PyTuple_GetItem(each.ptr(), 0);
            last_tier_ = static_cast<int>(PyLong_AsLong(PyTuple_GetItem(each.ptr(), 1)));
            graph_.add({dict, last_tier_, PyTuple_GetItem(each.ptr(), 2) == Py_True});
        }
        has_wanted_ = !wanted.is_none();
        if (has_wanted_) {
            for (const nb::handle each : wanted) {
                wanted_.insert(nb::cast<std::uint64_t>(each));
                ++wanted_count_;
            }
        }
    }

    // Adds what objects refer to without showing it.
    void add_hidden(const nb::list& objects, const nb::list& counts, const nb::list& pairs) {
        graph_.skip(objects.ptr());
        for (std::size_t each = 0; each < nb::len(objects); ++each) {
            // Python counts one reference more, of the list.
            graph_.add_references(objects[each].ptr(), nb::cast<std::int64_t>(counts[each]) - 1);
        }
        for (const nb::handle each : pairs) {
            const auto [holder, held] = nb::cast<std::tuple<std::size_t, std::size_t>>(each);
            graph_.add_hidden(objects[holder].ptr(), objects[held].ptr());
        }
    }

    void run() {
        if (!find_early()) {
            for (PyObject* const object : all_objects()) {
                graph_.walk_unreached(object);
            }
            graph_.read_owners();
            select();
        }
    }

    [[nodiscard]] nb::object result() {
        find_reached();
        const OwnershipGraph::Node none = OwnershipGraph::none;
        std::vector<OwnershipGraph::Node> starts;
        for (const auto& [start, source] : sources_) {
            starts.push_back(start);
        }
        starts.insert(starts.end(), garbage_.begin(), garbage_.end());
        const auto above = ownership_->dominators(starts);
        const auto cyclic = ownership_->behind_cycles();
        nb::list owners;
        for (std::size_t each = 0; each < held_.owners.size(); ++each) {
            const auto target = held_.owners[each];
            nb::list chain;
            for (auto node = above[target]; node != none; node = above[node]) {
                chain.append(nb::borrow(held_.objects[node]));
            }
            PyList_Reverse(chain.ptr());
            const auto& owner = graph_.owners()[chosen_[each]];
            owners.append(nb::make_tuple(nb::borrow(owner.object), owner.address, owner.size,
                                         paths_[each], chain, static_cast<bool>(cyclic[target])));
        }
        return nb::make_tuple(owners, labels_, graph_.visited());
    }

  private:
    // Whether all that keeps the wanted owners alive is found before everything is visited.
    bool find_early() {
        for (int tier = 0; tier <= last_tier_; ++tier) {
            graph_.walk_small(tier);
            if (is_complete()) {
                return true;
            }
        }
        std::size_t next_check = 2 * graph_.visited();
        bool had_all = has_all_wanted();
        while (graph_.walk_large()) {
            const bool has_more = !had_all && has_all_wanted();
            had_all |= has_more;
            if (has_more || graph_.visited() > next_check) {
                if (is_complete()) {
                    return true;
                }
                next_check = 2 * graph_.visited();
            }
        }
        return is_complete();
    }

    bool has_all_wanted() {
        graph_.read_owners();
        const auto is_wanted = [this](const ObjectGraph::Owner& owner) {
            return wanted_.contains(owner.address);
        };
        const auto found = std::count_if(graph_.owners().begin(), graph_.owners().end(), is_wanted);
        return has_wanted_ && static_cast<std::size_t>(found) >= wanted_count_;
    }

    bool is_complete() {
        if (!has_all_wanted()) {
            return false;
        }
        select();
        return std::none_of(held_.unseen.begin(), held_.unseen.end(),
                            [](std::int64_t unseen) { return unseen > 0; });
    }

    void select() {
        chosen_.clear();
        for (std::uint32_t each = 0; each < graph_.owners().size(); ++each) {
            const auto& owner = graph_.owners()[each];
            if (owner.address != 0 && (!has_wanted_ || wanted_.contains(owner.address))) {
                chosen_.push_back(each);
            }
        }
        held_ = graph_.held(chosen_);
    }

    // Finds which names lead to which owners.
    void find_reached() {
        ownership_.emplace(held_.objects.size(), held_.edges);
        paths_.resize(held_.owners.size());
        targets_.resize(held_.objects.size());
        for (std::size_t each = 0; each < held_.owners.size(); ++each) {
            targets_[held_.owners[each]].push_back(each);
        }
        for (const auto& [label, node] : held_.labels) {
            sources_.emplace_back(node, nb::object(label_of(graph_.labels()[label])));
        }
        for (std::uint32_t node = 0; node < held_.objects.size(); ++node) {
            if (held_.unseen[node] > 0) {
                sources_.emplace_back(node,
                                      nb::make_tuple("unseen", nb::borrow(held_.objects[node])));
            }
        }
        for (std::size_t source = 0; source < sources_.size(); ++source) {
            labels_.append(sources_[source].second);
            follow({&sources_[source].first, 1}, source);
        }
        for (std::uint32_t node = 0; node < held_.objects.size(); ++node) {
            if (sources_.empty() || reached_.times[node] == 0) {
                garbage_.push_back(node);
            }
        }
        if (!garbage_.empty()) {
            labels_.append(nb::make_tuple("cycle", nb::none()));
            follow(garbage_, sources_.size());
        }
    }

    void follow(std::span<const OwnershipGraph::Node> starts, std::size_t source) {
        ownership_->reach(starts, kMostLabels, reached_);
        for (const auto node : reached_.nodes) {
            for (const std::size_t target : targets_[node]) {
                add_path(target, node, source);
            }
        }
    }

    void add_path(std::size_t target, OwnershipGraph::Node node, std::size_t source) {
        nb::list& paths = paths_[target];
        nb::list path;
        if (nb::len(paths) < kMostPaths) {
            for (;; node = reached_.predecessor[node]) {
                path.append(nb::borrow(held_.objects[node]));
                if (reached_.predecessor[node] == node) {
                    break;
                }
            }
            PyList_Reverse(path.ptr());
        }
        paths.append(nb::make_tuple(source, path));
    }

    static nb::object label_of(const Label& label) {
        const nb::object value = nb::borrow(label.value);
        if (label.kind == Label::name) {
            return nb::make_tuple("name", label.names, nb::borrow(label.key), value);
        }
        const nb::object key = label.key == nullptr ? nb::none() : nb::borrow(label.key);
        return nb::make_tuple("class", nb::borrow(label.owner), key, value);
    }

    ObjectGraph graph_;
    int last_tier_ = 0;
    bool has_wanted_ = false;
    // Blocks of several simulated GPUs may have the same address.
    std::unordered_set<std::uint64_t> wanted_;
    std::size_t wanted_count_ = 0;
    std::vector<std::uint32_t> chosen_;
    ObjectGraph::Held held_;
    std::optional<OwnershipGraph> ownership_;
    std::vector<std::vector<std::size_t>> targets_;
    std::vector<nb::list> paths_;
    std::vector<std::pair<OwnershipGraph::Node, nb::object>> sources_;
    std::vector<OwnershipGraph::Node> garbage_;
    OwnershipGraph::Reached reached_;
    nb::list labels_;
};

nb::object find_holders(const nb::list& types, nb::handle numpy_array, const nb::list& skipped,
                        const nb::list& names, const nb::handle& wanted,
                        const std::tuple<nb::list, nb::list, nb::list>& hidden) {
    const NoCollection disabled;
    Search search(types, numpy_array, skipped, names, wanted);
    std::apply([&](const auto&... lists) { search.add_hidden(lists...); }, hidden);
    search.run();
    return search.result();
}

}  // namespace

void bind_holders(nb::module_& m) {
    m.def(
        "find_holders", &find_holders, "types"_a, "numpy_array"_a.none(), "skipped"_a, "names"_a,
        "wanted"_a.none(), "hidden"_a,
        nb::sig("def find_holders(types: list[Any], numpy_array: type | None, skipped: list[Any], "
                "names: list[Any], wanted: list[int] | None, hidden: tuple[list[Any], list[int], "
                "list[tuple[int, int]]]) -> tuple[list[Any], list[Any], int]"),
        "Find what keeps the instances of `types` alive, without running Python code.\n\n"
        "`types` has tuples of a class and the descriptors of its address and size, subclasses "
        "first; `names` has tuples of a dict, its tier in ascending order, and whether it "
        "copies references of a running frame. With `wanted`, only owners of these addresses "
        "are looked for. `hidden` has references that objects do not show: the objects, by how "
        "much the references to each are more than Python counts, and pairs of positions of a "
        "holder and what it holds. Return the owners (object, address, size, paths, dominators, "
        "whether "
        "a cycle keeps it), the labels of paths, and the "
        "number of objects visited.");
}

}  // namespace gpuviz::bindings
