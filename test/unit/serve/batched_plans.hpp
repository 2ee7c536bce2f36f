#ifndef COACCEL_TEST_UNIT_SERVE_BATCHED_PLANS_HPP
#define COACCEL_TEST_UNIT_SERVE_BATCHED_PLANS_HPP

#include "support/device_fixture.hpp"

#include <coaccel/ops/blas.hpp>
#include <coaccel/ops/memory.hpp>
#include <coaccel/plan/plan_builder.hpp>
#include <coaccel/serve/dynamic_batcher.hpp>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>

#include <memory>
#include <string>
#include <vector>

namespace test {

inline constexpr std::size_t row_elements = 4;

/// y = x + 1 for this many rows.
inline coaccel::serve::batch_plan plus_one(std::uint32_t rows, std::size_t elements = row_elements)
{
    const std::size_t all = rows * elements;
    coaccel::plan_builder b("plus_one_" + std::to_string(rows));
    const auto x = b.input<float>(all, "x");
    const auto y = b.output<float>(all, "y");
    const auto one = b.constant<float>(std::vector<float>(all, 1), "one");
    b.add(coaccel::memory::copy<float>{.src = x, .dst = y});
    b.add(coaccel::blas::axpy<float>{.x = one, .y = y, .n = all, .alpha = 1});
    return {rows, b.finish().value()};
}

inline coaccel::serve::batch_model plus_one_model(std::vector<std::uint32_t> sizes = {1, 4},
                                                  std::size_t elements = row_elements)
{
    std::vector<coaccel::serve::batch_plan> plans;
    for (const auto rows : sizes)
        plans.push_back(plus_one(rows, elements));
    return coaccel::serve::batch_model::create(std::move(plans)).value();
}

/// A request with its memory.
struct row_run {
    bool ended() const noexcept { return completions > 0; }

    bool is_right() const
    {
        auto expected = x;
        for (float& v : expected)
            v += 1;
        return completions == 1 && !ec && y == expected;
    }

    std::vector<float> x;
    std::vector<float> y;
    asio::cancellation_signal signal;
    coaccel::error_code ec;
    int completions = 0;
    /// The number of requests that had ended before.
    int place = 0;
};

using row_runs = std::vector<std::shared_ptr<row_run>>;

struct batcher_fixture : device_fixture {
    explicit batcher_fixture(const coaccel::device_options& o = on_host(with_mode(coaccel::host_mode::pool)))
        : device_fixture(o)
    {}

    coaccel::serve::dynamic_batcher make(const coaccel::serve::batcher_options& options = {},
                                         std::vector<coaccel::serve::batch_model> models = {plus_one_model()})
    {
        auto made = await(io, coaccel::serve::dynamic_batcher::async_create(io.get_executor(), std::vector{gpu},
                                                                            std::move(models), options));
        REQUIRE_MESSAGE(made, made.error().message());
        return std::move(made).value();
    }

    std::shared_ptr<row_run> start(const coaccel::serve::dynamic_batcher& b, float first = 0, std::size_t rows = 1,
                                   const coaccel::exec_options& how = {}, std::size_t elements = row_elements)
    {
        auto r = std::make_shared<row_run>();
        for (std::size_t i = 0; i < rows * elements; ++i)
            r->x.push_back(first + static_cast<float>(i));
        r->y.assign(r->x.size(), -1);
        auto on_end = [r, this](coaccel::error_code ec) {
            ++r->completions;
            r->ec = ec;
            r->place = ended_++;
        };
        b.with(how).async_run(coaccel::from(r->x), coaccel::to(r->y),
                              asio::bind_cancellation_slot(r->signal.slot(), on_end));
        return r;
    }

    row_runs start_many(const coaccel::serve::dynamic_batcher& b, int count)
    {
        row_runs all;
        for (int i = 0; i < count; ++i)
            all.push_back(start(b, static_cast<float>(i)));
        return all;
    }

    coaccel::error_code outcome(const std::shared_ptr<row_run>& r)
    {
        run_until(io, [&] { return r->ended(); });
        CHECK(r->completions == 1);
        return r->ec;
    }

    void check_right(const row_runs& all)
    {
        for (const auto& r : all) {
            const auto ec = outcome(r);
            CHECK_MESSAGE(!ec, ec.message());
            CHECK(r->is_right());
        }
    }

private:
    int ended_ = 0;
};

} // namespace test

#endif
