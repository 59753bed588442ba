#include "hazards/recorded_operations.hpp"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <utility>

namespace gpuviz::hazards {

namespace {

constexpr std::uint32_t kind_bits = 0x3;

bool has(std::uint32_t object, CopyBit bit) noexcept { return (object & std::uint32_t(bit)) != 0; }

// How the nodes of a graph use a block.
struct Use {
    Mode first_mode;
    bool is_exact;
    OperationId first;
    OperationId last;
};

struct Owner {
    OperationId operation;
    std::uint32_t block;
};

class Feed {
  public:
    Feed(const RecordedOperations& operations, const RecordedAccesses& accesses,
         const RecordedBlocks& blocks)
        : operations_(operations),
          accesses_(accesses),
          blocks_(blocks),
          ids_(blocks.address.size()) {}

    RecordedHazards run() {
        for (std::size_t row = 0; row < operations_.code.size(); ++row) perform(row);
        return std::move(found_);
    }

  private:
    void perform(std::size_t row) {
        const auto operation = OperationId(row) + 1;
        const std::uint32_t object = operations_.object[row];
        const std::uint32_t number = operations_.stream[row];
        device_ = operations_.device[row];
        take_accesses(row);
        switch (static_cast<Code>(operations_.code[row])) {
            case Code::launch:
                engine_.launch(operation, 0, stream(number), taken_);
                break;
            case Code::copy:
                engine_.copy(operation, 0, stream(number), copy_of(object), taken_);
                break;
            case Code::memset:
                engine_.memset(operation, 0, stream(number), has(object, CopyBit::synchronous),
                               taken_);
                break;
            case Code::record_event:
                engine_.record_event(0, event(object), stream(number));
                break;
            case Code::wait_event:
                engine_.wait_event(0, stream(number), event(object));
                break;
            case Code::wait_for_unknown:
                engine_.wait_for_unknown(0, stream(number));
                break;
            case Code::synchronize_event:
                engine_.synchronize_event(0, event(object));
                break;
            case Code::synchronize_stream:
                engine_.synchronize_stream(0, stream(number));
                break;
            case Code::synchronize_device:
                engine_.synchronize_device(0, device_);
                break;
            case Code::create_stream:
                streams_[number] = engine_.create_stream(static_cast<StreamKind>(object), device_);
                break;
            case Code::destroy_stream:
                engine_.destroy_stream(stream(number));
                streams_.erase(number);
                break;
            case Code::allocate:
                allocate(operation, object, stream(number));
                break;
            case Code::record_stream:
                if (id_of(object)) engine_.record_stream(*ids_[object], stream(number));
                break;
            case Code::free:
                if (id_of(object)) end(operation, object);
                break;
            case Code::begin_capture:
                engine_.begin_capture(stream(number));
                break;
            case Code::node:
                note_uses(operation, object);
                engine_.launch(operation, 0, stream(number), taken_);
                break;
            case Code::end_capture:
                captured_ = graphs_[object] = engine_.end_capture(stream(number));
                captures_[object] = captured_number_ = object;
                break;
            case Code::instantiate:
                graphs_[object] = engine_.instantiate(captured_);
                captures_[object] = captured_number_;
                break;
            case Code::launch_graph:
                engine_.launch_graph(operation, 0, graph(object), stream(number));
                break;
            case Code::synchronize_all:
                engine_.synchronize_all(0);
                break;
            case Code::host_access:
                engine_.host_access(operation, 0, taken_);
                break;
            default:
                throw std::invalid_argument("row " + std::to_string(row) + " has no code");
        }
        const bool is_graph = static_cast<Code>(operations_.code[row]) == Code::launch_graph;
        take_hazards(is_graph ? std::optional(object) : std::nullopt);
    }

    static Copy copy_of(std::uint32_t object) {
        const std::uint32_t peer = object / std::uint32_t(CopyBit::peer);
        return {.kind = static_cast<CopyKind>(object & kind_bits),
                .is_synchronous = has(object, CopyBit::synchronous),
                .is_pageable = has(object, CopyBit::pageable),
                .peer = peer == 0 ? std::nullopt : std::optional(Device(peer - 1))};
    }

    Slot stream(std::uint32_t number) {
        if (number == 0) return engine_.legacy_stream(device_);
        const auto found = streams_.find(number);
        if (found != streams_.end()) return found->second;
        throw std::invalid_argument("stream " + std::to_string(number) + " does not exist");
    }

    EventId event(std::uint32_t number) {
        const auto [found, is_new] = events_.try_emplace(number, 0);
        if (is_new) found->second = engine_.create_event();
        return found->second;
    }

    GraphId graph(std::uint32_t number) const {
        const auto found = graphs_.find(number);
        if (found != graphs_.end()) return found->second;
        throw std::invalid_argument("graph " + std::to_string(number) + " does not exist");
    }

    void note_uses(OperationId operation, std::uint32_t capture) {
        for (const Access& each : taken_) {
            const Use use{each.mode, each.is_exact, operation, operation};
            uses_[capture].try_emplace(each.block, use).first->second.last = operation;
        }
    }

    const Use* use_of(std::uint32_t graph, BlockId block) const {
        const auto capture = captures_.find(graph);
        const auto uses = capture == captures_.end() ? uses_.end() : uses_.find(capture->second);
        if (uses == uses_.end()) return nullptr;
        const auto found = uses->second.find(block);
        return found == uses->second.end() ? nullptr : &found->second;
    }

    // The last operation that allocated memory at some addresses.
    const Owner* last_owner(std::uint64_t start, std::uint64_t stop) const {
        const Owner* last = nullptr;
        for (auto each = owners_.lower_bound(stop); each != owners_.begin();) {
            --each;
            const auto& [address, owner] = *each;
            if (address + blocks_.bytes[owner.block] > start &&
                (last == nullptr || owner.operation > last->operation)) {
                last = &owner;
            }
            if (address + most_bytes_ <= start) break;
        }
        return last;
    }

    // The later owner of a block that the graph reads before it writes it, which has been freed as
    // well; null if there is none.
    const Owner* judge_input(Hazard& hazard, std::uint32_t graph) const {
        const Use* use = use_of(graph, hazard.block);
        if (hazard.kind != Kind::use_after_free || use == nullptr ||
            use->first_mode != Mode::read) {
            return nullptr;
        }
        const std::uint32_t block = numbers_.at(hazard.block);
        const std::uint64_t start = blocks_.address[block];
        const Owner* owner = last_owner(start, start + blocks_.bytes[block]);
        if (owner == nullptr || owner->operation < hazard.first) return nullptr;
        hazard.kind = Kind::reuse;
        hazard.tier = use->is_exact ? Tier::certain : Tier::probable;
        hazard.first = owner->operation;
        return owner;
    }

    // Whether the graph itself writes the new owner after its last access to the old one.
    bool is_own_reuse(const Hazard& hazard, std::uint32_t graph) const {
        const Use* old = use_of(graph, hazard.block);
        const Use* owner = use_of(graph, hazard.other_block);
        const bool is_by_allocation =
            hazard.kind == Kind::reuse &&
            static_cast<Code>(operations_.code[hazard.first - 1]) == Code::allocate;
        return is_by_allocation && old != nullptr && owner != nullptr &&
               owner->first_mode == Mode::write && owner->first > old->last;
    }

    std::optional<BlockId>& id_of(std::uint32_t block) {
        if (block < ids_.size()) return ids_[block];
        throw std::invalid_argument("block " + std::to_string(block) + " does not exist");
    }

    void take_accesses(std::size_t row) {
        taken_.clear();
        const std::uint32_t count = operations_.accesses[row];
        if (count > accesses_.block.size() - reached_) {
            throw std::invalid_argument("there are fewer accesses than operations have");
        }
        for (const std::size_t last = reached_ + count; reached_ < last; ++reached_) {
            const std::uint32_t block = accesses_.block[reached_];
            if (accesses_.mode[reached_] > std::uint8_t(Mode::write)) {
                throw std::invalid_argument("an access has no mode");
            }
            if (!id_of(block)) continue;
            const std::uint64_t start = accesses_.start[reached_], stop = accesses_.stop[reached_];
            const std::uint64_t bytes = blocks_.bytes[block];
            if (start >= bytes || stop <= start) continue;
            taken_.push_back({.block = *ids_[block],
                              .mode = static_cast<Mode>(accesses_.mode[reached_]),
                              .is_exact = accesses_.is_exact[reached_] != 0 && stop <= bytes,
                              .start = start,
                              .stop = std::min(stop, bytes)});
        }
    }

    void allocate(OperationId operation, std::uint32_t block, Slot stream) {
        if (id_of(block)) end(0, block);
        const std::uint64_t address = blocks_.address[block], bytes = blocks_.bytes[block];
        if (bytes == 0 || address > last_address || bytes > last_address) return;
        auto next = by_address_.lower_bound(address);
        if (next != by_address_.begin()) {
            const std::uint32_t before = std::prev(next)->second;
            if (blocks_.address[before] + blocks_.bytes[before] > address) --next;
        }
        while (next != by_address_.end() && next->first < address + bytes) {
            end(0, (next++)->second);
        }
        const BlockId id = engine_.allocate(
            {.operation = operation,
             .allocator =
                 blocks_.is_private[block] != 0 ? Allocator::private_pool : Allocator::caching,
             .memory = blocks_.is_pinned[block] != 0 ? Memory::pinned : Memory::device,
             .address = address,
             .bytes = bytes,
             .stream = stream});
        ids_[block] = id;
        unlisted_.emplace_back(id, block);
        by_address_[address] = block;
        owners_[address] = {operation, block};
        most_bytes_ = std::max(most_bytes_, bytes);
        if (blocks_.is_host_written[block] != 0) {
            const Access filled{.block = id, .mode = Mode::write, .is_exact = false, .stop = bytes};
            engine_.host_access(operation, 0, std::span(&filled, 1));
            take_hazards();
        }
    }

    // Operation 0: its end was not recorded.
    void end(OperationId operation, std::uint32_t block) {
        const BlockId id = *ids_[block];
        if (operation != 0) {
            engine_.free(operation, 0, id);
            take_hazards();
        } else {
            engine_.cuda_free(0, id);
        }
        engine_.release(id);
        ids_[block].reset();
        by_address_.erase(blocks_.address[block]);
    }

    void take_hazards(std::optional<std::uint32_t> graph = {}) {
        if (!engine_.has_hazards()) return;
        numbers_.insert(unlisted_.begin(), unlisted_.end());
        unlisted_.clear();
        for (Hazard& each : engine_.take()) {
            if (graph && is_own_reuse(each, *graph)) continue;
            const Owner* owner = graph ? judge_input(each, *graph) : nullptr;
            std::uint64_t bytes = 0;
            for (const auto& [start, stop] : each.bytes) bytes += stop - start;
            std::int64_t other = -1;
            if (owner != nullptr) {
                other = std::int64_t(owner->block);
            } else if (each.other_block != 0) {
                other = std::int64_t(numbers_.at(each.other_block));
            }
            found_.kind.push_back(std::uint8_t(each.kind));
            found_.tier.push_back(std::uint8_t(each.tier));
            found_.first.push_back(std::uint32_t(each.first - 1));
            found_.second.push_back(std::uint32_t(each.second - 1));
            found_.block.push_back(numbers_.at(each.block));
            found_.other_block.push_back(other);
            found_.bytes.push_back(bytes);
        }
    }

    const RecordedOperations& operations_;
    const RecordedAccesses& accesses_;
    const RecordedBlocks& blocks_;
    Engine engine_{{.unknown_may_write = false}};
    std::vector<std::optional<BlockId>> ids_;
    std::unordered_map<BlockId, std::uint32_t> numbers_;
    std::vector<std::pair<BlockId, std::uint32_t>> unlisted_;  // not yet in numbers_
    std::map<std::uint64_t, std::uint32_t> by_address_;
    std::unordered_map<std::uint32_t, Slot> streams_;
    std::unordered_map<std::uint32_t, EventId> events_;
    std::unordered_map<std::uint32_t, GraphId> graphs_;
    GraphId captured_ = 0;  // the last one
    std::uint32_t captured_number_ = 0;
    // A capture has the number of the first graph made of it.
    std::unordered_map<std::uint32_t, std::uint32_t> captures_;                 // by graph
    std::unordered_map<std::uint32_t, std::unordered_map<BlockId, Use>> uses_;  // by capture
    std::map<std::uint64_t, Owner> owners_;  // the last one that began at an address
    std::uint64_t most_bytes_ = 0;
    Device device_ = 0;  // of the stream of the current operation
    std::vector<Access> taken_;
    std::size_t reached_ = 0;
    RecordedHazards found_;
};

}  // namespace

RecordedHazards hazards_of(const RecordedOperations& operations, const RecordedAccesses& accesses,
                           const RecordedBlocks& blocks) {
    return Feed(operations, accesses, blocks).run();
}

}  // namespace gpuviz::hazards
