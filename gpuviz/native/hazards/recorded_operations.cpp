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

constexpr std::uint32_t kind_bits = 0x3, synchronous_bit = 0x4, pageable_bit = 0x8;

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
        take_accesses(row);
        switch (static_cast<Code>(operations_.code[row])) {
            case Code::launch:
                engine_.launch(operation, 0, stream(number), taken_);
                break;
            case Code::copy:
                engine_.copy(operation, 0, stream(number),
                             {.kind = static_cast<CopyKind>(object & kind_bits),
                              .is_synchronous = (object & synchronous_bit) != 0,
                              .is_pageable = (object & pageable_bit) != 0},
                             taken_);
                break;
            case Code::memset:
                engine_.memset(operation, 0, stream(number), (object & synchronous_bit) != 0,
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
                engine_.synchronize_device(0);
                break;
            case Code::create_stream:
                streams_[number] = engine_.create_stream(static_cast<StreamKind>(object));
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
            default:
                throw std::invalid_argument("row " + std::to_string(row) + " has no code");
        }
        take_hazards();
    }

    Slot stream(std::uint32_t number) const {
        if (number == 0) return Order::legacy;
        const auto found = streams_.find(number);
        if (found != streams_.end()) return found->second;
        throw std::invalid_argument("stream " + std::to_string(number) + " does not exist");
    }

    EventId event(std::uint32_t number) {
        const auto [found, is_new] = events_.try_emplace(number, 0);
        if (is_new) found->second = engine_.create_event();
        return found->second;
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
             .allocator = Allocator::caching,
             .memory = blocks_.is_pinned[block] != 0 ? Memory::pinned : Memory::device,
             .address = address,
             .bytes = bytes,
             .stream = stream});
        ids_[block] = id;
        unlisted_.emplace_back(id, block);
        by_address_[address] = block;
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

    void take_hazards() {
        if (!engine_.has_hazards()) return;
        numbers_.insert(unlisted_.begin(), unlisted_.end());
        unlisted_.clear();
        for (const Hazard& each : engine_.take()) {
            std::uint64_t bytes = 0;
            for (const auto& [start, stop] : each.bytes) bytes += stop - start;
            found_.kind.push_back(std::uint8_t(each.kind));
            found_.tier.push_back(std::uint8_t(each.tier));
            found_.first.push_back(std::uint32_t(each.first - 1));
            found_.second.push_back(std::uint32_t(each.second - 1));
            found_.block.push_back(numbers_.at(each.block));
            found_.other_block.push_back(
                each.other_block == 0 ? -1 : std::int64_t(numbers_.at(each.other_block)));
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
