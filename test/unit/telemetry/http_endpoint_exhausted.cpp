#include "http_client.hpp"
#include "support/devices.hpp"

#include <coaccel/telemetry/http_endpoint.hpp>

#include <boost/asio.hpp>
#include <doctest/doctest.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <sys/resource.h>
#include <unistd.h>
#include <vector>

namespace test_telemetry_http_endpoint_exhausted {

namespace {

using namespace coaccel;
using namespace coaccel::telemetry;
using test::status_of;

/// Uses all descriptors that the process may have.
class no_descriptors {
public:
    no_descriptors()
    {
        REQUIRE(::getrlimit(RLIMIT_NOFILE, &before_) == 0);
        rlimit lower = before_;
        lower.rlim_cur = std::min<rlim_t>(lower.rlim_cur, 256);
        REQUIRE(::setrlimit(RLIMIT_NOFILE, &lower) == 0);
        for (int fd = ::dup(0); fd >= 0; fd = ::dup(0))
            taken_.push_back(fd);
        taken_all_ = errno == EMFILE;
    }
    no_descriptors(const no_descriptors&) = delete;
    no_descriptors& operator=(const no_descriptors&) = delete;
    ~no_descriptors()
    {
        for (const int fd : taken_)
            ::close(fd);
        ::setrlimit(RLIMIT_NOFILE, &before_);
    }

    bool taken_all() const noexcept { return taken_all_; }

private:
    rlimit before_{};
    std::vector<int> taken_;
    bool taken_all_ = false;
};

TEST_SUITE_BEGIN("http_endpoint without resources");

TEST_CASE("without descriptors the endpoint neither ends nor keeps a thread busy")
{
    asio::io_context io;
    const registry metrics(io.get_executor());
    const auto endpoint = http_endpoint::start(io.get_executor(), metrics).value();
    auto first = test::connected(io, endpoint.port());
    auto second = test::connected(io, endpoint.port());
    {
        const no_descriptors all;
        REQUIRE(all.taken_all());
        const auto begin = std::chrono::steady_clock::now();
        const auto handlers = io.run_for(std::chrono::milliseconds(400));
        const auto elapsed = std::chrono::steady_clock::now() - begin;
        // Three for each try: the end of the pause, the turn on the strand, and the strand's own.
        const auto tries = static_cast<std::size_t>(elapsed / std::chrono::milliseconds(50)) + 2;
        CHECK(handlers <= 3 * tries);
        CHECK(handlers >= 1);
    }
    for (auto* socket : {&first, &second}) {
        const auto exchange = [&]() -> asio::awaitable<std::string> {
            co_await test::send(*socket, test::last_request("GET", "/healthz"));
            co_return co_await test::read_all(*socket);
        };
        CHECK(status_of(test::co_run(io, exchange())) == 200);
    }
    CHECK(status_of(test::co_run(io, test::exchange(endpoint.port(), test::last_request("GET", "/metrics")))) == 200);
}

TEST_CASE("an endpoint without descriptors can be stopped")
{
    asio::io_context io;
    const registry metrics(io.get_executor());
    const auto endpoint = http_endpoint::start(io.get_executor(), metrics).value();
    auto client = test::connected(io, endpoint.port());
    {
        const no_descriptors all;
        REQUIRE(all.taken_all());
        io.run_for(std::chrono::milliseconds(60));
        CHECK(test::await(io, endpoint.async_stop()));
    }
    CHECK(test::co_run(io, test::read_all(client)).empty());
    test::run_out(io);
}

TEST_SUITE_END();

} // namespace

} // namespace test_telemetry_http_endpoint_exhausted
