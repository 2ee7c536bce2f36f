#ifndef COACCEL_TEST_UNIT_SERVE_FAIR_SHARE_FIXTURE_HPP
#define COACCEL_TEST_UNIT_SERVE_FAIR_SHARE_FIXTURE_HPP

#include "support/co_run.hpp"
#include "support/devices.hpp"

#include <coaccel/serve/fair_share.hpp>

#include <boost/asio/io_context.hpp>
#include <doctest/doctest.h>

#include <chrono>
#include <optional>
#include <string>
#include <utility>

namespace test_serve_fair_share {

using namespace coaccel;
using namespace std::chrono_literals;
using serve::enter_options;
using serve::fair_share;
using serve::fair_share_options;
using serve::permit;

inline fair_share_options one_at_a_time()
{
    fair_share_options o;
    o.name = "share";
    o.max_running = 1;
    o.others.burst = 0ns;
    return o;
}

struct fixture {
    explicit fixture(const fair_share_options& o = one_at_a_time())
        : share(fair_share::create(io.get_executor(), o).value())
    {}
    ~fixture()
    {
        share = {};
        test::run_out(io);
    }

    /// A turn that begins at once.
    permit enter(const std::string& tenant = "a", const enter_options& how = {})
    {
        auto r = test::await(io, share.async_enter(tenant, how));
        REQUIRE(r);
        return std::move(r).value();
    }

    asio::io_context io;
    fair_share share;
};

/// What became of a request.
struct outcome {
    std::optional<error_code> ended;
    permit turn;

    auto handler()
    {
        return [this](error_code ec, permit p) {
            ended = ec;
            turn = std::move(p);
        };
    }
};

} // namespace test_serve_fair_share

#endif
