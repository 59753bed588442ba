// Who keeps whom alive, in random graphs, against the definitions: without its dominator a node is
// not reachable, and what is behind a cycle is reachable from a node that reaches itself.

#include "analysis/ownership.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include "check.hpp"

namespace {

using gpuviz::analysis::OwnershipGraph;
using Node = OwnershipGraph::Node;
using Edges = std::vector<std::pair<Node, Node>>;
constexpr Node kNone = OwnershipGraph::none;

// How many edges lead from the starts to each node, on a shortest way that avoids one node.
constexpr std::size_t kFar = ~std::size_t{0};
std::vector<std::size_t> distances(std::size_t nodes, const Edges& edges,
                                   const std::vector<Node>& starts, Node avoided = kNone) {
    std::vector<std::size_t> found(nodes, kFar);
    for (const Node start : starts) {
        if (start != avoided) found[start] = 0;
    }
    for (bool changed = true; changed;) {
        changed = false;
        for (const auto& [owner, owned] : edges) {
            if (found[owner] != kFar && owned != avoided && found[owner] + 1 < found[owned]) {
                found[owned] = found[owner] + 1;
                changed = true;
            }
        }
    }
    return found;
}

// All nodes but `node` itself that are on each way from the starts to it.
std::vector<std::vector<bool>> all_dominators(std::size_t nodes, const Edges& edges,
                                              const std::vector<Node>& starts) {
    const auto reached = distances(nodes, edges, starts);
    std::vector<std::vector<bool>> result(nodes, std::vector<bool>(nodes));
    for (Node avoided = 0; avoided < nodes; ++avoided) {
        const auto without = distances(nodes, edges, starts, avoided);
        for (Node node = 0; node < nodes; ++node) {
            result[node][avoided] =
                node != avoided && reached[node] != kFar && without[node] == kFar;
        }
    }
    return result;
}

void check_dominators(std::size_t nodes, const Edges& edges, const std::vector<Node>& starts) {
    const auto found = OwnershipGraph(nodes, edges).dominators(starts);
    const auto expected = all_dominators(nodes, edges, starts);
    CHECK_EQUAL(found.size(), nodes);
    for (Node node = 0; node < nodes; ++node) {
        std::vector<bool> chain(nodes);
        std::size_t length = 0;
        for (Node above = found[node]; above != kNone; above = found[above]) {
            CHECK_EQUAL(++length < nodes, true);
            chain[above] = true;
        }
        CHECK_EQUAL(chain == expected[node], true);
    }
}

void check_cycles(std::size_t nodes, const Edges& edges) {
    const auto found = OwnershipGraph(nodes, edges).behind_cycles();
    std::vector<Node> in_cycles;
    for (Node node = 0; node < nodes; ++node) {
        std::vector<Node> owned;
        for (const auto& [owner, target] : edges) {
            if (owner == node) owned.push_back(target);
        }
        if (distances(nodes, edges, owned)[node] != kFar) in_cycles.push_back(node);
    }
    const auto expected = distances(nodes, edges, in_cycles);
    for (Node node = 0; node < nodes; ++node) {
        CHECK_EQUAL(found[node], expected[node] != kFar);
    }
}

// Nodes in order of their distance, each on a way as short as any.
void check_paths(std::size_t nodes, const Edges& edges, const std::vector<Node>& starts) {
    const OwnershipGraph graph(nodes, edges);
    OwnershipGraph::Reached reached;
    for (std::uint32_t times = 1; times <= 2; ++times) {
        graph.reach(starts, 2, reached);
        const auto expected = distances(nodes, edges, starts);
        std::size_t count = 0;
        for (Node node = 0; node < nodes; ++node) {
            const bool is_reached = expected[node] != kFar;
            count += is_reached ? 1 : 0;
            CHECK_EQUAL(reached.times[node], is_reached ? times : 0);
            CHECK_EQUAL(reached.predecessor[node] != kNone, is_reached);
            if (!is_reached) continue;
            const Node before = reached.predecessor[node];
            if (before == node) {
                CHECK_EQUAL(expected[node], 0U);
            } else {
                CHECK_EQUAL(std::ranges::count(edges, std::pair(before, node)) > 0, true);
                CHECK_EQUAL(expected[before] + 1, expected[node]);
            }
        }
        CHECK_EQUAL(reached.nodes.size(), count);
        CHECK_EQUAL(
            std::ranges::is_sorted(reached.nodes, {}, [&](Node node) { return expected[node]; }),
            true);
    }
    // Everything has been reached as often as was asked for.
    graph.reach(starts, 2, reached);
    CHECK_EQUAL(reached.nodes.size(), 0U);
}

void check_random_graphs(int rounds) {
    std::mt19937_64 random(1);
    for (int round = 0; round < rounds; ++round) {
        const std::size_t nodes = 1 + random() % 14;
        const auto any_node = [&] { return static_cast<Node>(random() % nodes); };
        Edges edges;
        // From forests to dense graphs, with loops and repeated edges.
        for (std::size_t count = random() % (2 * nodes + 2); count > 0; --count) {
            edges.emplace_back(any_node(), any_node());
        }
        std::vector<Node> starts;
        for (std::size_t count = random() % 4; count > 0; --count) {
            starts.push_back(any_node());
        }
        check_dominators(nodes, edges, starts);
        check_cycles(nodes, edges);
        check_paths(nodes, edges, starts);
    }
}

// As deep as a linked list of a program, which no recursion survives.
void check_a_long_chain() {
    constexpr Node kLength = 1'000'000;
    Edges edges;
    for (Node node = 0; node + 1 < kLength; ++node) {
        edges.emplace_back(node, node + 1);
    }
    const OwnershipGraph graph(kLength, edges);
    const std::vector<Node> starts{0};
    const auto above = graph.dominators(starts);
    CHECK_EQUAL(above.front(), kNone);
    CHECK_EQUAL(above.back(), kLength - 2);
    CHECK_EQUAL(std::ranges::count(graph.behind_cycles(), true), 0);
}

void check_an_empty_graph() {
    const OwnershipGraph graph(0, {});
    CHECK_EQUAL(graph.dominators({}).size(), 0U);
    CHECK_EQUAL(graph.behind_cycles().size(), 0U);
}

}  // namespace

int main(int argc, char** argv) {
    check_random_graphs(600 * effort(argc, argv));
    check_a_long_chain();
    check_an_empty_graph();
}
