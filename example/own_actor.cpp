// A user-defined actor: it keeps its state on the device, fails when the context is lost, and is restarted according to
// its policy.
#include <coaccel/coaccel.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_future.hpp>

#include <chrono>
#include <cstdint>
#include <iostream>
#include <memory>
#include <utility>

namespace ca = coaccel;
namespace asio = boost::asio;
using namespace std::chrono_literals;

namespace {

//[actor_message
struct add {
    float value = 0;
    ca::reply_to<float> total;
};

// Makes the message with the `reply_to` that async_ask provides.
struct adding {
    float value;
    add operator()(ca::reply_to<float> to) const { return add{value, std::move(to)}; }
};
//]

//[actor_behaviour
// Adds the numbers that it receives, in device memory. After a restart it begins at zero.
class accumulator {
public:
    explicit accumulator(ca::device gpu) : gpu_(std::move(gpu)) {}

    asio::awaitable<ca::error_code> operator()(add message)
    {
        const auto total = co_await step(message.value);
        if (!total)
            co_return total.error(); // without a reply, the sender gets errc::actor_failed
        message.total.send(total.value());
        co_return ca::error_code();
    }

private:
    asio::awaitable<ca::result<float>> step(float value)
    {
        if (!sum_) {
            BOOST_OUTCOME_CO_TRY(sum_, co_await gpu_.async_alloc<float>(1, ca::memory_init::zero));
        }
        BOOST_OUTCOME_CO_TRY(auto x, co_await gpu_.async_alloc<float>(1));
        gpu_.async_exec(ca::memory::fill<float>{.dst = x, .value = value}, asio::detached);
        gpu_.async_exec(ca::blas::axpy<float>{.x = x, .y = sum_, .n = 1}, asio::detached);
        co_return co_await gpu_.async_exec(ca::blas::asum<float>{.x = sum_, .n = 1});
    }

    ca::device gpu_;
    ca::buffer<float> sum_;
};
//]

//[actor_policy
// The sum is lost with the context, so the actor is restarted. A wrong request does not change the sum.
ca::directive decide(const ca::error_code& ec) noexcept
{
    if (ca::is_context_lost(ec))
        return ca::directive::restart;
    return ca::is_caller_error(ec) ? ca::directive::resume : ca::directive::escalate;
}
//]

asio::awaitable<ca::result<bool>> run(ca::fault_injector& injector)
{
    const auto executor = co_await asio::this_coro::executor;
    ca::device_options options;
    options.kind = ca::device_kind::host;
    options.host.injector = &injector;
    BOOST_OUTCOME_CO_TRY(auto gpu, co_await ca::device::async_create(executor, options));

    //[actor_run
    auto make = [gpu] { return accumulator(gpu); };
    BOOST_OUTCOME_CO_TRY(auto who, ca::actor<add>::create(executor, 16, make));
    const ca::restart_policy policy{.decider = decide, .max_restarts = 3, .initial_backoff = 1ms};
    BOOST_OUTCOME_CO_TRY(auto boss, ca::supervisor::create(executor, policy, {who}));
    boss->async_run(asio::detached);

    const auto address = who->ref();
    const auto one = co_await ca::async_ask<float>(address, adding{1}, 5s);
    const auto three = co_await ca::async_ask<float>(address, adding{2}, 5s);
    //]

    injector.poison();
    const auto unanswered = co_await ca::async_ask<float>(address, adding{4}, 5s);
    const auto eight = co_await ca::async_ask<float>(address, adding{8}, 5s);

    who->close(); // after the last message the actor ends, then its supervisor
    BOOST_OUTCOME_CO_TRYV(co_await boss->async_stop());

    BOOST_OUTCOME_CO_TRY(const float first, one);
    BOOST_OUTCOME_CO_TRY(const float second, three);
    BOOST_OUTCOME_CO_TRY(const float fresh, eight);
    std::cout << first << ", " << second << ", " << (unanswered ? "answered" : unanswered.error().message()) << ", "
              << fresh << '\n';
    co_return first == 1 && second == 3 && unanswered.has_error() &&
        unanswered.error() == ca::errc::actor_failed&& fresh == 8;
}

} // namespace

int main()
{
    ca::fault_injector injector; // before the io_context: it must outlive the device
    asio::io_context io;
    auto running = asio::co_spawn(io, run(injector), asio::use_future);
    io.run();
    const auto right = running.get();

    if (!right)
        std::cerr << right.error().message() << '\n';
    return right && right.value() ? 0 : 1;
}
