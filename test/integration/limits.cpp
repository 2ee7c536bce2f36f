#include "inventory.hpp"
#include "isolated.hpp"
#include "support/sanitized.hpp"

#include <boost/asio/steady_timer.hpp>
#include <doctest/doctest.h>

#include <csignal>
#include <fcntl.h>
#include <fstream>
#include <sstream>
#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <unistd.h>

namespace test_integration_limits {

using namespace coaccel;
using namespace std::chrono_literals;
using test::await;
using test::inventory;
using test::isolated_fixture;
using test::isolated_options;
using test::numbers;
using test::worker_log;

namespace {

// The shadow memory of a sanitizer exceeds any limit.
const auto unless_sanitized = doctest::skip(test::sanitized);
const auto unless_checked = doctest::skip(test::checks_objects);

constexpr std::uint64_t mib = std::uint64_t(1) << 20;

/// Lowers a limit of this process during its lifetime.
class lowered {
public:
    lowered(int resource, rlim_t most) : resource_(resource)
    {
        REQUIRE(::getrlimit(resource_, &before_) == 0);
        const rlimit now{most, before_.rlim_max};
        REQUIRE(::setrlimit(resource_, &now) == 0);
    }
    lowered(const lowered&) = delete;
    lowered& operator=(const lowered&) = delete;
    ~lowered() { lift(); }

    void lift() { ::setrlimit(resource_, &before_); }

private:
    const int resource_;
    rlimit before_{};
};

/// The limit of another process, as reported by the system: "soft hard".
std::string limit_of(int process, const std::string& name)
{
    std::ifstream file("/proc/" + std::to_string(process) + "/limits");
    for (std::string line; std::getline(file, line);)
        if (line.starts_with(name)) {
            std::istringstream rest(line.substr(name.size()));
            std::string soft, hard;
            rest >> soft >> hard;
            return soft + " " + hard;
        }
    return {};
}

bool tells_of_descriptors(const error_code& ec)
{
    const auto text = ec.message();
    return text.find("descriptor") != std::string::npos || text.find("open files") != std::string::npos;
}

/// The limit that leaves `spare` descriptors available.
rlim_t limit_leaving(int spare)
{
    int limit = 0;
    for (; spare > 0; ++limit)
        spare -= ::fcntl(limit, F_GETFD) < 0;
    return static_cast<rlim_t>(limit);
}

} // namespace

TEST_SUITE_BEGIN("isolated limits");

TEST_CASE("a worker has the memory limit of the options, or that of the parent process")
{
    auto o = isolated_options();
    {
        isolated_fixture f(o);
        CHECK(limit_of(f.process(), "Max data size") == limit_of(::getpid(), "Max data size"));
        // Sanitizers lower the soft limit further.
        CHECK(limit_of(f.process(), "Max core file size") == (test::sanitized ? "0 1" : "1 1"));
    }
    if (test::sanitized)
        return;
    o.worker.max_data_bytes = 1024 * mib;
    o.standby = 1;
    isolated_fixture f(o);
    const auto own = limit_of(::getpid(), "Max data size");
    const auto wanted = std::to_string(1024 * mib) + " " + std::to_string(1024 * mib);
    CHECK(limit_of(f.process(), "Max data size") == wanted);
    f.send(SIGKILL);
    f.wait_for_generation(2);
    CHECK(limit_of(f.process(), "Max data size") == wanted);
    CHECK(limit_of(::getpid(), "Max data size") == own);
}

TEST_CASE("an allocation beyond the worker's memory limit is out of memory, and the worker continues" *
          unless_sanitized)
{
    auto o = isolated_options();
    o.worker.max_data_bytes = 512 * mib;
    isolated_fixture f(o);
    const int worker = f.process();
    const auto small = f.upload(numbers(1000));
    for (int i = 0; i < 3; ++i) {
        CHECK(await(f.io, f.gpu.async_alloc<float>(1024 * mib / sizeof(float))).error() == errc::out_of_memory);
        CHECK(await(f.io, f.gpu.async_alloc<float>(1024 * mib / sizeof(float), memory_init::zero)).error() ==
              errc::out_of_memory);
    }
    // In steps, until memory runs out.
    {
        std::vector<buffer<float>> many;
        error_code ec;
        while (!ec && many.size() < 100) {
            auto made = await(f.io, f.gpu.async_alloc<float>(16 * mib / sizeof(float)));
            if (made)
                many.push_back(std::move(made).value());
            else
                ec = made.error();
        }
        CHECK(ec == errc::out_of_memory);
        CHECK(many.size() > 8);
        CHECK(many.size() < 32);
        CHECK(f.download(small.ref()) == numbers(1000));
    }
    CHECK(f.download(f.upload(numbers(1'000'000)).ref()) == numbers(1'000'000));
    CHECK(f.process() == worker);
    CHECK(f.gpu.status().generation == 1);
}

TEST_CASE("a worker whose memory limit is too small to start fails with a reason" * unless_sanitized)
{
    const auto before = inventory::take();
    {
        asio::io_context io{1};
        auto o = isolated_options();
        o.worker.max_data_bytes = 4096;
        o.worker.start_timeout = 5s;
        o.restart.max_restarts = 2;
        const auto made = await(io, device::async_create(io.get_executor(), o));
        REQUIRE_FALSE(made);
        const auto ec = made.error();
        CHECK((ec == errc::out_of_memory || ec == errc::start_failed));
        // The message names the cause.
        CHECK(ec.message() != make_error_code(errc::start_failed).message());
    }
    CHECK(inventory::take_expecting(before) == before);
    CHECK(test::childless());
}

TEST_CASE("a lack of address space for the staging area is a specific error" * unless_sanitized)
{
    asio::io_context io{1};
    auto o = isolated_options();
    o.restart.max_restarts = 1;
    // Starts the threads, which need address space too.
    auto first = test::make_device(io, o);
    std::uint64_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    o.worker.staging_bytes = 1024 * mib;
    {
        const lowered limit(RLIMIT_AS, pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)) + 256 * mib);
        const auto ec = await(io, device::async_create(io.get_executor(), o)).error();
        CHECK(ec == errc::out_of_memory);
        CHECK(ec.message().find(std::to_string(1024 * mib)) != std::string::npos);
        CHECK(await(io, first.async_upload(numbers(10))));
    }
    auto second = await(io, device::async_create(io.get_executor(), o));
    REQUIRE(second);
    CHECK(await(io, second.value().async_upload(numbers(10))));
}

TEST_CASE("a staging area larger than the machine's memory is a specific error")
{
    struct sysinfo machine{};
    REQUIRE(::sysinfo(&machine) == 0);
    const auto memory = std::uint64_t(machine.totalram) * machine.mem_unit;
    asio::io_context io{1};
    auto o = isolated_options();
    o.restart.max_restarts = 1;
    o.worker.staging_bytes = memory + mib;
    // The maximum that the options allow.
    if (o.worker.staging_bytes > std::uint64_t(64) << 30)
        return;
    const auto ec = await(io, device::async_create(io.get_executor(), o)).error();
    CHECK(ec == errc::out_of_memory);
    CHECK(ec.message().find("larger than the memory") != std::string::npos);
}

TEST_CASE("a refusal of shared memory by the system is a specific error")
{
    const auto before = inventory::take();
    {
        asio::io_context io{1};
        auto o = isolated_options();
        o.restart.max_restarts = 1;
        // A file cannot grow beyond this limit; with the default action SIGXFSZ would end the process.
        auto* const handler = std::signal(SIGXFSZ, SIG_IGN);
        {
            const lowered limit(RLIMIT_FSIZE, 1 * mib);
            const auto ec = await(io, device::async_create(io.get_executor(), o)).error();
            CHECK(ec == errc::out_of_memory);
            CHECK(ec.message().find("no shared memory") != std::string::npos);
        }
        std::signal(SIGXFSZ, handler);
        auto made = await(io, device::async_create(io.get_executor(), o));
        REQUIRE(made);
        CHECK(await(io, made.value().async_upload(numbers(10))));
        made = device();
        test::run_out(io);
    }
    CHECK(inventory::take_expecting(before) == before);
}

TEST_CASE("without descriptors the creation of a device fails with a reason and leaves nothing behind" * unless_checked)
{
    for (const int standby : {0, 1}) {
        CAPTURE(standby);
        auto o = isolated_options();
        o.standby = standby;
        o.restart.max_restarts = 0;
        {
            isolated_fixture f(o);
        }
        const auto before = inventory::take();
        int spare = 0;
        // One more descriptor each time, so that each step fails once.
        for (bool works = false; !works && spare < 100; ++spare) {
            CAPTURE(spare);
            {
                asio::io_context io{1};
                // As in a server, whose execution context already has its own descriptors.
                const asio::steady_timer in_use(io);
                lowered limit(RLIMIT_NOFILE, limit_leaving(spare));
                auto made = await(io, device::async_create(io.get_executor(), o));
                if (!made) {
                    CHECK(made.error() == errc::out_of_memory);
                    CHECK_MESSAGE(tells_of_descriptors(made.error()), made.error().message());
                } else {
                    works = true;
                    CHECK(await(io, made.value().async_upload(numbers(10))));
                    limit.lift();
                    made = device();
                }
                test::run_out(io);
            }
            CHECK(inventory::take_expecting(before) == before);
            CHECK(test::childless());
        }
        CHECK(spare > 5);
        CHECK(spare < 100);
    }
}

TEST_CASE("a worker that cannot be replaced for lack of descriptors is replaced when there are some" * unless_checked)
{
    for (const int standby : {0, 1}) {
        CAPTURE(standby);
        auto o = isolated_options();
        o.standby = standby;
        o.restart.max_restarts = 100'000;
        o.restart.initial_backoff = o.restart.max_backoff = 2ms;
        isolated_fixture f(o);
        const auto x = f.upload(numbers(10));
        const auto data = numbers(10);
        int answers = 0;
        error_code answer;
        {
            lowered limit(RLIMIT_NOFILE, 0);
            for (int i = 0; i <= standby; ++i) {
                const auto g = f.gpu.status().generation;
                f.send(SIGKILL);
                test::run_until(f.io, [&] {
                    return f.gpu.status().generation > g || f.gpu.status().reason == errc::out_of_memory;
                });
                if (f.gpu.status().reason == errc::out_of_memory)
                    break;
            }
            test::run_until(f.io, [&] { return f.gpu.status().reason == errc::out_of_memory; });
            CHECK_MESSAGE(tells_of_descriptors(f.gpu.status().reason), f.gpu.status().reason.message());
            f.gpu.async_upload(data, [&](error_code ec, auto&&...) {
                ++answers;
                answer = ec;
            });
            f.io.restart();
            f.io.poll();
            CHECK(answers == 0);
        }
        // The waiting request runs on the new context.
        test::run_until(f.io, [&] { return answers == 1; });
        CHECK_FALSE(answer);
        CHECK(f.run(memory::fill<float>{x, 1.0f}) == errc::stale_ref);
        CHECK(f.download(f.upload(numbers(10)).ref()) == numbers(10));
    }
}

TEST_CASE("a device without descriptors and remaining restarts has failed, and a new one works" * unless_checked)
{
    auto o = isolated_options();
    o.restart.max_restarts = 3;
    o.restart.initial_backoff = 0ms;
    isolated_fixture f(o);
    const auto data = numbers(10);
    {
        lowered limit(RLIMIT_NOFILE, 0);
        f.send(SIGKILL);
        test::run_until(f.io, [&] { return f.gpu.status().state == device_state::failed; });
        CHECK(f.gpu.status().reason == errc::out_of_memory);
        CHECK_MESSAGE(tells_of_descriptors(f.gpu.status().reason), f.gpu.status().reason.message());
        CHECK(await(f.io, f.gpu.async_upload(data)).error() == errc::device_failed);
    }
    isolated_fixture other(o);
    CHECK(other.download(other.upload(data).ref()) == data);
}

TEST_SUITE_END();

} // namespace test_integration_limits
