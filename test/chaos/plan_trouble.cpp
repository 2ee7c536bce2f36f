#include "plan_runs.hpp"
#include "processes.hpp"

#include <algorithm>
#include <csignal>

namespace chaos {

using namespace coaccel;
using namespace std::chrono_literals;
using std::chrono::steady_clock;

namespace {

constexpr auto patience = 30s;

} // namespace

asio::awaitable<void> plan_trouble::run()
{
    while (!stop_.load(std::memory_order_relaxed)) {
        co_await pause(std::chrono::milliseconds(1 + dice_.pick(200)));
        co_await strike();
    }
}

asio::awaitable<void> plan_trouble::strike()
{
    if (!where_.can_be_struck())
        co_return;
    where_.struck();
    if (injects_ && dice_.pick(3) == 0) {
        co_await inject();
        co_return;
    }
    switch (dice_.pick(8)) {
    case 0: co_await replace(); break;
    case 1:
        where_.injector.refuse_starts(1 + dice_.pick(2));
        co_await kill_worker();
        break;
    case 2: co_await load_another(); break;
    case 3:
    case 4: kill_any(); break;
    default: co_await kill_worker();
    }
}

/// Waits until the runs that have been started so far have ended.
asio::awaitable<void> plan_trouble::wait_for_runs()
{
    const auto last = where_.last();
    const auto end = steady_clock::now() + patience;
    while (!where_.have_ended(last)) {
        if (steady_clock::now() > end) {
            ++counts_.stuck;
            co_return;
        }
        co_await pause(2ms);
    }
}

/// Waits until no instance is being loaded, and none will be before the next fault.
asio::awaitable<void> plan_trouble::wait_for_instances()
{
    const auto end = steady_clock::now() + patience;
    for (;;) {
        const auto stats = co_await where_.device.async_stats();
        const auto complete = [](const plan_stats& p) { return p.instances >= initial_instances; };
        if (stats && std::ranges::all_of(stats.value().plans, complete))
            co_return;
        if (steady_clock::now() > end) {
            ++counts_.stuck;
            co_return;
        }
        co_await pause(2ms);
    }
}

/// A fault under which a run or a load is alone would rightly be blamed on it. So there are no suspects before the
/// fault, and no further fault until there are none again.
asio::awaitable<void> plan_trouble::inject()
{
    ++quiet_;
    // The device notices workers that were killed before.
    co_await pause(100ms);
    co_await wait_for_runs();
    co_await wait_for_instances();
    const auto before = where_.injector.played();
    if (dice_.pick(4) == 0)
        where_.injector.hang();
    else
        where_.injector.poison();
    const auto end = steady_clock::now() + patience;
    while (where_.injector.played() == before && steady_clock::now() < end)
        co_await pause(1ms);
    co_await wait_for_runs();
    --quiet_;
}

asio::awaitable<void> plan_trouble::kill_worker()
{
    auto stats = co_await where_.device.async_stats();
    if (stats)
        send(stats.value().hardware.process, SIGKILL);
}

/// It may be a standby, or a worker that is starting.
void plan_trouble::kill_any()
{
    if (quiet_ > 0 || !std::ranges::all_of(all_, [](const auto& s) { return s->can_be_struck(); }))
        return;
    const auto all = children();
    if (all.empty())
        return;
    // It may belong to any of them.
    for (const auto& s : all_)
        if (s.get() != &where_)
            s->struck();
    send(all[dice_.pick(static_cast<std::uint32_t>(all.size()))], SIGKILL);
}

asio::awaitable<void> plan_trouble::replace()
{
    // The next worker may be killed meanwhile.
    const auto done = co_await where_.device.async_replace();
    if (done)
        ++counts_.replaced;
}

asio::awaitable<void> plan_trouble::load_another()
{
    // Its worker may be killed while it loads.
    if (dice_.pick(2) == 0)
        co_await kill_worker();
    auto p = co_await where_.device.async_load(test::poisonable_plan(), {.instances = 2, .initial = 2});
    if (!p) {
        ++counts_.innocent_failed;
        co_return;
    }
    if (dice_.pick(2) == 0)
        (void)co_await p.value().async_unload();
}

} // namespace chaos
