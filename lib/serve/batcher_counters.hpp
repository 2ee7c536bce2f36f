#ifndef COACCEL_SERVE_BATCHER_COUNTERS_HPP
#define COACCEL_SERVE_BATCHER_COUNTERS_HPP

#include <coaccel/serve/batcher_stats.hpp>

#include <boost/asio/error.hpp>

#include <array>
#include <atomic>
#include <cstdint>

namespace coaccel::detail {

/// The counters behind batcher_stats. Changed in the batcher's turns, read on any thread.
class batcher_counters {
public:
    using counter = std::atomic<std::uint64_t>;

    static void add(counter& c, std::uint64_t n = 1) noexcept
    {
        // One writer at a time.
        c.store(c.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
    }

    void answered(const error_code& ec, bool accepted) noexcept
    {
        if (!ec)
            add(completed);
        else if (ec == asio::error::operation_aborted)
            add(cancelled);
        else if (ec == errc::deadline_exceeded)
            add(expired);
        else
            add(accepted ? failed : refused);
    }

    serve::batcher_stats snapshot() const
    {
        serve::batcher_stats s;
        for (std::size_t p = 0; p < priority_count; ++p)
            s.queued[p] = queued[p].load(std::memory_order_relaxed);
        const auto get = [](const counter& c) { return c.load(std::memory_order_relaxed); };
        s.in_flight = get(in_flight);
        s.completed = get(completed);
        s.failed = get(failed);
        s.cancelled = get(cancelled);
        s.expired = get(expired);
        s.refused = get(refused);
        s.batches = get(batches);
        s.rows = get(rows);
        s.padding = get(padding);
        s.split = get(split);
        s.restarts = get(restarts);
        s.sizes = sizes.snapshot();
        s.queue_time = queue_time.snapshot();
        s.form_time = form_time.snapshot();
        s.run_time = run_time.snapshot();
        return s;
    }

    std::array<counter, priority_count> queued{};
    counter in_flight{0};
    counter completed{0};
    counter failed{0};
    counter cancelled{0};
    counter expired{0};
    counter refused{0};
    counter batches{0};
    counter rows{0};
    counter padding{0};
    counter split{0};
    counter restarts{0};
    telemetry::histogram sizes{telemetry::histogram_options::sizes()};
    telemetry::histogram queue_time;
    telemetry::histogram form_time;
    telemetry::histogram run_time;
};

} // namespace coaccel::detail

#endif
