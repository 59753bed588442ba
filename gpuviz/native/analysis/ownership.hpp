#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace gpuviz::analysis {

// A directed graph of objects with sources outside it: who keeps whom alive.
class OwnershipGraph {
  public:
    using Node = std::uint32_t;
    static constexpr Node none = ~Node{0};

    // Each edge leads from an owner to what it owns; both are below `nodes`.
    OwnershipGraph(std::size_t nodes, std::span<const std::pair<Node, Node>> edges);

    [[nodiscard]] std::size_t size() const noexcept { return first_.size() - 1; }
    [[nodiscard]] std::span<const Node> owned_by(Node node) const noexcept;

    // How often each node was reached, and the last time from where.
    struct Reached {
        // Of the last call: the nodes, nearest first, and for each its predecessor on a shortest
        // path, itself for a start.
        std::vector<Node> nodes;
        std::vector<Node> predecessor;
        std::vector<std::uint32_t> times;
    };
    // Follows all edges from `starts`, except to nodes that were reached `limit` times before: what
    // these own was reached as often. So many calls take little more time than `limit` of them.
    void reach(std::span<const Node> starts, std::uint32_t limit, Reached& reached) const;

    // For each node the last node before it on all paths from the starts; `none` if there is no
    // such node or the node is not reachable.
    [[nodiscard]] std::vector<Node> dominators(std::span<const Node> starts) const;

    // For each node, whether it is in a cycle or reachable from one.
    [[nodiscard]] std::vector<bool> behind_cycles() const;

  private:
    std::vector<std::size_t> first_;
    std::vector<Node> owned_;
};

}  // namespace gpuviz::analysis
