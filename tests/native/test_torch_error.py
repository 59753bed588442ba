"""Out of memory throws the exception that torch's library defines, found in it by name."""

from tests.native.compilation import COMPILER, NATIVE, run

# What torch's headers declare; the constructor and the type are exported by libc10.so.
HEADER = """
#pragma once
#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <vector>

namespace c10 {
struct SourceLocation { const char* function; const char* file; std::uint32_t line; };
class Error : public std::exception {
  public:
    Error(SourceLocation location, std::string msg);
    const char* what() const noexcept override { return msg_.c_str(); }
  private:
    std::string msg_;
    std::vector<std::string> context_;
    std::shared_ptr<int> backtrace_;
};
class OutOfMemoryError : public Error { using Error::Error; };
}
"""
LIBRARY = """
#include "c10.hpp"
c10::Error::Error(SourceLocation, std::string msg)
    : msg_(std::move(msg)), backtrace_(new int(1), [](int* kept) {
          std::puts("destroyed");
          delete kept;
      }) {}
void of_torch() { throw c10::OutOfMemoryError({"", "", 0}, ""); }
"""
PROGRAM = """
#include <cstdio>
#include "c10.hpp"
#include "clients/torch_error.hpp"
int main() {
    try {
        gpuviz::clients::throw_torch_out_of_memory(std::string(100, 'x') + " is full");
    } catch (const c10::OutOfMemoryError& error) {
        std::printf("%s\\n", error.what() + 99);
    } catch (const std::runtime_error& error) {
        std::printf("runtime_error: %s\\n", error.what() + 99);
    }
}
"""


def compiled(folder, *, with_library):
    (folder / "c10.hpp").write_text(HEADER)
    (folder / "library.cpp").write_text(f"#include <cstdio>\n{LIBRARY}")
    (folder / "program.cpp").write_text(f"#include <stdexcept>\n{PROGRAM}")
    source = NATIVE / "clients" / "torch_error.cpp"
    flags = ["-std=c++20", f"-I{NATIVE}", f"-I{folder}", "-fPIC"]
    library = folder / "libc10.so"
    shared = ["-shared", "-Wl,-soname,libc10.so"]
    run([COMPILER, *flags, *shared, folder / "library.cpp", "-o", library])
    # Without the library the program has types of its own, which must not be thrown.
    inside = (
        ["-Wl,--no-as-needed", library, f"-Wl,-rpath,{folder}"]
        if with_library
        else [folder / "library.cpp"]
    )
    program = folder / "program"
    run([COMPILER, *flags, folder / "program.cpp", source, *inside, "-ldl", "-o", program])
    return program


def test_the_exception_is_of_torchs_type_and_destroyed_after_its_handling(tmp_path):
    printed = run([compiled(tmp_path, with_library=True)])

    assert printed.splitlines() == ["x is full", "destroyed"]


def test_without_torch_it_is_a_runtime_error(tmp_path):
    printed = run([compiled(tmp_path, with_library=False)])

    assert printed.splitlines() == ["runtime_error: x is full"]
