#ifndef COACCEL_TEST_INTEGRATION_POISON_FIXTURE_HPP
#define COACCEL_TEST_INTEGRATION_POISON_FIXTURE_HPP

#include "isolated.hpp"
#include "support/poison.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>

#include <algorithm>
#include <memory>
#include <optional>

namespace test {

inline coaccel::device_options poison_options(int standby = 1)
{
    auto o = isolated_options();
    o.standby = standby;
    o.plugin = COACCEL_TEST_POISON_PLUGIN;
    return o;
}

/// A run of the plan in poison.hpp, with the memory that it uses.
struct poison_run {
    bool ended() const noexcept { return completions > 0; }
    /// Whether it has ended without an error, with the right result.
    bool is_right() const { return completions == 1 && !ec && y == poison_answer(x); }

    std::vector<float> x;
    std::vector<float> y = std::vector<float>(poison_elements, -1);
    asio::cancellation_signal signal;
    coaccel::error_code ec;
    int completions = 0;
    std::chrono::steady_clock::time_point end;
};

using poison_runs = std::vector<std::shared_ptr<poison_run>>;

/// A device in worker processes, for runs that end them.
struct poison_fixture : isolated_fixture {
    explicit poison_fixture(const coaccel::device_options& o = poison_options()) : isolated_fixture(o) {}

    coaccel::device_stats stats() { return await(io, gpu.async_stats()).value(); }

    coaccel::plan load(coaccel::plan_options how = {}, bool repeatable = true)
    {
        // So that several runs are on the device at once, also when its worker is stopped.
        how.initial = 8;
        auto made = await(io, gpu.async_load(poisonable_plan(repeatable), how));
        REQUIRE_MESSAGE(made, made.error().message());
        return std::move(made).value();
    }

    std::shared_ptr<poison_run> start(const coaccel::plan& p, poison what = poison::none, float second = 0,
                                      const coaccel::exec_options& how = {})
    {
        auto r = std::make_shared<poison_run>();
        r->x = poison_input(what, second);
        auto on_end = [r](coaccel::error_code ec) {
            ++r->completions;
            r->ec = ec;
            r->end = std::chrono::steady_clock::now();
        };
        p.with(how).async_run(coaccel::from(r->x), coaccel::to(r->y),
                              asio::bind_cancellation_slot(r->signal.slot(), on_end));
        return r;
    }

    poison_runs start_many(const coaccel::plan& p, int count)
    {
        poison_runs all;
        for (int i = 0; i < count; ++i)
            all.push_back(start(p, poison::none, static_cast<float>(i)));
        return all;
    }

    coaccel::error_code outcome(const std::shared_ptr<poison_run>& r)
    {
        run_until(io, [&] { return r->ended(); });
        CHECK(r->completions == 1);
        return r->ec;
    }

    /// Waits until all have ended, without an error and with the right result.
    void check_right(const poison_runs& all)
    {
        for (const auto& r : all) {
            const auto ec = outcome(r);
            CHECK_MESSAGE(!ec, ec.message());
            CHECK(r->is_right());
        }
    }

    void wait_for_in_flight(std::uint64_t n)
    {
        run_until(io, [&] { return stats().in_flight == n; });
    }

    void wait_for_reruns(std::uint64_t n)
    {
        run_until(io, [&] { return stats().reruns == n; });
    }

    /// Hides that of the base: while there is no worker, its process is 0, and a signal to it would reach this process.
    void send(int signal)
    {
        int worker = 0;
        run_until(io, [&] {
            worker = process();
            return worker > 0;
        });
        REQUIRE(::kill(worker, signal) == 0);
    }

    /// Kills the worker and waits until the device has noticed it.
    void kill()
    {
        const auto before = gpu.status().generation;
        send(SIGKILL);
        run_until(io, [&] {
            const auto s = gpu.status();
            return s.generation > before || s.state == coaccel::device_state::failed;
        });
    }

    void wait_for_standby_plans(std::uint64_t n)
    {
        run_until(io, [&] { return stats().standby_plans == n; });
    }
};

} // namespace test

#endif
