#include "record/lent_stack.hpp"

#include <nanobind/stl/pair.h>

#include <optional>
#include <utility>

#include "bindings/bindings.hpp"
#include "record/session.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace gpuviz::bindings {

namespace {

using record::LentStack;
using record::Session;

// Lends the calling thread's stack while it exists.
class Lending {
  public:
    Lending(const nb::object& session, LentStack::Work work) : session_(session) {
        Session& lending = nb::cast<Session&>(session_);
        lending.lent_stack().begin(lending.capture_stack(), work);
    }
    Lending(const Lending&) = delete;
    Lending& operator=(const Lending&) = delete;
    ~Lending() { nb::cast<Session&>(session_).lent_stack().end(); }

  private:
    nb::object session_;
};

class StackLender {
  public:
    explicit StackLender(std::uintptr_t work) : work_(reinterpret_cast<LentStack::Work>(work)) {}

    void set_session(nb::object session) {
        if (session_.is_valid() && !session_.is_none()) {
            nb::cast<Session&>(session_).forward_stacks().set_autograd(nullptr);
        }
        session_ = std::move(session);
        if (autograd_ != nullptr && !session_.is_none()) {
            nb::cast<Session&>(session_).forward_stacks().set_autograd(autograd_);
        }
    }

    // It is never freed: a thread may be using it.
    void set_autograd(const record::Autograd& autograd) {
        autograd_ = new record::Autograd(autograd);
        autograd_->graph = work_;
    }
    [[nodiscard]] std::pair<std::uint64_t, std::uint64_t> current_node() const {
        const record::CurrentNode node(*autograd_);
        const auto word = [&](std::size_t offset) {
            return node.address() == 0 ? 0 : node.word_at(offset);
        };
        return {word(autograd_->number_offset), word(autograd_->thread_offset)};
    }

    // What is called within such work, which already lends a stack, lends none.
    [[nodiscard]] nb::object call(const nb::object& function, const nb::args& arguments,
                                  const nb::kwargs& options) const {
        std::optional<Lending> lending;
        if (session_.is_valid() && !session_.is_none() && work_() < 0) {
            lending.emplace(session_, work_);
        }
        return function(*arguments, **options);
    }

  private:
    LentStack::Work work_;
    nb::object session_;
    record::Autograd* autograd_ = nullptr;
};

// The function of C at an address.
template <typename Function>
Function* function_at(std::uintptr_t address) {
    return reinterpret_cast<Function*>(address);
}

}  // namespace

void bind_lent_stack(nb::module_& m) {
    nb::class_<StackLender>(m, "StackLender",
                            "Lends the call stack of a thread to those that do its work.")
        .def(nb::init<std::uintptr_t>(), "work"_a,
             "`work` is the address of a function without arguments that returns an int, which is "
             "not negative in a thread that does such work.")
        .def(
            "set_autograd",
            [](StackLender& self, std::uintptr_t next_node, std::uintptr_t thread,
               std::uintptr_t current_node, std::size_t number_offset, std::size_t thread_offset) {
                self.set_autograd({.graph = nullptr,
                                   .next_node = function_at<std::uint64_t()>(next_node),
                                   .thread = function_at<std::uint64_t()>(thread),
                                   .current_node = function_at<void(void*)>(current_node),
                                   .number_offset = number_offset,
                                   .thread_offset = thread_offset});
            },
            nb::kw_only(), "next_node"_a, "thread"_a, "current_node"_a, "number_offset"_a,
            "thread_offset"_a,
            "Addresses of functions, and offsets in nodes, that find the forward work of a "
            "backward pass, for the sessions set from now on.")
        .def("current_node", &StackLender::current_node,
             "The number of the node that this thread runs and that of the thread that made it, "
             "after `set_autograd`; 0 without one.")
        .def("set_session", &StackLender::set_session, "session"_a.none(),
             nb::sig("def set_session(self, session: Session | None) -> None"),
             "Lend to the threads that this session records; None ends it.")
        .def(
            "lending",
            [](nb::handle self, nb::object function) -> nb::object {
                return nb::cpp_function([self = nb::borrow(self), function = std::move(function)](
                                            const nb::args& arguments, const nb::kwargs& options) {
                    return nb::cast<const StackLender&>(self).call(function, arguments, options);
                });
            },
            "function"_a,
            nb::sig("def lending(self, function: typing.Callable[..., typing.Any]) -> "
                    "typing.Callable[..., typing.Any]"),
            "The function, which lends the stack of its caller while it runs, without a frame of "
            "Python.");
}

}  // namespace gpuviz::bindings
