#include "isolated.hpp"
#include "support/captured_stderr.hpp"
#include "worker_programs.hpp"

#include <coaccel/core/log.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <string>
#include <vector>

namespace test_integration_logging {

using namespace coaccel;
using namespace std::chrono_literals;
using test::captured_stderr;
using test::isolated_fixture;
using test::isolated_options;
using test::numbers;

namespace {

constexpr auto long_enough = 20s;

device_options without_log_function()
{
    auto o = isolated_options();
    o.worker.log = nullptr;
    return o;
}

/// The log sink of the process during its lifetime.
class sink {
public:
    explicit sink(log_level least)
    {
        (void)flush_log(); // messages of earlier cases go to their own sink
        set_log_sink(least, [this](log_level level, std::string_view message) {
            const std::scoped_lock lock(mutex_);
            messages_.emplace_back(level, message);
        });
    }
    sink(const sink&) = delete;
    sink& operator=(const sink&) = delete;
    ~sink() { set_log_sink(log_level::warning, {}); }

    /// The number of messages of this level that contain all of these texts.
    std::ptrdiff_t count(log_level level, const std::vector<std::string>& texts) const
    {
        (void)flush_log(100ms);
        const std::scoped_lock lock(mutex_);
        return std::ranges::count_if(messages_, [&](const auto& m) {
            return m.first == level && std::ranges::all_of(texts, [&](const std::string& t) {
                       return m.second.find(t) != std::string::npos;
                   });
        });
    }

private:
    mutable std::mutex mutex_;
    std::vector<std::pair<log_level, std::string>> messages_;
};

/// A worker that writes to its standard error without end.
class chatty_program : public test::program_link {
public:
    chatty_program()
    {
        const auto real = coaccel::worker::find_program(nullptr).value();
        const auto script = folder() / "chatty";
        std::ofstream(script) << "#!/bin/sh\n(while :; do echo noise; done >&2) &\nexec '" << std::string(real)
                              << "' \"$@\"\n";
        std::filesystem::permissions(script, std::filesystem::perms::owner_all);
        lead_to(script);
    }
};

} // namespace

TEST_SUITE_BEGIN("isolated logging");

TEST_CASE("an orderly start and end of devices and workers logs nothing")
{
    captured_stderr err;
    {
        auto o = without_log_function();
        o.standby = 1;
        isolated_fixture f(o);
        CHECK(f.download(f.upload(numbers(16)).ref()) == numbers(16));
        REQUIRE(test::await(f.io, f.gpu.async_replace()));
        CHECK(f.download(f.upload(numbers(16)).ref()) == numbers(16));
    }
    REQUIRE(flush_log(long_enough));
    CHECK(err.text() == "");
}

TEST_CASE("the log names the device and its worker, and counts the restarts")
{
    const sink all(log_level::info);
    std::string device;
    std::string worker;
    {
        auto o = without_log_function();
        o.restart.max_restarts = 5;
        isolated_fixture f(o);
        device = "device " + std::to_string(f.upload(numbers(16)).ref().raw().device) + ": ";
        worker = "worker " + std::to_string(f.process());
        CHECK(all.count(log_level::info, {device, worker, "ready after"}) == 1);
        CHECK(all.count(log_level::info, {device, "ready, generation 1"}) == 1);
        f.send(SIGKILL);
        f.wait_for_generation(2);
        CHECK(all.count(log_level::warning, {device, worker, "ended by signal 9", "restart 1 of 5"}) == 1);
        CHECK(all.count(log_level::info, {device, worker, "ended by signal 9"}) == 0);
        CHECK(all.count(log_level::info, {device, "ready, generation 2"}) == 1);
        CHECK(all.count(log_level::warning, {device}) == 1);
    }
    CHECK(all.count(log_level::info, {device, "stopped"}) == 1);
    CHECK(all.count(log_level::warning, {device}) == 1);
    CHECK(all.count(log_level::error, {device}) == 0);
}

TEST_CASE("a permanent failure of a device is logged as an error")
{
    const sink all(log_level::warning);
    auto o = without_log_function();
    o.restart.max_restarts = 0;
    isolated_fixture f(o);
    const auto device = "device " + std::to_string(f.upload(numbers(16)).ref().raw().device) + ": ";
    f.send(SIGKILL);
    test::run_until(f.io, [&] { return f.gpu.status().state == device_state::failed; });
    CHECK(all.count(log_level::error,
                    {device, "failed", "ended by signal 9", "; the restart budget of 0 in 60 s is used up"}) == 1);
}

TEST_CASE("a standby that takes over logs the duration of the takeover")
{
    const sink all(log_level::info);
    auto o = without_log_function();
    o.standby = 1;
    isolated_fixture f(o);
    const auto device = "device " + std::to_string(f.upload(numbers(16)).ref().raw().device) + ": ";
    f.send(SIGKILL);
    f.wait_for_generation(2);
    CHECK(all.count(log_level::info, {device, "ready after"}) == 1);
    CHECK(all.count(log_level::info, {device, "standby took over after", "it was started"}) == 1);
}

TEST_CASE("a full standard error does not stop recovery")
{
    captured_stderr err;
    err.fill();
    isolated_fixture f(without_log_function());
    for (generation g = 2; g < 5; ++g) {
        f.send(SIGKILL);
        f.wait_for_generation(g);
        REQUIRE(f.gpu.status().generation == g);
        CHECK(f.download(f.upload(numbers(16)).ref()) == numbers(16));
    }
}

TEST_CASE("a log function that blocks does not stop recovery")
{
    static std::mutex blocked;
    const std::unique_lock lock(blocked);
    auto o = isolated_options();
    o.worker.log = [](std::string_view) { const std::scoped_lock wait(blocked); };
    isolated_fixture f(o);
    f.send(SIGKILL);
    f.wait_for_generation(2);
    CHECK(f.gpu.status().generation == 2);
}

TEST_CASE("a worker that floods its standard error is truncated in the log and slows no other device down")
{
    const sink all(log_level::warning);
    const chatty_program program;
    const auto began = std::chrono::steady_clock::now();
    auto o = without_log_function();
    o.worker.program = program.path();
    isolated_fixture noisy(o);
    isolated_fixture quiet(without_log_function());
    test::run_until(noisy.io, [&] { return all.count(log_level::warning, {"lines of its output dropped"}) > 0; });
    quiet.send(SIGKILL);
    quiet.wait_for_generation(2);
    CHECK(quiet.download(quiet.upload(numbers(16)).ref()) == numbers(16));
    CHECK(noisy.download(noisy.upload(numbers(16)).ref()) == numbers(16));
    const auto heard = all.count(log_level::warning, {": noise"});
    const auto seconds = std::chrono::ceil<std::chrono::seconds>(std::chrono::steady_clock::now() - began).count();
    CHECK(heard > 0);
    CHECK(heard <= 1000 + 100 * (seconds + 1));
}

TEST_SUITE_END();

} // namespace test_integration_logging
