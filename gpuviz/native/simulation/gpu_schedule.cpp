#include "simulation/gpu_schedule.hpp"

#include <algorithm>

namespace gpuviz::simulation {
namespace {

// The capacity that the work needs of its engine; 1 except on multiprocessors.
std::uint32_t room_for(const GpuWork& work) noexcept {
    return work.engine == GpuWork::Engine::multiprocessors ? work.multiprocessors : 1;
}

}  // namespace

GpuSchedule::Id GpuSchedule::add(const GpuWork& work, std::span<const Id> after,
                                 std::int64_t arrival_ns) {
    const Id id = ++last_;
    Entry& entry = entries_[id];
    entry.work = work;
    entry.arrival_ns = std::max(arrival_ns, now_ns_ + 1);
    for (const Id before : after) {
        const auto found = entries_.find(before);
        if (found != entries_.end()) {
            found->second.followers.push_back(id);
            ++entry.waits_for;
        }
    }
    if (entry.waits_for == 0) {
        arrivals_.emplace(entry.arrival_ns, id);
    }
    return id;
}

void GpuSchedule::advance(std::int64_t now_ns, std::vector<Ended>& ended) {
    for (auto next = next_ns(); next && *next <= now_ns; next = next_ns()) {
        step(*next, ended);
    }
    now_ns_ = std::max(now_ns_, now_ns);
}

std::optional<std::int64_t> GpuSchedule::next_ns() const noexcept {
    std::optional<std::int64_t> next;
    for (const Moments* moments : {&arrivals_, &ends_}) {
        if (!moments->empty() && (!next || moments->top().first < *next)) {
            next = moments->top().first;
        }
    }
    return next;
}

// All ends and arrivals at a time come before the starts at that time.
void GpuSchedule::step(std::int64_t time_ns, std::vector<Ended>& ended) {
    while (!ends_.empty() && ends_.top().first == time_ns) {
        const Id id = ends_.top().second;
        ends_.pop();
        const GpuWork& work = entries_.at(id).work;
        room_[std::size_t(work.engine)] += room_for(work);
        end(id, time_ns, ended);
    }
    while (!arrivals_.empty() && arrivals_.top().first == time_ns) {
        const Id id = arrivals_.top().second;
        arrivals_.pop();
        arrive(id, time_ns, ended);
    }
    begin_what_fits(time_ns);
}

void GpuSchedule::arrive(Id id, std::int64_t time_ns, std::vector<Ended>& ended) {
    Entry& entry = entries_.at(id);
    entry.start_ns = time_ns;
    if (entry.work.engine == GpuWork::Engine::none) {
        end(id, time_ns, ended);
    } else {
        waiting_[std::size_t(entry.work.engine)].emplace(entry.work.priority, time_ns, id);
    }
}

void GpuSchedule::begin_what_fits(std::int64_t time_ns) {
    for (std::size_t engine = 0; engine < engines; ++engine) {
        auto& queue = waiting_[engine];
        while (!queue.empty()) {
            const Id id = std::get<Id>(*queue.begin());
            Entry& entry = entries_.at(id);
            if (room_for(entry.work) > room_[engine]) {
                break;
            }
            queue.erase(queue.begin());
            room_[engine] -= room_for(entry.work);
            entry.start_ns = time_ns;
            ends_.emplace(time_ns + entry.work.duration_ns, id);
        }
    }
}

void GpuSchedule::end(Id id, std::int64_t time_ns, std::vector<Ended>& ended) {
    const auto found = entries_.find(id);
    const Entry entry = std::move(found->second);
    entries_.erase(found);
    ended.push_back({id, entry.start_ns, time_ns});
    for (const Id follower : entry.followers) {
        Entry& next = entries_.at(follower);
        if (--next.waits_for == 0) {
            arrivals_.emplace(std::max(next.arrival_ns, time_ns), follower);
        }
    }
}

}  // namespace gpuviz::simulation
