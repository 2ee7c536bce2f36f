// How many requests a client may send: some at once, then a few in each second.
#include <coaccel/coaccel.hpp>
#include <coaccel/serve/rate_limiter.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/this_coro.hpp>

#include <chrono>
#include <exception>
#include <iostream>
#include <string>

namespace ca = coaccel;
namespace asio = boost::asio;
namespace serve = coaccel::serve;
using namespace std::chrono_literals;

namespace {

ca::result<serve::rate_limiter> make_limiter(asio::any_io_executor executor)
{
    //[rate_limit_create
    serve::rate_limiter_options options;
    options.others = {.rate = 10, .period = 1min, .burst = 5}; // each client: five at once, and ten in a minute
    options.tenants["importer"] = {.rate = 500, .period = 1s, .burst = 50};
    auto made = serve::rate_limiter::create(executor, options);
    //]
    return made;
}

//[rate_limit_request
// The status of the reply, and its header field.
ca::result<std::string> admit(const serve::rate_limiter& limiter, const std::string& key)
{
    BOOST_OUTCOME_TRY(const auto may, limiter.try_acquire(key));
    if (!may)
        return "429, Retry-After: " + std::to_string(may.retry_after_seconds());
    return "200";
}
//]

asio::awaitable<ca::result<void>> run()
{
    const auto executor = co_await asio::this_coro::executor;
    BOOST_OUTCOME_CO_TRY(const auto limiter, make_limiter(executor));
    std::string last;
    for (int i = 0; i < 6; ++i) {
        BOOST_OUTCOME_CO_TRY(last, admit(limiter, "guest"));
        std::cout << last << '\n';
    }
    if (!last.starts_with("429"))
        co_return ca::errc::backend_error;
    for (int i = 0; i < 100; ++i) {
        //[rate_limit_wait
        // A program that may wait, such as one that reads a file of requests.
        BOOST_OUTCOME_CO_TRYV(co_await limiter.async_acquire("importer", 1, ca::within(10s)));
        //]
    }
    const auto stats = limiter.stats();
    std::cout << stats.all.allowed << " allowed, " << stats.all.refused << " refused\n";
    co_return stats.all.allowed == 105 ? ca::result<void>(ca::success()) : ca::result<void>(ca::errc::backend_error);
}

} // namespace

int main()
{
    asio::io_context io;
    int status = 1;
    asio::co_spawn(io, run(), [&status](std::exception_ptr e, ca::result<void> r) {
        status = !e && r ? 0 : 1;
        if (!e && !r)
            std::cerr << r.error().message() << '\n';
    });
    io.run();
    return status;
}
