#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <queue>
#include <set>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

namespace gpuviz::simulation {

// The resources that a piece of work needs.
struct GpuWork {
    enum class Engine : std::uint8_t {
        none,             // no duration: the record of an event, a wait for one
        multiprocessors,  // kernels, concurrently as far as they fit
        host_to_device,   // copies, one at a time
        device_to_host,
        device_memory,  // copies within the device and memsets, one at a time
    };

    Engine engine = Engine::none;
    std::int64_t duration_ns = 0;       // at least 1 unless the engine is none
    std::uint32_t multiprocessors = 0;  // of a kernel, at most GpuSchedule::multiprocessors
    int priority = 0;                   // lower goes first
};

// The schedule of a GPU: work begins when it has arrived, all its dependencies have ended and its
// engine has capacity. Waiting work is ordered by priority, then by the time when it could begin,
// then by issue; no work overtakes a kernel that waits for capacity.
//
// The schedule advances to a given time, up to which starts and ends of work are known. Not
// thread-safe.
class GpuSchedule {
  public:
    using Id = std::uint64_t;  // 1, 2, ... in order of issue; 0 has always ended

    static constexpr std::uint32_t multiprocessors = 132;  // of an H100 SXM

    struct Ended {
        Id id;
        std::int64_t start_ns;
        std::int64_t end_ns;
    };

    // Adds work that arrives after the last advance() and depends on all of `after`.
    Id add(const GpuWork& work, std::span<const Id> after, std::int64_t arrival_ns);
    // Appends the work that has ended by `now_ns`, in the order of ends, then of issue.
    void advance(std::int64_t now_ns, std::vector<Ended>& ended);

    [[nodiscard]] bool has_ended(Id id) const noexcept {
        return id <= last_ && !entries_.contains(id);
    }
    // The last added work.
    [[nodiscard]] Id last() const noexcept { return last_; }
    // The time of the next arrival or end, if nothing is added.
    [[nodiscard]] std::optional<std::int64_t> next_ns() const noexcept;

  private:
    struct Entry {
        GpuWork work;
        std::int64_t arrival_ns;
        std::int64_t start_ns = 0;
        std::size_t waits_for = 0;
        std::vector<Id> followers;
    };
    using Moment = std::pair<std::int64_t, Id>;
    using Moments = std::priority_queue<Moment, std::vector<Moment>, std::greater<>>;
    using Place = std::tuple<int, std::int64_t, Id>;  // priority, earliest possible start

    static constexpr std::size_t engines = 5;

    void step(std::int64_t time_ns, std::vector<Ended>& ended);
    void arrive(Id id, std::int64_t time_ns, std::vector<Ended>& ended);
    void begin_what_fits(std::int64_t time_ns);
    void end(Id id, std::int64_t time_ns, std::vector<Ended>& ended);

    std::map<Id, Entry> entries_;
    Moments arrivals_;  // of work without pending dependencies
    Moments ends_;      // of work that has begun
    std::array<std::set<Place>, engines> waiting_;
    std::array<std::uint32_t, engines> room_{0, multiprocessors, 1, 1, 1};
    Id last_ = 0;
    std::int64_t now_ns_ = 0;
};

}  // namespace gpuviz::simulation
