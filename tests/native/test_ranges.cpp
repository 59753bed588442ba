// Ranges of many threads against a model, and NVTX callbacks while sessions start and end.
#include <atomic>
#include <chrono>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "check.hpp"
#include "nvtx/nvtx.hpp"
#include "nvtx/nvtx_abi.hpp"
#include "record/session.hpp"

extern "C" int InitializeInjectionNvtx2(gpuviz::nvtx::GetExportTable get_table);

namespace {

using gpuviz::record::RangeKind;
using gpuviz::record::RangeRow;
using gpuviz::record::Ranges;
using gpuviz::record::Session;
namespace nvtx = gpuviz::nvtx;

std::vector<RangeRow> rows_of(Session& session) {
    std::vector<RangeRow> rows;
    for (const auto& chunk : session.log().ranges.take(true)) {
        const std::size_t first = rows.size();
        rows.resize(first + chunk.rows());
        chunk.for_each_column([&](const char* name, const auto* values) {
            for (std::size_t row = 0; row < chunk.rows(); ++row) {
                std::apply(
                    [&](const auto&... field) {
                        (..., [&] {
                            if (std::strcmp(field.name, name) == 0) {
                                auto& value = rows[first + row].*field.member;
                                value = static_cast<std::decay_t<decltype(value)>>(values[row]);
                            }
                        }());
                    },
                    RangeRow::fields());
            }
        });
    }
    return rows;
}

// Every range has a row when it begins and one when it ends, and no parent that began after it.
void check_rows(const std::vector<RangeRow>& rows) {
    std::map<std::uint32_t, RangeRow> begun;
    std::size_t ended = 0;
    for (const RangeRow& row : rows) {
        if (row.end == -1) {
            CHECK_EQUAL(begun.emplace(row.id, row).second, true);
            CHECK_EQUAL(row.parent == 0 || begun.at(row.parent).thread == row.thread, true);
            continue;
        }
        ++ended;
        const RangeRow& first = begun.at(row.id);
        CHECK_EQUAL(row.time, first.time);
        CHECK_EQUAL(row.parent, first.parent);
        CHECK_EQUAL(row.end >= row.time, true);
    }
    CHECK_EQUAL(ended, begun.size());
}

// The open ranges of one thread, innermost last, with their domains.
using Model = std::vector<std::pair<std::uint32_t, std::uint64_t>>;

void step(Ranges& ranges, Model& model, std::mt19937& random) {
    const std::uint64_t domain = random() % 3;
    const auto choice = random() % 5;
    if (choice < 2) {
        model.emplace_back(ranges.begin("range", RangeKind::range, domain), domain);
    } else if (choice == 2 && !model.empty()) {
        const auto chosen = model.begin() + std::ptrdiff_t(random() % model.size());
        ranges.end(chosen->first);
        model.erase(chosen);
    } else if (choice == 3) {
        for (auto last = model.end(); last != model.begin();) {
            if ((--last)->second == domain) {
                model.erase(last);
                break;
            }
        }
        ranges.pop(domain);
    } else {
        ranges.end(ranges.begin_detached("detached", RangeKind::nvtx));
    }
    CHECK_EQUAL(ranges.current(), model.empty() ? 0 : model.back().first);
}

void random_programs_agree_with_a_model() {
    for (unsigned seed = 0; seed < 20; ++seed) {
        Session session({.ring_capacity = 16});
        session.start();
        std::vector<std::thread> threads;
        for (unsigned number = 0; number < 4; ++number) {
            threads.emplace_back([&session, seed, number] {
                std::mt19937 random(seed * 4 + number);
                Model model;
                for (int count = 0; count < 300; ++count) {
                    step(session.ranges(), model, random);
                }
            });
        }
        for (std::thread& thread : threads) {
            thread.join();
        }
        session.stop();
        CHECK_EQUAL(session.current_range(), 0u);
        check_rows(rows_of(session));
    }
}

void a_thread_may_be_in_ranges_of_two_sessions() {
    Session first({.ring_capacity = 16});
    Session second({.ring_capacity = 16});
    first.start();
    second.start();
    const std::uint32_t outer = first.ranges().begin("outer", RangeKind::range);
    const std::uint32_t inner = first.ranges().begin("inner", RangeKind::range);
    CHECK_EQUAL(second.current_range(), 0u);
    const std::uint32_t other = second.ranges().begin("other", RangeKind::range);
    CHECK_EQUAL(first.current_range(), inner);
    CHECK_EQUAL(second.current_range(), other);
    std::thread([&] { first.ranges().end(inner); }).join();
    CHECK_EQUAL(first.current_range(), outer);
    second.stop();
    first.stop();
    CHECK_EQUAL(first.ranges().begin("late", RangeKind::range), 0u);
}

void nothing_of_an_earlier_session_at_the_same_place_is_left() {
    alignas(Session) std::byte place[sizeof(Session)];
    for (int repeat = 0; repeat < 10; ++repeat) {
        auto* session = new (place) Session({.ring_capacity = 16});
        session->start();
        CHECK_EQUAL(session->current_range(), 0u);
        CHECK_EQUAL(session->ranges().begin("open", RangeKind::range), 1u);
        CHECK_EQUAL(session->current_range(), 1u);
        session->~Session();
    }
}

void another_clock_may_tell_the_time() {
    Session session({.ring_capacity = 16});
    session.start();
    std::int64_t now = session.start_ns() + 100;
    session.ranges().set_clock([&now] { return now; });
    const std::uint32_t first = session.ranges().begin("first", RangeKind::range);
    static_cast<void>(session.ranges().begin("second", RangeKind::range));
    now += 50;
    session.ranges().end(first);
    now += 7;
    session.stop();
    const std::vector<RangeRow> rows = rows_of(session);
    CHECK_EQUAL(rows.size(), 4u);
    CHECK_EQUAL(rows[2].time, 100);
    CHECK_EQUAL(rows[2].end, 150);
    CHECK_EQUAL(rows[3].end, 157);
}

// The part of NVTX's headers in a library: slots for functions, and the call that fills them.
struct Library {
    nvtx::Function core[16] = {};
    nvtx::Function core2[16] = {};
    nvtx::Function* core_slots[16];
    nvtx::Function* core2_slots[16];
    nvtx::Callbacks callbacks{sizeof(nvtx::Callbacks), &module_functions};

    Library() {
        for (std::size_t slot = 0; slot < 16; ++slot) {
            core_slots[slot] = &core[slot];
            core2_slots[slot] = &core2[slot];
        }
    }
    static int module_functions(nvtx::Module module, nvtx::FunctionTable* table, unsigned* size);
    static const void* table(std::uint32_t number);
};

Library& library() {
    static Library one;
    return one;
}

int Library::module_functions(nvtx::Module module, nvtx::FunctionTable* table, unsigned* size) {
    *table = module == nvtx::Module::core ? library().core_slots : library().core2_slots;
    *size = 16;
    return 1;
}

const void* Library::table(std::uint32_t number) {
    return number == nvtx::callbacks_table ? &library().callbacks : nullptr;
}

template <typename Result, typename... Arguments>
Result call(nvtx::Function* table, auto position, Arguments... arguments) {
    return reinterpret_cast<Result (*)(Arguments...)>(table[unsigned(position)])(arguments...);
}

nvtx::EventAttributes wide(const wchar_t* text) {
    return {3, sizeof(nvtx::EventAttributes), 0, 0, 0, 0, 0, 0, nvtx::MessageType::wide, text};
}

void use_nvtx() {
    using nvtx::Core, nvtx::Core2;
    auto* core = library().core;
    auto* core2 = library().core2;
    const auto* domain = call<const void*>(core2, Core2::domain_create_a, "domain");
    const nvtx::EventAttributes attributes = wide(L"gr\u00fc\u00df \u2713 \U0001f600");
    call<int>(core, Core::range_push_a, "outer");
    const auto started = call<nvtx::RangeId>(core, Core::range_start_a, "started");
    call<int>(core2, Core2::domain_range_push_ex, domain, &attributes);
    call<int>(core, Core::range_pop);
    call<int>(core2, Core2::domain_range_pop, domain);
    call<void>(core, Core::range_end, started);
}

void nvtx_is_heard_by_whoever_records() {
    const auto position = nvtx::Core::range_pop;
    CHECK_EQUAL(InitializeInjectionNvtx2(&Library::table), 1);
    CHECK_EQUAL(call<int>(library().core, position), nvtx::no_tracking);
    std::atomic<bool> over{false};
    std::vector<std::thread> threads;
    for (int number = 0; number < 3; ++number) {
        threads.emplace_back([&] {
            while (!over) {
                use_nvtx();
            }
        });
    }
    for (int repeat = 0; repeat < 30; ++repeat) {
        Session session({.ring_capacity = 16});
        session.start();
        gpuviz::nvtx::record_nvtx(session.ranges());
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
        gpuviz::nvtx::ignore_nvtx();
        session.stop();
        check_rows(rows_of(session));
    }
    over = true;
    for (std::thread& thread : threads) {
        thread.join();
    }
}

void nvtx_texts_become_names() {
    Session session({.ring_capacity = 16});
    session.start();
    gpuviz::nvtx::record_nvtx(session.ranges());
    use_nvtx();
    CHECK_EQUAL(call<int>(library().core, nvtx::Core::range_push_a, "level 0"), 0);
    CHECK_EQUAL(call<int>(library().core, nvtx::Core::range_push_a, "level 1"), 1);
    CHECK_EQUAL(call<int>(library().core, nvtx::Core::range_pop), 1);
    gpuviz::nvtx::ignore_nvtx();
    CHECK_EQUAL(call<int>(library().core, nvtx::Core::range_pop), nvtx::no_tracking);
    session.stop();
    const std::vector<std::string> names = session.log().strings.from(1);
    CHECK_EQUAL(names.size(), 5u);
    CHECK_EQUAL(names[2], "gr\xc3\xbc\xc3\x9f \xe2\x9c\x93 \xf0\x9f\x98\x80");
    CHECK_EQUAL(rows_of(session).size(), 10u);
}

}  // namespace

int main() {
    random_programs_agree_with_a_model();
    a_thread_may_be_in_ranges_of_two_sessions();
    nothing_of_an_earlier_session_at_the_same_place_is_left();
    another_clock_may_tell_the_time();
    nvtx_is_heard_by_whoever_records();
    nvtx_texts_become_names();
}
