#ifndef COACCEL_TEST_UNIT_SERVE_FORMER_FIXTURE_HPP
#define COACCEL_TEST_UNIT_SERVE_FORMER_FIXTURE_HPP

#include "serve/batch_former.hpp"

#include <doctest/doctest.h>

#include <deque>
#include <utility>
#include <vector>

namespace test {

using requests = std::vector<coaccel::detail::batch_request*>;
using former_clock = coaccel::exec_options::clock;

class fake_request final : public coaccel::detail::batch_request {
public:
    explicit fake_request(std::uint64_t shape = 0, std::uint32_t rows = 1, const coaccel::exec_options& how = {})
        : batch_request(shape, rows, how)
    {}

    void post() override {}
    void destroy() noexcept override {}
};

constexpr auto former_start = former_clock::time_point(std::chrono::hours(1));

inline coaccel::detail::batch_rules former_rules()
{
    coaccel::detail::batch_rules r;
    r.name = "batcher";
    r.max_rows = 4;
    r.max_delay = std::chrono::microseconds(100);
    r.max_in_flight = 2;
    r.max_queued = {8, 8, 8};
    return r;
}

/// A former with its requests, which stay where they are.
struct former_fixture {
    explicit former_fixture(coaccel::detail::batch_rules r = former_rules()) : former(std::move(r)) {}

    fake_request& add(std::uint64_t shape = 0, std::uint32_t rows = 1, const coaccel::exec_options& how = {})
    {
        fake_request& r = made.emplace_back(shape, rows, how);
        r.refused = former.offer(r, now);
        return r;
    }

    /// The requests of the next batch; empty if none may start.
    requests next()
    {
        requests out;
        if (!former.next(now, out, [](std::uint64_t) { return true; }))
            REQUIRE(out.empty());
        return out;
    }

    former_clock::time_point now = former_start;
    std::deque<fake_request> made;
    coaccel::detail::batch_former former;
};

} // namespace test

#endif
