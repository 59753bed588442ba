#include "nvtx/nvtx.hpp"

#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_set>

#include "nvtx/nvtx_abi.hpp"
#include "record/callback_target.hpp"

namespace gpuviz::nvtx {

using record::Ranges;

namespace {

// The global state of the process, because NVTX calls a tool without user data.
struct Listener {
    record::CallbackTarget<Ranges> ranges;
    std::atomic<std::uint32_t> recording{0};  // counts recordings, for the ids of start/end ranges
    std::mutex mutex;                         // guards texts
    std::unordered_set<std::string> texts;    // registered strings and domains; handles point there
};

Listener& listener() noexcept {
    static Listener& process = *new Listener;  // never deleted: NVTX may call during exit
    return process;
}

class Call : public record::CallbackTarget<Ranges>::Use {
  public:
    Call() noexcept : Use(listener().ranges) {}

    [[nodiscard]] std::uint32_t recording() const noexcept { return listener().recording; }
};

constexpr std::uint64_t default_domain = 1;

std::uint64_t domain_of(const void* handle) noexcept {
    return handle == nullptr ? default_domain : reinterpret_cast<std::uintptr_t>(handle);
}

std::string utf8(const wchar_t* text) {
    std::string bytes;
    for (; text != nullptr && *text != 0; ++text) {
        const auto point = std::uint32_t(*text);
        const int more = point < 0x80 ? 0 : point < 0x800 ? 1 : point < 0x10000 ? 2 : 3;
        constexpr std::uint32_t lead[] = {0, 0xc0, 0xe0, 0xf0};
        bytes += char(lead[more] | (point >> (6 * more)));
        for (int left = more - 1; left >= 0; --left) {
            bytes += char(0x80 | ((point >> (6 * left)) & 0x3f));
        }
    }
    return bytes;
}

std::string text_of(const char* text) { return text == nullptr ? std::string() : text; }
std::string text_of(const wchar_t* text) { return utf8(text); }
std::string text_of(const EventAttributes* attributes) {
    if (attributes == nullptr || attributes->message == nullptr) {
        return {};
    }
    switch (attributes->message_type) {
        case MessageType::ascii:
            return static_cast<const char*>(attributes->message);
        case MessageType::wide:
            return utf8(static_cast<const wchar_t*>(attributes->message));
        case MessageType::registered:
            return *static_cast<const std::string*>(attributes->message);
        case MessageType::none:
            break;
    }
    return {};
}

template <typename Text>
int push_in(const void* domain, Text text) noexcept {
    const Call call;
    if (!call) {
        return no_tracking;
    }
    try {
        const std::size_t level = call->depth(domain_of(domain));
        const std::uint32_t id =
            call->begin(text_of(text), record::RangeKind::nvtx, domain_of(domain));
        return id == 0 ? no_tracking : int(level);
    } catch (const std::exception&) {
        return no_tracking;
    }
}

int pop_in(const void* domain) noexcept {
    const Call call;
    const std::size_t depth = call ? call->depth(domain_of(domain)) : 0;
    if (depth == 0) {
        return no_tracking;
    }
    call->pop(domain_of(domain));
    return int(depth - 1);
}

template <typename Text>
RangeId start(Text text) noexcept {
    const Call call;
    if (!call) {
        return 0;
    }
    try {
        const std::uint32_t id = call->begin_detached(text_of(text), record::RangeKind::nvtx);
        return id == 0 ? 0 : RangeId{call.recording()} << 32 | id;
    } catch (const std::exception&) {
        return 0;
    }
}

void end(RangeId id) noexcept {
    const Call call;
    if (call && id >> 32 == call.recording()) {
        call->end(std::uint32_t(id));
    }
}

template <typename Text>
const void* handle_of(Text text) noexcept {
    try {
        const std::lock_guard lock(listener().mutex);
        return &*listener().texts.insert(text_of(text)).first;
    } catch (const std::exception&) {
        return nullptr;
    }
}

template <typename Text>
int push(Text text) noexcept {
    return push_in(nullptr, text);
}
int pop() noexcept { return pop_in(nullptr); }
RangeId start_in(const void*, const EventAttributes* attributes) noexcept {
    return start(attributes);
}
void end_in(const void*, RangeId id) noexcept { end(id); }
template <typename Text>
const void* register_string(const void*, Text text) noexcept {
    return handle_of(text);
}

class Table {
  public:
    Table(const Callbacks& callbacks, Module module) noexcept {
        if (callbacks.module_functions(module, &functions_, &size_) == 0) {
            size_ = 0;
        }
    }
    template <typename Position, typename Callback>
    void set(Position position, Callback* callback) const noexcept {
        if (unsigned(position) < size_ && functions_[unsigned(position)] != nullptr) {
            *functions_[unsigned(position)] = reinterpret_cast<Function>(callback);
        }
    }

  private:
    FunctionTable functions_ = nullptr;
    unsigned size_ = 0;
};

void set_callbacks(const Callbacks& callbacks) noexcept {
    using Attributes = const EventAttributes*;
    const Table core(callbacks, Module::core);
    core.set(Core::range_start_ex, &start<Attributes>);
    core.set(Core::range_start_a, &start<const char*>);
    core.set(Core::range_start_w, &start<const wchar_t*>);
    core.set(Core::range_end, &end);
    core.set(Core::range_push_ex, &push<Attributes>);
    core.set(Core::range_push_a, &push<const char*>);
    core.set(Core::range_push_w, &push<const wchar_t*>);
    core.set(Core::range_pop, &pop);
    const Table core2(callbacks, Module::core2);
    core2.set(Core2::domain_range_start_ex, &start_in);
    core2.set(Core2::domain_range_end, &end_in);
    core2.set(Core2::domain_range_push_ex, &push_in<Attributes>);
    core2.set(Core2::domain_range_pop, &pop_in);
    core2.set(Core2::domain_register_string_a, &register_string<const char*>);
    core2.set(Core2::domain_register_string_w, &register_string<const wchar_t*>);
    core2.set(Core2::domain_create_a, &handle_of<const char*>);
    core2.set(Core2::domain_create_w, &handle_of<const wchar_t*>);
}

}  // namespace

void record_nvtx(Ranges& ranges) noexcept {
    ++listener().recording;
    listener().ranges.set(ranges);
}

void ignore_nvtx() noexcept { listener().ranges.clear(); }

void abandon_nvtx_after_fork() noexcept {
    listener().ranges.abandon_after_fork();
    new (&listener().mutex) std::mutex;
}

}  // namespace gpuviz::nvtx

// The entry point that NVTX looks up in the library; 1: gpuviz is the tool from now on.
extern "C" __attribute__((visibility("default"))) int InitializeInjectionNvtx2(
    gpuviz::nvtx::GetExportTable get_table) {
    const void* const table = get_table(gpuviz::nvtx::callbacks_table);
    if (table == nullptr) {
        return 0;
    }
    gpuviz::nvtx::set_callbacks(*static_cast<const gpuviz::nvtx::Callbacks*>(table));
    return 1;
}
