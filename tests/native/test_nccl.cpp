// Collectives of many threads while sessions start and end, as NCCL's profiler plugin.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>

#include "check.hpp"
#include "nccl/nccl.hpp"
#include "nccl/nccl_abi.hpp"
#include "record/session.hpp"

namespace nccl = gpuviz::nccl;

extern "C" const nccl::WidePlugin ncclProfiler_v6;
extern "C" const nccl::NarrowPlugin ncclProfiler_v4;

namespace {

using gpuviz::record::Session;

constexpr std::size_t count = 1234;

template <typename Event, typename Plugin>
void reduce(const Plugin& plugin, void* context) {
    Event event{};
    event.type = nccl::collective_event;
    event.collective = {.sequence = 1,
                        .function = "AllReduce",
                        .source = nullptr,
                        .destination = nullptr,
                        .count = count,
                        .root = 0,
                        .element = "ncclFloat32",
                        .channels = 2,
                        .warps = 16,
                        .algorithm = "RING",
                        .protocol = "SIMPLE"};
    void* handle = &event;
    CHECK_EQUAL(plugin.start(context, &handle, &event), nccl::success);
    CHECK_EQUAL(handle == nullptr, true);
    CHECK_EQUAL(plugin.stop(handle), nccl::success);
}

// All rows are of the same collective.
void check_rows(Session& session) {
    for (const auto& chunk : session.log().collectives.take(true)) {
        chunk.for_each_column([&](const char* name, const auto* values) {
            for (std::size_t row = 0; row < chunk.rows(); ++row) {
                if (std::strcmp(name, "bytes") == 0) {
                    CHECK_EQUAL(std::size_t(values[row]), 4 * count);
                } else if (std::strcmp(name, "ranks") == 0) {
                    CHECK_EQUAL(int(values[row]), 8);
                }
            }
        });
    }
}

void threads_may_reduce_while_recordings_start_and_end() {
    std::atomic<bool> over{false};
    std::uint64_t rows = 0;
    std::vector<std::thread> threads;
    for (int rank = 0; rank < 3; ++rank) {
        threads.emplace_back([&over, rank] {
            void* wide = nullptr;
            void* narrow = nullptr;
            int mask = 0;
            CHECK_EQUAL(ncclProfiler_v6.init(&wide, 5, &mask, "name", 1, 8, rank, nullptr),
                        nccl::success);
            CHECK_EQUAL(ncclProfiler_v4.init(&narrow, &mask, "name", 5, 1, 8, rank, nullptr),
                        nccl::success);
            while (!over) {
                reduce<nccl::WideEvent>(ncclProfiler_v6, wide);
                reduce<nccl::NarrowEvent>(ncclProfiler_v4, narrow);
            }
            CHECK_EQUAL(ncclProfiler_v6.finalize(wide), nccl::success);
            CHECK_EQUAL(ncclProfiler_v4.finalize(narrow), nccl::success);
        });
    }
    for (int repeat = 0; repeat < 30 || rows == 0; ++repeat) {
        Session session({.ring_capacity = 16});
        session.start();
        nccl::record_nccl(session);
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
        nccl::ignore_nccl();
        session.stop();
        rows += session.log().collectives.rows();
        check_rows(session);
    }
    over = true;
    for (std::thread& thread : threads) {
        thread.join();
    }
}

}  // namespace

int main() { threads_may_reduce_while_recordings_start_and_end(); }
