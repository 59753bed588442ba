#include "analysis/ownership.hpp"

#include <algorithm>

namespace gpuviz::analysis {

using Node = OwnershipGraph::Node;

OwnershipGraph::OwnershipGraph(std::size_t nodes, std::span<const std::pair<Node, Node>> edges)
    : first_(nodes + 1), owned_(edges.size()) {
    for (const auto& [owner, owned] : edges) {
        ++first_[owner + 1];
    }
    for (std::size_t node = 0; node < nodes; ++node) {
        first_[node + 1] += first_[node];
    }
    std::vector<std::size_t> next(first_.begin(), first_.end() - 1);
    for (const auto& [owner, owned] : edges) {
        owned_[next[owner]++] = owned;
    }
}

std::span<const Node> OwnershipGraph::owned_by(Node node) const noexcept {
    return std::span(owned_).subspan(first_[node], first_[node + 1] - first_[node]);
}

void OwnershipGraph::reach(std::span<const Node> starts, std::uint32_t limit,
                           Reached& reached) const {
    auto& [nodes, predecessor, times] = reached;
    predecessor.resize(size(), none);
    times.resize(size());
    for (const Node node : nodes) {
        predecessor[node] = none;
    }
    nodes.clear();
    const auto enter = [&](Node node, Node from) {
        if (predecessor[node] == none && times[node] < limit) {
            predecessor[node] = from;
            ++times[node];
            nodes.push_back(node);
        }
    };
    for (const Node start : starts) {
        enter(start, start);
    }
    for (std::size_t next = 0; next < nodes.size(); ++next) {
        const Node node = nodes[next];
        for (const Node owned : owned_by(node)) {
            enter(owned, node);
        }
    }
}

namespace {

struct Visit {
    Node node;
    std::size_t next = 0;
};

// The nodes reachable from the starts, each after the nodes that it owns unless they are in a cycle
// with it.
std::vector<Node> postorder(const OwnershipGraph& graph, std::span<const Node> starts) {
    std::vector<bool> seen(graph.size());
    std::vector<Node> order;
    std::vector<Visit> open;
    for (const Node start : starts) {
        if (!seen[start]) {
            seen[start] = true;
            open.push_back({start});
        }
        while (!open.empty()) {
            auto& [node, next] = open.back();
            const auto owned = graph.owned_by(node);
            while (next < owned.size() && seen[owned[next]]) {
                ++next;
            }
            if (next == owned.size()) {
                order.push_back(node);
                open.pop_back();
            } else {
                const Node child = owned[next];
                seen[child] = true;
                open.push_back({child});
            }
        }
    }
    return order;
}

}  // namespace

// Cooper, Harvey and Kennedy: "A Simple, Fast Dominance Algorithm" (2001).
std::vector<Node> OwnershipGraph::dominators(std::span<const Node> starts) const {
    const std::vector<Node> order = postorder(*this, starts);
    const auto root = static_cast<Node>(order.size());
    std::vector<Node> number(size(), none);
    for (std::size_t position = 0; position < order.size(); ++position) {
        number[order[position]] = static_cast<Node>(position);
    }
    std::vector<std::vector<Node>> owners(order.size());
    for (const Node node : order) {
        for (const Node owned : owned_by(node)) {
            owners[number[owned]].push_back(number[node]);
        }
    }
    std::vector<Node> above(order.size() + 1, none);
    above[root] = root;
    for (const Node start : starts) {
        owners[number[start]].push_back(root);
    }
    const auto meet = [&above](Node one, Node other) {
        while (one != other) {
            while (one < other) {
                one = above[one];
            }
            while (other < one) {
                other = above[other];
            }
        }
        return one;
    };
    for (bool changed = true; changed;) {
        changed = false;
        for (Node node = root; node-- > 0;) {
            Node found = none;
            for (const Node owner : owners[node]) {
                if (above[owner] != none) {
                    found = found == none ? owner : meet(owner, found);
                }
            }
            changed |= above[node] != found;
            above[node] = found;
        }
    }
    std::vector<Node> result(size(), none);
    for (Node position = 0; position < root; ++position) {
        if (above[position] != root && above[position] != none) {
            result[order[position]] = order[above[position]];
        }
    }
    return result;
}

std::vector<bool> OwnershipGraph::behind_cycles() const {
    // A node that can be removed when all its owners are removed is not behind a cycle.
    std::vector<std::size_t> owners(size());
    for (const Node owned : owned_) {
        ++owners[owned];
    }
    std::vector<Node> free;
    for (Node node = 0; node < size(); ++node) {
        if (owners[node] == 0) {
            free.push_back(node);
        }
    }
    std::vector<bool> result(size(), true);
    while (!free.empty()) {
        const Node node = free.back();
        free.pop_back();
        result[node] = false;
        for (const Node owned : owned_by(node)) {
            if (--owners[owned] == 0) {
                free.push_back(owned);
            }
        }
    }
    return result;
}

}  // namespace gpuviz::analysis
