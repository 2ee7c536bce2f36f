#ifndef COACCEL_TEST_CHAOS_PLAN_RUNS_HPP
#define COACCEL_TEST_CHAOS_PLAN_RUNS_HPP

#include "chaos.hpp"
#include "support/poison.hpp"

#include <coaccel/serve/dynamic_batcher.hpp>

#include <algorithm>
#include <optional>
#include <set>
#include <vector>

namespace chaos {

struct run_tally {
    outstanding clients;
    outstanding runs;
    std::atomic<std::uint64_t> succeeded{0};
    /// Ended by their own cancellation or deadline.
    std::atomic<std::uint64_t> given_up{0};
    /// Results that are wrong, and runs that completed more than once.
    std::atomic<std::uint64_t> wrong{0};
    std::atomic<std::uint64_t> innocent_failed{0};
    std::atomic<std::uint64_t> poisoned_sent{0};
    /// With errc::context_lost, or by their own cancellation or deadline.
    std::atomic<std::uint64_t> poisoned_answered{0};
    std::atomic<std::uint64_t> replaced{0};
    /// Devices that did not recover in time.
    std::atomic<std::uint64_t> stuck{0};
    /// The longest run of an innocent client, in microseconds.
    std::atomic<std::uint64_t> longest{0};
};

/// A device, a plan on it, and which of its runs have not ended.
class plan_seat {
public:
    explicit plan_seat(const coaccel::device_options& o) : options(o) { options.host.injector = &injector; }

    std::uint64_t begin_run()
    {
        const std::scoped_lock lock(mutex_);
        running_.insert(++last_);
        return last_;
    }

    void end_run(std::uint64_t number)
    {
        const std::scoped_lock lock(mutex_);
        running_.erase(number);
    }

    std::uint64_t last() const
    {
        const std::scoped_lock lock(mutex_);
        return last_;
    }

    /// Whether all runs up to this one have ended.
    bool have_ended(std::uint64_t number) const
    {
        const std::scoped_lock lock(mutex_);
        return running_.empty() || *running_.begin() > number;
    }

    /// Whether its context may be ended once more before one of its runs succeeds. A run that has lost several contexts
    /// is given up, so on a slow machine a run would otherwise fail that has only been unlucky.
    bool can_be_struck() const noexcept { return strikes_ < most_strikes; }
    void struck() noexcept { ++strikes_; }
    void run_succeeded() noexcept { strikes_ = 0; }

    coaccel::fault_injector injector;
    coaccel::device_options options;
    /// Runs the plan, as a part of a batch if there is a batcher.
    template <class Token>
    auto async_run(const coaccel::exec_options& how, const std::vector<float>& x, std::vector<float>& y, Token token)
    {
        using coaccel::from;
        using coaccel::to;
        if (batcher)
            return batcher.with(how).async_run(from(x), to(y), std::move(token));
        return plan.with(how).async_run(from(x), to(y), std::move(token));
    }

    coaccel::device device;
    coaccel::plan plan;
    coaccel::serve::dynamic_batcher batcher;

private:
    static constexpr int most_strikes = 3;

    std::atomic<int> strikes_{0};
    mutable std::mutex mutex_;
    std::uint64_t last_ = 0;
    std::set<std::uint64_t> running_;
};

using seat_list = std::vector<std::unique_ptr<plan_seat>>;

/// The instances of each plan of the seats that get injected faults. They are made when the plan is loaded.
inline constexpr int initial_instances = 8;

/// A coroutine that runs the plan of the seat until `stop`. Start it on a strand.
class run_client {
public:
    run_client(plan_seat& where, run_tally& counts, std::uint32_t seed, bool poisoned, const std::atomic<bool>& stop)
        : where_(where), counts_(counts), dice_(seed), poisoned_(poisoned), stop_(stop)
    {}

    asio::awaitable<void> run();

private:
    struct one_run;

    std::shared_ptr<one_run> next(test::poison what);
    asio::awaitable<void> round();
    asio::awaitable<void> ordinary_ops();
    asio::awaitable<void> poisoned_round();
    asio::awaitable<void> await_run(std::shared_ptr<one_run> r);
    void ended(one_run& r, const coaccel::error_code& ec);

    plan_seat& where_;
    run_tally& counts_;
    dice dice_;
    const bool poisoned_;
    const std::atomic<bool>& stop_;
};

/// Kills workers and injects faults until `stop`.
class plan_trouble {
public:
    /// `all`: the seats, which must have devices.
    plan_trouble(const seat_list& all, plan_seat& where, run_tally& counts, std::uint32_t seed, bool injects,
                 const std::atomic<bool>& stop)
        : all_(all), where_(where), counts_(counts), dice_(seed), injects_(injects), stop_(stop)
    {}

    asio::awaitable<void> run();

private:
    asio::awaitable<void> strike();
    asio::awaitable<void> inject();
    asio::awaitable<void> wait_for_runs();
    asio::awaitable<void> wait_for_instances();
    asio::awaitable<void> kill_worker();
    void kill_any();
    asio::awaitable<void> replace();
    asio::awaitable<void> load_another();

    /// While it is not zero, only the seats that inject faults have trouble.
    static inline std::atomic<int> quiet_{0};

    const seat_list& all_;
    plan_seat& where_;
    run_tally& counts_;
    dice dice_;
    const bool injects_;
    const std::atomic<bool>& stop_;
};

struct plan_runs_options {
    /// The run ends as soon as this many contexts were lost; zero: it ends after `seconds`.
    std::uint64_t faults = 0;
    /// Whether the clients of a device share batches.
    bool batched = false;
    /// The longest time; a run that has not seen all faults by then has failed.
    int seconds = 10;
    std::uint32_t seed = 1;
};

/// Runs of plans on several devices, from many coroutines, some of which send inputs that end the worker. Returns the
/// exit code.
int run_plans(const plan_runs_options& how);

} // namespace chaos

#endif
