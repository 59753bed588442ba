#include "python/gil_observer.hpp"

#include <Python.h>
#include <dlfcn.h>
#include <link.h>

#include <new>

#include "record/thread_id.hpp"

namespace gpuviz::python {
namespace {

// A thread's state is longer than this, and has its id before.
constexpr std::size_t searched_bytes = 256;

std::uint64_t word_at(std::uint64_t address) noexcept {
    return *reinterpret_cast<const volatile std::uint64_t*>(address);
}

}  // namespace

GilObserver::GilObserver() noexcept {
    Dl_info info;
    void* found = nullptr;
    void* const runtime = dlsym(RTLD_DEFAULT, "_PyRuntime");
    if (runtime == nullptr || dladdr1(runtime, &info, &found, RTLD_DL_SYMENT) == 0 ||
        found == nullptr || info.dli_saddr != runtime) {
        return;
    }
    begin_ = reinterpret_cast<std::uint64_t>(runtime);
    size_ = static_cast<const ElfW(Sym)*>(found)->st_size;
    const auto* const thread = PyThreadState_Get();
    const auto state = reinterpret_cast<std::uint64_t>(thread);
    try {
        for (std::size_t place = 0; place + sizeof state <= size_; place += sizeof state) {
            if (word_at(begin_ + place) == state) {
                words_.push_back(begin_ + place);
            }
        }
        for (std::size_t place = 0; place < searched_bytes; place += sizeof state) {
            if (word_at(state + place) == record::current_thread_id()) {
                id_places_.push_back(place);
            }
        }
    } catch (const std::bad_alloc&) {
        words_.clear();
    }
    last_ = thread;
}

void GilObserver::learn() noexcept {
    const auto* const thread = PyThreadState_Get();
    if (thread == last_ || words_.empty() || word_.load() != 0) {
        return;
    }
    const auto state = reinterpret_cast<std::uint64_t>(thread);
    std::erase_if(words_, [&](std::uint64_t word) { return word_at(word) != state; });
    std::erase_if(id_places_, [&](std::size_t place) {
        return word_at(state + place) != record::current_thread_id();
    });
    last_ = thread;
    if (++changes_ >= enough_changes && !words_.empty() && !id_places_.empty()) {
        id_place_ = id_places_.front();
        word_.store(words_.front(), std::memory_order_release);
    }
}

std::uint32_t GilObserver::holder(record::MemoryReader& memory) const noexcept {
    const std::uint64_t word = word_.load(std::memory_order_acquire);
    if (word == 0) {
        return 0;
    }
    memory.restart();
    const auto state = memory.load<std::uint64_t>(word, 0);
    return state == 0 ? 0 : std::uint32_t(memory.load<std::uint64_t>(state, id_place_));
}

}  // namespace gpuviz::python
