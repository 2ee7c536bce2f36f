// One of many requests makes the worker process crash. It gets the error; all others get their answers.
#include <coaccel/coaccel.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>

#include <cstdint>
#include <iostream>
#include <vector>

namespace ca = coaccel;
namespace asio = boost::asio;

namespace {

constexpr std::size_t rows = 1000;
constexpr std::size_t width = 16;
constexpr std::size_t asked = 4;

//[poison_plan
// The function is code of the user, so the user says that it is pure: it changes only its operands, and what it writes
// depends only on them.
ca::result<ca::plan_description> make_plan()
{
    std::vector<float> table(rows * width);
    for (std::size_t i = 0; i < table.size(); ++i)
        table[i] = static_cast<float>(i / width);
    ca::plan_builder b("rows");
    const auto values = b.constant<float>(table, "table");
    const auto indices = b.input<std::int64_t>(asked, "indices");
    const auto found = b.output<float>(asked * width, "found");
    b.add(ca::pure(ca::plugin::call("look_up", ca::in(values), ca::in(indices), ca::out(found))));
    return b.finish();
}
//]

struct tally {
    int right = 0;
    int failed = 0;
    int ended = 0;
    ca::error_code last;
};

asio::awaitable<void> ask(ca::plan look_up, std::int64_t index, tally& counts)
{
    const std::vector<std::int64_t> indices(asked, index);
    std::vector<float> found(asked * width);
    const auto done = co_await look_up.async_run(ca::from(indices), ca::to(found));
    ++counts.ended;
    if (!done) {
        ++counts.failed;
        counts.last = done.error();
    } else if (found == std::vector<float>(asked * width, static_cast<float>(index)))
        ++counts.right;
}

asio::awaitable<ca::result<bool>> run()
{
    const auto executor = co_await asio::this_coro::executor;
    //[poison_device
    ca::device_options options;
    options.kind = ca::device_kind::host;
    options.isolation = ca::isolation::worker;
    options.standby = 1;
    options.plugin = LOOK_UP; // the path of the shared object
    BOOST_OUTCOME_CO_TRY(auto gpu, co_await ca::device::async_create(executor, options));
    BOOST_OUTCOME_CO_TRY(const auto description, make_plan());
    // After more than three such requests within a minute, no further run of this plan is accepted.
    const ca::plan_options how{.poison_limit = 3};
    BOOST_OUTCOME_CO_TRY(const auto look_up, co_await gpu.async_load(description, how));
    //]

    // The index of one request is far outside the table.
    constexpr int requests = 200;
    tally counts;
    for (int i = 0; i < requests; ++i)
        asio::co_spawn(executor, ask(look_up, i == 100 ? std::int64_t(1) << 40 : i, counts), asio::detached);
    asio::steady_timer timer(executor);
    while (counts.ended < requests) {
        timer.expires_after(std::chrono::milliseconds(1));
        co_await timer.async_wait(asio::use_awaitable);
    }
    std::cout << "requests: " << requests << ", right answers: " << counts.right << ", failed: " << counts.failed
              << '\n'
              << "the error: " << counts.last.message() << '\n';

    BOOST_OUTCOME_CO_TRY(const auto stats, co_await gpu.async_stats());
    std::cout << "workers replaced: " << stats.restarts << ", runs repeated: " << stats.reruns
              << ", found guilty: " << stats.convicted << '\n';
    co_return counts.right == requests - 1 && counts.failed == 1 && ca::is_context_lost(counts.last) &&
        stats.convicted == 1;
}

} // namespace

int main()
{
    asio::io_context io;
    auto running = asio::co_spawn(io, run(), asio::use_future);
    io.run();
    const auto right = running.get();

    if (!right)
        std::cerr << right.error().message() << '\n';
    return right && right.value() ? 0 : 1;
}
