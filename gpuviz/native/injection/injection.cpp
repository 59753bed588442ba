// What CUDA_INJECTION64_PATH names during `gpuviz run` of a program that is not Python's. The
// driver loads it when the program first uses CUDA. It brings Python into the process, which
// records it.
#include <dlfcn.h>
#include <unistd.h>

#include <atomic>
#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace {

// Variables that `gpuviz.commands.binary_run` sets.
constexpr const char* library_variable = "GPUVIZ_PYTHON_LIBRARY";
constexpr const char* home_variable = "GPUVIZ_PYTHON_HOME";

constexpr const char* begin =
    "import os, site\n"
    "for folder in os.environ.pop('GPUVIZ_PYTHON_PATH', '').split(os.pathsep):\n"
    "    site.addsitedir(folder)\n"
    "from gpuviz.commands import binary_run\n"
    "binary_run.begin()\n";
constexpr const char* end = "binary_run.end()\n";

// Python's functions, which have these types in every release.
struct Python {
    void (*initialize)(int);
    int (*run)(const char*);
    void* (*save_thread)();
    int (*ensure)();
    void (*release)(int);
};

Python python;
pid_t process = 0;

template <typename Function>
bool find(void* library, const char* name, Function& function) {
    function = reinterpret_cast<Function>(dlsym(library, name));
    return function != nullptr;
}

bool find_python(const char* path) {
    // Global, since Python's extension modules look for its functions there.
    void* const library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    return library != nullptr && find(library, "Py_InitializeEx", python.initialize) &&
           find(library, "PyRun_SimpleString", python.run) &&
           find(library, "PyEval_SaveThread", python.save_thread) &&
           find(library, "PyGILState_Ensure", python.ensure) &&
           find(library, "PyGILState_Release", python.release);
}

std::string taken(const char* variable) {
    const char* const value = std::getenv(variable);
    const std::string text = value == nullptr ? "" : value;
    unsetenv(variable);
    return text;
}

void finish() {
    // A forked child has no thread that records, and shares the file.
    if (getpid() == process) {
        const int state = python.ensure();
        python.run(end);
        python.release(state);
    }
}

void start(const std::string& library, const std::string& home) {
    // A second Python in a process would share some of the first one's variables.
    if (dlsym(RTLD_DEFAULT, "Py_IsInitialized") != nullptr) {
        std::fprintf(stderr,
                     "gpuviz: not recorded: the program runs Python itself; use "
                     "`gpuviz run --children`\n");
        return;
    }
    if (!find_python(library.c_str())) {
        const char* const reason = dlerror();
        std::fprintf(stderr, "gpuviz: not recorded: %s\n", reason == nullptr ? "" : reason);
        return;
    }
    // Python takes the locale of the environment, and finds its library by this variable.
    const std::string locale = std::setlocale(LC_CTYPE, nullptr);
    const char* const before = std::getenv("PYTHONHOME");
    const std::string programs_home = before == nullptr ? "" : before;
    setenv("PYTHONHOME", home.c_str(), 1);
    python.initialize(0);
    if (before == nullptr) {
        unsetenv("PYTHONHOME");
    } else {
        setenv("PYTHONHOME", programs_home.c_str(), 1);
    }
    std::setlocale(LC_CTYPE, locale.c_str());
    if (python.run(begin) == 0) {
        process = getpid();
        std::atexit(finish);
    }
    python.save_thread();
}

}  // namespace

// Called by the driver, in the program's first call of cuInit.
extern "C" __attribute__((visibility("default"))) int InitializeInjection() {
    static std::atomic_flag was_called;
    // The processes that this one starts are not recorded.
    unsetenv("CUDA_INJECTION64_PATH");
    const std::string library = taken(library_variable);
    const std::string home = taken(home_variable);
    if (!was_called.test_and_set() && !library.empty()) {
        start(library, home);
    }
    return 1;
}
