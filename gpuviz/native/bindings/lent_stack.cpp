#include "record/lent_stack.hpp"

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

    void set_session(nb::object session) { session_ = std::move(session); }

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
};

}  // namespace

void bind_lent_stack(nb::module_& m) {
    nb::class_<StackLender>(m, "StackLender",
                            "Lends the call stack of a thread to those that do its work.")
        .def(nb::init<std::uintptr_t>(), "work"_a,
             "`work` is the address of a function without arguments that returns an int, which is "
             "not negative in a thread that does such work.")
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
