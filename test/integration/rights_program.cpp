// A program that has an isolated device and changes its rights as its first argument says; the second is the worker.
#include "posix/environment.hpp"

#include <coaccel/core/log.hpp>
#include <coaccel/device/device.hpp>

#include <boost/asio/io_context.hpp>
#include <boost/asio/use_future.hpp>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <future>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <unistd.h>

namespace {

using namespace coaccel;

constexpr ::uid_t nobody = 65534;

class isolated {
public:
    explicit isolated(const char* program)
    {
        device_options o;
        o.kind = device_kind::host;
        o.isolation = isolation::worker;
        o.worker.program = program;
        o.worker.staging_bytes = std::uint64_t(1) << 20;
        gpu_.emplace(get(device::async_create(io_.get_executor(), o, boost::asio::use_future)));
    }

    int process() { return get(gpu_->async_stats(boost::asio::use_future)).hardware.process; }

private:
    template <class T>
    T get(std::future<T> value)
    {
        io_.restart();
        io_.run();
        return value.get();
    }

    boost::asio::io_context io_;
    std::optional<device> gpu_;
};

/// Prints the environment of the worker of a set-uid program.
int show_environment(const char* program)
{
    if (detail::rights_of_process() != detail::rights::elevated) {
        std::puts("not elevated");
        return 0;
    }
    // If a program has permanently taken on its owner's identity, its worker is not started in secure mode itself.
    if (::setresuid(::geteuid(), ::geteuid(), ::geteuid()) != 0)
        return 2;
    isolated gpu(program);
    std::ifstream in("/proc/" + std::to_string(gpu.process()) + "/environ", std::ios::binary);
    if (!in)
        return 3;
    std::puts("started");
    const std::string environment{std::istreambuf_iterator<char>(in), {}};
    (void)std::fwrite(environment.data(), 1, environment.size(), stdout);
    return 0;
}

/// Ends a worker of a user that this process no longer is.
int drop_rights(const char* program)
{
    std::optional<isolated> gpu(program);
    const int worker = gpu->process();
    if (::setresuid(nobody, nobody, nobody) != 0 || ::kill(worker, 0) == 0)
        return 2;
    const auto before = std::chrono::steady_clock::now();
    gpu.reset();
    const auto took = std::chrono::steady_clock::now() - before;
    std::puts(::kill(worker, 0) != 0 && errno == ESRCH ? "gone" : "still there");
    std::puts(took < std::chrono::seconds(5) ? "soon" : "late");
    return 0;
}

/// Prints the pid of its worker, and waits to be killed.
int wait_for_end(const char* program)
{
    isolated gpu(program);
    std::printf("%d\n", gpu.process());
    (void)std::fflush(stdout);
    (void)coaccel::flush_log();
    for (;;)
        ::pause();
}

int run(std::string_view what, const char* program)
{
    if (what == "environment")
        return show_environment(program);
    return what == "drop" ? drop_rights(program) : wait_for_end(program);
}

} // namespace

int main(int, char** argv)
{
    int status = 1;
    try {
        status = run(argv[1], argv[2]);
    } catch (const std::exception& e) {
        std::puts(e.what());
    }
    (void)std::fflush(stdout);
    (void)coaccel::flush_log();
    // A leak checker cannot trace a process with other rights.
    ::_exit(status);
}
