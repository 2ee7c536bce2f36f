#include "isolated.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <stdlib.h>
#include <sys/mman.h>
#include <thread>

namespace test_integration_environment {

using namespace coaccel;
using namespace std::chrono_literals;
using test::isolated_fixture;
using test::isolated_options;
using test::numbers;

namespace {

std::string environment_of(int process)
{
    std::ifstream in("/proc/" + std::to_string(process) + "/environ", std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

bool has(const std::string& environment, const std::string& entry)
{
    return (std::string(1, '\0') + environment).find('\0' + entry + '\0') != std::string::npos;
}

/// A thread that continuously changes the environment of the process and finally restores it.
class storm {
public:
    storm() : thread_([this] { run(); }) {}
    storm(const storm&) = delete;
    storm& operator=(const storm&) = delete;
    ~storm()
    {
        stop_ = true;
        thread_.join();
    }

    void wait_for_rounds(int n) const
    {
        for (const int until = rounds_ + n; rounds_ < until;)
            std::this_thread::yield();
    }

private:
    static constexpr std::size_t variables = 200;
    static constexpr std::size_t length = 64;

    void run()
    {
        while (!stop_) {
            // putenv makes the text itself part of the environment: a later read of the unmapped text raises SIGSEGV.
            void* const page =
                ::mmap(nullptr, variables * length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            for (std::size_t i = 0; i < variables; ++i) {
                auto* const text = static_cast<char*>(page) + i * length;
                std::snprintf(text, length, "COACCEL_TEST_STORM_%zu=value", i);
                ::putenv(text);
            }
            ::setenv("COACCEL_TEST_STORM", "value", 1);
            for (std::size_t i = 0; i < variables; ++i)
                ::unsetenv(("COACCEL_TEST_STORM_" + std::to_string(i)).c_str());
            ::unsetenv("COACCEL_TEST_STORM");
            ::munmap(page, variables * length);
            ++rounds_;
        }
    }

    std::atomic<bool> stop_{false};
    std::atomic<int> rounds_{0};
    std::thread thread_;
};

void restart(isolated_fixture& f)
{
    const auto g = f.gpu.status().generation;
    f.send(SIGKILL);
    f.wait_for_generation(generation(g + 1));
}

} // namespace

TEST_SUITE_BEGIN("isolated environment");

TEST_CASE("every worker of a device has the environment from the creation of the device")
{
    auto o = isolated_options();
    o.restart.initial_backoff = 0ms;
    ::setenv("COACCEL_TEST_BEFORE", "1", 1);
    isolated_fixture f(o);
    ::unsetenv("COACCEL_TEST_BEFORE");
    ::setenv("COACCEL_TEST_AFTER", "1", 1);
    restart(f);
    const auto environment = environment_of(f.process());
    isolated_fixture later(o);
    const auto of_later = environment_of(later.process());
    ::unsetenv("COACCEL_TEST_AFTER");
    CHECK(has(environment, "COACCEL_TEST_BEFORE=1"));
    CHECK_FALSE(has(environment, "COACCEL_TEST_AFTER=1"));
    CHECK_FALSE(has(of_later, "COACCEL_TEST_BEFORE=1"));
    CHECK(has(of_later, "COACCEL_TEST_AFTER=1"));
}

TEST_CASE("workers are restarted while another thread changes the environment")
{
    auto o = isolated_options();
    o.restart.initial_backoff = 0ms;
    o.standby = 1;
    isolated_fixture f(o);
    const storm changes;
    for (int i = 0; i < 20; ++i) {
        changes.wait_for_rounds(1);
        restart(f);
    }
    CHECK(f.download(f.upload(numbers(10)).ref()) == numbers(10));
}

TEST_SUITE_END();

} // namespace test_integration_environment
