#include "plan_runs.hpp"

#include <cstdio>

namespace chaos {

using namespace coaccel;
using namespace std::chrono_literals;
using std::chrono::steady_clock;
using test::poison;

struct run_client::one_run {
    bool poisoned() const noexcept { return what != poison::none; }

    poison what = poison::none;
    std::vector<float> x;
    std::vector<float> y;
    exec_options how;
    /// When it is cancelled.
    std::optional<steady_clock::duration> cancel_after;
    bool cancelled = false;
    asio::cancellation_signal signal;
    std::uint64_t number = 0;
    steady_clock::time_point started;
    int completions = 0;
};

asio::awaitable<void> run_client::run()
{
    while (!stop_.load(std::memory_order_relaxed))
        if (poisoned_)
            co_await poisoned_round();
        else
            co_await round();
    counts_.clients.remove();
}

std::shared_ptr<run_client::one_run> run_client::next(poison what)
{
    auto r = std::make_shared<one_run>();
    r->what = what;
    r->x = test::poison_input(what, static_cast<float>(dice_.pick(1000)));
    r->y.assign(r->x.size(), -1);
    r->how.priority = static_cast<priority>(dice_.pick(3));
    const auto some_time = [&] { return std::chrono::microseconds(dice_.pick(dice_.pick(2) ? 2'000 : 200'000)); };
    if (dice_.pick(8) == 0)
        r->how.deadline = steady_clock::now() + some_time();
    if (dice_.pick(8) == 0)
        r->cancel_after = some_time();
    r->started = steady_clock::now();
    r->number = where_.begin_run();
    counts_.runs.add();
    if (r->poisoned())
        ++counts_.poisoned_sent;
    return r;
}

asio::awaitable<void> run_client::poisoned_round()
{
    co_await pause(std::chrono::milliseconds(1 + dice_.pick(2000)));
    // Each hang costs twice the time after which it is noticed.
    const auto r = next(dice_.pick(12) == 0 ? poison::hang : test::deadly[dice_.pick(3)]);
    co_await await_run(r);
}

asio::awaitable<void> run_client::round()
{
    const auto what = dice_.pick(16);
    if (what == 0) {
        co_await ordinary_ops();
        co_return;
    }
    if (what > 1) {
        const auto r = next(poison::none);
        co_await await_run(r);
        co_return;
    }
    // Several at once, without awaiting each of them.
    for (int i = 0; i < 4; ++i) {
        auto r = next(poison::none);
        r->cancel_after.reset();
        auto on_end = [this, r](error_code ec) { ended(*r, ec); };
        where_.async_run(r->how, r->x, r->y, on_end);
    }
    co_await pause(1ms);
}

/// Ops that are not repeated, beside the runs.
asio::awaitable<void> run_client::ordinary_ops()
{
    const std::vector<float> data(100, 3);
    auto x = co_await where_.device.async_upload(data);
    if (!x) {
        co_await pause(1ms);
        co_return;
    }
    auto back = co_await where_.device.async_download(x.value());
    if (back && back.value() != data)
        ++counts_.wrong;
}

asio::awaitable<void> run_client::await_run(std::shared_ptr<one_run> r)
{
    asio::steady_timer timer(co_await asio::this_coro::executor);
    if (r->cancel_after) {
        constexpr asio::cancellation_type types[] = {asio::cancellation_type::total, asio::cancellation_type::partial,
                                                     asio::cancellation_type::terminal};
        timer.expires_after(*r->cancel_after);
        timer.async_wait([r, type = types[dice_.pick(3)]](const error_code& ec) {
            if (ec)
                return;
            r->cancelled = true;
            r->signal.emit(type);
        });
    }
    const auto ran = co_await where_.async_run(
        r->how, r->x, r->y, asio::bind_cancellation_slot(r->signal.slot(), as_result(asio::use_awaitable)));
    const error_code ec = ran ? error_code() : ran.error();
    timer.cancel();
    ended(*r, ec);
    // Back off, so that a device that is down is not overloaded.
    if (ec)
        co_await pause(1ms);
}

void run_client::ended(one_run& r, const error_code& ec)
{
    if (++r.completions > 1)
        ++counts_.wrong;
    where_.end_run(r.number);
    // A batcher refuses early what it cannot answer in time.
    const auto last = where_.batcher ? steady_clock::time_point::max() : steady_clock::now() + 1ns;
    const bool own_end = (ec == errc::deadline_exceeded && r.how.deadline < last) ||
                         (ec == asio::error::operation_aborted && r.cancelled);
    if (!ec) {
        ++counts_.succeeded;
        where_.run_succeeded();
    }
    if (own_end)
        ++counts_.given_up;
    if (r.poisoned()) {
        if (own_end || ec == errc::context_lost)
            ++counts_.poisoned_answered;
        else
            std::fprintf(stderr, "poisoned run: %s\n", ec.message().c_str());
    } else {
        if (!ec && r.y != test::poison_answer(r.x))
            ++counts_.wrong;
        if (ec && !own_end && counts_.innocent_failed++ < 10)
            std::fprintf(stderr, "innocent run: %s\n", ec.message().c_str());
        const auto took = std::chrono::duration_cast<std::chrono::microseconds>(steady_clock::now() - r.started);
        auto before = counts_.longest.load();
        const auto now = static_cast<std::uint64_t>(took.count());
        while (before < now && !counts_.longest.compare_exchange_weak(before, now))
            continue;
    }
    counts_.runs.remove();
}

} // namespace chaos
