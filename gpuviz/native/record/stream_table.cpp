#include "record/stream_table.hpp"

#include <algorithm>
#include <limits>
#include <ranges>

namespace gpuviz::record {
namespace {

constexpr std::int64_t always = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();

}  // namespace

std::uint32_t StreamTable::by_handle(int device, std::uint64_t handle, std::int64_t time) {
    return holder(device, handle, time).id;
}

StreamTable::Holder StreamTable::holder(int device, std::uint64_t handle, std::int64_t time) {
    const std::lock_guard lock(mutex_);
    const Holder known = find({device, handle}, time);
    if (known.id != 0) {
        return known;
    }
    return {add({.id = 0, .device = device, .handle = handle}).id, always, never};
}

std::uint32_t StreamTable::by_tracer_id(int device, std::uint64_t tracer_id) {
    const std::lock_guard lock(mutex_);
    const auto known = by_tracer_id_.find({device, tracer_id});
    if (known != by_tracer_id_.end()) {
        return known->second;
    }
    return add({.id = 0, .device = device, .handle = Stream::no_handle, .tracer_id = tracer_id}).id;
}

void StreamTable::add_tracer_id(std::uint32_t id, int device, std::uint64_t tracer_id) {
    const std::lock_guard lock(mutex_);
    by_tracer_id_.try_emplace({device, tracer_id}, id);
}

void StreamTable::forget_tracer_ids() {
    const std::lock_guard lock(mutex_);
    by_tracer_id_.clear();
}

std::uint32_t StreamTable::describe(const Stream& known) {
    const std::lock_guard lock(mutex_);
    Stream* row = nullptr;
    if (known.tracer_id != 0) {
        const auto found = by_tracer_id_.find({known.device, known.tracer_id});
        row = found == by_tracer_id_.end() ? nullptr : &streams_[found->second - 1];
    }
    if (row == nullptr) {
        // A handle known from allocator events only, which have no tracer's id.
        const std::uint32_t id = find({known.device, known.handle}, known.created).id;
        Stream* const same = id == 0 ? nullptr : &streams_[id - 1];
        const bool is_same =
            same != nullptr && same->tracer_id == 0 && same->destroyed == Stream::alive;
        row = is_same ? same : nullptr;
    }
    if (row == nullptr) {
        return add(known).id;
    }
    if (row->handle == Stream::no_handle) {
        by_handle_[{known.device, known.handle}].push_back(row->id);
        ++version_;
    }
    Stream merged = known;
    merged.id = row->id;
    merged.name = row->name;
    *row = std::move(merged);
    changed_[row->id - 1] = true;
    if (row->tracer_id != 0) {
        by_tracer_id_[{row->device, row->tracer_id}] = row->id;
    }
    return row->id;
}

void StreamTable::destroyed(int device, std::uint64_t handle, std::int64_t time) {
    const std::lock_guard lock(mutex_);
    if (const std::uint32_t id = find({device, handle}, time).id; id != 0) {
        streams_[id - 1].destroyed = time;
        changed_[id - 1] = true;
        ++version_;
    }
}

void StreamTable::rename(std::uint32_t id, std::string name) {
    const std::lock_guard lock(mutex_);
    streams_.at(id - 1).name = std::move(name);
    changed_[id - 1] = true;
}

std::vector<Stream> StreamTable::take_changed() {
    const std::lock_guard lock(mutex_);
    std::vector<Stream> rows;
    for (const Stream& stream : streams_) {
        if (changed_[stream.id - 1]) {
            rows.push_back(stream);
            changed_[stream.id - 1] = false;
        }
    }
    return rows;
}

std::vector<Stream> StreamTable::all() const {
    const std::lock_guard lock(mutex_);
    return streams_;
}

// The newest stream with the handle that existed at `time`. Memory of a destroyed stream stays in
// its pool, so events refer to it until another stream has its handle. Id 0: none has the handle.
StreamTable::Holder StreamTable::find(const Key& key, std::int64_t time) const {
    const auto known = by_handle_.find(key);
    if (known == by_handle_.end()) {
        return {};
    }
    std::int64_t until = never;
    for (const std::uint32_t id : std::views::reverse(known->second)) {
        const std::int64_t created = streams_[id - 1].created;
        if (created <= time) {
            return {id, created, until};
        }
        until = std::min(until, created);
    }
    return {known->second.front(), always, until};
}

Stream& StreamTable::add(Stream stream) {
    stream.id = std::uint32_t(streams_.size() + 1);
    changed_.push_back(true);
    streams_.push_back(std::move(stream));
    Stream& added = streams_.back();
    if (added.handle != Stream::no_handle) {
        by_handle_[{added.device, added.handle}].push_back(added.id);
        ++version_;
    }
    if (added.tracer_id != 0) {
        by_tracer_id_[{added.device, added.tracer_id}] = added.id;
    }
    return added;
}

}  // namespace gpuviz::record
