// Which record of an event a wait refers to.
#include <set>
#include <thread>
#include <vector>

#include "check.hpp"
#include "cupti/event_records.hpp"

namespace {

using gpuviz::cupti::EventRecords;

constexpr std::uint64_t kEvent = 0x7f00, kOther = 0x7f10;
constexpr EventRecords::Owner kOwner{7, 1};

void a_wait_refers_to_the_last_record_of_its_event() {
    EventRecords events;
    CHECK_EQUAL(events.last(kEvent).sync_id, 0u);
    const auto first = events.recorded(kEvent, kOwner);
    const auto other = events.recorded(kOther, kOwner);
    CHECK_EQUAL(events.last(kEvent).sync_id, first.sync_id);
    const auto second = events.recorded(kEvent, kOwner);
    CHECK_EQUAL(events.last(kEvent).sync_id, second.sync_id);
    CHECK_EQUAL(events.last(kOther).sync_id, other.sync_id);
    CHECK_EQUAL((std::set{first.sync_id, second.sync_id, other.sync_id}.size()), 3u);
    CHECK_EQUAL(first.event, second.event);
    CHECK_EQUAL(events.last(kEvent).owner.device, kOwner.device);
    CHECK_EQUAL(first.event == other.event, false);
}

void a_handle_that_is_used_again_is_another_event() {
    EventRecords events;
    const auto before = events.recorded(kEvent, kOwner);
    events.destroyed(kEvent);
    const auto after = events.last(kEvent);
    CHECK_EQUAL(after.sync_id, 0u);
    CHECK_EQUAL(after.event == before.event, false);
}

void a_captured_record_is_none_of_the_gpu() {
    EventRecords events;
    const auto before = events.recorded(kEvent, kOwner);
    events.captured(kEvent);
    CHECK_EQUAL(events.last(kEvent).sync_id, 0u);
    CHECK_EQUAL(events.last(kEvent).event, before.event);
    CHECK_EQUAL(events.recorded(kEvent, kOwner).sync_id == before.sync_id, false);
}

void what_graphs_record_is_unknown() {
    EventRecords events;
    std::set<std::uint64_t> seen{events.recorded(kEvent, kOwner).sync_id};
    events.recorded_elsewhere(kEvent);
    for (int wait = 0; wait < 3; ++wait) {
        CHECK_EQUAL(seen.insert(events.last(kEvent).sync_id).second, true);
    }
    events.destroyed(kEvent);
    CHECK_EQUAL(events.last(kEvent).sync_id, 0u);
}

void an_event_is_empty_from_its_creation_to_its_first_record() {
    EventRecords events;
    CHECK_EQUAL(events.last(kEvent).is_empty, false);  // made before
    events.created(kEvent);
    CHECK_EQUAL(events.last(kEvent).is_empty, true);
    CHECK_EQUAL(events.last(kOther).is_empty, false);
    CHECK_EQUAL(events.recorded(kEvent, kOwner).is_empty, false);
    CHECK_EQUAL(events.last(kEvent).is_empty, false);
    events.created(kEvent);
    CHECK_EQUAL(events.last(kEvent).is_empty, true);
    CHECK_EQUAL(events.last(kEvent).sync_id, 0u);
    events.destroyed(kEvent);
    CHECK_EQUAL(events.last(kEvent).is_empty, false);
}

void an_event_that_may_be_recorded_unseen_is_not_empty() {
    EventRecords events;
    events.created(kEvent);
    events.captured(kEvent);
    CHECK_EQUAL(events.last(kEvent).is_empty, false);
    events.created(kEvent);
    events.recorded_elsewhere(kEvent);
    CHECK_EQUAL(events.last(kEvent).is_empty, false);
    events.created(kEvent);
    CHECK_EQUAL(events.last(kEvent).is_empty, true);
    events.may_be_recorded_elsewhere();
    CHECK_EQUAL(events.last(kEvent).is_empty, false);
    events.created(kOther);
    CHECK_EQUAL(events.last(kOther).is_empty, true);
    events.forget();
    CHECK_EQUAL(events.last(kOther).is_empty, false);
}

void threads_get_ids_of_their_own() {
    EventRecords events;
    constexpr std::size_t threads = 4, rounds = 2000;
    std::vector<std::vector<std::uint64_t>> seen(threads);
    {
        std::vector<std::jthread> running;
        for (std::size_t each = 0; each < threads; ++each) {
            running.emplace_back([&events, &ids = seen[each], each] {
                for (std::size_t round = 0; round < rounds; ++round) {
                    const auto recorded = events.recorded(each, kOwner);
                    CHECK_EQUAL(events.last(each).sync_id, recorded.sync_id);
                    ids.push_back(recorded.sync_id);
                    if (round % 16 == 0) {
                        events.destroyed(each);
                    }
                }
            });
        }
    }
    std::set<std::uint64_t> all;
    for (const auto& ids : seen) {
        all.insert(ids.begin(), ids.end());
    }
    CHECK_EQUAL(all.size(), threads * rounds);
}

}  // namespace

int main() {
    a_wait_refers_to_the_last_record_of_its_event();
    a_handle_that_is_used_again_is_another_event();
    a_captured_record_is_none_of_the_gpu();
    what_graphs_record_is_unknown();
    an_event_is_empty_from_its_creation_to_its_first_record();
    an_event_that_may_be_recorded_unseen_is_not_empty();
    threads_get_ids_of_their_own();
}
