#ifndef COACCEL_TEST_UNIT_SERVE_LARGE_ROWS_FIXTURE_HPP
#define COACCEL_TEST_UNIT_SERVE_LARGE_ROWS_FIXTURE_HPP

#include "device/blocking_pool.hpp"
#include "held_lane.hpp"
#include "held_memory.hpp"
#include "serve/plan_runner.hpp"

#include <doctest/doctest.h>

#include <memory>
#include <optional>

namespace test {

/// The inputs of a batch, with padding, are just large enough for another thread, and so are the outputs of two rows.
inline constexpr std::size_t large_row = coaccel::detail::least_copied_elsewhere / sizeof(float) / 2;

/// Occupies all threads for copies, so that further copies wait.
struct held_copies {
    explicit held_copies(asio::io_context& io, int count = threads)
    {
        auto& pool = asio::use_service<coaccel::detail::blocking_pool>(io);
        for (int i = 0; i < count; ++i)
            REQUIRE(pool.run(coaccel::detail::blocking_pool::kind::copying, [g = gate]() mutable { g.pass(); }));
        gate.wait_for(count);
    }
    ~held_copies() { gate.open(); }

    static constexpr int threads = 4;
    test::gate gate;
};

/// Turns of the executor, in which something could wrongly happen.
inline void run_turns(asio::io_context& io)
{
    for (int i = 0; i < 100; ++i) {
        io.restart();
        io.poll();
    }
}

/// Which copy of a batch is held.
enum class copied { inputs, outputs };

struct large_fixture : batcher_fixture {
    explicit large_fixture(const coaccel::device_options& o = one_lane()) : batcher_fixture(o) {}

    coaccel::serve::dynamic_batcher make_large(const coaccel::serve::batcher_options& options = {})
    {
        return make(options, {plus_one_model({2}, large_row)});
    }

    std::shared_ptr<row_run> start_large(const coaccel::serve::dynamic_batcher& b, float first, std::size_t rows = 1,
                                         const coaccel::exec_options& how = {})
    {
        return start(b, first, rows, how, large_row);
    }

    /// A batch of two requests, whose copy waits for a thread until `held` is reset. `how` is for the first one.
    row_runs start_waiting(const coaccel::serve::dynamic_batcher& b, copied what, std::optional<held_copies>& held,
                           const coaccel::exec_options& how = {})
    {
        std::optional<held_lane> lane;
        if (what == copied::inputs)
            held.emplace(io);
        else
            lane.emplace(*this);
        const auto started = b.stats().form_time.count;
        row_runs all{start_large(b, 1, 1, how), start_large(b, 2)};
        run_until(io, [&] { return b.stats().in_flight == 1; });
        if (lane) {
            run_until(io, [&] { return b.stats().form_time.count == started + 1; });
            held.emplace(io);
            lane->open();
            // Behind the run of the batch, on the only lane.
            REQUIRE(await(io, gpu.async_exec(coaccel::memory::fill<float>{lane->block, 1.0f})));
        }
        run_turns(io);
        return all;
    }

    /// A batch of two requests, whose copy runs and is held by the memory of the first one.
    struct running_copy {
        running_copy(large_fixture& f, const coaccel::serve::dynamic_batcher& b, copied what,
                     const coaccel::exec_options& how = {})
            : fixture(f), plain(large_row, what == copied::inputs ? -1.0f : 1.0f),
              held(large_row, what == copied::inputs ? 1.0f : -1.0f),
              x(what == copied::inputs ? held.elements() : plain), y(what == copied::inputs ? plain : held.elements())
        {
            b.with(how).async_run(coaccel::from(x), coaccel::to(y),
                                  asio::bind_cancellation_slot(signal.slot(), [this](coaccel::error_code result) {
                                      ec = result;
                                      ++completions;
                                  }));
            second = fixture.start_large(b, 2);
            run_until(f.io, [this] { return held.reached(); });
        }

        coaccel::error_code outcome()
        {
            run_until(fixture.io, [this] { return completions > 0; });
            CHECK(completions == 1);
            return ec;
        }

        large_fixture& fixture;
        std::vector<float> plain;
        held_memory held;
        std::span<float> x;
        std::span<float> y;
        asio::cancellation_signal signal;
        std::shared_ptr<row_run> second;
        coaccel::error_code ec;
        int completions = 0;
    };
};

} // namespace test

#endif
